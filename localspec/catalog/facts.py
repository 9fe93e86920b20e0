"""What a person wants to know of a model, drawn from its header."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from math import prod
from typing import Literal

from localspec.catalog.header import ArrayValue, GgufHeader, TensorInfo
from localspec.catalog.quantisation import header_quantisation

DraftKind = Literal["eagle3", "dflash", "dspark", "mtp"]
"""Files that draft for one target only and cannot run alone."""

MTP_ARCHITECTURES = {"gemma4-assistant": "gemma4"}
"""Architectures of MTP side files that are their own, and their target's."""

_BLOCK = re.compile(r"blk\.(\d+)\.")
_EXPERTS = re.compile(r"ffn_(?:gate|up|gate_up|down)_(?:ch)?exps\.")
_ONE_EXPERT = re.compile(r"ffn_(?:gate|up|down)\.\d+\.")
"""Older files have a tensor for each expert."""
_LOOKED_UP = (
    "per_layer_token_embd.weight",
    "position_embd.weight",
    "token_types.weight",
    "markov_w1.weight",
    "selector_predecessor.weight",
    "selector_successor.weight",
    "d2t",
)
"""Of these one row is read (GGML_OP_GET_ROWS in src/llama-arch.cpp)."""
_HUGGING_FACE = re.compile(
    r"https://(?:www\.)?huggingface\.co/([A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})/?", re.ASCII
)
_MAX_COUNT = 2**31
_MAX_BASE_MODELS = 16


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model, however many files it is split into. Sizes in bytes; counts of 0 and empty texts are unstated."""

    title: str
    """general.name as the file has it."""
    architecture: str
    quantisation: str
    """llama.cpp's file type name, such as `Q4_K_M`."""
    num_params: int
    num_active_params: int
    """Parameters that one token's step uses: of the experts only those that are chosen."""
    file_bytes: int
    tensor_bytes: int
    active_bytes: int
    """Bytes of weights that one token's step reads; a table of embeddings that is only looked up does not count."""
    n_ctx_train: int
    n_layer: int
    """Layers of the model itself, as llama.cpp counts them: heads for multi-token prediction come after them."""
    n_embd: int
    num_experts: int
    num_experts_used: int
    """Where layers differ, the most that one of them uses."""
    n_vocab: int
    vocabulary_fingerprint: str
    num_mtp_layers: int
    """Heads for multi-token prediction inside the file."""
    draft_only: DraftKind | None
    target_hidden_size: int
    """Of a draft-only file: what it expects of its target. Likewise target_layers."""
    target_layers: tuple[int, ...]
    template_fingerprint: str
    """Empty for a file without a chat template."""
    licence: str
    base_models: tuple[str, ...]
    """`owner/name` of each model that it was made from, as the file says."""


def facts_of(header: GgufHeader) -> ModelFacts:
    """Return the facts of a header that was read with its tensors. A value that makes no sense is unstated.

    Raises:
        ValueError: the header lists no tensors though the file has some.
    """
    if header.num_tensors and not header.tensors:
        raise ValueError("the header was read without its tensors")
    kind = draft_kind(header)
    num_params, active_bytes = _active(header, kind)
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    n_vocab = tokens.length if isinstance(tokens, ArrayValue) else 0
    return ModelFacts(
        title=header.text("general.name"),
        architecture=header.architecture,
        quantisation=header_quantisation(header),
        num_params=header.num_params,
        num_active_params=num_params,
        file_bytes=header.file_bytes,
        tensor_bytes=header.tensor_bytes,
        active_bytes=active_bytes,
        n_ctx_train=_count(header, "context_length"),
        n_layer=_count(header, "block_count") - _num_mtp_layers(header),
        n_embd=_count(header, "embedding_length"),
        num_experts=_count(header, "expert_count"),
        num_experts_used=max(_experts_used(header)),
        n_vocab=n_vocab or _count(header, "vocab_size"),
        vocabulary_fingerprint=header.vocabulary_fingerprint,
        num_mtp_layers=_num_mtp_layers(header),
        draft_only=kind,
        target_hidden_size=_target_hidden_size(header, kind),
        target_layers=_target_layers(header) if kind is not None else (),
        template_fingerprint=_fingerprint(header.text("tokenizer.chat_template")),
        licence=header.text("general.license"),
        base_models=_base_models(header),
    )


