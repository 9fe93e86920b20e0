"""Suffix decoding against prompt lookup: what each would have had accepted of real answers, and what it costs.

Answers come from plain decoding and are replayed through the drafters. That is exact, since drafts do not change what
the target writes, and it does not depend on how busy the machine is; only the microseconds do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from localspec.catalog.workloads import find_workload, load_workloads
from localspec.engine.drafting.drafter import Drafter
from localspec.engine.drafting.ngram import NgramDrafter
from localspec.engine.drafting.suffix import SuffixDrafter
from localspec.engine.values import SamplingSettings, SpeculationSettings
from tests.bench.own_engine import OwnEngine, own_engine
from tests.bench.prompts import conversations
from tests.bench.setting import Json, Outcome, Setting, Spread

N_MAX = (4, 8, 16)
_ROW_COSTS = (0.03, 0.1, 0.35)
"""A verified row in plain steps: a GPU, a processor with many cores, one with two."""
_LENGTHS = (4096, 131_072)
_NUM_ROUNDS = 500
_N_VOCAB = 49_152

Make = Callable[[], Drafter]


def _drafters() -> dict[str, Make]:
    plain = SpeculationSettings()
    return {
        "n-gram 4-6": lambda: NgramDrafter(plain.ngram_min, plain.ngram_max),
        "n-gram 2-6": lambda: NgramDrafter(2, 6),
        "suffix": lambda: SuffixDrafter(plain.suffix_factor, plain.suffix_p_min),
        "suffix, p_min 0.1": lambda: SuffixDrafter(plain.suffix_factor, 0.1),
    }


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over rounds, the drafter's own time included."""

    num_rounds: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    time_s: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.num_rounds + other.num_rounds,
            self.num_drafted + other.num_drafted,
            self.num_accepted + other.num_accepted,
            self.time_s + other.time_s,
        )

    @property
    def acceptance(self) -> float:
        """Accepted / drafted; 0 where nothing was drafted."""
        return self.num_accepted / max(self.num_drafted, 1)

    @property
    def tokens_per_round(self) -> float:
        """Rounds without a draft included."""
        return 1.0 + self.num_accepted / max(self.num_rounds, 1)

    def speedup(self, row_cost: float) -> float:
        """Predicted, where each verified row costs this much of a plain step and drafting nothing."""
        return (self.num_rounds + self.num_accepted) / max(self.num_rounds + row_cost * self.num_drafted, 1.0)


def replay(drafter: Drafter, prompt: Sequence[int], answer: Sequence[int], n_max: int) -> Tally:
    """Return what a drafter would have had accepted of an answer."""
    drafter.begin(prompt)
    drafter.observe(answer[:1], 0)
    tally, place = Tally(), 1
    while place < len(answer):
        started = perf_counter()
        limit = min(n_max, len(answer) - place - 1)
        drafted = drafter.draft(limit).tokens if limit else ()
        num_right = 0
        while num_right < len(drafted) and drafted[num_right] == answer[place + num_right]:
            num_right += 1
        drafter.observe(answer[place : place + num_right + 1], num_right)
        tally += Tally(1, len(drafted), num_right, perf_counter() - started)
        place += num_right + 1
    return tally


async def suffix(setting: Setting) -> Outcome:
    """Acceptance and predicted speed of the drafters without a model, on every workload at its own temperature."""
    answers: dict[str, list[tuple[Sequence[int], Sequence[int]]]] = {}
    async with own_engine(setting, "suffix") as engine:
        for workload in load_workloads():
            answers[workload.name] = await _answers(engine, workload.name, setting.num_tokens)
    lines: list[str] = []
    numbers: dict[str, Json] = {}
    for n_max in N_MAX:
        for name, make in _drafters().items():
            tallies = {
                workload: sum((replay(make(), *each, n_max) for each in found), Tally())
                for workload, found in answers.items()
            }
            total = sum(tallies.values(), Tally())
            costs = ", ".join(f"{_mean_speedup(tallies, cost):.2f}" for cost in _ROW_COSTS)
            each = ", ".join(f"{key} {one.acceptance:.2f}/{one.tokens_per_round:.2f}" for key, one in tallies.items())
            lines.append(
                f"n_max {n_max}, {name}: acceptance {total.acceptance:.2f}, {total.tokens_per_round:.2f} per round, "
                f"predicted {costs} times off, {1e6 * total.time_s / max(total.num_rounds, 1):.0f} us a round"
            )
            lines.append(f"  {each}")
            numbers[f"n_max_{n_max} {name}"] = {
                workload: {"acceptance_rate": one.acceptance, "tokens_per_round": one.tokens_per_round}
                for workload, one in tallies.items()
            }
    lines.append(f"predicted for a verified row that costs {', '.join(map(str, _ROW_COSTS))} of a plain step")
    return Outcome(tuple(lines), numbers)


def _mean_speedup(tallies: dict[str, Tally], row_cost: float) -> float:
    return sum(tally.speedup(row_cost) for tally in tallies.values()) / len(tallies)


async def _answers(engine: OwnEngine, name: str, num_tokens: int) -> list[tuple[Sequence[int], Sequence[int]]]:
    sampling = SamplingSettings(temperature=find_workload(name).temperature or 0.0, seed=1)
    found: list[tuple[Sequence[int], Sequence[int]]] = []
    for prompt in conversations(name):
        trial = await engine.run(SpeculationSettings("off"), prompt, num_tokens, sampling, ignore_eog=False)
        found.append((trial.prompt_tokens, trial.tokens))
    return found


async def suffix_cost(setting: Setting) -> Outcome:
    """Python's time and memory for suffix decoding: reading a prompt, a token, a draft."""
    lines, numbers = [], dict[str, Json]()
    for length in _LENGTHS:
        for kind in ("words", "loop"):
            text = _text(length, kind, random.Random(1))
            drafter = SuffixDrafter(2.0, 0.1)
            started = perf_counter()
            drafter.begin(text)
            begin_us = 1e6 * (perf_counter() - started) / length
            tokens, drafts = [], []
            for token in text[:_NUM_ROUNDS]:
                marks = [perf_counter()]
                drafter.observe((token,), 0)
                marks.append(perf_counter())
                drafter.draft(16)
                marks.append(perf_counter())
                tokens.append(1e6 * (marks[1] - marks[0]))
                drafts.append(1e6 * (marks[2] - marks[1]))
            token_us, draft_us = Spread.of(tokens).median, Spread.of(drafts).median
            memory = drafter.num_bytes / length
            lines.append(
                f"{length} tokens, {kind}: prompt {begin_us:.2f} us a token, then {token_us:.1f} us a token and "
                f"{draft_us:.0f} us a draft of 16; {memory:.1f} bytes a token"
            )
            numbers[f"{kind}_{length}"] = {
                "begin_us": begin_us,
                "token_us": token_us,
                "draft_us": draft_us,
                "bytes_per_token": memory,
            }
    return Outcome(tuple(lines), numbers)


def _text(length: int, kind: str, rng: random.Random) -> list[int]:
    if kind == "loop":
        return [5] * length
    # Pieces that come again, so that most searches find something.
    pieces = [[rng.randrange(_N_VOCAB) for _ in range(16)] for _ in range(length // 64)]
    return [token for _ in range(length // 16) for token in rng.choice(pieces)]
