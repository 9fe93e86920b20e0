"""What is kept of an answer, in a line, and when it was."""

from __future__ import annotations

from datetime import datetime

from localspec.session.drafting_text import drafter_phrase
from localspec.session.figures import milliseconds_text, percent_text, speed_text
from localspec.session.plain_text import one_line
from localspec.store.values import StoredMessage

MAX_REASON = 100
"""Characters of why speculation is off; when it was loaded, all of it was said."""

_KEPT_ENDINGS = {
    "length": "cut at --max-tokens",
    "context_full": "the context was full",
    "cancelled": "stopped",
    "incomplete": "incomplete",
}


def kept_line(message: StoredMessage) -> str:
    """Return what a kept answer cost, in one line; empty if nothing is known of it."""
    figures = message.figures or {}
    parts = []
    if figures:
        parts = [
            f"{_whole(figures.get('tokens'))} tokens",
            f"decode {speed_text(_number(figures.get('decode_tps')))}",
            f"first text after {milliseconds_text(_number(figures.get('ttft_s')))}",
        ]
    is_on = figures.get("is_on")
    acceptance = _number(figures.get("acceptance_rate"))
    if is_on is True and acceptance is not None:
        parts.append(f"acceptance {percent_text(acceptance)}")
    if isinstance(is_on, bool):
        drafter, reason = str(figures.get("drafter") or ""), str(figures.get("reason") or "")
        how = (str(figures.get(name) or "") for name in ("method", "pacing", "verification"))
        parts.append(state_text(is_on, drafter, _whole(figures.get("n_max")), reason, *how))
    if ending := _KEPT_ENDINGS.get(message.finish_reason, ""):
        parts.append(ending)
    return one_line(" | ".join(parts))


def moment_text(at: str) -> str:
    """Return a time of the store, which is UTC, as the clock on the wall showed it."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return one_line(at)


def state_text(
    is_on: bool, drafter: str, n_max: int, reason: str, method: str = "", pacing: str = "", verification: str = ""
) -> str:
    """Return whether speculation is on, and with what, or why not, in short."""
    if is_on:
        how = drafter_phrase(_shortened(drafter), method, n_max, pacing, verification or "exact")
        return one_line(f"speculation ON ({how})")
    return one_line(f"speculation OFF ({_shortened(reason) or 'switched off'})")


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 1].rstrip()}…"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
