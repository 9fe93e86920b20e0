"""What a chat says in one line: the models that are loaded, and what an answer cost."""

from __future__ import annotations

from datetime import datetime

from localspec.cli.figures import milliseconds_text, percent_text, rate_text
from localspec.cli.heading import model_text
from localspec.cli.text import one_line
from localspec.engine.events import ModelsLoaded
from localspec.engine.values import FinishReason, SpeculationState
from localspec.session.conversation import Answer
from localspec.store.values import StoredMessage

_ENDINGS: dict[FinishReason, str] = {
    "stop": "",
    "stop_string": "",
    "length": "cut at --max-tokens",
    "context_full": "the context is full: /clear starts over, --n-ctx gives more room",
    "cancelled": "stopped",
}

_KEPT_ENDINGS = {
    "length": "cut at --max-tokens",
    "context_full": "the context was full",
    "cancelled": "stopped",
    "incomplete": "incomplete",
}


def loaded_line(loaded: ModelsLoaded) -> str:
    """Return what is loaded, by file names, in one line."""
    draft = f", draft {model_text(loaded.draft)}" if loaded.draft is not None else ""
    state = speculation_line(loaded.speculation)
    return one_line(f"target {model_text(loaded.target)}{draft}, context {loaded.target.n_ctx} | {state}")


def status_line(answer: Answer) -> str:
    """Return what an answer cost, in one line."""
    parts = [
        f"{answer.stats.num_tokens} tokens",
        f"decode {rate_text(answer.latency.decode_tps)} tokens/s",
        f"first text after {milliseconds_text(answer.latency.ttft_s)}",
    ]
    if answer.speculation is not None and answer.speculation.is_on:
        parts.append(f"acceptance {percent_text(answer.stats.acceptance_rate)}")
    if answer.speculation is not None:
        parts.append(speculation_line(answer.speculation))
    if ending := _ENDINGS[answer.finish_reason]:
        parts.append(ending)
    return one_line(" | ".join(parts))


def speculation_line(state: SpeculationState) -> str:
    """Return whether speculation is on, and with what, or why not."""
    return _speculation(state.is_on, state.drafter, state.settings.n_max, state.reason)


def kept_line(message: StoredMessage) -> str:
    """Return what a kept answer cost, in one line; empty if nothing is known of it."""
    figures = message.figures or {}
    parts = []
    if figures:
        parts = [
            f"{_whole(figures.get('tokens'))} tokens",
            f"decode {rate_text(_number(figures.get('decode_tps')))} tokens/s",
            f"first text after {milliseconds_text(_number(figures.get('ttft_s')))}",
        ]
    is_on = figures.get("is_on")
    if is_on is True:
        parts.append(f"acceptance {percent_text(_number(figures.get('acceptance_rate')))}")
    if isinstance(is_on, bool):
        drafter, reason = str(figures.get("drafter") or ""), str(figures.get("reason") or "")
        parts.append(_speculation(is_on, drafter, _whole(figures.get("n_max")), reason))
    if ending := _KEPT_ENDINGS.get(message.finish_reason, ""):
        parts.append(ending)
    return one_line(" | ".join(parts))


def moment_text(at: str) -> str:
    """Return a time of the store, which is UTC, as the clock on the wall showed it."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return one_line(at)


def _speculation(is_on: bool, drafter: str, n_max: int, reason: str) -> str:
    if is_on:
        return one_line(f"speculation ON ({drafter}, n_max {n_max})")
    return one_line(f"speculation OFF ({reason or 'switched off'})")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
