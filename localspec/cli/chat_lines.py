"""What a chat says in one line: the models that are loaded, and what an answer cost."""

from __future__ import annotations

from datetime import datetime

from localspec.catalog.found_model import FoundModel
from localspec.cli.figures import milliseconds_text, percent_text, rate_text
from localspec.cli.heading import model_text, shown_name
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

_MAX_REASON = 100
"""Characters of why speculation is off; when it was loaded, all of it was said."""

_KEPT_ENDINGS = {
    "length": "cut at --max-tokens",
    "context_full": "the context was full",
    "cancelled": "stopped",
    "incomplete": "incomplete",
}


def loaded_line(loaded: ModelsLoaded, target: FoundModel, draft: FoundModel | None) -> str:
    """Return what is loaded, by names of the Hub or of files, in one line."""
    line = f"target {model_text(shown_name(target), loaded.target)}"
    if draft is not None and loaded.draft is not None:
        line += f", draft {model_text(shown_name(draft), loaded.draft)}"
    return one_line(f"{line}, context {loaded.target.n_ctx} | {speculation_line(loaded.speculation, draft)}")


def status_line(answer: Answer, draft: FoundModel | None) -> str:
    """Return what an answer cost, in one line. Without drafts there is no acceptance to speak of."""
    parts = [
        f"{answer.stats.num_tokens} tokens",
        f"decode {rate_text(answer.latency.decode_tps)} tokens/s",
        f"first text after {milliseconds_text(answer.latency.ttft_s)}",
    ]
    if answer.speculation is not None:
        if answer.speculation.is_on and answer.stats.acceptance_rate is not None:
            parts.append(f"acceptance {percent_text(answer.stats.acceptance_rate)}")
        parts.append(speculation_line(answer.speculation, draft))
    if ending := _ENDINGS[answer.finish_reason]:
        parts.append(ending)
    return one_line(" | ".join(parts))


def speculation_line(state: SpeculationState, draft: FoundModel | None) -> str:
    """Return whether speculation is on, and with what, or why not, in short.

    Args:
        state: as the engine reports it.
        draft: the draft model that was asked for, which reason and drafter may name by its whole path, or by a hash.
    """
    drafter, reason = state.drafter, state.reason
    if draft is not None:
        name = shown_name(draft)
        drafter = drafter.replace(draft.path.stem, name.removesuffix(".gguf"))
        reason = reason.replace(str(draft.path), name)
    return _speculation(state.is_on, drafter, state.settings.n_max, reason)


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
    acceptance = _number(figures.get("acceptance_rate"))
    if is_on is True and acceptance is not None:
        parts.append(f"acceptance {percent_text(acceptance)}")
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
        return one_line(f"speculation ON ({_shortened(drafter)}, n_max {n_max})")
    return one_line(f"speculation OFF ({_shortened(reason) or 'switched off'})")


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_REASON else f"{text[: _MAX_REASON - 1].rstrip()}…"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
