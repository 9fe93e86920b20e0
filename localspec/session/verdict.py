"""A comparison's outcome in plain sentences. Names and reasons in them may come from files: they are not markup."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from localspec.metrics.drift import is_unusable
from localspec.metrics.prediction import break_even_acceptance_rate
from localspec.session.drafting_text import settings_phrase as settings_phrase
from localspec.session.figures import percent_text

if TYPE_CHECKING:
    from localspec.metrics.comparison import Verdict
    from localspec.metrics.statistics import Estimate
    from localspec.session.arms import Arm
    from localspec.session.outcome import ArmResult, ComparisonResult
    from localspec.session.same_text import SameText

_VERDICT_ORDER: Final[tuple[Verdict, ...]] = ("faster", "no_clear_difference", "too_little_to_judge", "slower")


@dataclass(frozen=True, slots=True)
class RoundCosts:
    """What rounds with drafts cost and gave, from measured rounds."""

    round_cost: float
    """Time of a round with drafts / time that the baseline needed per token."""
    tokens_per_round: float
    """Tau."""
    acceptance_rate: float
    break_even_rate: float
    """Acceptance at which such rounds neither gain nor lose; above 1 they cannot gain."""
    draft_share: float
    """Share of the speculative arm's time that went into drafting."""
    round_share: float
    """Share of the target passes that had drafts to check."""


def round_costs(result: ArmResult, baseline: ArmResult) -> RoundCosts | None:
    """Return an arm's costs against the baseline's; None if nothing was drafted or nothing timed."""
    stats, step_s = result.stats, baseline.tpot_s
    rate, tau, drafted = stats.acceptance_rate, stats.mean_accepted_length, stats.mean_drafted_length
    if rate is None or tau is None or drafted is None or not step_s or stats.total_s <= 0.0:
        return None
    cost = stats.drafting_s / stats.num_rounds / step_s
    return RoundCosts(
        round_cost=cost,
        tokens_per_round=tau,
        acceptance_rate=rate,
        break_even_rate=break_even_acceptance_rate(cost, drafted),
        draft_share=stats.draft_s / stats.total_s,
        round_share=stats.num_rounds / stats.num_target_passes,
    )


def speedup_phrase(speedup: Estimate) -> str:
    """Return a speedup with its interval, such as `1.31x (1.22 to 1.40)`."""
    if speedup.low is None or speedup.high is None:
        return f"{factor_text(speedup.median)}x ({_count(speedup.pairs)})"
    return f"{factor_text(speedup.median)}x ({factor_text(speedup.low)} to {factor_text(speedup.high)})"


def factor_text(factor: float) -> str:
    """Return a factor with as many digits as mean anything; beyond 1000 it only says so."""
    if factor >= 999.5:
        return ">999"
    return f"{factor:.0f}" if factor >= 99.5 else f"{factor:.2f}" if factor >= 0.005 else "<0.01"


def is_reliable(result: ComparisonResult) -> bool:
    """Whether the machine was steady enough for the figures to mean anything; if not, a note says so."""
    closing = () if result.closing is None else (result.closing,)
    runs = sorted((*result.baseline.trials, *closing), key=lambda trial: trial.place)
    return not is_unusable([run.decode_tps for run in runs if run.decode_tps is not None])


def arm_sentence(result: ArmResult, baseline: ArmResult, is_reliable: bool = True) -> str:
    """Return what may be said of an arm with drafts, and why where its numbers tell.

    Args:
        result: the arm's.
        baseline: the one without drafts.
        is_reliable: False claims nothing, since the figures are not to be relied on.
    """
    how = settings_phrase(result.arm.speculation)
    if not result.has_run:
        return f"Not run with {how}: {result.reason.rstrip('.')}."
    speedup = result.speedup
    if speedup is None:
        return f"No speed to compare with {how}: the answers were too short, or no pair is complete."
    figure = speedup_phrase(speedup)
    if not is_reliable:
        return f"With {how}, {figure}, which is not to be relied on."
    if result.verdict == "faster":
        claim = f"Faster here: {figure} with {how}."
    elif result.verdict == "slower":
        claim = f"Slower here: {figure} with {how}: leave it off."
    elif speedup.low is None:
        pairs = "a single pair" if speedup.pairs == 1 else f"{speedup.pairs} pairs"
        claim = f"With {how}, {speedup.median:.2f}x in {pairs}: too little to judge."
    else:
        claim = f"No clear difference with {how}: {figure}."
    why = _why(result, baseline)
    return f"{claim} {why}" if why else claim


