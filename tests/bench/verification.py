"""The rules of verification at a temperature: what a row costs, how much each would accept, and what that is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import numpy as np

from localspec.catalog.embedded import demo_dir, find_smollm2
from localspec.engine.dice import SeededDice
from localspec.engine.distribution import Distribution, excess, probability_of
from localspec.engine.drafting.draft_model import DraftModelDrafter, Drawing
from localspec.engine.drafting.drafter import Draft
from localspec.engine.llama.context import LlamaContext
from localspec.engine.llama.quantize import quantize
from localspec.engine.llama.sampler import LlamaSampler
from localspec.engine.values import SamplingSettings, SpeculationSettings, Verification
from localspec.engine.verification import Verdict
from localspec.engine.verification_ratio import VerifyByBlock, ratio
from localspec.metrics.speculation import SpeculationStats, sum_stats
from localspec.session.demo import DemoModels
from tests.bench.against_server import Side
from tests.bench.in_process import InProcessPair
from tests.bench.own_engine import OwnEngine, own_engine, speed
from tests.bench.prompts import Conversation, conversations, mixed
from tests.bench.setting import Json, Outcome, Setting, Spread, alternate

N_MAX = 6
_EVERY = 4
"""Of a text, every so many positions are looked at."""
_N_VOCAB = (49_152, 152_064)
_NUM_ROWS = 200
_SAMPLINGS = {
    "the defaults": SamplingSettings(temperature=0.8),
    "penalties": SamplingSettings(temperature=0.8, repeat_penalty=1.1),
    "min-p alone": SamplingSettings(temperature=0.8, top_k=0, top_p=1.0),
    "nothing cut": SamplingSettings(temperature=0.8, top_k=0, top_p=1.0, min_p=0.0),
    "top-p without top-k": SamplingSettings(temperature=0.8, top_k=0),
}


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    n_tokens: int


@dataclass(frozen=True, slots=True)
class _Model:
    vocabulary: _Vocabulary


@dataclass(frozen=True, slots=True)
class _MadeUpRow:
    """Stands for a context whose every row is the same: as peaked as a chat model's, with a long tail."""

    row: Any

    @property
    def n_vocab(self) -> int:
        return int(self.row.size)

    @property
    def n_ctx(self) -> int:
        return 4096

    @property
    def model(self) -> _Model:
        return _Model(_Vocabulary(self.n_vocab))

    def logits(self, row: int) -> Any:
        return self.row


def _made_up_row(n_vocab: int) -> _MadeUpRow:
    rng = np.random.default_rng(1)
    row = rng.standard_normal(n_vocab) * 2.0
    row[rng.choice(n_vocab, 60, replace=False)] += np.linspace(10.0, 2.0, 60)
    return _MadeUpRow(row.astype(np.float32))


async def verification_cost(setting: Setting) -> Outcome:
    """Time for one row's distribution, and for a block's decision over six drafted tokens."""
    lines, numbers = [], dict[str, Json]()
    for n_vocab in _N_VOCAB:
        context = cast(LlamaContext, _made_up_row(n_vocab))
        for name, sampling in _SAMPLINGS.items():
            sampler = LlamaSampler(context, sampling, range(1000, 1064))
            spread = _median_us(lambda sampler=sampler: sampler.distribution(0, ()), _NUM_ROWS)  # type: ignore[misc]
            lines.append(f"{n_vocab} tokens, {name}: {spread.words(0, ' us')} a row")
            numbers[f"row_us_{n_vocab}_{name.replace(' ', '_')}"] = spread.json
            sampler.close()
        sampler = LlamaSampler(context, _SAMPLINGS["the defaults"], ())
        q = sampler.distribution(0, ())
        sampler.close()
        draft = Draft((int(q.ids[0]),) * N_MAX, "n_max", distributions=(q,) * N_MAX)
        spread = _median_us(lambda q=q, draft=draft: _decide(q, draft), _NUM_ROWS)  # type: ignore[misc]
        lines.append(f"{n_vocab} tokens: {spread.words(0, ' us')} for a block's decision besides")
        numbers[f"block_us_{n_vocab}"] = spread.json
    return Outcome(tuple(lines), numbers)


