"""Engines that measure made-up models, on this machine with a GPU or without, or on machines described to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from textual.pilot import Pilot

from localspec.engine.events import DevicesRegistered, EngineFailed, Event, FootprintMeasured, ModelsLoaded, Probed
from localspec.engine.requests import MeasureFootprint, Probe, RegisterDevices, Request
from localspec.engine.values import ContextSettings, DeviceInfo, SpeculationSettings, SpeculationState
from localspec.planning.devices import PlanDevice, hypothetical_name
from localspec.tui.app import LocalspecApp
from localspec.tui.fit_knobs import FitKnobs
from localspec.tui.fit_planner import FitAnswer
from localspec.tui.screens.fit import FitScreen
from localspec.tui.state import ChosenModel, Workbench
from tests.made_up_machine import BUILD, model_info
from tests.plan_kit import DRAFT, GIB, TARGET, MadeUpModel, Measuring, gpu
from tests.scripted_engine import ScriptedEngine
from tests.tui.waiting import until

GPU = DeviceInfo("CUDA0", "Card [/] [bold", "gpu", "CUDA", 8 * GIB, 8 * GIB)


TARGET_PATH, DRAFT_PATH = Path("/models/target.gguf"), Path("/models/draft.gguf")

BENCH = Workbench(
    target=ChosenModel("Target 8B", TARGET_PATH),
    draft=ChosenModel("Draft 0.6B", DRAFT_PATH),
    context=ContextSettings(n_ctx=16384),
    draft_context=ContextSettings(n_ctx=16384),
)


@dataclass
class MeasuringEngine(ScriptedEngine):
    """Answers what the planner asks. Its devices are this machine's until others are registered."""

    reported: tuple[DeviceInfo, ...] = (GPU,)
    target: MadeUpModel = TARGET
    draft: MadeUpModel = DRAFT
    delay_s: float = 0.0
    """Of every footprint, in real seconds."""
    failure: str = ""
    """Message that footprints fail with."""
    registered: tuple[PlanDevice, ...] = ()
    measured: list[MeasureFootprint] = field(default_factory=list)

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        if isinstance(request, MeasureFootprint) and self.delay_s:
            await asyncio.sleep(self.delay_s)
        self.answer = self._measure
        async for event in super().stream(request):
            yield event

    def _measure(self, request: Request) -> list[Event] | None:
        match request:
            case Probe():
                return [Probed(request.id, BUILD, self.reported)]
            case RegisterDevices():
                self.registered = tuple(
                    gpu(device.usable_bytes / GIB, hypothetical_name(index), device.is_unified)
                    for index, device in enumerate(request.devices)
                )
                return [DevicesRegistered(request.id, ())]
            case MeasureFootprint():
                self.measured.append(request)
                if self.failure:
                    return [EngineFailed(request.id, "ModelFileError", self.failure, "Do [/] something.")]
                here = tuple(gpu(one.free_bytes / GIB, one.name) for one in self.reported if one.type == "gpu")
                draft = self.draft if request.draft is not None else None
                measuring = Measuring(self.registered or here, self.target, draft)
                return [FootprintMeasured(request.id, measuring.footprint(request.target, request.draft))]
        return None


def fit_screen(app: LocalspecApp) -> FitScreen:
    assert isinstance(app.screen, FitScreen)
    return app.screen


async def opened(app: LocalspecApp, pilot: Pilot[int], bench: Workbench = BENCH) -> None:
    """Lay the models on the workbench of an app that has begun."""
    app.workbench = bench
    await pilot.pause()


async def planned(pilot: Pilot[int]) -> tuple[FitKnobs, FitAnswer]:
    """Wait for the plan of the knobs as they stand, and until it is shown."""
    await pilot.pause()
    assert isinstance(pilot.app, LocalspecApp)
    screen = fit_screen(pilot.app)
    await until(pilot, lambda: screen.snapshot.answer is not None and screen.snapshot.answer.knobs == screen.knobs)
    await until(pilot, lambda: not screen.is_measuring)
    await pilot.pause()
    assert screen.knobs is not None and screen.snapshot.answer is not None
    return screen.knobs, screen.snapshot.answer


def loaded_for(answer: FitAnswer) -> ModelsLoaded:
    """Return what an engine would say that has loaded the models of a plan."""
    plan = answer.plan
    draft = plan.draft or answer.knobs.draft_placement
    pair = Measuring((gpu(8, "CUDA0"),), TARGET, DRAFT).footprint(
        replace(plan.target, n_ctx=plan.n_ctx), replace(draft, n_ctx=plan.n_ctx)
    )
    target = replace(model_info(str(TARGET_PATH)), n_ctx=plan.n_ctx)
    state = SpeculationState(False, "off", "", "the method is off", SpeculationSettings())
    return ModelsLoaded(1, target, model_info(str(DRAFT_PATH)), "", state, 0.1, pair)
