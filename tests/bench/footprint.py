"""What planning costs: a plan from headers that are at hand, the largest context of a pair, memory for a huge model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

import psutil

from localspec.engine.client import EngineClient
from localspec.planning.devices import parse_device
from localspec.planning.footprint import PairFootprint, Placement
from localspec.planning.plan import MemoryPlan, Wishes, make_plan
from localspec.session.footprints import ProbeEngine
from localspec.session.memory_devices import described_devices
from tests.bench.setting import Json, Outcome, Setting, Spread
from tests.synthetic_gguf import write_synthetic

TARGET, DRAFT, HUGE = "qwen3-8b", "qwen3-0.6b", "llama-3.1-405b"
CARD = "a card:12GiB"
WANTED_PLAN_S, WANTED_LARGEST_S, WANTED_BYTES = 0.1, 0.5, 200_000_000


async def footprint_time(setting: Setting) -> Outcome:
    """Plans of an 8B and a 0.6B model for a card of 12 GiB, and what a model of 200 GB takes while it is planned."""
    target, draft, huge = (write_synthetic(name, setting.folder / f"{name}.gguf") for name in (TARGET, DRAFT, HUGE))
    card = parse_device(CARD)
    devices = described_devices((card,))
    engine = EngineClient(setting.folder / "footprint.log")
    probe = ProbeEngine(engine, (card,))
    placement = Placement(8192)
    fixed, most = (Wishes(Placement(n_ctx), Placement(n_ctx)) for n_ctx in (4096, 0))
    lines, numbers = [], dict[str, Json]()

    def note(name: str, words: str, spread: Spread, wanted_ms: float) -> None:
        lines.append(f"{words}: {spread.words(1, ' ms')}; wanted at most {wanted_ms:.0f} ms")
        numbers[name] = spread.json

    try:
        measure = probe.measure(target, draft)
        started = perf_counter()
        await measure(placement, placement)
        lines.append(f"first measuring of the pair, copies of headers made: {1e3 * (perf_counter() - started):.1f} ms")
        one = await _times(setting.pairs, lambda: measure(placement, placement))
        note("measure_ms", "measuring the pair again", one, 1e3 * WANTED_PLAN_S)
        plan = await _times(setting.pairs, lambda: make_plan(devices, measure, fixed, with_offers=False))
        note("plan_ms", "plan of the pair", plan, 1e3 * WANTED_PLAN_S)
        largest = await _times(setting.pairs, lambda: make_plan(devices, measure, most, with_offers=False))
        note("largest_ms", "largest context of the pair", largest, 1e3 * WANTED_LARGEST_S)
        found = await make_plan(devices, measure, most, with_offers=False)
        lines.append(found.sentence)
    finally:
        await engine.close()
    peak_bytes = await _peak(setting.folder / "huge.log", huge)
    lines.append(
        f"{HUGE}: {huge.stat().st_size / 1e9:.0f} GB planned in a process of {peak_bytes / 1e6:.0f} MB at most"
    )
    lines.append(f"wanted at most {WANTED_BYTES / 1e6:.0f} MB")
    numbers["huge_peak_bytes"] = peak_bytes
    return Outcome(tuple(lines), numbers)


async def _times(count: int, action: Callable[[], Awaitable[PairFootprint | MemoryPlan]]) -> Spread:
    """Return milliseconds; the first time is a warm-up."""
    times = []
    for _ in range(count + 1):
        started = perf_counter()
        await action()
        times.append(1e3 * (perf_counter() - started))
    return Spread.of(times[1:])


async def _peak(log_file: Path, model: Path) -> int:
    """Return the largest resident set seen of an engine that measures a model at several contexts."""
    engine = EngineClient(log_file)
    try:
        measure, peak_bytes = ProbeEngine(engine).measure(model), 0
        for n_ctx in (4096, 32768, 131072):
            await measure(Placement(n_ctx), None)
            process = psutil.Process(engine.pid)
            # Windows and Linux keep the peak itself.
            memory = process.memory_info()
            peak_bytes = max(peak_bytes, getattr(memory, "peak_wset", memory.rss), _linux_peak(engine.pid))
        return peak_bytes
    finally:
        await engine.close()


def _linux_peak(pid: int | None) -> int:
    status = Path(f"/proc/{pid}/status")
    if not status.is_file():
        return 0
    lines = status.read_text(encoding="ascii", errors="replace").splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
