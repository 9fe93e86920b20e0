"""What llama.cpp takes for weights, KV cache and recurrent state, in closed form: the oracle of the memory plan.

Written from llama.cpp's source (llama-model.cpp, llama-kv-cache.cpp, llama-memory-recurrent.cpp, llama-hparams.cpp) and
sharing nothing with localspec but the value `Placement`. It knows the architectures of tests/synthetic_gguf.py
and no others. Flash attention, window caches of their own size (swa_full off), one KV stream, layers split
over devices by free memory, KV on its layer's device.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from localspec.planning.footprint import Placement
from tests.synthetic_families import Keys, Tensor, row_bytes
from tests.synthetic_gguf import SyntheticModel

HOST_ALIGNMENT = 32
CONTEXT_STEP = 256
"""llama.cpp pads contexts to a multiple of it."""

HAS_ROLLBACK = frozenset({"qwen35", "qwen35moe", "lfm2"})
"""Architectures that keep snapshots of their recurrent state; others ignore n_rs_seq."""

OUTPUT_BEFORE_INPUT = frozenset({"gemma4"})
"""Architectures whose tied embedding is in memory twice even on one device, since the output is made first."""

DEFAULT_WINDOW_PERIOD = {"gemma3": 6, "gpt-oss": 2}

_INPUT = re.compile(r"(token_embd|per_layer_token_embd)\.weight")
_FIRST_LAYER = re.compile(r"per_layer_(model_proj|proj_norm)\.weight")
_BLOCK = re.compile(r"blk\.(\d+)\.")
_EXPERTS = re.compile(r"\.ffn_(up|down|gate_up|gate)_(ch|)exps")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device with the rules of CUDA, or of Metal with alignment 32 and rows left as they are."""

    free_bytes: int
    alignment: int = 128
    pads_rows: bool = True
    """Rows of quantised tensors are filled up to 512 values at the end of the tensor."""


@dataclass(frozen=True, slots=True)
class DeviceBytes:
    """Bytes on one device."""

    weights: int = 0
    kv: int = 0
    recurrent: int = 0

    def __add__(self, other: DeviceBytes) -> DeviceBytes:
        return DeviceBytes(self.weights + other.weights, self.kv + other.kv, self.recurrent + other.recurrent)


class Placed:
    """A model with one placement on a host and GPUs.

    Args:
        model: the header.
        placement: n_gpu_layers, context and cache types.
        gpus: none for a machine without.
        n_seq: sequences that share the KV cells and have recurrent states of their own.
        loads_mtp: count the blocks that predict further tokens.
        is_mtp_context: the context that uses those blocks, not the main one.
    """

    def __init__(
        self,
        model: SyntheticModel,
        placement: Placement,
        gpus: Sequence[Gpu] = (),
        *,
        n_seq: int = 1,
        loads_mtp: bool = False,
        is_mtp_context: bool = False,
    ) -> None:
        self._model = model
        self._placement = placement
        self._gpus = tuple(gpus)
        self._n_seq = n_seq
        self._loads_mtp = loads_mtp
        self._is_mtp_context = is_mtp_context
        self._layers = _Layers(model)
        self._devices = _layer_devices(self._layers.num_all, placement.n_gpu_layers, gpus)

    def bytes(self) -> tuple[DeviceBytes, ...]:
        """Return what lies on the host and on each GPU, in this order."""
        totals = [DeviceBytes()] * (1 + len(self._gpus))
        for device, part in (*self._weights(), *self._kv(), *self._recurrent()):
            totals[device] += part
        return tuple(totals)

    def output_bytes(self, num_rows: int) -> int:
        """Return the bytes of a buffer for that many rows of logits, which is on the host."""
        n_vocab = self._model.keys["vocab_size"]
        assert isinstance(n_vocab, int)
        return 4 * n_vocab * num_rows

    def _size(self, device: int, tensor: Tensor) -> int:
        if device == 0:
            return _pad(tensor.num_bytes, HOST_ALIGNMENT)
        gpu, size, rest = self._gpus[device - 1], tensor.num_bytes, tensor.shape[0] % 512
        if gpu.pads_rows and rest and tensor.type not in ("F32", "F16", "BF16"):
            size += row_bytes(tensor.type, 512 - rest)
        return _pad(size, gpu.alignment)

    def _weights(self) -> list[tuple[int, DeviceBytes]]:
        names = {tensor.name for tensor in self._model.tensors}
        placed = []
        for tensor in self._model.tensors:
            devices = self._weight_devices(tensor)
            if tensor.name == "token_embd.weight" and "output.weight" not in names:
                devices += self._tied_devices()
            placed += [(device, DeviceBytes(weights=self._size(device, tensor))) for device in devices]
        return placed

    def _weight_devices(self, tensor: Tensor) -> list[int]:
        if _INPUT.match(tensor.name):
            return [0]
        if _FIRST_LAYER.match(tensor.name):
            return [self._devices[0]]
        if tensor.name == "rope_freqs.weight":
            return sorted({self._devices[layer] for layer in self._layers.trunk if not self._skips_factors(layer)})
        block = _BLOCK.match(tensor.name)
        if block is None:
            return [self._devices[-1]]
        layer = int(block[1])
        if layer not in self._layers.trunk and not self._loads_mtp:
            return []
        if self._placement.experts_on_cpu and _EXPERTS.search(tensor.name):
            return [0]
        return [self._devices[layer]]

    def _skips_factors(self, layer: int) -> bool:
        return self._model.architecture == "gemma4" and self._layers.has_window[layer]

    def _tied_devices(self) -> list[int]:
        device = self._devices[-1]
        return [device] if device or self._model.architecture in OUTPUT_BEFORE_INPUT else []

    def _kv(self) -> list[tuple[int, DeviceBytes]]:
        layers, placement = self._layers, self._placement
        n_ctx = _pad(placement.n_ctx, CONTEXT_STEP)
        n_ubatch = min(placement.n_ctx, placement.n_batch, placement.n_ubatch)
        window_cells = _pad(min(n_ctx, layers.window * self._n_seq + n_ubatch), CONTEXT_STEP)
        # Without flash attention V lies transposed, and every layer gets the row of the widest.
        widest = max((layers.v_dims[layer] for layer in range(layers.num_all)), default=0)
        placed = []
        for layer in layers.cached(self._is_mtp_context):
            cells = window_cells if layers.has_window[layer] else n_ctx
            v_dims = layers.v_dims[layer] if placement.flash_attn else widest
            caches = [(placement.type_k, layers.k_dims[layer])]
            caches += [] if layers.is_latent else [(placement.type_v, v_dims)]
            for kind, width in caches:
                device = self._devices[layer]
                cache = Tensor("cache", kind.upper(), (width, cells))
                placed.append((device, DeviceBytes(kv=self._size(device, cache))))
        return placed

    def _recurrent(self) -> list[tuple[int, DeviceBytes]]:
        if self._is_mtp_context:
            return []
        layers = self._layers
        snapshots = self._placement.n_rs_seq if self._model.architecture in HAS_ROLLBACK else 0
        rows = self._n_seq * (1 + snapshots)
        placed = []
        for layer in layers.trunk:
            for width in layers.state_dims if layers.is_recurrent[layer] else ():
                device = self._devices[layer]
                state = Tensor("state", "F32", (width, rows))
                placed.append((device, DeviceBytes(recurrent=self._size(device, state))))
        return placed


