"""Would a draft run where its target does? Asked before anything is loaded."""

from __future__ import annotations

from pathlib import Path

from localspec.engine.interface import Engine
from localspec.engine.values import ContextSettings
from localspec.planning.footprint import PairFootprint
from localspec.planning.plan import make_plan
from localspec.session.fit import wishes_of
from localspec.session.footprints import ProbeEngine
from localspec.session.memory_devices import machine_devices
from localspec.session.released_memory import with_released


async def slow_draft(
    engine: Engine,
    target: Path,
    draft: Path,
    context: ContextSettings,
    draft_context: ContextSettings,
    *,
    reserve_bytes: int,
    loaded: PairFootprint | None = None,
) -> str:
    """Return a sentence if the draft would run on a slower device than the target; empty otherwise.

    Args:
        engine: measures. On a machine without a GPU it is asked for its devices only.
        target: a file; likewise the draft.
        draft: a file.
        context: the target's settings.
        draft_context: the draft's.
        reserve_bytes: kept free on each device.
        loaded: what is loaded now and will be gone.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    devices = with_released(await machine_devices(engine, reserve_bytes), loaded)
    if not any(device.kind == "gpu" for device in devices):
        return ""
    measure = ProbeEngine(engine).measure(target, draft)
    plan = await make_plan(devices, measure, wishes_of(context, draft_context), with_offers=False)
    return plan.slow_draft
