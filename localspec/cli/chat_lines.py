"""What a chat says in one line: the models that are loaded, and what an answer cost."""

from __future__ import annotations

from localspec.catalog.found_model import FoundModel
from localspec.cli.heading import model_text, shown_name
from localspec.engine.events import ModelsLoaded
from localspec.engine.values import FinishReason, SpeculationState
from localspec.session.conversation import Answer
from localspec.session.drafting_text import resting_phrase
from localspec.session.figures import milliseconds_text, percent_text, speed_text
from localspec.session.kept_answer import kept_line, moment_text, state_text
from localspec.session.plain_text import one_line

__all__ = ("kept_line", "loaded_line", "moment_text", "speculation_line", "status_line")

_ENDINGS: dict[FinishReason, str] = {
    "stop": "",
    "stop_string": "",
    "length": "cut at --max-tokens",
    "context_full": "the context is full: /clear starts over, --n-ctx gives more room",
    "cancelled": "stopped",
}


def loaded_line(loaded: ModelsLoaded, target: FoundModel, draft: FoundModel | None) -> str:
    """Return what is loaded, by names of the Hub or of files, in one line."""
    line = f"target {model_text(shown_name(target), loaded.target)}"
    if draft is not None and loaded.draft is not None:
        line += f", draft {model_text(shown_name(draft), loaded.draft)}"
    return one_line(f"{line}, context {loaded.target.n_ctx} | {speculation_line(loaded.speculation, draft)}")


def status_line(answer: Answer, draft: FoundModel | None, kind: str = "") -> str:
    """Return what an answer cost, in one line. Without drafts there is no acceptance to speak of.

    Args:
        answer: with its figures.
        draft: the draft model that was asked for.
        kind: of text, if the way of drafting was chosen by it; otherwise empty.
    """
    parts = [
        f"{answer.stats.num_tokens} tokens",
        f"decode {speed_text(answer.latency.decode_tps)}",
        f"first text after {milliseconds_text(answer.latency.ttft_s)}",
    ]
    if answer.speculation is not None:
        if answer.speculation.is_on and answer.stats.acceptance_rate is not None:
            parts.append(f"acceptance {percent_text(answer.stats.acceptance_rate)}")
        line = speculation_line(answer.speculation, draft)
        parts.append(f"{kind}: {line}" if kind else line)
    if resting := resting_phrase(answer.stats.pacing):
        parts.append(resting)
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
    settings = state.settings
    return state_text(
        state.is_on, drafter, settings.n_max, reason, state.method, settings.pacing, settings.verification
    )
