from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from localspec.cli import tune as tune_module
from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.cli.tune_profile import made_up_name
from localspec.engine.interface import Engine
from localspec.engine.requests import LoadModels, Request
from localspec.engine.values import SpeculationSettings
from localspec.hardware.cores import Cores
from localspec.session.profiles import read_profile
from localspec.session.tuning import tuner
from localspec.store.database import Database
from localspec.store.profiles import Profiles, check_name
from localspec.store.runs import Runs
from tests.tuning_kit import SpeedyEngine

pytestmark = pytest.mark.usefixtures("folders")


def good(settings: SpeculationSettings, prompt: str) -> float:
    return 1.5 if settings.method == "suffix" else 0.9


def bad(settings: SpeculationSettings, prompt: str) -> float:
    return 0.8


def tune(engine: SpeedyEngine, monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Run the command with time that passes on the engine's clock."""

    def make() -> Engine:
        return engine

    async def on_its_clock(*given: Any, **more: Any) -> Any:
        return await tuner.tune(*given, **more, clock=engine.clock, cores=Cores(4, 4, 4), read_energy=lambda: None)

    monkeypatch.setattr(tune_module, "tune", on_its_clock)
    code = run(["tune", *map(str, arguments)], Services(make_engine=make))
    return code


def engine_of(truth: Any, **more: Any) -> SpeedyEngine:
    return SpeedyEngine(truth=truth, noise=0.02, rng=random.Random(1), **more)


def test_a_winner_is_kept_as_run_and_profile(
    target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tune(engine_of(good), monkeypatch, target, "--workload", "chat", "--budget", "90s", "--json") == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert captured.out.count("\n") == 1
    assert document["winner"]["setting"]["method"] == "suffix" and document["winner"]["verdict"] == "faster"
    assert document["winner"]["speedup"]["pairs"] >= 5 and document["profile"] == "tuned model -bold"
    with Database() as database:
        profile = read_profile(Profiles(database).get(document["profile"]))
        stored = Runs(database).get(document["run_id"])
    assert profile.document.speculation.method == "suffix" and profile.run_id == document["run_id"]
    assert profile.document.evidence is not None and profile.document.evidence.verdict == "faster"
    assert stored.summary.kind == "tune" and stored.summary.state == "done"
    assert "Best here: suffix" in captured.err and "localspec chat --profile" in captured.err
    assert f"run {document['run_id']} kept: the confirmation" in captured.err


def test_nothing_is_saved_where_off_is_best(
    target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tune(engine_of(bad), monkeypatch, target, "--workload", "chat", "--budget", "90s") == 0
    out = capsys.readouterr().out
    assert "Leave drafts off" in out and "0.80x" in out
    with Database() as database:
        assert Profiles(database).all() == ()


def test_no_keep_keeps_nothing(
    target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (target, "--workload", "chat", "--budget", "90s", "--no-keep", "--json")
    assert tune(engine_of(good), monkeypatch, *arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["winner"] is not None and document["profile"] is None and document["run_id"] is None
    with Database() as database:
        assert Profiles(database).all() == () and Runs(database).summaries() == ()


def test_a_name_that_is_taken_is_refused_before_anything_runs(
    target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (target, "--workload", "chat", "--budget", "90s", "--save", "Quick")
    assert tune(engine_of(good), monkeypatch, *arguments) == 0
    engine = engine_of(good)
    assert tune(engine, monkeypatch, *arguments) == 2
    assert engine.requests == [] and "There is a profile 'Quick' already" in capsys.readouterr().err
    assert tune(engine, monkeypatch, *arguments, "--replace") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "soon"), "is no time"),
        (("--budget", "2s"), "out of range"),
        (("--method", "draft"), "needs one"),
        (("--workload", "nonsense"), "There is no workload"),
        (("--kv", "q9"), "is not one of"),
        (("--save", "/etc/passwd"), "cannot be a profile's name"),
    ],
)
def test_wrong_usage(
    target: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    engine = engine_of(good)
    assert tune(engine, monkeypatch, target, *arguments) == 2
    assert message in capsys.readouterr().err and engine.requests == []


def test_a_budget_that_is_too_small_names_the_least(
    target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tune(engine_of(good, step_s=1.0), monkeypatch, target, "--workload", "chat", "--budget", "60s") == 2
    captured = capsys.readouterr()
    assert "Give at least --budget" in captured.err and captured.out == ""


def test_ctrl_c_says_what_is_known(
    target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os
    import signal

    engine = engine_of(good)

    def interrupt(request: object) -> None:
        if engine.num_runs == 30:
            os.kill(os.getpid(), signal.SIGINT)

    engine.on_request = interrupt
    assert tune(engine, monkeypatch, target, "--workload", "chat", "--budget", "5m", "--json") == 130
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["interrupted"] and document["trials"] and document["winner"] is None
    assert "nothing is confirmed" in captured.err and engine.is_closed


def test_stated_settings_are_not_searched(
    target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(bad)
    arguments = (target, "--workload", "chat", "--budget", "90s", "--threads", "2", "--flash-attn", "--json")
    assert tune(engine, monkeypatch, *arguments) == 0
    assert [trial["name"] for trial in json.loads(capsys.readouterr().out)["loading"]["trials"]] == ["as given"]
    assert engine.num_loads == 1 and engine.context.n_threads == 2


def test_made_up_names_can_be_names() -> None:
    for stem in ("model", "[red]", "\x1b[31m", "a" * 200, "..", "日本 7B", "-x"):
        name = check_name(made_up_name(Path(f"{stem}.gguf"), set()))
        assert made_up_name(Path(f"{stem}.gguf"), {name.casefold()}) != name


def test_stated_threads_of_the_draft_stay(
    target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = target.with_name("draft.gguf")
    draft.write_bytes(b"GGUF")
    for more, is_stated in (((), False), (("--draft-threads", "1"), True)):
        engine = engine_of(good, draft_step=lambda context: 0.2 if context.n_threads == 2 else 0.6)
        seen: set[int] = set()

        def watch(request: Request, seen: set[int] = seen) -> None:
            if isinstance(request, LoadModels):
                seen.add(request.draft_context.n_threads)

        engine.on_request = watch
        arguments = (target, "--draft", draft, "--workload", "chat", "--budget", "90s", "--no-keep", "--json", *more)
        assert tune(engine, monkeypatch, *arguments) == 0
        changes = json.loads(capsys.readouterr().out)["loading"]["changes"]
        assert ("draft threads 2" in changes) is not is_stated
        assert (seen == {1}) is is_stated
