"""Bytes by buffer: from llama.cpp's own account, or put together from its log where the account is missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from localspec.catalog.header import GgufHeader
from localspec.engine.llama.breakdown import memory_breakdown
from localspec.engine.llama.buffers import HOST, known_buffer_types
from localspec.engine.llama.context_log import ContextLog
from localspec.engine.llama.params import EXPERT_TENSORS
from localspec.errors import MissingSymbolError
from localspec.planning.footprint import MemoryRow, Placement

FROM_LOG = "Sizes come from llama.cpp's log, which rounds them to 0.01 MiB: this build gives no exact account."

_HOST_ALIGNMENT = 32
_BLOCK = re.compile(r"blk\.(\d+)\.")
_INPUT = re.compile(r"(?:token_embd|position_embd|token_types|per_layer_token_embd)\.")
"""LLM_TENSOR_LAYER_INPUT in src/llama-arch.cpp: never offloaded."""
_EXPERTS = re.compile(EXPERT_TENSORS.decode())
_TIED_FIRST = ("gemma3n", "gemma4")
"""Here the output matrix is made before the embedding, and so is a second copy even beside it."""


@dataclass(slots=True)
class Account:
    """Bytes by name of buffer."""

    weights: Counter[str] = field(default_factory=Counter)
    context: Counter[str] = field(default_factory=Counter)
    """KV cache and recurrent state together."""
    recurrent: Counter[str] = field(default_factory=Counter)
    compute: Counter[str] = field(default_factory=Counter)
    output: Counter[str] = field(default_factory=Counter)

    def multiply_state(self, factor: int) -> None:
        """Let there be that many times as much recurrent state."""
        for name, size in self.recurrent.items():
            self.context[name] += (factor - 1) * size
            self.recurrent[name] = factor * size

    def rows(self) -> tuple[MemoryRow, ...]:
        """Return it as rows, those of GPUs first; empty ones are left out."""
        devices = {kind.name: kind.device for kind in _buffer_types()}
        columns = (self.weights, self.context, self.compute, self.output)
        names = {name for column in columns for name, size in column.items() if size}
        rows = (
            MemoryRow(
                buffer=name,
                device=devices.get(name, HOST),
                weights_bytes=self.weights[name],
                kv_bytes=self.context[name] - self.recurrent[name],
                recurrent_bytes=self.recurrent[name],
                compute_bytes=self.compute[name],
                output_bytes=self.output[name],
            )
            for name in names
        )
        return tuple(sorted(rows, key=lambda row: (row.device == HOST, row.device, row.buffer)))


def exact_account(context: Any) -> Account:
    """Return llama.cpp's account of a context and its model; recurrent state and outputs are not told apart in it.

    Raises:
        UnreadableBreakdown: this build gives none that can be read.
        MissingSymbolError: it cannot list its buffers.
    """
    account = Account()
    for use in memory_breakdown(context):
        name = use.buffer.name
        account.weights[name] += use.model_bytes
        account.context[name] += use.context_bytes
        account.compute[name] += use.compute_bytes
    return account


def logged_account(
    header: GgufHeader, placement: Placement, model: ContextLog, context: ContextLog, *, load_mtp: bool = False
) -> Account:
    """Return an account from closed forms and the log; right to 0.01 MiB where no matrix is copied for its kernels.

    Args:
        header: with its tensors.
        placement: experts_on_cpu counts.
        model: what was logged at opening.
        context: what was logged with the context.
        load_mtp: whether heads for multi-token prediction count.
    """
    return Account(
        weights=_weights(header, placement, model.layer_devices, load_mtp),
        context=context.kv + context.recurrent,
        recurrent=Counter(context.recurrent),
        compute=Counter(context.compute),
    )


def _weights(header: GgufHeader, placement: Placement, layers: Sequence[str], load_mtp: bool) -> Counter[str]:
    """Return bytes of weights by device: blocks with their layer, the output with the last, embeddings on the host.

    Source: get_layer_buft_list and create_tensor in src/llama-model.cpp, src/llama-model-loader.cpp.
    """
    total: Counter[str] = Counter()
    names = {tensor.name for tensor in header.tensors}
    n_layer = header.arch_integer("block_count") - header.arch_integer("nextn_predict_layers")
    for tensor in header.tensors:
        size = -(-tensor.size_bytes // _HOST_ALIGNMENT) * _HOST_ALIGNMENT
        block = _BLOCK.match(tensor.name)
        if _INPUT.match(tensor.name):
            total[HOST] += size
            is_tied = tensor.name == "token_embd.weight" and "output.weight" not in names
            if is_tied and (_of(layers, -1) != HOST or header.architecture in _TIED_FIRST):
                total[_of(layers, -1)] += size
        elif block is None:
            total[_of(layers, -1)] += size
        elif int(block[1]) < n_layer or load_mtp or n_layer <= 0:
            is_kept = placement.experts_on_cpu and _EXPERTS.search(tensor.name)
            total[HOST if is_kept else _of(layers, int(block[1]))] += size
    return total


def _of(layers: Sequence[str], index: int) -> str:
    return layers[index] if -len(layers) <= index < len(layers) else HOST


def _buffer_types() -> tuple[Any, ...]:
    with suppress(MissingSymbolError):
        return tuple(known_buffer_types().values())
    return ()
