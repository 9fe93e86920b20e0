"""Did both arms write the same text, and if not, is rounding the reason?

With greedy sampling, and in `exact` verification with the same seed, an arm with drafts must write what the baseline
writes. But a step over several positions rounds otherwise than a step over one, so that two candidates with
almost equal logits may change places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from localspec.engine.events import DifferenceExplained, EngineFailed, Event
from localspec.engine.interface import Engine, as_error
from localspec.engine.requests import ExplainDifference
from localspec.engine.values import SamplingSettings, SpeculationSettings
from localspec.session.trial import Trial

Kind = Literal["identical", "rounding", "error"]

_SEVERITY = {"identical": 0, "rounding": 1, None: 2, "error": 3}


@dataclass(frozen=True, slots=True)
class SameText:
    """Answer for one pair, or the worst of several."""

    identical: bool
    first_difference: int | None
    """Number of emitted tokens before the first that differs."""
    top2_gap: float | None
    """Gap between the target's two best logits there, from single steps; None where nothing was replayed."""
    noise: float | None
    """Largest difference between single-step and batched logits in the replay."""
    kind: Kind | None
    """None: they differ, and there was no time to find out why."""
    reason: str = ""
    """Why it is called an error; empty for the other kinds."""


def must_be_same(speculation: SpeculationSettings, sampling: SamplingSettings) -> bool:
    """Whether an arm must write the baseline's text. `rejection` and `block` promise its probabilities only, except at
    temperature 0, where they are `exact`."""
    return speculation.verification == "exact" or sampling.temperature <= 0.0


IDENTICAL = SameText(True, None, None, None, "identical")


def first_difference(left: tuple[int, ...], right: tuple[int, ...]) -> int | None:
    """Return the first place at which two outputs differ, the end of the shorter included; None if they are equal."""
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return place
    return None if len(left) == len(right) else min(len(left), len(right))


async def compare_text(
    engine: Engine,
    baseline: Trial,
    speculative: Trial,
    sampling: SamplingSettings,
    ignore_eog: bool,
    on_event: Callable[[Event], None],
) -> SameText:
    """Compare a pair's outputs, and have the engine replay them if they differ.

    Raises:
        LocalspecError: the engine died.
    """
    place = first_difference(baseline.tokens, speculative.tokens)
    if place is None:
        return IDENTICAL
    if place == min(len(baseline.tokens), len(speculative.tokens)):
        reason = f"one ended early ({baseline.finish_reason} with drafts off, {speculative.finish_reason} with them)"
        return SameText(False, place, None, None, "error", reason)
    rounds = speculative.rounds[1:]
    request = ExplainDifference(
        id=engine.next_id(),
        prompt=baseline.prompt_tokens,
        common=baseline.tokens[:place],
        drafted=tuple(round_.drafted for round_ in rounds),
        num_accepted=tuple(round_.num_accepted for round_ in rounds),
        sampling=sampling,
        ignore_eog=ignore_eog,
    )
    answer: Event | None = None
    async for event in engine.stream(request):
        on_event(event)
        answer = event
    if isinstance(answer, DifferenceExplained):
        return classify(answer, place, baseline.tokens[place], speculative.tokens[place], sampling)
    if isinstance(answer, EngineFailed) and (answer.is_fatal or answer.kind == "EngineDiedError"):
        raise as_error(answer)
    failure = answer.message if isinstance(answer, EngineFailed) else "the engine gave no answer"
    return SameText(False, place, None, None, "error", f"it could not be replayed: {failure}")


def classify(
    found: DifferenceExplained, place: int, baseline_token: int, speculative_token: int, sampling: SamplingSettings
) -> SameText:
    """Say whether rounding explains a difference.

    Greedy: if the two best candidates are no further apart than twice the noise, since each may move by
    that much. At a temperature the gap decides nothing; there the replay must reproduce both choices.
    """
    if sampling.temperature <= 0.0:
        is_rounding = found.top2_gap <= 2.0 * found.noise
        reason = "the gap between the two best candidates is larger than rounding can bridge"
    else:
        is_rounding = found.single_token == baseline_token and found.batched_token == speculative_token
        reason = "replaying both arms' steps does not reproduce the difference"
    return SameText(
        identical=False,
        first_difference=place,
        top2_gap=found.top2_gap,
        noise=found.noise,
        kind="rounding" if is_rounding else "error",
        reason="" if is_rounding else reason,
    )


def unexplained(baseline: Trial, speculative: Trial) -> SameText:
    """Compare a pair's outputs without asking the engine."""
    place = first_difference(baseline.tokens, speculative.tokens)
    return IDENTICAL if place is None else SameText(False, place, None, None, None)


def worst(answers: Iterable[SameText]) -> SameText | None:
    """Return the most serious answer, of equal ones the first; None if there are none."""
    return max(answers, key=lambda answer: _SEVERITY[answer.kind], default=None)