def draft_kind(header: GgufHeader) -> DraftKind | None:
    """Return what a file that cannot run alone is, or None for a whole model.

    EAGLE-3 and DFlash files have architectures of their own; DSpark is DFlash with a Markov head
    (src/models/dflash.cpp). A side file for multi-token prediction has the architecture of its target, but of its
    layers only those after the target's own (`--mtp` in llama.cpp's converter), or an architecture of its own.
    """
    if header.architecture == "eagle3":
        return "eagle3"
    if header.architecture == "dflash":
        return "dspark" if any(tensor.name == "markov_w1.weight" for tensor in header.tensors) else "dflash"
    if header.architecture in MTP_ARCHITECTURES:
        return "mtp"
    num_mtp_layers = _num_mtp_layers(header)
    if not num_mtp_layers:
        return None
    first = _count(header, "block_count") - num_mtp_layers
    blocks = {block for tensor in header.tensors if (block := _block(tensor)) >= 0}
    return "mtp" if blocks and min(blocks) >= first else None


def _active(header: GgufHeader, kind: DraftKind | None) -> tuple[int, int]:
    """Return the parameters that one token's step uses, and their bytes; zeros where the experts' use is unstated."""
    names = {tensor.name for tensor in header.tensors}
    has_tied_output = "output.weight" not in names and kind != "eagle3"
    num_mtp_layers = _num_mtp_layers(header)
    first_mtp = _count(header, "block_count") - num_mtp_layers if num_mtp_layers and kind != "mtp" else _MAX_COUNT
    num_experts, used_by_layer = _count(header, "expert_count"), _experts_used(header)
    num_params = num_bytes = 0
    for tensor in header.tensors:
        block = _block(tensor)
        if tensor.name in _LOOKED_UP or block >= first_mtp:
            continue
        if tensor.name == "token_embd.weight" and not has_tied_output:
            continue
        used, total = 1, 1
        if num_experts > 1:
            used = used_by_layer[max(0, min(block, len(used_by_layer) - 1))]
            if _ONE_EXPERT.search(tensor.name):
                total = num_experts
            elif _EXPERTS.search(tensor.name):
                # Experts in chunks (grovemoe) have fewer matrices than there are experts.
                total = max(1, tensor.shape[-1] if tensor.shape else 1)
            if total > 1 and not used:
                return 0, 0
            used = min(used, total) if total > 1 else 1
        num_params += prod(tensor.shape) * used // total
        num_bytes += tensor.size_bytes * used // total
    return num_params, num_bytes


def _block(tensor: TensorInfo) -> int:
    """Return the number of the layer that a tensor belongs to, or -1."""
    match = _BLOCK.match(tensor.name)
    return int(match[1][:9]) if match is not None else -1


def _count(header: GgufHeader, key: str) -> int:
    """Return `<architecture>.<key>`, or 0 where it is absent or can be no count."""
    value = header.arch_integer(key)
    return value if 0 < value < _MAX_COUNT else 0


def _num_mtp_layers(header: GgufHeader) -> int:
    count = _count(header, "nextn_predict_layers")
    return count if count <= _count(header, "block_count") else 0


def _experts_used(header: GgufHeader) -> tuple[int, ...]:
    """Return how many experts each layer uses, or one number for all."""
    num_experts = _count(header, "expert_count")
    stated = header.metadata.get(f"{header.architecture}.expert_used_count")
    values = stated.items if isinstance(stated, ArrayValue) else (stated,)
    counts = tuple(
        value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= num_experts else 0
        for value in values
    )
    return counts or (0,)


def _target_hidden_size(header: GgufHeader, kind: DraftKind | None) -> int:
    """Return the width of the hidden states that a draft-only file reads.

    An EAGLE-3 file states it. DFlash has the width of its target (n_embd_inp_enc in src/models/dflash.cpp), and so
    have side files for multi-token prediction unless they state another (embedding_length_out).
    """
    if kind is None:
        return 0
    if kind == "mtp":
        return _count(header, "embedding_length_out") or _count(header, "embedding_length")
    return _count(header, "target_hidden_size") or (_count(header, "embedding_length") if kind != "eagle3" else 0)


def _target_layers(header: GgufHeader) -> tuple[int, ...]:
    value = header.metadata.get(f"{header.architecture}.target_layers")
    items = value.items if isinstance(value, ArrayValue) else ()
    layers = tuple(item for item in items if isinstance(item, int) and not isinstance(item, bool))
    return layers if len(layers) == len(items) and all(0 <= layer < _MAX_COUNT for layer in layers) else ()


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32] if text else ""


def _base_models(header: GgufHeader) -> tuple[str, ...]:
    found: list[str] = []
    for index in range(_MAX_BASE_MODELS):
        match = _HUGGING_FACE.fullmatch(header.text(f"general.base_model.{index}.repo_url"))
        if match is not None and ".." not in match[1] and match[1] not in found:
            found.append(match[1])
    return tuple(found)
