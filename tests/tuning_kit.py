"""An engine whose speed is known for every setting, so that a search can be checked against the truth."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from localspec.catalog.workloads import Prompt, Workload
from localspec.engine.events import (
    EmittedToken,
    Event,
    GenerationFinished,
    GenerationStarted,
    LoadProgress,
    ModelsLoaded,
    PrefillProgress,
    RoundFinished,
    StepCost,
    StepsMeasured,
)
from localspec.engine.requests import Generate, LoadModels, MeasureSteps, Request
from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.hardware.cores import Cores
from localspec.hardware.host import PowerSource
from localspec.hardware.throttling import ClockReading
from localspec.session.tuning.reporter import OnProgress
from localspec.session.tuning.tuner import tune
from localspec.session.tuning.values import TuningPlan, TuningProgress, TuningResult
from tests.made_up_machine import model_info
from tests.scripted_engine import FakeClock, ScriptedEngine

CORES = Cores(physical=4, logical=8, machine_logical=8)
_ROUNDS = 4

Truth = Callable[[SpeculationSettings, str], float]
"""decode_tps of a setting on a prompt / that of the baseline; the prompt by its text."""


@dataclass
class SpeedyEngine(ScriptedEngine):
    """Answers at given speeds. Rounds hold several tokens, so that there are few events."""

    truth: Truth = lambda settings, prompt: 1.0
    plain: Callable[[ContextSettings], float] = lambda context: 1.0
    """Speed of plain steps / the usual, by the way of loading."""
    draft_step: Callable[[ContextSettings], float] = lambda context: 0.125
    """Step of the draft model / a plain one of the target as usual, by how the draft is loaded."""
    drift: float = 1.0
    """Every run takes this many times as long as the one before."""
    load_s: float = 0.5
    context: ContextSettings = field(default_factory=ContextSettings)
    draft_context: ContextSettings = field(default_factory=ContextSettings)
    num_loads: int = 0
    num_runs: int = 0
    on_request: Callable[[Request], None] = lambda request: None

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.on_request(request)
        if isinstance(request, LoadModels):
            self.clock.advance(self.load_s)
            self.context, self.draft_context = request.context, request.draft_context
            self.num_loads += 1
            self._target = model_info(request.target_path)
            self._draft = model_info(request.draft_path) if request.draft_path else None
            self._switch(request.speculation)
            self.requests.append(request)
            await asyncio.sleep(0)
            yield LoadProgress(request.id, "target", 1.0)
            yield ModelsLoaded(request.id, self._target, self._draft, "", self._state, self.load_s)
            return
        if isinstance(request, MeasureSteps):
            self.requests.append(request)
            await asyncio.sleep(0)
            yield self._steps(request)
            return
        async for event in super().stream(request):
            yield event

    def _steps(self, request: MeasureSteps) -> StepsMeasured:
        self.clock.advance(request.seconds)
        step_s = self.step_s / self.plain(self.context)
        costs = tuple(
            StepCost(width, time_s, 0.99 * time_s, 1.01 * time_s, 20)
            for width in request.widths
            for time_s in (step_s * (1.0 + 0.1 * (width - 1)),)
        )
        draft_s = step_s * self.draft_step(self.draft_context)
        draft = None if self._draft is None else StepCost(1, draft_s, 0.99 * draft_s, 1.01 * draft_s, 20)
        return StepsMeasured(request.id, request.depth, 500.0, costs, None, draft)

    async def _generate(self, request: Generate) -> AsyncIterator[Event]:
        self.num_runs += 1
        state, start_s = self._state, self.clock()
        ratio = self.truth(state.settings, request.messages[-1].content) if state.is_on else 1.0
        noise = math.exp(self.rng.gauss(0.0, self.noise)) * self.drift**self.num_runs
        step_s = self.step_s / self.plain(self.context) / ratio * noise
        yield GenerationStarted(request.id, (1, 2, 3), 0, state, 0.0)
        self.clock.advance(2 * self.step_s)
        yield PrefillProgress(request.id, "target", 3, 3, self.clock() - start_s)
        prefill_s, left = self.clock() - start_s, request.max_tokens
        for index, count in enumerate([1, *_parts(request.max_tokens - 1)]):
            await asyncio.sleep(self.pause_s)
            spent_s = step_s * count if index else 0.0
            self.clock.advance(spent_s)
            left -= count
            emitted = tuple(EmittedToken(left + place, "w ", "bonus") for place in range(count))
            yield RoundFinished(
                *(request.id, index, state.drafter, (), 0, 0, emitted, 0, "off"),
                *(0.0, spent_s, 0.0, spent_s, self.clock() - start_s, 3 + request.max_tokens - left),
            )
        yield GenerationFinished(
            *(request.id, "length", "", state, prefill_s, 3 + request.max_tokens, 100, 0, self.clock() - start_s)
        )


def _parts(total: int) -> list[int]:
    size = max(1, math.ceil(total / _ROUNDS))
    return [min(size, total - start) for start in range(0, total, size)]


def workload(name: str = "open", num_prompts: int = 6) -> Workload:
    """Return a workload whose prompts say what they are."""
    prompts = tuple(Prompt(f"{name}{number}", "", f"{name} {number}") for number in range(num_prompts))
    return Workload(name, name, "", False, None, prompts)


def plan_of(folder: Path, *, num_drafts: int = 1, **changes: object) -> TuningPlan:
    """Return a plan on made-up models that lie in a folder."""
    paths = [folder / "target.gguf", *(folder / f"draft{number}.gguf" for number in range(num_drafts))]
    for path in paths:
        path.write_bytes(b"GGUF")
    plan = TuningPlan(
        target=paths[0],
        drafts=tuple(paths[1:]),
        context=ContextSettings(),
        draft_context=ContextSettings(),
        speculation=SpeculationSettings(),
        workloads=(workload(),),
        sampling=SamplingSettings(),
        budget_s=120.0,
    )
    return replace(plan, **changes)  # type: ignore[arg-type]


async def tuned(
    engine: SpeedyEngine,
    plan: TuningPlan,
    on_progress: OnProgress | None = None,
    clock: FakeClock | None = None,
    read_power: Callable[[], tuple[PowerSource, float | None]] = lambda: ("mains", 80.0),
    read_clock: Callable[[], ClockReading] = lambda: ClockReading(None, None, None),
) -> TuningResult:
    """Search with time that passes on the engine's clock only."""

    def ignore(progress: TuningProgress) -> None:
        pass

    return await tune(
        engine,
        plan,
        on_progress or ignore,
        clock=clock or engine.clock,
        read_clock=read_clock,
        read_energy=lambda: None,
        read_power=read_power,
        cores=CORES,
    )
