"""Whether a machine changed while something was measured on it."""

from __future__ import annotations

from collections.abc import Sequence

UNUSABLE_DRIFT_FACTOR = 2.0
"""A baseline that changes by more than this factor leaves nothing to rely on, paired or not."""

DRIFT_NOTE_SHARE = 0.10
"""A baseline that changes by more than this between its first and last run is worth a note."""


def drift_share(baseline_tps: Sequence[float]) -> float | None:
    """Return by which share the last baseline run differed from the first; negative is slower. None for one run."""
    if len(baseline_tps) < 2 or baseline_tps[0] <= 0.0:
        return None
    return baseline_tps[-1] / baseline_tps[0] - 1.0


def is_unusable(baseline_tps: Sequence[float]) -> bool:
    """Whether the baseline changed so much between its first and last run that no figure can be relied on."""
    share = drift_share(baseline_tps)
    return share is not None and not 1.0 / UNUSABLE_DRIFT_FACTOR <= 1.0 + share <= UNUSABLE_DRIFT_FACTOR


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def drift_note(baseline_tps: Sequence[float]) -> str:
    """Return a sentence if the baseline changed much while the comparison ran; empty otherwise."""
    share = drift_share(baseline_tps)
    if share is None or abs(share) <= DRIFT_NOTE_SHARE:
        return ""
    if is_unusable(baseline_tps):
        change = f"{_percent(-share)} slower" if share < 0.0 else f"{_percent(share)} faster"
        return (
            f"The last baseline run was {change} than the first: this measurement is unusable. Something else used "
            "the machine, or it slowed itself down; measure again when it is quiet."
        )
    if share < 0.0:
        return (
            f"The last baseline run was {_percent(-share)} slower than the first: the machine may be heating up or "
            "busy. Paired runs cancel a steady change, but figures of one arm alone are uncertain."
        )
    return (
        f"The last baseline run was {_percent(share)} faster than the first: something else may have used the machine "
        "at the beginning. Paired runs cancel a steady change, but figures of one arm alone are uncertain."
    )
