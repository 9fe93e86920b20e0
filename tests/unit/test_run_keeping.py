"""Keeping a measurement: what is kept while it goes on, what is kept of its end, and a store that fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from localspec.catalog.workloads import Prompt, Workload, load_workloads
from localspec.engine.events import EngineFailed, Event
from localspec.engine.requests import Generate, Request
from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.errors import LocalspecError, StoreError
from localspec.session.arms import build_arms
from localspec.session.measurement import Measurement, MeasurementPlan, MeasurementProgress, measure, measurement_record
from localspec.session.records import document_of, encode_record
from localspec.session.run_keeping import RunKeeper, plan_of, request_of
from localspec.store.database import Database
from localspec.store.runs import Runs
from localspec.store.values import StoredRun
from tests.scripted_engine import ArmScript, ScriptedEngine


def workload(name: str, temperature: float | None = None) -> Workload:
    return Workload(name, name.title(), "", name == "edit", temperature, (Prompt("one", "Be kind.", f"{name}?"),))


def plan(folder: Path, *workloads: Workload, num_pairs: int = 3, draft: bool = True) -> MeasurementPlan:
    for name in ("target.gguf", "draft.gguf"):
        (folder / name).write_bytes(b"GGUF")
    return MeasurementPlan(
        target=folder / "target.gguf",
        draft=folder / "draft.gguf" if draft else None,
        context=ContextSettings(n_ctx=256),
        arms=build_arms(("off", "draft", "ngram"), SpeculationSettings(n_max=4)),
        workloads=workloads or (workload("chat"), workload("edit", 0.8)),
        sampling=SamplingSettings(seed=3),
        is_temperature_fixed=False,
        max_tokens=20,
        num_pairs=num_pairs,
        warmup_tokens=4,
        with_hashes=True,
    )


@dataclass
class Kept:
    """A measurement that was kept, and all that was said of it."""

    folder: Path
    notices: list[str] = field(default_factory=list)
    measurement: Measurement | None = None
    run_id: int | None = None
    on_progress: Callable[[MeasurementProgress], None] = lambda progress: None

    def database(self) -> Database:
        return Database(self.folder / "kept.sqlite3")

    async def measure(self, engine: ScriptedEngine, what: MeasurementPlan, keeper: RunKeeper | None = None) -> None:
        keeper = keeper or RunKeeper("bench", self.database, self.notices.append, "daily")
        try:
            self.measurement = await measure(engine, what, keeper.watching(lambda progress: self.on_progress(progress)))
        except LocalspecError as error:
            keeper.fail(error.message)
            raise
        self.run_id = keeper.finish(self.measurement)

    def stored(self, run_id: int = 1) -> StoredRun:
        with self.database() as database:
            return Runs(database).get(run_id)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


async def test_the_end_is_the_whole_document(kept: Kept, tmp_path: Path) -> None:
    await kept.measure(ScriptedEngine(), plan(tmp_path))
    assert kept.run_id == 1 and kept.notices == []
    assert kept.measurement is not None
    stored = kept.stored()
    assert stored.document == json.loads(encode_record(measurement_record(kept.measurement)))
    assert (stored.trials, stored.rounds) == ((), ())
    summary = stored.summary
    assert (summary.state, summary.kind, summary.profile) == ("done", "bench", "daily")
    assert (summary.target_name, summary.draft_name, summary.workloads) == ("target", "draft", ("chat", "edit"))
    assert summary.best_arm in ("draft", "ngram") and (summary.speedup or 0.0) > 1.0
    assert document_of(stored) == {**(stored.document or {}), "run_id": 1}


async def test_rounds_and_trials_are_there_while_it_goes_on(kept: Kept, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    rounds_told: list[int] = []

    def look(progress: MeasurementProgress) -> None:
        comparison = progress.comparison
        if comparison is None or comparison.phase != "trial" or comparison.event is None:
            return
        if getattr(comparison.event, "type", "") == "generation_finished":
            stored = kept.stored()
            assert stored.summary.state == "running"
            seen.append((len(stored.trials), len(stored.rounds)))
            rounds_told.append(len(stored.rounds))
            assert {record["arm"] for record in stored.rounds} == {comparison.arm.name}
            assert stored.rounds[0]["emitted"] == 1

    kept.on_progress = look
    await kept.measure(ScriptedEngine(), plan(tmp_path, workload("chat")))
    assert [num_trials for num_trials, _ in seen] == list(range(10))
    assert all(num_rounds > 3 for _, num_rounds in seen)
    assert kept.measurement is not None
    trials = sorted(
        (trial for arm in kept.measurement.results[0].arms for trial in arm.trials), key=lambda trial: trial.place
    )
    assert rounds_told[:9] == [len(trial.rounds) for trial in trials]


class Powercut(BaseException):
    """Ends everything at once, as a kill does."""


@pytest.mark.parametrize("num_generations", [4, 6, 13, 19, 25])
async def test_what_was_lost_on_the_way_gives_the_figures_that_it_had(
    kept: Kept, tmp_path: Path, num_generations: int
) -> None:
    engine = ScriptedEngine(scripts={"draft": ArmScript(accepted=(2, 0, 4))}, noise=0.2)
    num_rounds = 0

    def on_round(engine: ScriptedEngine, event: object) -> None:
        nonlocal num_rounds
        num_rounds = num_rounds + 1 if len(engine.generated) == num_generations else 0
        if num_rounds == 4:
            raise Powercut

    engine.on_round = on_round
    what = plan(tmp_path)
    with pytest.raises(Powercut):
        await kept.measure(engine, what)
    with kept.database() as database:
        database.connection.execute("UPDATE runs SET process_started_at = 0")
    stored = kept.stored()
    assert (stored.summary.state, stored.summary.finished_at, stored.document) == ("lost", "", None)
    assert stored.summary.target_name == "target"
    document = document_of(stored)

    # The same engine, stopped at the same place by the user, tells what the figures were.
    other = Kept(tmp_path / "other")
    other.folder.mkdir()
    engine = ScriptedEngine(scripts={"draft": ArmScript(accepted=(2, 0, 4))}, noise=0.2)

    class Stop(asyncio.CancelledError):
        pass

    def stop(engine: ScriptedEngine, event: object) -> None:
        nonlocal num_rounds
        num_rounds = num_rounds + 1 if len(engine.generated) == num_generations else 0
        if num_rounds == 4:
            raise Stop

    engine.on_round = stop
    await other.measure(engine, what)
    whole = document_of(other.stored())
    assert whole["interrupted"] and document["interrupted"]
    same = ("schema", "build", "target", "draft", "settings", "memory", "notes")
    assert {name: document[name] for name in same} == {name: whole[name] for name in same}
    known = [entry for entry in whole["workloads"] if entry["trials"]]
    assert [entry["name"] for entry in document["workloads"]] == [entry["name"] for entry in known]
    for mine, theirs in zip(document["workloads"], known, strict=True):
        assert_same_figures(mine, theirs)
    unfinished = document["unfinished"]
    assert len(unfinished["rounds"]["emitted"]) == 3
    assert unfinished["arm"] in ("off", "draft", "ngram")
    assert "without a word" in document["failure"]


def assert_same_figures(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert (mine["pairs"], mine["temperature"], mine["notes"]) == (
        theirs["pairs"],
        theirs["temperature"],
        theirs["notes"],
    )
    assert [trial["place"] for trial in mine["trials"]] == [trial["place"] for trial in theirs["trials"]]
    assert mine["interrupted"] == theirs["interrupted"]
    for one, other in zip(mine["arms"], theirs["arms"], strict=True):
        assert set(one) == set(other)
        # Texts cannot be compared any more.
        assert one["same_text"] is None
        for name in set(one) - {"same_text"}:
            assert one[name] == approximately(other[name]), name
    for one, other in zip(mine["trials"], theirs["trials"], strict=True):
        for name in one:
            assert one[name] == approximately(other[name]), name


def approximately(value: Any) -> Any:
    """Times of rounds are kept to the microsecond."""
    if isinstance(value, dict):
        return {name: approximately(item) for name, item in value.items()}
    if isinstance(value, list):
        return [approximately(item) for item in value]
    return pytest.approx(value, rel=1e-3, abs=1e-4) if isinstance(value, float) else value


class DyingEngine(ScriptedEngine):
    """Dies in a generation."""

    dies_at = 1

    async def stream(self, request: Request) -> Any:
        if isinstance(request, Generate) and len(self.generated) + 1 >= self.dies_at:
            yield EngineFailed(request.id, "EngineDiedError", "Killed (signal 9).", "", is_fatal=True)
            return
        async for event in super().stream(request):
            answer: Event = event
            yield answer


async def test_a_failure_before_the_first_trial_is_kept_with_its_reason(kept: Kept, tmp_path: Path) -> None:
    with pytest.raises(LocalspecError, match="signal 9"):
        await kept.measure(DyingEngine(), plan(tmp_path))
    stored = kept.stored()
    assert stored.summary.state == "failed" and stored.summary.finished_at
    document = document_of(stored)
    assert (document["failure"], document["workloads"], document["interrupted"]) == ("Killed (signal 9).", [], False)
    assert document["target"]["sha256"]


async def test_a_failure_later_on_keeps_what_was_measured(kept: Kept, tmp_path: Path) -> None:
    engine = DyingEngine()
    engine.dies_at = 8
    await kept.measure(engine, plan(tmp_path))
    stored = kept.stored()
    assert stored.summary.state == "failed"
    assert stored.document is not None
    assert len(stored.document["workloads"][0]["trials"]) == 4


async def test_a_measurement_that_loads_nothing_leaves_no_run(kept: Kept, tmp_path: Path) -> None:
    engine = ScriptedEngine(failures={"load_models": EngineFailed(1, "ModelFileError", "It is damaged.", "")})
    with pytest.raises(LocalspecError):
        await kept.measure(engine, plan(tmp_path))
    assert not (tmp_path / "kept.sqlite3").exists()


async def test_a_store_that_cannot_be_opened_is_said_once_and_disturbs_nothing(kept: Kept, tmp_path: Path) -> None:
    def refuse() -> Database:
        raise StoreError("The disk is read-only.", "Buy another one.")

    await kept.measure(ScriptedEngine(), plan(tmp_path), RunKeeper("bench", refuse, kept.notices.append))
    assert kept.notices == ["This run is not kept: The disk is read-only. Buy another one."]
    assert kept.run_id is None
    assert kept.measurement is not None and len(kept.measurement.results) == 2


async def test_a_store_that_fails_on_the_way_still_gets_the_document(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_asked = 0

    def fail(*_: object) -> None:
        nonlocal num_asked
        num_asked += 1
        raise StoreError("There is no room left.")

    monkeypatch.setattr(Runs, "add_round", fail)
    await kept.measure(ScriptedEngine(), plan(tmp_path))
    assert num_asked == 1
    assert kept.notices == ["The rounds of this run are not kept as they come: There is no room left."]
    assert kept.run_id == 1
    assert kept.stored().document is not None


async def test_a_store_that_fails_in_the_end_is_said(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("There is no room left.")

    monkeypatch.setattr(Runs, "finish", fail)
    await kept.measure(ScriptedEngine(), plan(tmp_path))
    assert kept.notices == ["This run is not kept: There is no room left."]
    assert kept.run_id is None


async def test_a_run_that_is_put_aside_meanwhile_still_gets_the_document(kept: Kept, tmp_path: Path) -> None:
    num_events = 0

    def delete(progress: MeasurementProgress) -> None:
        nonlocal num_events
        num_events += 1
        if num_events == 60:
            with kept.database() as database:
                Runs(database).delete(1)

    kept.on_progress = delete
    await kept.measure(ScriptedEngine(), plan(tmp_path))
    assert kept.run_id == 2
    assert kept.stored(2).document is not None


def test_a_plan_comes_back_as_it_was(tmp_path: Path) -> None:
    name = b"odd \xff \xe2\x98\x83.gguf".decode("utf-8", "surrogateescape")
    what = MeasurementPlan(
        target=tmp_path / name,
        draft=Path("/models/draft.gguf"),
        context=ContextSettings(n_ctx=512, type_k="q8_0", experts_on_cpu=True),
        arms=build_arms(("off", "draft", "ngram"), SpeculationSettings(n_max=7, p_min=0.25)),
        workloads=(*load_workloads(), workload("own", 1.5)),
        sampling=SamplingSettings(temperature=0.7, seed=9, grammar="root ::= [a-z]"),
        is_temperature_fixed=True,
        max_tokens=33,
        num_pairs=5,
        warmup_tokens=0,
        ignore_eog=True,
        with_hashes=True,
        draft_context=ContextSettings(n_gpu_layers=3),
        reserve_bytes=123,
        is_forced=True,
    )
    request = json.loads(json.dumps(request_of(what, ("ab" * 32, None))))
    assert plan_of(request) == what
    assert request["target"] == {"path": str(what.target), "sha256": "ab" * 32, "file_bytes": None}
    assert request["draft"] == {"path": "/models/draft.gguf", "sha256": None, "file_bytes": None}
    sums = [prompt["sha256"] for entry in request["workloads"] for prompt in entry["prompts"]]
    assert len(set(sums)) == len(sums) and {len(value) for value in sums} == {64}


@pytest.mark.parametrize("spoil", [{"arms": None}, {"target": None}, {"max_tokens": "many"}, {"draft": 3}])
def test_a_request_that_cannot_be_read_is_a_failure_in_words(spoil: dict[str, Any], tmp_path: Path) -> None:
    request = {**request_of(plan(tmp_path)), **spoil}
    with pytest.raises(StoreError, match="settings of this run cannot be read"):
        plan_of(request)


async def test_files_are_kept_by_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = request_of(plan(Path()))
    assert request["target"] == {"path": str(tmp_path / "target.gguf"), "sha256": None, "file_bytes": 4}
    assert request["draft"]["path"] == str(tmp_path / "draft.gguf")


async def test_a_run_whose_file_was_taken_away_is_kept_anew_and_said(tmp_path: Path) -> None:
    store, notices = tmp_path / "store.sqlite3", list[str]()
    keeper = RunKeeper("bench", lambda: Database(store), notices.append)

    def watch(progress: MeasurementProgress) -> None:
        if keeper.run_id is not None and store.exists() and not notices:
            store.unlink()

    engine = ScriptedEngine()
    measurement = await measure(engine, plan(tmp_path), keeper.watching(watch))
    run_id = keeper.finish(measurement)
    assert run_id is not None
    # The log that lay beside it tells that it was there.
    assert "is gone" in notices[0] and "was removed or replaced while this was measured" in notices[1]
    with Database(store) as database:
        document = Runs(database).get(run_id).document
    assert document is not None and len(document["workloads"]) == 2
