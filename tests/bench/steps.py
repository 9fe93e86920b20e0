"""What a step costs by its number of tokens."""

from __future__ import annotations

from time import perf_counter

from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.context import LlamaContext
from localspec.engine.llama.library import start_library
from localspec.engine.llama.loading import load
from localspec.metrics.statistics import median
from tests.bench.setting import Json, Outcome, Setting

WIDTHS = tuple(range(1, 17))
_NUM_CACHED = 256


async def verify_cost(setting: Setting) -> Outcome:
    """The curve t(n) / t(1) of a step over n tokens with logits for all, at 256 cached tokens."""
    start_library()
    lines, numbers = [], dict[str, Json]()
    for title, path in (("target", setting.models.target), ("draft", setting.models.draft)):
        loaded = load(str(path), setting.context, setting.n_threads, AbortFlag(), lambda _: True)
        try:
            times = _step_times(loaded.context, setting.pairs)
        finally:
            loaded.close()
        medians = [median(times[width]) for width in WIDTHS]
        curve = [value / medians[0] for value in medians]
        shown = " ".join(f"{width}:{value:.2f}" for width, value in zip(WIDTHS, curve, strict=True))
        lines.append(f"{title} {path.stem}: t(1) {1e3 * medians[0]:.2f} ms; t(n) / t(1) {shown}")
        numbers[title] = {"t1_s": medians[0], "ratios": list(curve)}
    return Outcome(tuple(lines), numbers)


def _step_times(context: LlamaContext, pairs: int) -> dict[int, list[float]]:
    context.clear()
    context.prefill([1 + index % 1000 for index in range(_NUM_CACHED)])
    times: dict[int, list[float]] = {width: [] for width in WIDTHS}
    for number in range(-1, 2 * pairs):
        for width in WIDTHS if number % 2 == 0 else reversed(WIDTHS):
            started = perf_counter()
            context.decode(range(2000, 2000 + width), width)
            elapsed_s = perf_counter() - started
            context.truncate(_NUM_CACHED)
            # The first turn allots memory and wakes threads.
            if number >= 0:
                times[width].append(elapsed_s)
    return times
