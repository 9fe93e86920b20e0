"""What stands under an answer: its size, its speed, and what speculation saved or cost where that was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from localspec.session.baseline import Baseline, saved_s, speedup_over
from localspec.session.figures import percent_text, speed_text

if TYPE_CHECKING:
    from localspec.engine.values import FinishReason
    from localspec.session.conversation import Answer
    from localspec.store.values import StoredMessage

_ENDINGS = {
    "length": "cut at max_tokens",
    "context_full": "the context is full",
    "cancelled": "stopped",
    "incomplete": "broken off",
}


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """An answer's figures; None for what is not known, and so is not told."""

    num_tokens: int | None = None
    num_thinking: int = 0
    """Of those, before the answer itself."""
    decode_tps: float | None = None
    speedup: float | None = None
    """Over a measured baseline."""
    acceptance_rate: float | None = None
    saved_s: float | None = None
    finish_reason: FinishReason | str = "stop"


def figures_of(answer: Answer, baseline: Baseline | None, num_thinking: int = 0) -> AnswerFigures:
    """Return an answer's figures. Without drafts there is nothing to compare with the baseline.

    Args:
        baseline: of the same models and settings; None if it was not measured.
    """
    is_on = answer.speculation is not None and answer.speculation.is_on
    base = baseline if is_on else None
    return AnswerFigures(
        answer.stats.num_tokens,
        num_thinking,
        answer.latency.decode_tps,
        speedup_over(base, answer.latency),
        answer.stats.acceptance_rate if is_on else None,
        saved_s(base, answer.latency),
        answer.finish_reason,
    )


def kept_figures(message: StoredMessage) -> AnswerFigures:
    """Return what is kept of an answer."""
    record = message.figures or {}
    return AnswerFigures(
        num_tokens=record["tokens"] if isinstance(record.get("tokens"), int) else None,
        decode_tps=_number(record.get("decode_tps")),
        acceptance_rate=_number(record.get("acceptance_rate")) if record.get("is_on") else None,
        finish_reason=message.finish_reason,
    )


def answer_line(figures: AnswerFigures) -> str:
    """Return the line, such as `212 tokens, 41.3 tokens/s, 1.6x, acceptance 71 %, saved 3.1 s`."""
    parts = []
    if figures.num_tokens is not None:
        parts.append(f"{figures.num_tokens} token{'' if figures.num_tokens == 1 else 's'}")
    if figures.num_thinking:
        parts.append(f"{figures.num_thinking} of them thinking")
    if figures.decode_tps is not None:
        parts.append(speed_text(figures.decode_tps))
    if figures.speedup is not None:
        parts.append(f"{figures.speedup:.2f}x" if figures.speedup < 1.095 else f"{figures.speedup:.1f}x")
    if figures.acceptance_rate is not None:
        parts.append(f"acceptance {percent_text(figures.acceptance_rate)}")
    if figures.saved_s is not None:
        parts.append(f"{'saved' if figures.saved_s >= 0 else 'cost'} {abs(figures.saved_s):.1f} s")
    if ending := _ENDINGS.get(figures.finish_reason, ""):
        parts.append(ending)
    return ", ".join(parts)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
