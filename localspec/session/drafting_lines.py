"""Who drafted what in a workload, and what adaptive drafting made of it, in sentences from a run's document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from localspec.session.figures import percent_text
from localspec.session.plain_text import one_line
from localspec.store.values import Record

_MOST_LENGTHS = 64


def drafting_lines(workload: Record) -> list[str]:
    """Return sentences for each arm with several drafters or adaptive lengths. What is damaged is left out."""
    lines = []
    for arm in workload.get("arms") or ():
        if not isinstance(arm, Mapping) or not arm.get("has_run"):
            continue
        parts = (_drafters(arm), _pacing(arm))
        lines += [one_line(f"{arm.get('name')}: {part}") for part in parts if part]
    return lines


def chosen_lengths(arm: Mapping[str, object]) -> list[int]:
    """Return how many rounds of an adaptive arm had drafts of 0, 1, 2 … tokens; empty where that is not known."""
    pacing = arm.get("pacing_stats")
    counts = pacing.get("lengths") if isinstance(pacing, Mapping) else None
    if not isinstance(counts, Sequence) or isinstance(counts, str) or len(counts) > _MOST_LENGTHS:
        return []
    return [count if isinstance(count, int) and count >= 0 else 0 for count in counts]


def _drafters(arm: Mapping[str, object]) -> str:
    shares = arm.get("by_drafter")
    shown = []
    for name, share in shares.items() if isinstance(shares, Mapping) else ():
        if not isinstance(share, Mapping):
            continue
        names = ("num_rounds", "num_draft_tokens", "num_accepted_tokens")
        rounds, drafted, accepted = (_count(share, what) for what in names)
        if rounds:
            rate = percent_text(accepted / drafted) if drafted else ""
            times = f"{rounds} round{'s' if rounds > 1 else ''}"
            shown.append(f"{name}, {accepted} of {drafted} tokens accepted in {times} ({rate})")
    if len(shown) < 2 and arm.get("method") not in ("cascade", "auto"):
        return ""
    return f"{'; '.join(shown)}." if shown else ""


def _pacing(arm: Mapping[str, object]) -> str:
    pacing = arm.get("pacing_stats")
    if not isinstance(pacing, Mapping) or not (rounds := _count(pacing, "num_rounds")):
        return ""
    lengths = chosen_lengths(arm)
    with_drafts = [length for length, count in enumerate(lengths) if length and count]
    parts = []
    if with_drafts:
        usual = max(with_drafts, key=lambda length: lengths[length])
        share = sum(lengths[1:]) / rounds
        parts.append(f"drafts of {_span(with_drafts)} in {percent_text(share)} of the rounds, most often {usual}")
    else:
        parts.append("no drafts in any round")
    if resting := _count(pacing, "num_resting"):
        parts.append(f"rested in {percent_text(resting / rounds)}")
    if (tokens := _ratio(pacing, "num_tokens", "expected_tokens")) is not None:
        parts.append(f"{tokens:.2f} times the tokens that it expected")
    if (time := _ratio(pacing, "total_s", "expected_s")) is not None:
        parts.append(f"{time:.2f} times the time")
    if pacing.get("is_resting_now") and (why := _why_resting(pacing)):
        parts.append(why)
    return f"{', '.join(parts)}."


def _why_resting(pacing: Mapping[str, object]) -> str:
    acceptance, needed = _number(pacing.get("acceptance_now")), _number(pacing.get("needed_now"))
    if acceptance is None or needed is None:
        return ""
    return f"resting at the end (acceptance {acceptance:.2f}, needs {needed:.2f} here)"


def _span(lengths: Sequence[int]) -> str:
    first, last = min(lengths), max(lengths)
    return f"{first} to {last} tokens" if first != last else f"{first} token{'s' if first > 1 else ''}"


def _ratio(record: Mapping[str, object], part: str, whole: str) -> float | None:
    above, below = _number(record.get(part)), _number(record.get(whole))
    return above / below if above is not None and below else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(record: Mapping[str, object], name: str) -> int:
    value = record.get(name)
    return value if isinstance(value, int) and value > 0 else 0
