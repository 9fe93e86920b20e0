"""The n-gram drafter: what it gains on text that repeats and costs on text that does not, and its own cost."""

from __future__ import annotations

import random
from time import perf_counter

from localspec.catalog.workloads import find_workload
from localspec.engine.drafting.ngram import NgramDrafter
from localspec.engine.values import SamplingSettings, SpeculationSettings
from localspec.metrics.speculation import SpeculationStats, sum_stats
from tests.bench.against_server import Side
from tests.bench.own_engine import OwnEngine, own_engine, speed
from tests.bench.prompts import Conversation, conversations
from tests.bench.setting import Json, Outcome, Setting, Spread, alternate

N_MAX = (3, 4, 7, 11)
DEFAULT = SpeculationSettings("ngram")
_LENGTHS = (1024, 32_768)
_NUM_ROUNDS = 2000
_N_VOCAB = 49_152


async def ngram(setting: Setting) -> Outcome:
    """Prompt lookup against speculation off, target F16, quoting and telling a story at its temperature."""
    lines, numbers = [], dict[str, Json]()
    async with own_engine(setting, "ngram") as engine:
        for name, wanted in (("quote", 1.5), ("story", 0.92)):
            temperature = find_workload(name).temperature or 0.0
            prompts = conversations(name)
            stats: dict[int, list[SpeculationStats]] = {n_max: [] for n_max in (*N_MAX, 0)}
            sides = [_side(engine, n_max, prompts, temperature, setting, stats[n_max]) for n_max in stats]
            await sides[-1](0)
            stats[0].clear()
            values, ratios = await alternate(setting.pairs, sides)
            lines.append(f"{name}, temperature {temperature}: off {values[-1].words(1)} tokens/s")
            found: dict[str, Json] = {"off_tps": values[-1].json}
            for n_max, value, ratio in zip(N_MAX, values, ratios, strict=False):
                total = sum_stats(stats[n_max])
                acceptance = total.acceptance_rate
                shown = "none" if acceptance is None else f"{acceptance:.2f}"
                note = f", the default; wanted {wanted}" if n_max == DEFAULT.n_max else ""
                lines.append(
                    f"  n_max {n_max}: {value.words(1)} tokens/s, {ratio.words()} times off, acceptance {shown}{note}"
                )
                found[f"n_max_{n_max}"] = {"tps": value.json, "ratio": ratio.json, "acceptance_rate": acceptance}
            numbers[name] = found
    return Outcome(tuple(lines), numbers)


def _side(
    engine: OwnEngine,
    n_max: int,
    prompts: tuple[Conversation, ...],
    temperature: float,
    setting: Setting,
    stats: list[SpeculationStats],
) -> Side:
    speculation = SpeculationSettings("ngram", n_max=n_max) if n_max else SpeculationSettings("off")

    async def measure(pair: int) -> float:
        sampling = SamplingSettings(temperature=temperature, seed=pair + 1)
        trial = await engine.run(speculation, prompts[pair % len(prompts)], setting.num_tokens, sampling)
        stats.append(trial.stats)
        return speed(trial)

    return measure


async def ngram_cost(setting: Setting) -> Outcome:
    """Python's time for a round of the n-gram drafter, two tokens emitted, over texts of two lengths."""

    def side(length: int) -> Side:
        async def measure(pair: int) -> float:
            return _round_us(length, random.Random(pair))

        return measure

    sides = [side(length) for length in reversed(_LENGTHS)]
    await sides[0](0)
    values, ratios = await alternate(max(setting.pairs, 3), sides)
    by_length = dict(zip(reversed(_LENGTHS), values, strict=True))
    words = ", ".join(f"{length} tokens {by_length[length].words(1, ' us')}" for length in _LENGTHS)
    numbers: dict[str, Json] = {f"round_us_at_{length}": spread.json for length, spread in by_length.items()}
    return Outcome((f"a round over {words}, ratio {ratios[0].words()}",), numbers | {"ratio": ratios[0].json})


def _round_us(length: int, rng: random.Random) -> float:
    # A text in pieces that come again, so that about every other look-up finds something.
    pieces = [[rng.randrange(_N_VOCAB) for _ in range(16)] for _ in range(length // 64)]
    text = [token for _ in range(length // 16) for token in rng.choice(pieces)]
    emitted = [(text[start], text[start + 1]) for start in (rng.randrange(length - 1) for _ in range(_NUM_ROUNDS))]
    drafter = NgramDrafter(DEFAULT.ngram_min, DEFAULT.ngram_max)
    drafter.begin(text)
    times = []
    for tokens in emitted:
        started = perf_counter()
        drafter.draft(DEFAULT.n_max)
        drafter.observe(tokens, 0)
        times.append(1e6 * (perf_counter() - started))
    return Spread.of(times).median
