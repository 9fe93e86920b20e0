"""What a person wants to know of a model, drawn from its header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from localspec.catalog.header import GgufHeader

DraftKind = Literal["eagle3", "dflash", "dspark", "mtp"]
"""Files that draft for one target only and cannot run alone."""


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
    n_embd: int
    num_experts: int
    num_experts_used: int
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
    """Return the facts of a header that was read with its tensors.

    Raises:
        ValueError: the header lists no tensors though the file has some.
    """
    raise NotImplementedError
