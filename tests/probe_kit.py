"""A made-up target whose steps take stated times, for tests of the probe."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence

from localspec.engine.events import EngineFailed, Event, StepCost, StepsMeasured, StepsProgress
from localspec.engine.requests import MeasureSteps, Request
from localspec.session.step_curve import StepCurve
from tests.scripted_engine import EchoEngine

COSTS = {1: 1.0, 2: 1.6, 3: 1.7, 4: 1.8, 5: 2.0, 6: 2.1, 7: 2.2, 8: 2.3, 9: 3.2, 12: 3.6, 16: 4.2}
"""As on a processor: the second token costs most."""

FLAT = {width: 1.0 + 0.01 * (width - 1) for width in COSTS}
"""As on a large GPU."""

STEEP = {width: 1.1 * width for width in COSTS} | {1: 1.0}
"""A check of several tokens is slower than single steps."""


def step(width: int, seconds: float, spread: float = 0.02, num_steps: int = 20) -> StepCost:
    """Return a step whose middle half is `spread` wide, in medians."""
    return StepCost(width, seconds, seconds * (1.0 - spread / 2.0), seconds * (1.0 + spread / 2.0), num_steps)


def steps_of(costs: Mapping[int, float], single_s: float = 0.01, spread: float = 0.02) -> tuple[StepCost, ...]:
    return tuple(step(width, cost * single_s, spread) for width, cost in sorted(costs.items()))


def curve_of(costs: Mapping[int, float], draft_cost: float | None = None, spread: float = 0.02) -> StepCurve:
    draft = None if draft_cost is None else step(1, 0.01 * draft_cost, spread)
    return StepCurve(256, steps_of(costs, spread=spread), 500.0, draft, None if draft is None else 3000.0)


class ProbeEngine(EchoEngine):
    """Answers MeasureSteps from a curve; loads any file.

    Args:
        costs: of the target's steps, by width.
        draft_cost: of the draft's, if one is loaded.
        failure: what comes in place of the answer.
        num_reports: how many reports of progress come before it.
        interrupts: the user presses Ctrl-C after the first of them.
    """

    def __init__(
        self,
        costs: Mapping[int, float] = COSTS,
        draft_cost: float = 0.1,
        failure: tuple[str, str] | None = None,
        num_reports: int = 1,
        interrupts: bool = False,
    ) -> None:
        super().__init__()
        self._costs = costs
        self._draft_cost = draft_cost
        self._failure = failure
        self._num_reports = num_reports
        self._interrupts = interrupts

    @property
    def measured(self) -> Sequence[MeasureSteps]:
        return [request for request in self.requests if isinstance(request, MeasureSteps)]

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        if not isinstance(request, MeasureSteps):
            async for event in super().stream(request):
                yield event
            return
        self.requests.append(request)
        steps = steps_of({width: cost for width, cost in self._costs.items() if width in request.widths})
        for index in range(self._num_reports):
            await asyncio.sleep(0)
            yield StepsProgress(request.id, "target", (index + 1) / self._num_reports, steps)
        if self._interrupts:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(30.0)
        if self._failure is not None:
            yield EngineFailed(request.id, *self._failure, "Do something else.")
            return
        draft = None if self._draft is None else step(1, 0.01 * self._draft_cost)
        yield StepsMeasured(request.id, request.depth, 500.0, steps, None if draft is None else 3000.0, draft)
