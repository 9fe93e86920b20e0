from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.catalog.found_model import FoundModel
from localspec.cli.main import run
from localspec.cli.screen import DASH
from localspec.cli.services import Services
from localspec.cli.show import Description, fact_rows, show_record
from localspec.errors import HubError
from localspec.session.located import LocatedModel, local_model
from tests.candidate_kit import curated, engine, facts
from tests.scripted_engine import EchoEngine
from tests.unit.cli.test_search import OpenHub

FOUND = FoundModel("a-Q4_0", Path("/models/a-Q4_0.gguf"), (Path("/models/a-Q4_0.gguf"),), "folder", "o/a", "Q4_0")


def rows(**changes: object) -> dict[str, str]:
    return dict(fact_rows(replace(facts(), **changes), local_model(FOUND)))  # type: ignore[arg-type]


def test_facts_as_lines() -> None:
    shown = rows()
    assert shown["title"] == "Qwen3 8B" and shown["architecture"] == "qwen3"
    assert shown["trained context"] == "32768 positions" and shown["layers, width"] == "36, 4096"
    assert shown["file"] == "/models/a-Q4_0.gguf"
    assert shown["licence"] == "not stated in the file" and shown["chat template"] == "none"
    for absent in ("experts", "made from", "made for", "shards"):
        assert absent not in shown
    assert rows(title="", quantisation="", n_ctx_train=0)["trained context"] == f"{DASH} positions"


def test_facts_that_only_some_models_have() -> None:
    assert rows(num_experts=128, num_experts_used=8)["experts"] == "8 of 128 used for a token"
    assert rows(base_models=("o/a", "o/b"))["made from"] == "o/a, o/b"
    head = rows(draft_only="eagle3", target_hidden_size=4096, target_layers=(2, 18, 33))
    assert head["made for"] == "a target of width 4096, reading its layers 2, 18, 33"
    assert head["remarks"] == "eagle3 draft only"
    split = replace(FOUND, shards=(Path("/m/a"), Path("/m/b")))
    assert dict(fact_rows(facts(), local_model(split)))["shards"] == "2"


def test_a_record_says_whether_the_model_is_here() -> None:
    local = show_record(Description(local_model(FOUND), facts(), None, (), (curated("o/d"),)))
    assert (local["name"], local["is_remote"], local["path"]) == ("a-Q4_0", False, "/models/a-Q4_0.gguf")
    assert [pair["draft_repo"] for pair in local["pairs"]] == ["o/d"]
    remote = show_record(Description(LocatedModel("o/a:Q4_0", Path("/cache/header"), None), facts(), None, (), ()))
    assert (remote["is_remote"], remote["path"], remote["commit"]) == (True, None, None)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DATA", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    return path


def test_a_local_file_asks_no_hub(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def no_hub() -> OpenHub:
        raise AssertionError("The Hub was asked.")

    services = Services(engine, no_hub)  # type: ignore[arg-type]
    assert run(["show", str(model), "--json"], services) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["is_remote"] is False and document["path"] == str(model)
    assert "To look for drafts: localspec pair model" in captured.err
    assert "localspec pull" not in captured.err


def test_failures(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(model)], Services(make_engine=EchoEngine)) == 1
    assert "error: There is no such file.\nhint: Do something else.\n" in capsys.readouterr().err
    hub = OpenHub(failures={"o/gone": HubError("It is gone.", "Look elsewhere.")})
    assert run(["show", "o/gone"], Services(EchoEngine, lambda: hub)) == 1  # type: ignore[arg-type, return-value]
    assert "error: It is gone.\nhint: Look elsewhere.\n" in capsys.readouterr().err
    assert hub.is_closed
    hub.files["o/empty"] = ("README.md",)
    assert run(["show", "o/empty"], Services(EchoEngine, lambda: hub)) == 2  # type: ignore[arg-type, return-value]
    assert "o/empty has no GGUF model." in capsys.readouterr().err
