"""Which combinations of settings are possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localspec.errors import SettingsError

if TYPE_CHECKING:
    from localspec.settings import ContextGroup, DraftGroup

MAX_DRAFT_TOKENS = 32
"""Longest draft of a round; the engine's buffers are sized for it."""

_MAX_NGRAM = 64


def check_draft(draft: DraftGroup, *, n_ctx: int, n_batch: int) -> None:
    """Refuse a combination that cannot work.

    Args:
        draft: how to draft.
        n_ctx: positions of the smaller context; 0 where it is not known yet.
        n_batch: tokens that the target takes in a step.

    Raises:
        SettingsError: both values are named, with what to do.
    """
    n_max, n_min = draft.n_max, draft.n_min
    if not 1 <= n_max <= MAX_DRAFT_TOKENS:
        raise SettingsError(
            f"n_max is {n_max}, but a draft has 1 to {MAX_DRAFT_TOKENS} tokens.",
            f"Set n_max to 1 to {MAX_DRAFT_TOKENS}; to draft nothing, set the method to off.",
        )
    if n_min < 0:
        raise SettingsError(f"n_min is {n_min}, but a length cannot be below 0.", "Set n_min to 0 to keep every draft.")
    if n_min > n_max:
        raise SettingsError(
            f"n_min {n_min} is over n_max {n_max}: every draft would be thrown away as too short.",
            f"Lower n_min to {n_max} or less, or raise n_max.",
        )
    if not 0.0 <= draft.p_min <= 1.0:
        raise SettingsError(
            f"p_min is {draft.p_min}, but a probability lies between 0 and 1.",
            "Set p_min to 0 to 1; 0 never stops early.",
        )
    if draft.ngram_min < 1:
        raise SettingsError(
            f"ngram_min is {draft.ngram_min}, but a match has at least 1 token.", "Set ngram_min to 1 or more."
        )
    if draft.ngram_min > draft.ngram_max:
        raise SettingsError(
            f"ngram_min {draft.ngram_min} is over ngram_max {draft.ngram_max}: no match could be found.",
            f"Lower ngram_min to {draft.ngram_max} or less, or raise ngram_max.",
        )
    if draft.ngram_max > _MAX_NGRAM:
        raise SettingsError(
            f"ngram_max is {draft.ngram_max}, but a match has at most {_MAX_NGRAM} tokens.",
            f"Lower ngram_max to {_MAX_NGRAM} or less.",
        )
    if not 0.1 <= draft.suffix_factor <= MAX_DRAFT_TOKENS:
        raise SettingsError(
            f"suffix_factor is {draft.suffix_factor}, but it lies between 0.1 and {MAX_DRAFT_TOKENS}.",
            "Set suffix_factor to 2 to draft at most twice as many tokens as match.",
        )
    if not 0.0 <= draft.suffix_p_min <= 1.0:
        raise SettingsError(
            f"suffix_p_min is {draft.suffix_p_min}, but a share lies between 0 and 1.",
            "Set suffix_p_min to 0 to 1; 0 never stops early.",
        )
    if draft.draft_temperature < 0.0 and draft.draft_temperature != -1.0:
        raise SettingsError(
            f"draft_temperature is {draft.draft_temperature}, but a temperature is not below 0.",
            "Set draft_temperature to 0 or more, or to -1 for the target's own.",
        )
    if draft.draft_temperature > 100.0:
        raise SettingsError(
            f"draft_temperature is {draft.draft_temperature}, but a temperature is at most 100.",
            "Lower draft_temperature, or set it to -1 for the target's own.",
        )
    if 0 < n_ctx <= n_max:
        raise SettingsError(
            f"n_max {n_max} does not fit in n_ctx {n_ctx}: a draft needs room beside the text.",
            "Lower n_max, or raise n_ctx.",
        )
    if n_max + 1 > n_batch:
        raise SettingsError(
            f"n_max {n_max} does not fit in n_batch {n_batch}: a draft and one token more are checked in one step.",
            f"Lower n_max to {n_batch - 1} or less, or raise n_batch." if n_batch > 1 else "Raise n_batch.",
        )


def check_context(context: ContextGroup) -> None:
    """Refuse a combination that llama.cpp refuses or silently changes.

    Raises:
        SettingsError: both values are named, with what to do.
    """
    if context.n_ubatch > context.n_batch:
        raise SettingsError(
            f"n_ubatch {context.n_ubatch} is over n_batch {context.n_batch}: llama.cpp would cut it down unasked.",
            f"Lower n_ubatch to {context.n_batch} or less, or raise n_batch.",
        )
    if context.type_v not in ("f32", "f16", "bf16") and not context.flash_attn:
        raise SettingsError(
            f"type_v {context.type_v} does not go with flash_attn off: llama.cpp needs flash attention for it.",
            "Set flash_attn on, or type_v to f16.",
        )


def check_draft_context(draft: DraftGroup, context: ContextGroup) -> None:
    """Refuse a context of the draft model that llama.cpp refuses.

    Raises:
        SettingsError: both values are named, with what to do.
    """
    type_v = draft.type_v
    if type_v is not None and type_v not in ("f32", "f16", "bf16") and not context.flash_attn:
        raise SettingsError(
            f"The draft's type_v {type_v} does not go with flash_attn off: llama.cpp needs flash attention for it.",
            "Set flash_attn on, or the draft's type_v to f16.",
        )
