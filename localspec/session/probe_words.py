"""What a probe means, in sentences."""

from __future__ import annotations

from localspec.session.figures import percent_text
from localspec.session.probing import ProbeReport
from localspec.session.step_curve import NeededAcceptance, StepCurve

PUBLISHED = (0.6, 0.8)
"""Where reports of small draft models of the target's own family mostly lie, at their first tokens."""

LIKELY_COST = 0.1
"""Of a draft model that is chosen well, as long as none is measured."""

SCATTERED = 0.25
"""From this spread of the single steps on, the figures are called rough."""

FEW = 8
"""With fewer steps of each width the middle half says little."""

_CONDITIONS = ("high_load", "on_battery", "low_memory")
"""Notes on the machine that bear on times."""


def verdict_sentence(curve: StepCurve) -> str:
    """Return from which acceptance drafts pay, beside what is published."""
    own = curve.needed_by_draft()
    copied = curve.needed(0.0)
    if own is None:
        row, who = curve.needed(LIKELY_COST), f"a draft of {percent_text(LIKELY_COST)} of its cost"
    else:
        row, who = own, f"this draft, of {percent_text(own.draft_cost)} of its cost,"
    if copied.best is None or copied.best.acceptance is None:
        return "With this target here no draft pays, not even one that costs nothing and is always right."
    free = f"one that costs nothing (n-gram, suffix) from {pays_from(copied)}"
    need = None if row.best is None else row.best.acceptance
    if need is None:
        return f"With this target here {who} never pays, even if it is always right; {free}."
    low, high = PUBLISHED
    place = "below" if need < low else "above" if need > high else "within"
    return (
        f"With this target here {who} pays from an acceptance of {pays_from(row)}, {free}; the first is {place} what "
        f"is published for small drafts, {low:.1f} to {high:.1f}."
    )


def finding(curve: StepCurve) -> str:
    """Return the same in few words, as the title of a picture."""
    own = curve.needed_by_draft()
    row = curve.needed(LIKELY_COST) if own is None else own
    who = "This draft" if own is not None else f"A draft of {percent_text(LIKELY_COST)} of the target's cost"
    free = curve.needed(0.0).best
    if free is None:
        return "No draft pays here, not even one that costs nothing and is always right"
    paying = "never pays" if row.best is None else f"pays from an acceptance of {acceptance_text(row.best.acceptance)}"
    return f"{who} {paying} here, one that costs nothing from {acceptance_text(free.acceptance)}"


def pays_from(row: NeededAcceptance) -> str:
    """Return the least acceptance that pays with its length, such as `0.63 (k = 2)`."""
    best = row.best
    return "never" if best is None else f"{acceptance_text(best.acceptance)} (k = {best.n})"


def acceptance_text(acceptance: float | None) -> str:
    """Return an acceptance with two digits; None, of drafts that never pay, as `never`."""
    return "never" if acceptance is None else f"{acceptance:.2f}"


def condition_sentences(report: ProbeReport) -> tuple[str, ...]:
    """Return what to know of the machine and of the measuring before the figures are believed."""
    found = [f"{note.text} {note.advice}" for note in report.examination.notes if note.code in _CONDITIONS]
    if report.was_throttled:
        found.append("The hardware slowed itself down meanwhile, for heat: let it cool, and probe again.")
    for wished, curve in zip(report.plan.depths, report.curves, strict=False):
        if curve.depth < wished:
            found.append(
                f"The context has room for {curve.depth} positions before a step, not for {wished}: use a larger "
                "--n-ctx."
            )
    spread = max(curve.spread for curve in report.curves)
    if spread > SCATTERED:
        found.append(
            f"The times scatter: the middle half of the single steps spans {percent_text(spread)} of their median. "
            "Take the figures as rough, and probe again on an idle machine."
        )
    taken = min(step.num_steps for curve in report.curves for step in curve.steps)
    steps = "1 step" if taken == 1 else f"{taken} steps"
    if not all(curve.is_complete for curve in report.curves):
        found.append(f"It ended early, after {steps} of each width.")
    elif taken < FEW:
        found.append(f"Only {steps} of each width could be timed; a larger --seconds gives more.")
    return tuple(found)
