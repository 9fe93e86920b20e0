"""Whether a file that can only draft was made for a target.

llama.cpp does not ask: it ends the process, or drafts nonsense. What its code takes for granted is asked here
(common/speculative.cpp; src/models/eagle3.cpp, dflash.cpp and gemma4-assistant.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass

from localspec.catalog.facts import MTP_ARCHITECTURES, DraftKind, ModelFacts, facts_of
from localspec.catalog.gguf_walk import printable
from localspec.catalog.header import GgufHeader

NUM_EAGLE3_LAYERS = 3

_NAMES: dict[DraftKind, str] = {
    "eagle3": "an EAGLE-3 head",
    "dflash": "a DFlash draft",
    "dspark": "a DSpark draft",
    "mtp": "a side file for multi-token prediction",
}


@dataclass(frozen=True, slots=True)
class HeadFinding:
    """What stands between a head and a target; nothing, if both texts are empty."""

    difference: str = ""
    """Why it was not made for this target."""
    gap: str = ""
    """What a file does not say, so that it cannot be told."""
    notes: tuple[str, ...] = ()


def head_name(kind: DraftKind) -> str:
    """Return what a draft-only file is called in a sentence."""
    return _NAMES[kind]


def check_head(target: GgufHeader, draft: GgufHeader, max_size_difference: int) -> HeadFinding:
    """Say whether a draft-only file goes with a target.

    Args:
        target: header of a whole model, read with tensors.
        draft: header of a draft-only file, read with tensors.
        max_size_difference: tokens by which the two vocabularies may differ in number.
    """
    ours, theirs = facts_of(target), facts_of(draft)
    for check in (_check_architecture, _check_width, _check_layers):
        finding = check(ours, theirs)
        if finding.difference or finding.gap:
            return finding
    return _check_vocabulary(ours, theirs, draft, max_size_difference)


def _check_architecture(target: ModelFacts, draft: ModelFacts) -> HeadFinding:
    """A side file for multi-token prediction is part of a model of its own architecture."""
    wanted = MTP_ARCHITECTURES.get(draft.architecture, draft.architecture)
    if draft.draft_only != "mtp" or target.architecture == wanted:
        return HeadFinding()
    shown = printable(target.architecture) or "none that the file states"
    return HeadFinding(f"made for a target of the architecture {printable(wanted)}, but this one's is {shown}")


def _check_width(target: ModelFacts, draft: ModelFacts) -> HeadFinding:
    if not draft.target_hidden_size:
        return HeadFinding(gap="the draft does not say how wide its target's hidden states are")
    if not target.n_embd:
        return HeadFinding(gap="the target does not say how wide its hidden states are")
    if draft.target_hidden_size == target.n_embd:
        return HeadFinding()
    return HeadFinding(
        f"made for a target with hidden states of {draft.target_hidden_size}, but this one's have {target.n_embd}"
    )


def _check_layers(target: ModelFacts, draft: ModelFacts) -> HeadFinding:
    if not target.n_layer:
        return HeadFinding(gap="the target does not say how many layers it has")
    if draft.draft_only == "mtp":
        # Its own layers follow the target's, unless it is an architecture of its own.
        if draft.architecture in MTP_ARCHITECTURES or draft.n_layer == target.n_layer:
            return HeadFinding()
        return HeadFinding(f"made for a target of {draft.n_layer} layers, but this one has {target.n_layer}")
    if not draft.target_layers:
        return HeadFinding(gap="the draft does not say which layers of its target it reads")
    if draft.draft_only == "eagle3" and len(draft.target_layers) != NUM_EAGLE3_LAYERS:
        return HeadFinding(
            f"it reads {len(draft.target_layers)} layers of its target; llama.cpp wants {NUM_EAGLE3_LAYERS}"
        )
    # The input of layer number n_layer is what the last one gives.
    if max(draft.target_layers) <= target.n_layer:
        return HeadFinding()
    return HeadFinding(f"it reads layer {max(draft.target_layers)} of its target, but this one has {target.n_layer}")


def _check_vocabulary(
    target: ModelFacts, draft: ModelFacts, header: GgufHeader, max_size_difference: int
) -> HeadFinding:
    num_tokens = target.n_vocab
    if not num_tokens:
        return HeadFinding(gap="the target does not say how many tokens it has")
    rows = {
        tensor.name: tensor.shape[-1]
        for tensor in header.tensors
        if tensor.name in ("token_embd.weight", "output.weight", "d2t") and tensor.shape
    }
    embedded = rows.get("token_embd.weight")
    if embedded is None and draft.n_embd != target.n_embd:
        return HeadFinding(
            f"it has no embeddings of its own, and the target's have {target.n_embd} numbers instead of {draft.n_embd}"
        )
    if embedded is not None and embedded < num_tokens:
        return HeadFinding(f"it has embeddings for {embedded} tokens, but the target has {num_tokens} tokens")
    drafted = rows.get("d2t", rows.get("output.weight", 0))
    if drafted > num_tokens + max_size_difference:
        return HeadFinding(f"it proposes {drafted} different tokens, but the target has {num_tokens}")
    if draft.n_vocab and abs(draft.n_vocab - num_tokens) > max_size_difference:
        return HeadFinding(f"made for a target with {draft.n_vocab} tokens, but this one has {num_tokens}")
    if draft.vocabulary_fingerprint == target.vocabulary_fingerprint:
        return HeadFinding()
    if not draft.vocabulary_fingerprint or not target.vocabulary_fingerprint:
        return HeadFinding(notes=("only one of the two files holds a vocabulary, so their tokens are not compared",))
    return HeadFinding(
        notes=(
            "their tokens are not all the same: it was made for another version of the target, "
            "or for another model of this size",
        )
    )
