"""Whether one model can draft for another: llama.cpp's own rule, made explicit and put into words."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, Protocol

from localspec.catalog.costs import too_dear_words
from localspec.catalog.facts import ModelFacts, facts_of
from localspec.catalog.families import MIN_TIMES_SMALLER
from localspec.catalog.gguf_walk import printable
from localspec.catalog.header import GgufHeader
from localspec.catalog.heads import check_head, head_name

PairStatus = Literal["PAIR", "PAIR_WITH_NOTE", "NO_PAIR", "UNKNOWN"]

PairMethod = Literal["draft", "eagle3", "dflash", "dspark", "mtp"]
"""How the second file drafts: as a model of its own, or as a head that reads the target's hidden states."""

MAX_SIZE_DIFFERENCE = 128
FIRST_COMPARED_ID = 5
"""SPEC_VOCAB_MAX_SIZE_DIFFERENCE and SPEC_VOCAB_CHECK_START_TOKEN_ID in llama.cpp's common/speculative.cpp."""

_VOCABULARY_TYPES = {
    0: "none",
    1: "SentencePiece BPE",
    2: "byte-level BPE",
    3: "WordPiece",
    4: "Unigram",
    5: "RWKV",
    6: "PLaMo-2",
}
"""enum llama_vocab_type."""
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """Whether a draft goes with a target, and why."""

    status: PairStatus
    reason: str
    """NO_PAIR: the first difference in words. UNKNOWN: why it cannot be said. Otherwise empty."""
    notes: tuple[str, ...] = ()
    """Differences that do not matter to the pairing but that a person should know of; warnings in numbers."""
    method: PairMethod = "draft"


class VocabularyView(Protocol):
    """A vocabulary as llama.cpp has it after loading."""

    n_tokens: int
    type: int
    """llama.cpp's enum llama_vocab_type."""
    bos: int
    eos: int
    adds_bos: bool
    adds_eos: bool

    def token_text(self, token: int) -> bytes:
        """Return a token as the file spells it."""


@dataclass(frozen=True, slots=True)
class PairSide:
    """One of the two models."""

    header: GgufHeader
    vocabulary: VocabularyView | None
    """None where llama.cpp could not load it."""
    failure: str = ""
    """Why there is no vocabulary."""


def check_pair(target: PairSide, draft: PairSide) -> PairVerdict:
    """Say whether the draft can draft for the target.

    Args:
        target: its header read with tensors; if it is compared with draft-only files alone, it needs no vocabulary.
        draft: likewise; a file that can only draft needs no vocabulary.
    """
    target_facts, draft_facts = facts_of(target.header), facts_of(draft.header)
    method: PairMethod = draft_facts.draft_only or "draft"
    if target_facts.draft_only is not None:
        reason = f"the target is {head_name(target_facts.draft_only)} and cannot run alone"
        return PairVerdict("NO_PAIR", reason, method=method)
    if draft_facts.draft_only is not None:
        return _head_verdict(target.header, draft.header, method)
    for name, side in (("target", target), ("draft", draft)):
        if side.vocabulary is None:
            failure = side.failure or "it has no vocabulary"
            return PairVerdict("UNKNOWN", f"the {name}'s vocabulary cannot be compared: {failure}")
    ours, theirs = target.vocabulary, draft.vocabulary
    assert ours is not None and theirs is not None
    has_same_texts = target_facts.vocabulary_fingerprint == draft_facts.vocabulary_fingerprint != ""
    reason = vocabulary_difference(ours, theirs, has_same_texts)
    if reason:
        return PairVerdict("NO_PAIR", reason)
    notes = [*_vocabulary_notes(ours, theirs, has_same_texts), *_template_notes(target_facts, draft_facts)]
    if _is_same_file(target.header, draft.header):
        notes.append("both are the same file: drafting a token costs as much as the target's own step")
    else:
        notes += _cost_notes(target_facts, draft_facts)
    return PairVerdict("PAIR_WITH_NOTE" if notes else "PAIR", "", tuple(notes))


def _head_verdict(target: GgufHeader, draft: GgufHeader, method: PairMethod) -> PairVerdict:
    finding = check_head(target, draft, MAX_SIZE_DIFFERENCE)
    if finding.difference:
        return PairVerdict("NO_PAIR", finding.difference, method=method)
    if finding.gap:
        return PairVerdict("UNKNOWN", finding.gap, method=method)
    return PairVerdict("PAIR_WITH_NOTE" if finding.notes else "PAIR", "", finding.notes, method)


