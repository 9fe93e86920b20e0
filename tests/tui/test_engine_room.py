"""Loading in the app: what stays where only the draft changes, and what counts as free before a load."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from localspec.engine.events import Configured, EngineFailed, Event, LoadProgress, ModelsLoaded
from localspec.engine.requests import Configure, LoadModels, MeasureFootprint, Probe, Request
from localspec.engine.values import ContextSettings, DeviceInfo, SpeculationSettings
from localspec.errors import EngineDiedError, ModelFileError, ModelLoadError
from localspec.planning.devices import PlanDevice
from localspec.planning.footprint import PairFootprint
from localspec.session.fit import placement_of
from localspec.tui.engine_room import EngineRoom
from localspec.tui.state import ChosenModel, EngineState, Workbench
from localspec.tui.widgets.status_line import status_parts
from tests.fit_kit import MODELS, FitEngine, write_models
from tests.plan_kit import MIB, MadeUpModel, Measuring

RESERVE = 100 * MIB
OTHER = MadeUpModel(8, 22 * MIB, 0, 20 * MIB, 10 * MIB, kv_bytes=1024, compute_bytes=8 * MIB)
WIDE = MadeUpModel(4, 60 * MIB, 0, 4 * MIB, 4 * MIB, kv_bytes=512, compute_bytes=8 * MIB)
"""A draft that leaves no room for the whole target on a card of 500 MiB."""


@dataclass
class Card:
    """One GPU that several processes see."""

    size_mib: int = 500
    used_bytes: int = 0

    def info(self) -> DeviceInfo:
        size = self.size_mib * MIB
        return DeviceInfo("CUDA0", "GeForce", "gpu", "CUDA", size - self.used_bytes, size)


class CardEngine(FitEngine):
    """Takes memory of the card when it loads, and gives it back."""

    def __init__(self, card: Card) -> None:
        super().__init__()
        self.card = card
        self.held: LoadModels | None = None
        self.stall = False

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        if self.stall and isinstance(request, Configure | LoadModels):
            self.requests.append(request)
            yield LoadProgress(request.id, "draft", 0.5)
            await asyncio.sleep(60)
        self.gpus = (self.card.info(),)
        async for event in super().stream(request):
            if isinstance(event, ModelsLoaded) and isinstance(request, LoadModels):
                self.held = request
                yield replace(event, footprint=self._take())
            elif isinstance(event, Configured) and isinstance(request, Configure) and request.draft_path is not None:
                assert self.held is not None
                path = request.draft_path if event.draft is not None else ""
                self.held = replace(self.held, draft_path=path, draft_context=request.draft_context)
                yield replace(event, footprint=self._take())
            else:
                yield event

    def _take(self) -> PairFootprint:
        assert self.held is not None
        draft = MODELS[Path(self.held.draft_path).stem] if self.held.draft_path else None
        measuring = Measuring(
            (PlanDevice("CUDA0", "", "gpu", MIB, MIB, 0),), MODELS[Path(self.held.target_path).stem], draft
        )
        drafts = None if draft is None else placement_of(self.held.draft_context)
        footprint = measuring.footprint(placement_of(self.held.context), drafts)
        rows = (row for one in (footprint.target, footprint.draft) if one is not None for row in one.rows)
        self.card.used_bytes = sum(row.total_bytes for row in rows if row.device == "CUDA0")
        return footprint


class Bench:
    """A room on a card, and files of the made-up models."""

    def __init__(self, folder: Path, card: Card) -> None:
        self.engines: list[CardEngine] = []
        self.states: list[EngineState] = []
        self.room = EngineRoom(lambda: self._made(card), self.states.append, RESERVE)
        self.paths = write_models(folder)
        for name in ("other", "wide"):
            (folder / f"{name}.gguf").write_bytes(b"GGUF")
            self.paths[name] = folder / f"{name}.gguf"
        self.bench = replace(Workbench(), speculation=SpeculationSettings("draft", n_max=3))

    def _made(self, card: Card) -> CardEngine:
        engine = CardEngine(card)
        self.engines.append(engine)
        return engine

    def chosen(self, name: str | None) -> ChosenModel | None:
        return None if name is None else ChosenModel(name, self.paths[name])

    async def load(
        self,
        target: str,
        draft: str | None,
        context: ContextSettings | None = None,
        draft_context: ContextSettings | None = None,
    ) -> ModelsLoaded:
        self.bench = replace(
            self.bench,
            target=self.chosen(target),
            draft=self.chosen(draft),
            context=context or self.bench.context,
            draft_context=draft_context or self.bench.draft_context,
        )
        async with self.room.occupied("loading"):
            return await self.room.load(self.bench, lambda event: None)

    @property
    def done(self) -> list[str]:
        """What the engine with the models was asked to load or change."""
        found: list[str] = []
        for one in self.engines[0].requests:
            if isinstance(one, LoadModels):
                found.append(f"load {Path(one.target_path).stem}")
            elif isinstance(one, Configure) and one.draft_path is not None:
                found.append(f"draft {Path(one.draft_path).stem}")
        return found


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setitem(MODELS, "other", OTHER)
    monkeypatch.setitem(MODELS, "wide", WIDE)
    return Bench(tmp_path, Card())


async def test_another_draft_and_none_leave_the_target_loaded(made: Bench) -> None:
    first = await made.load("big", "small")
    assert first.footprint is not None and first.footprint.draft is not None
    without = await made.load("big", None)
    assert without.draft is None and without.footprint is not None and without.footprint.draft is None
    assert made.room.state.loaded == without
    assert made.room.state.speculation is not None
    assert made.room.state.speculation.reason == "there is no draft model"
    back = await made.load("big", "small")
    assert back == replace(first, footprint=back.footprint, speculation=back.speculation)
    assert back.footprint == first.footprint and back.speculation.is_on
    await made.load("big", "small", draft_context=ContextSettings(n_ctx=2048))
    assert made.done == ["load big", "draft ", "draft small", "draft small"]
    await made.load("big", "small")
    assert len(made.done) == 4


async def test_another_context_or_target_loads_anew(made: Bench) -> None:
    await made.load("big", "small")
    await made.load("big", "small", context=ContextSettings(n_ctx=2048))
    await made.load("other", "small")
    assert made.done == ["load big", "load big", "load other"]


async def test_a_target_as_large_as_the_one_before_replaces_it(made: Bench) -> None:
    """Each takes more than half of the card."""
    await made.load("big", None)
    assert made.room.load_plan is not None and made.room.load_plan.context.n_gpu_layers == -1
    loaded = await made.load("other", None)
    assert loaded.target.path == str(made.paths["other"])
    plan = made.room.load_plan.plan
    assert plan is not None and plan.verdict == "FITS"


async def test_a_draft_for_which_the_target_has_to_make_room_loads_both_anew(made: Bench) -> None:
    await made.load("big", "small")
    loaded = await made.load("big", "wide")
    assert made.done == ["load big", "load big"]
    assert loaded.draft is not None and loaded.draft.path == str(made.paths["wide"])
    assert made.room.load_plan is not None and made.room.load_plan.plan is not None
    assert made.room.load_plan.plan.verdict == "FITS_WITH_PARTIAL_OFFLOAD"


async def test_a_context_as_large_as_fits_stays_when_the_draft_goes_and_shrinks_when_one_comes(made: Bench) -> None:
    largest = ContextSettings(n_ctx=0)
    await made.load("big", "small", context=largest, draft_context=largest)
    assert made.room.load_plan is not None
    n_ctx = made.room.load_plan.context.n_ctx
    await made.load("big", None)
    assert made.room.load_plan.context.n_ctx == n_ctx and made.done == ["load big", "draft "]
    await made.room.unload()
    await made.load("big", None)
    assert made.room.load_plan.context.n_ctx > n_ctx
    await made.load("big", "small")
    assert made.room.load_plan.context.n_ctx == n_ctx
    assert made.done == ["load big", "draft ", "load big", "load big"]


async def test_what_does_not_fit_is_refused_and_what_is_loaded_stays(made: Bench) -> None:
    loaded = await made.load("big", "small")
    with pytest.raises(ModelLoadError) as caught:
        await made.load("huge", None)
    assert "Does not fit" in caught.value.message and "--" not in caught.value.hint
    assert made.room.state.loaded == loaded and "Does not fit" in made.room.state.failure
    await made.load("big", "small")
    assert made.done == ["load big"]


async def test_a_missing_file_is_said_before_anything_is_given_up(made: Bench) -> None:
    loaded = await made.load("big", "small")
    made.paths["other"].unlink()
    with pytest.raises(ModelFileError):
        await made.load("other", None)
    assert made.room.state.loaded == loaded


async def test_a_draft_that_fails_leaves_the_target_usable_and_says_why(made: Bench) -> None:
    await made.load("big", None)
    made.engines[0].draft_failure = "its vocabulary is another"
    loaded = await made.load("big", "small")
    assert loaded.draft is None and loaded.draft_failure == "its vocabulary is another"
    state = made.room.state
    assert state.loaded == loaded and state.failure == ""
    assert state.speculation is not None and not state.speculation.is_on
    assert made.done == ["load big", "draft small"]


async def test_a_draft_stopped_on_its_way_is_not_there_and_is_loaded_the_next_time(made: Bench) -> None:
    await made.load("big", None)
    made.engines[0].stall = True
    task = asyncio.create_task(made.load("big", "small"))
    while len(made.done) < 2:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    state = made.room.state
    assert state.loaded is not None and state.loaded.draft is None and state.speculation is None
    made.engines[0].stall = False
    loaded = await made.load("big", "small")
    assert loaded.draft is not None and made.done == ["load big", "draft small", "draft small"]


async def test_an_engine_that_dies_of_a_draft_is_empty_and_the_next_load_loads_both(made: Bench) -> None:
    await made.load("big", None)
    died = EngineFailed(9, "EngineDiedError", "The engine was killed.", "", is_fatal=True)
    made.engines[0].failures["configure"] = died
    with pytest.raises(EngineDiedError):
        await made.load("big", "small")
    assert made.room.state == EngineState(failure="The engine was killed.")
    loaded = await made.load("big", "small")
    assert loaded.draft is not None and made.done == ["load big", "draft small", "load big"]


async def test_planning_leaves_the_process_with_the_models_alone(made: Bench) -> None:
    await made.load("big", "small")
    asked = len(made.engines[0].requests)
    await made.load("big", None)
    await made.load("other", None)
    later = made.engines[0].requests[asked:]
    assert not [one for one in later if isinstance(one, Probe | MeasureFootprint)]


async def test_the_status_names_what_is_loaded_and_not_what_was_chosen_meanwhile(made: Bench) -> None:
    def line(**chosen: ChosenModel | None) -> str:
        return "".join(text for text, _ in status_parts(replace(made.bench, **chosen), made.room.state, 200))  # type: ignore[arg-type]

    await made.load("big", "small")
    assert line().endswith("  big + small")
    assert line(draft=None).endswith("  big + small")
    assert line(target=made.chosen("other")).endswith("  big + small  other chosen, not loaded")
    assert line(draft=made.chosen("wide")).endswith("  big + small  wide chosen, not loaded")
    await made.load("big", None)
    made.engines[0].draft_failure = "its vocabulary is another"
    await made.load("big", "small")
    assert "OFF (there is no draft model)" in line() and line().endswith("  big")


async def test_an_engine_that_died_while_idle_is_noticed_and_loaded_anew(made: Bench) -> None:
    await made.load("big", "small")
    made.engines[0].death, made.engines[0].card.used_bytes = "The engine was killed.", 0
    made.room.look()
    assert made.room.state == EngineState(failure="The engine was killed.")
    made.engines[0].death = ""
    await made.load("big", "small")
    assert made.room.state.loaded is not None and made.room.state.failure == ""
    made.engines[0].death, made.engines[0].card.used_bytes = "The engine was killed.", 0
    await made.load("big", "small")
    assert made.done == ["load big", "load big", "load big"]
