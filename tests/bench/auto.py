"""Method auto: against nothing, every fixed setting and a text that changes; and with drafters that always lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from localspec.catalog.workloads import find_workload
from localspec.engine.adaptive_pacing import AdaptivePacing
from localspec.engine.client import EngineClient
from localspec.engine.drafting.cascade import CascadeDrafter
from localspec.engine.drafting.drafter import Draft, Drafter, GoOn
from localspec.engine.model import Progress
from localspec.engine.values import SamplingSettings, SpeculationSettings
from localspec.session.loading import load_models
from localspec.session.measurement import MeasurementPlan
from localspec.session.suite import MIN_TOKENS, WORKLOADS, SuitePlan, run_suite
from localspec.session.suite_result import LEAST_OF_OFF, SuiteRow, goal_line, suite_record
from localspec.session.verdict import speedup_phrase
from tests.bench.against_server import Side
from tests.bench.in_process import InProcessPair
from tests.bench.prompts import mixed
from tests.bench.setting import Json, Outcome, Setting, alternate

_AUTO = SpeculationSettings("auto")


async def auto(setting: Setting) -> Outcome:
    """Run the suite of `localspec bench --suite auto` on the pair, with answers of 128 tokens or more."""
    models = setting.models
    plan = MeasurementPlan(
        target=models.target,
        draft=models.draft,
        context=setting.context,
        arms=(),
        workloads=tuple(find_workload(name) for name in WORKLOADS),
        sampling=SamplingSettings(),
        is_temperature_fixed=False,
        max_tokens=max(setting.num_tokens, MIN_TOKENS),
        num_pairs=setting.pairs,
        warmup_tokens=8,
    )
    client = EngineClient(setting.folder / "auto.log")
    try:
        off = SpeculationSettings("off")
        await load_models(client, models.target, models.draft, setting.context, off, lambda _: None)
        result = await run_suite(client, SuitePlan(plan, off, has_draft=True), lambda _: None)
    finally:
        await client.close()
    lines = [_row_line(row) for row in result.rows]
    if (switch := result.switch) is not None and switch.auto is not None and switch.auto_of_best is not None:
        best = ", ".join(f"{name} ({arm})" for name, arm in zip(switch.segments, switch.best, strict=True))
        lines.append(
            f"{best}: auto {speedup_phrase(switch.auto)} times off, {speedup_phrase(switch.auto_of_best)} of these"
        )
    return Outcome((*lines, *map(goal_line, result.goals), *result.notes), suite_record(result))


def _row_line(row: SuiteRow) -> str:
    parts = [
        "auto not measured" if row.auto is None else f"auto {speedup_phrase(row.auto)} times off",
        f"best fixed {row.best}" + ("" if row.best_speedup is None else f" {speedup_phrase(row.best_speedup)}"),
    ]
    if row.auto_of_best is not None:
        parts.append(f"auto {speedup_phrase(row.auto_of_best)} of that")
    return f"{row.workload}: {', '.join(parts)}"


class LyingModel:
    """A draft model that takes its time, and then says something else than it thinks, always with full confidence."""

    name = "lying model"
    is_free = False

    def __init__(self, drafter: Drafter, n_vocab: int) -> None:
        self._drafter = drafter
        self._n_vocab = n_vocab

    @property
    def num_unseen(self) -> int:
        """Tokens that the model must read first."""
        return self._drafter.num_unseen

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        """Start over with a text."""
        self._drafter.begin(prompt, progress)

    def forget(self) -> None:
        """Keep nothing of earlier texts."""
        self._drafter.forget()

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        """Propose the wrong tokens."""
        sure = None if go_on is None else lambda count, _: go_on(count, 1.0)
        honest = self._drafter.draft(limit, sure)
        tokens = tuple((token + 1) % self._n_vocab for token in honest.tokens)
        return replace(honest, tokens=tokens, probabilities=(1.0,) * len(tokens))

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        """Append what the target emitted; none of it is what the model had thought."""
        self._drafter.observe(tokens, 0)

    def close(self) -> None:
        """Close the honest drafter."""
        self._drafter.close()


class LyingCopy:
    """Claims in every round to have found a long passage again, and is always wrong."""

    name = "lying copy"
    is_free = True
    num_unseen = 0

    def __init__(self, n_vocab: int) -> None:
        self._n_vocab = n_vocab
        self._last = 0

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        """Start over with a text."""

    def forget(self) -> None:
        """Forget nothing, since nothing is known."""

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        """Propose one id again and again, another one in each round."""
        self._last = (self._last + 7919) % self._n_vocab
        return Draft((self._last,) * limit, "n_max", (1.0,) * limit, match_length=32)

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        """Take no notice."""

    def close(self) -> None:
        """Free nothing."""


async def adversary(setting: Setting) -> Outcome:
    """Adaptive drafting with drafters that are always wrong and fully confident, from a cold start, against off."""
    models = setting.models
    num_tokens = max(setting.num_tokens, MIN_TOKENS)
    guess = models.draft.stat().st_size / models.target.stat().st_size
    lines, numbers = [], dict[str, Json]()
    pair = InProcessPair(models.target, models.draft, setting.n_ctx, setting.n_threads)
    try:
        prompts = [pair.chat_tokens(conversation[-1].content) for conversation in mixed()]
        n_vocab = pair.target.n_vocab
        costs = pair.costs()

        def drafter_of(kind: str) -> Drafter | None:
            copy, model = LyingCopy(n_vocab), LyingModel(pair.draft_model_drafter(), n_vocab)
            found: dict[str, Drafter] = {"copy": copy, "model": model, "both": CascadeDrafter((copy, model))}
            return found.get(kind)

        def side(kind: str) -> Side:
            async def measure(number: int) -> float:
                pacing = AdaptivePacing(_AUTO, state=costs, draft_cost=guess) if kind != "off" else None
                prompt = prompts[number % len(prompts)]
                return pair.run(drafter_of(kind), _AUTO.n_max, prompt, num_tokens, pacing).decode_tps

            return measure

        kinds = ("copy", "model", "both", "off")
        await side("off")(0)
        _, ratios = await alternate(setting.pairs, [side(kind) for kind in kinds])
    finally:
        pair.close()
    for kind, ratio in zip(kinds[:-1], ratios, strict=False):
        lines.append(f"lying {kind}: {ratio.words()} times off; promised are {LEAST_OF_OFF} or more")
        numbers[kind] = ratio.json
    return Outcome(tuple(lines), numbers)