class _Layers:
    """What the header says of each layer."""

    def __init__(self, model: SyntheticModel) -> None:
        keys, self._architecture = model.keys, model.architecture
        self.num_all = _int(keys, "block_count")
        self.trunk = range(self.num_all - _int(keys, "nextn_predict_layers"))
        self.window = _int(keys, "attention.sliding_window")
        self.has_window = [self.window > 0 and self._is_window_layer(keys, layer) for layer in range(self.num_all)]
        n_head_kv = _per_layer(keys, "attention.head_count_kv", self.num_all)
        self.is_recurrent = [self._is_recurrent_layer(keys, layer, n_head_kv[layer]) for layer in range(self.num_all)]
        self.is_latent = "attention.key_length_mla" in keys
        self.num_shared = _int(keys, "attention.shared_kv_layers")
        self.k_dims = [n_head_kv[layer] * self._head_dim(keys, "key", layer) for layer in range(self.num_all)]
        self.v_dims = [n_head_kv[layer] * self._head_dim(keys, "value", layer) for layer in range(self.num_all)]
        self.state_dims = self._state_dims(keys)

    def cached(self, is_mtp: bool) -> Sequence[int]:
        """Return the layers that have KV of their own in the main or in the MTP context."""
        if is_mtp:
            return range(len(self.trunk), self.num_all)
        return [layer for layer in self.trunk[: self.num_all - self.num_shared] if not self.is_recurrent[layer]]

    def _is_window_layer(self, keys: Keys, layer: int) -> bool:
        name = "attention.sliding_window_pattern"
        if isinstance(keys.get(name), list):
            return bool(_per_layer(keys, name, self.num_all)[layer])
        return (layer + 1) % _int(keys, name, DEFAULT_WINDOW_PERIOD.get(self._architecture, 1)) != 0

    def _is_recurrent_layer(self, keys: Keys, layer: int, n_head_kv: int) -> bool:
        if interval := _int(keys, "full_attention_interval"):
            return layer in self.trunk and (layer + 1) % interval != 0
        return n_head_kv == 0

    def _head_dim(self, keys: Keys, which: str, layer: int) -> int:
        heads = _int(keys, "attention.head_count")
        default = _int(keys, "embedding_length") // heads if heads else 0
        length = _int(keys, f"attention.{which}_length", default)
        return _int(keys, f"attention.{which}_length_swa", length) if self.has_window[layer] else length

    def _state_dims(self, keys: Keys) -> tuple[int, ...]:
        """Values per row of the convolution's and of the state's memory; F32."""
        if cache_length := _int(keys, "shortconv.l_cache"):
            return (_int(keys, "embedding_length") * (cache_length - 1),)
        inner, state = _int(keys, "ssm.inner_size"), _int(keys, "ssm.state_size")
        channels = inner + 2 * _int(keys, "ssm.group_count") * state
        return (_int(keys, "ssm.conv_kernel") - 1) * channels, state * inner


def _layer_devices(num_layers: int, n_gpu_layers: int, gpus: Sequence[Gpu]) -> list[int]:
    """Return for each layer, the output last, 0 for the host or the number of a GPU from 1."""
    count = min(num_layers + 1, n_gpu_layers if n_gpu_layers >= 0 else num_layers + 1) if gpus else 0
    shares = np.cumsum([gpu.free_bytes for gpu in gpus], dtype=np.float32)
    shares = shares / shares[-1:]
    offloaded = [
        1 + int(np.searchsorted(shares, np.float32(index) / np.float32(count), side="right")) for index in range(count)
    ]
    return [0] * (num_layers + 1 - count) + offloaded


def _int(keys: Keys, name: str, default: int = 0) -> int:
    value = keys.get(name, default)
    assert isinstance(value, int)
    return value


def _per_layer(keys: Keys, name: str, num_layers: int) -> list[int]:
    value = keys.get(name, 0)
    assert not isinstance(value, float | str)
    items = [value] * num_layers if isinstance(value, int) else [int(item) for item in value]
    assert len(items) == num_layers, name
    return items


def _pad(value: int, step: int) -> int:
    return -(-value // step) * step
