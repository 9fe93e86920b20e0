"""Settings of the workbench as a person writes them, and back, with refusals in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.errors import SettingsError
from localspec.methods import METHODS, PACINGS, VERIFICATIONS, needs_draft
from localspec.tui.keyed import keyed
from localspec.tui.state import Workbench

Group = Literal["draft", "sampling", "context", "answer"]

MAX_ANSWER = 1_000_000
"""Most tokens of an answer."""


@dataclass(frozen=True, slots=True)
class Field:
    """One setting that is written as a number."""

    name: str
    group: Group
    words: str
    """What it does, in a few words."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting that is one of a few words."""

    name: str
    words: str
    options: tuple[str, ...]


CHOICES: tuple[Choice, ...] = (
    Choice("method", "how tokens are drafted", METHODS),
    Choice("pacing", "how long drafts are", PACINGS),
    Choice("verification", "which drafts stay", VERIFICATIONS),
)
"""Of drafting."""

FIELDS: tuple[Field, ...] = (
    Field("n_max", "draft", "most tokens of a draft"),
    Field("n_min", "draft", "drops shorter ones"),
    Field("p_min", "draft", "stop drafting below"),
    Field("ngram_max", "draft", "longest match"),
    Field("ngram_min", "draft", "shortest match"),
    Field("suffix_factor", "draft", "most tokens per match"),
    Field("suffix_p_min", "draft", "stop below this share"),
    Field("draft_temperature", "draft", "-1: the target's"),
    Field("temperature", "sampling", "0 takes the likeliest"),
    Field("top_k", "sampling", "0 keeps all"),
    Field("top_p", "sampling", ""),
    Field("min_p", "sampling", ""),
    Field("repeat_penalty", "sampling", "1 for none"),
    Field("seed", "sampling", "same seed, same text"),
    Field("max_tokens", "answer", "of an answer"),
    Field("n_ctx", "context", "reloads the models"),
)


def bench_texts(bench: Workbench) -> dict[str, str]:
    """Return the value of every field and choice as text, and of `remembers` as `on` or `off`."""
    values = {
        **asdict(bench.context),
        **asdict(bench.sampling),
        **asdict(bench.speculation),
        "max_tokens": bench.max_tokens,
    }
    texts = {field.name: f"{values[field.name]:.10g}" for field in FIELDS}
    texts |= {choice.name: str(values[choice.name]) for choice in CHOICES}
    return {**texts, "remembers": "on" if bench.speculation.remembers else "off"}


def bench_from(texts: Mapping[str, str], bench: Workbench) -> Workbench:
    """Return a workbench with other settings.

    Args:
        texts: as of bench_texts; what is missing stays as it is.

    Raises:
        SettingsError: a value is none, or two do not go together; both are named, with what to do.
    """
    from localspec.settings import ContextGroup, DraftGroup, SamplingGroup, check_draft

    groups: dict[Group, dict[str, Any]] = {"draft": {}, "sampling": {}, "context": {}, "answer": {}}
    for field in FIELDS:
        if field.name in texts:
            groups[field.group][field.name] = texts[field.name].strip()
    speculation = asdict(bench.speculation)
    chosen: dict[str, Any] = {choice.name: texts[choice.name] for choice in CHOICES if choice.name in texts}
    if "remembers" in texts:
        chosen["remembers"] = texts["remembers"] == "on"
    draft = _checked(DraftGroup, {**speculation, **groups["draft"], **chosen})
    sampling = _checked(SamplingGroup, {**asdict(bench.sampling), **groups["sampling"]})
    context = _checked(ContextGroup, {**asdict(bench.context), **groups["context"]})
    check_draft(draft, n_ctx=context.n_ctx, n_batch=context.n_batch)
    if needs_draft((draft.method,)) and bench.draft is None:
        raise SettingsError(
            f"The method {draft.method} needs a draft model, and none is chosen.",
            keyed("Choose one on the Models screen ({mode.models}), or take the method suffix, ngram or auto."),
        )
    own = draft.model_dump(include=set(speculation))
    n_ctx_before = bench.context.n_ctx
    new_context = ContextSettings(**context.model_dump())
    # The draft's context goes along, unless it has a length of its own.
    follows = bench.draft_context.n_ctx == n_ctx_before
    return replace(
        bench,
        speculation=SpeculationSettings(**own),
        sampling=SamplingSettings(**sampling.model_dump()),
        context=new_context,
        draft_context=replace(bench.draft_context, n_ctx=context.n_ctx) if follows else bench.draft_context,
        max_tokens=_answer_length(groups["answer"].get("max_tokens", str(bench.max_tokens))),
    )


def _checked(group: Any, values: dict[str, Any]) -> Any:
    from pydantic import ValidationError

    try:
        return group(**values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{name}: {first['msg']}, not {str(first['input'])!r:.40}.", "Correct the value.") from None


def _answer_length(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:12]) <= MAX_ANSWER and len(text) < 12):
        raise SettingsError(
            f"max_tokens: a number from 1 to {MAX_ANSWER} is expected, not {text!r:.40}.", "Correct it."
        )
    return int(text)
