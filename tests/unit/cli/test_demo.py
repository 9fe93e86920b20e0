from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from localspec.catalog.embedded import find_smollm2
from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.errors import ModelFileError
from localspec.session import demo
from tests.scripted_engine import EchoEngine


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSPEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(demo, "find_smollm2", lambda: tmp_path / "smollm2.gguf")


@pytest.mark.usefixtures("own_cache")
def test_the_demo_makes_its_models_and_measures(capsys: pytest.CaptureFixture[str]) -> None:
    engine = EchoEngine()
    arguments = ["demo", "--pairs", "1", "--max-tokens", "8"]
    assert run([*arguments, "--json"], Services(make_engine=lambda: engine)) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert [(entry["name"], entry["is_copy_heavy"]) for entry in document["workloads"]] == [
        ("quote", True),
        ("chat", False),
        ("story", False),
    ]
    assert [arm["name"] for arm in document["workloads"][0]["arms"]] == ["off", "draft", "ngram", "auto"]
    assert [entry["temperature"] for entry in document["workloads"]] == [0, 0, 0.8]
    assert "making SmolLM2-135M F16 (once)" in captured.err
    assert "take three or more" in captured.err
    assert engine.is_closed

    assert run(arguments, Services(make_engine=EchoEngine)) == 0
    captured = capsys.readouterr()
    assert "making" not in captured.err
    rows = ("decode_tps", "speedup", "acceptance", "tau", "TTFT", "TPOT p50 / p95", "saved passes", "same text?")
    for row in rows:
        assert [line.startswith(row) for line in captured.out.splitlines()].count(True) == 3


def test_without_the_model_the_demo_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> Path:
        raise ModelFileError("The demo's model is not installed.", "Run `pip install`.")

    monkeypatch.setattr(demo, "find_smollm2", missing)
    assert run(["demo"], Services(make_engine=EchoEngine)) == 1
    assert "hint: Run `pip install`." in capsys.readouterr().err


@pytest.mark.model
def test_a_real_model_from_a_real_command_line() -> None:
    arguments = ["bench", str(find_smollm2()), "--method", "ngram", "--workload", "quote"]
    arguments += ["--pairs", "1", "--max-tokens", "12", "--json"]
    result = subprocess.run(
        [sys.executable, "-m", "localspec", *arguments], capture_output=True, text=True, timeout=110, check=False
    )
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert document["target"]["architecture"] == "llama"
    off, ngram = document["workloads"][0]["arms"]
    assert (off["num_tokens"], ngram["num_tokens"]) == (12, 12)
    assert ngram["speculation"] == "on"
    assert ngram["num_tokens"] == ngram["num_target_passes"] + ngram["num_accepted_tokens"] - ngram["num_cut"]
    assert document["workloads"][0]["same_text"]["kind"] in ("identical", "rounding")