def vocabulary_difference(target: VocabularyView, draft: VocabularyView, has_same_texts: bool = False) -> str:
    """Say why two vocabularies are no pair, or return an empty string.

    The rule and its order are llama.cpp's (common_speculative_are_compatible in common/speculative.cpp): same type,
    same use of BOS and EOS, sizes at most 128 apart, and equal token texts from id 5 on over the common range.

    Args:
        target: vocabulary of the one.
        draft: vocabulary of the other.
        has_same_texts: it is known that all token texts are equal.
    """
    if target.type != draft.type:
        ours, theirs = (_VOCABULARY_TYPES.get(side.type, f"number {side.type}") for side in (target, draft))
        return f"the target's vocabulary is of the type {ours}, the draft's of the type {theirs}"
    for name, flags, ids in (
        ("BOS", (target.adds_bos, draft.adds_bos), (target.bos, draft.bos)),
        ("EOS", (target.adds_eos, draft.adds_eos), (target.eos, draft.eos)),
    ):
        if flags[0] != flags[1]:
            who, other = ("target", "draft") if flags[0] else ("draft", "target")
            return f"the {who} puts {name} at a text's {'start' if name == 'BOS' else 'end'}, the {other} does not"
        if flags[0] and ids[0] != ids[1]:
            return f"{name} is token {ids[0]} in the target and token {ids[1]} in the draft"
    difference = abs(target.n_tokens - draft.n_tokens)
    if difference > MAX_SIZE_DIFFERENCE:
        return (
            f"the target has {target.n_tokens} tokens, the draft {draft.n_tokens}: "
            f"{difference} apart, at most {MAX_SIZE_DIFFERENCE} may be"
        )
    if has_same_texts:
        return ""
    for token in range(FIRST_COMPARED_ID, min(target.n_tokens, draft.n_tokens)):
        if (reason := _text_difference(target, draft, token)) != "":
            return reason
    return ""


def _text_difference(target: VocabularyView, draft: VocabularyView, token: int) -> str:
    ours, theirs = target.token_text(token), draft.token_text(token)
    if ours == theirs:
        return ""
    return f"token {token}: the target says {_shown(ours)}, the draft says {_shown(theirs)}"


def _shown(text: bytes) -> str:
    decoded = text.decode("utf-8", "replace")
    short = decoded if len(decoded) <= _SHOWN_CHARACTERS else f"{decoded[: _SHOWN_CHARACTERS - 1]}…"
    return printable(repr(short))


def _vocabulary_notes(target: VocabularyView, draft: VocabularyView, has_same_texts: bool) -> list[str]:
    notes = []
    if target.n_tokens != draft.n_tokens:
        notes.append(
            f"the vocabularies differ in size: {target.n_tokens} tokens in the target, {draft.n_tokens} in the draft"
        )
    for name, is_added, ids in (
        ("BOS", target.adds_bos, (target.bos, draft.bos)),
        ("EOS", target.adds_eos, (target.eos, draft.eos)),
    ):
        if not is_added and ids[0] != ids[1]:
            ours, theirs = (f"token {token}" if token >= 0 else "not set" for token in ids)
            notes.append(f"{name} is {ours} in the target and {theirs} in the draft; neither adds it to a text")
    if not has_same_texts:
        common = min(FIRST_COMPARED_ID, target.n_tokens, draft.n_tokens)
        differences = (_text_difference(target, draft, token) for token in range(common))
        notes += [
            f"{difference} (llama.cpp does not compare ids below {FIRST_COMPARED_ID})"
            for difference in differences
            if difference
        ]
    return notes


def _template_notes(target: ModelFacts, draft: ModelFacts) -> list[str]:
    if target.template_fingerprint == draft.template_fingerprint:
        return []
    if not target.template_fingerprint:
        return ["only the draft has a chat template"]
    if not draft.template_fingerprint:
        return ["the draft has no chat template; both are given the target's"]
    return ["the chat templates differ; both are given the target's"]


def _is_same_file(target: GgufHeader, draft: GgufHeader) -> bool:
    return target.path != "" and os.path.realpath(target.path) == os.path.realpath(draft.path)


def _cost_notes(target: ModelFacts, draft: ModelFacts) -> list[str]:
    """Warn of a draft that is too dear for its target: for a mixture of experts by the parameters that a token uses,
    else by the bytes that a step reads."""
    words = too_dear_words(draft.active_bytes / target.active_bytes) if target.active_bytes else ""
    params, draft_params = target.num_active_params, draft.num_active_params
    if target.num_experts > 1 and 0 < params < MIN_TIMES_SMALLER * draft_params:
        used = (
            f"of the target's {_billions(target.num_params)} parameters a token uses {_billions(params)}, "
            f"{params / draft_params:.1f} times the draft's {_billions(draft_params)}; "
            f"{MIN_TIMES_SMALLER} times or more is worth trying"
        )
        return [f"{words} ({used})" if words else f"perhaps too dear to pay: {used}"]
    return [words] if words else []


def _billions(count: int) -> str:
    return f"{count / 1e9:.1f} B" if count >= 1e9 else f"{count / 1e6:.0f} M"