def same_text_sentence(answer: SameText | None) -> str:
    """Return the answer to "same text?"; empty if the arm has not run."""
    if answer is None:
        return ""
    if answer.identical:
        return "Same text as without drafts."
    place = f"The text differs from token {(answer.first_difference or 0) + 1} on"
    if answer.kind is None:
        return f"{place}; it was not examined why."
    numbers = ""
    is_near_tie = True
    if answer.top2_gap is not None and answer.noise is not None:
        numbers = f" (gap {answer.top2_gap:.3g} logits, noise {answer.noise:.3g})"
        is_near_tie = answer.top2_gap <= 2.0 * answer.noise
    if answer.kind == "rounding":
        # At a temperature the drawn number, not the gap, lies close to a border.
        where = "between two almost equal candidates" if is_near_tie else "moved a random draw over a border"
        return f"{place}: rounding {where}{numbers}."
    return f"{place}, and that is an error: {answer.reason.rstrip('.')}{numbers}."


def verdict_sentences(result: ComparisonResult) -> tuple[str, ...]:
    """Return a sentence for each arm with drafts, the best one first: faster, unclear, slower, not measured."""
    ranked = sorted(result.speculative, key=_rank)
    return tuple(
        arm_sentence(arm, result.baseline, is_reliable(result))
        + (_pairs_phrase(arm, result.num_pairs) if result.is_interrupted else "")
        for arm in ranked
    )


def summary_sentence(result: ComparisonResult) -> str:
    """Return what may be said of the whole workload, in one line."""
    return " ".join(verdict_sentences(result)) or "Nothing to compare: only the baseline was asked for."


def best_arm(results: Sequence[ComparisonResult]) -> Arm | None:
    """Return the arm to use for text like these workloads; None if drafts are best left off.

    It must be clearly faster on one workload at least, and its speedups' geometric mean over all of them above 1.
    Workloads whose figures are not to be relied on do not count.
    """
    results = [result for result in results if is_reliable(result)]
    best: tuple[float, Arm] | None = None
    for arm in {found.arm.name: found.arm for result in results for found in result.speculative}.values():
        same = [found for result in results for found in result.speculative if found.arm.name == arm.name]
        medians = [found.speedup.median for found in same if found.speedup is not None]
        if not any(found.verdict == "faster" for found in same):
            continue
        mean = statistics.geometric_mean(medians)
        if mean > max(1.0, best[0] if best else 1.0):
            best = (mean, arm)
    return best[1] if best else None


def _count(num_pairs: int) -> str:
    return "one pair" if num_pairs == 1 else f"{num_pairs} pairs"


def _rank(result: ArmResult) -> tuple[int, float]:
    if result.verdict is None or result.speedup is None:
        return 3 if result.has_run else 4, 0.0
    return _VERDICT_ORDER.index(result.verdict), -result.speedup.median


def _pairs_phrase(result: ArmResult, num_wanted: int) -> str:
    num_pairs = result.speedup.pairs if result.speedup is not None else 0
    return f" That stands on {num_pairs} of {num_wanted} pairs." if num_pairs else ""


def _why(result: ArmResult, baseline: ArmResult) -> str:
    if not result.stats.num_draft_tokens:
        return f"Nothing was drafted: {_why_nothing(result)}."
    costs = round_costs(result, baseline)
    if costs is None:
        return ""
    parts = [
        f"A round with drafts took {costs.round_cost:.2f} plain steps and gave {costs.tokens_per_round:.2f} tokens"
        f" (acceptance {percent_text(costs.acceptance_rate)}{_need(result, costs)})"
    ]
    if costs.draft_share >= 0.2:
        parts.append(f"{percent_text(costs.draft_share)} of the time went into drafting")
    if costs.round_share < 0.5:
        parts.append(f"only {percent_text(costs.round_share)} of the steps had anything to check")
    return "; ".join(parts) + "."


def _why_nothing(result: ArmResult) -> str:
    stops = result.stats.draft_stops
    if any(stops.get(stop) for stop in ("resting", "not_worth", "unproven")):
        return "no draft was worth its time"
    has_model = result.state is not None and "draft " in result.state.drafter
    return "no draft was kept" if has_model else "the text held nothing to copy"


def _need(result: ArmResult, costs: RoundCosts) -> str:
    """Return the acceptance that would be needed; empty where so few pairs were run that nothing can be judged."""
    if result.speedup is None or result.speedup.low is None:
        return ""
    if costs.break_even_rate < 0.0:
        return "; it costs no more than a plain step"
    if costs.break_even_rate > 1.0:
        return "; at that cost not even full acceptance would pay"
    return f"; {percent_text(costs.break_even_rate)} would break even"