@dataclass(frozen=True, slots=True)
class _SameRow:
    found: Distribution

    def sample(self, row: int) -> int:
        return int(self.found.ids[0])

    def distribution(self, row: int, prefix: Sequence[int]) -> Distribution:
        return self.found

    def accept(self, token: int) -> None:
        pass


def _decide(q: Distribution, draft: Draft) -> None:
    VerifyByBlock(SeededDice(1, "verification"))(_SameRow(q), draft, lambda _: None, Verdict())


def _median_us(step: Callable[[], object], count: int) -> Spread:
    times = []
    for _ in range(count):
        started = perf_counter()
        step()
        times.append(1e6 * (perf_counter() - started))
    # The first ones allot memory; quantiles in place of extremes, which only tell of interruptions.
    kept = sorted(times[count // 10 :])
    return Spread(kept[len(kept) // 2], kept[len(kept) // 10], kept[len(kept) * 9 // 10])


RULES = ("exact", "rejection", "block")


def expected_accepted(
    ps: Sequence[Distribution], qs: Sequence[Distribution], tokens: Sequence[int]
) -> dict[str, float]:
    """Return how many of a drawn draft the rules would accept, as means over the dice; the mean over drafts is exact.

    Args:
        ps: the target's distributions before each token, as many as its chain can tell.
        qs: what each token was drawn from.
    """
    single, joint = 1.0, 1.0
    sums = dict.fromkeys(("rejection", "block"), 0.0)
    for p, q, token in zip(ps, qs, tokens, strict=False):
        # The last token's own chance is averaged over q: sum of min(scale p, q).
        sums["rejection"] += single * _overlap(p, q, 1.0)
        sums["block"] += _overlap(p, q, joint)
        single *= min(ratio(p, q, token), 1.0)
        joint = min(joint * ratio(p, q, token), 1.0)
    return sums


def _overlap(p: Distribution, q: Distribution, scale: float) -> float:
    return scale - float(excess(p, q, scale).sum())


def expected_matches(ps: Sequence[Distribution], tokens: Sequence[int]) -> float:
    """Return how many tokens of a draft the target's own draws would match."""
    total, joint = 0.0, 1.0
    for p, token in zip(ps, tokens, strict=False):
        joint *= probability_of(p, token)
        total += joint
    return total


async def verification(setting: Setting) -> Outcome:
    """Expected accepted of six by rule and temperature at the same positions, SmolLM2 Q8_0 with a Q2_K draft."""
    lines, numbers = [], dict[str, Json]()
    pair = InProcessPair(*_q8_and_q2(), setting.n_ctx, setting.n_threads)
    try:
        prompts = [pair.chat_tokens(conversation[-1].content) for conversation in mixed()]
        for temperature in (0.4, 0.7, 0.8, 1.0):
            sampling = SamplingSettings(temperature=temperature, min_p=0.0)
            found = [one for prompt in prompts for one in _positions(pair, prompt, sampling, setting.num_tokens)]
            means = {rule: float(np.mean([one[rule] for one in found])) for rule in RULES}
            shown = ", ".join(f"{rule} {means[rule]:.2f}" for rule in RULES)
            lines.append(f"temperature {temperature}: {shown} of {N_MAX} ({len(found)} positions)")
            numbers[f"T{temperature}"] = {**means, "positions": len(found)}
    finally:
        pair.close()
    return Outcome(tuple(lines), numbers)


def _positions(
    pair: InProcessPair, prompt: Sequence[int], sampling: SamplingSettings, num_tokens: int
) -> Iterator[dict[str, float]]:
    """Sample a text plainly, and ask of every few of its positions what each rule would accept."""
    target = pair.target
    drafter = DraftModelDrafter(pair.draft, "draft", 0.0)
    for model in (target, pair.draft):
        model.clear()
    target.prefill(prompt)
    drafter.begin(prompt)
    banned = tuple(target.model.vocabulary.end_tokens)
    sampler, proposing = (LlamaSampler(model, sampling, prompt, banned) for model in (target, pair.draft))
    drawing = Drawing(proposing, SeededDice(sampling.seed, "draft"))
    try:
        token = sampler.sample(0)
        for position in range(num_tokens):
            drafter.observe((token,), 0)
            if position % _EVERY == 0:
                best, drawn = (_draft(drafter, how) for how in (None, drawing))
                matches = expected_matches(_rows(target, sampler, token, best.tokens), best.tokens)
                ps = _rows(target, sampler, token, drawn.tokens)
                yield {"exact": matches, **expected_accepted(ps, drawn.distributions or (), drawn.tokens)}
            target.decode((token,), 1)
            token = sampler.sample(0)
    finally:
        sampler.close()
        proposing.close()


def _draft(drafter: DraftModelDrafter, drawing: Drawing | None) -> Draft:
    """Draft, and forget the draft again."""
    drafter.draw(drawing)
    draft = drafter.draft(N_MAX)
    drafter.draw(None)
    drafter.observe((), 0)
    return draft


def _rows(target: LlamaContext, sampler: LlamaSampler, token: int, drafted: Sequence[int]) -> list[Distribution]:
    length = len(target.tokens)
    target.decode((token, *drafted), len(drafted) + 1)
    rows = [sampler.distribution(row, drafted[:row]) for row in range(len(drafted))]
    target.truncate(length)
    return rows


def _q8_and_q2() -> tuple[Path, Path]:
    source, paths = find_smollm2(), []
    for kind in ("Q8_0", "Q2_K"):
        path = demo_dir() / f"smollm2-135m-{kind.lower()}.gguf"
        if not path.is_file():
            quantize(str(source), str(path), kind)
        paths.append(path)
    return paths[0], paths[1]


async def verification_speed(setting: Setting) -> Outcome:
    """Tokens per second of `rejection` and `block` against `exact`, n_max 3, on open texts, paired."""
    lines, numbers = [], dict[str, Json]()
    for title, models in (("Q8_0 and Q2_K", DemoModels(*_q8_and_q2(), None)), ("F16 and Q4_0", setting.models)):
        async with own_engine(replace(setting, models=models), "verification") as engine:
            for temperature in (0.8, 1.0):
                prompts = (*conversations("chat"), *conversations("story"))
                stats: dict[Verification, list[SpeculationStats]] = {"rejection": [], "block": [], "exact": []}
                sides = [_side(engine, rule, temperature, prompts, setting, stats[rule]) for rule in stats]
                await sides[-1](0)
                stats["exact"].clear()
                values, ratios = await alternate(setting.pairs, sides)
                found: dict[str, Json] = {}
                for rule, value, times in zip(stats, values, ratios, strict=True):
                    total = sum_stats(stats[rule])
                    tau = total.mean_accepted_length or 0.0
                    lines.append(
                        f"{title}, temperature {temperature}, {rule}: {value.words(1)} tokens/s, "
                        f"{times.words()} times exact, {tau:.2f} tokens a round"
                    )
                    found[rule] = {"tps": value.json, "ratio": times.json, "tau": tau}
                numbers[f"{title} T{temperature}"] = found
    return Outcome(tuple(lines), numbers)


def _side(
    engine: OwnEngine,
    rule: Verification,
    temperature: float,
    prompts: Sequence[Conversation],
    setting: Setting,
    stats: list[SpeculationStats],
) -> Side:
    async def measure(pair: int) -> float:
        sampling = SamplingSettings(temperature=temperature, seed=pair + 1)
        speculation = SpeculationSettings("draft", n_max=3, verification=rule)
        trial = await engine.run(speculation, prompts[pair % len(prompts)], setting.num_tokens, sampling)
        stats.append(trial.stats)
        return speed(trial)

    return measure
