"""llama.cpp's parameters of models and contexts, built here alone: what is planned is what is loaded.

One sequence a context, rows of logits for one verification and no more, a sliding window of its own length, flash
attention as asked for and never guessed, the KV cache beside its layers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llama_cpp.llama_cpp as C

from localspec.engine.llama import ggml
from localspec.engine.llama.names import kv_type_number
from localspec.engine.values import MAX_DRAFT_TOKENS, ContextSettings
from localspec.planning.footprint import Placement

EXPERT_TENSORS = rb"\.ffn_(up|down|gate|gate_up)_(ch|)exps"
"""LLM_FFN_EXPS_REGEX of llama.cpp's common/common.h, behind its option --cpu-moe."""

MAX_OUTPUTS = MAX_DRAFT_TOKENS + 1
"""Rows of logits of one step: all tokens of the longest draft, and the one before them. More would end the process."""


class _Override(ctypes.Structure):
    """struct llama_model_tensor_buft_override."""

    _fields_ = (("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p))


@dataclass(frozen=True, slots=True)
class ModelParams:
    """llama_model_params with the C memory that they point to: keep it as long as the model."""

    value: Any
    kept: tuple[Any, ...] = ()


def placement_of(settings: ContextSettings) -> Placement:
    """Return what of the settings decides about memory."""
    return Placement(
        n_ctx=settings.n_ctx,
        n_gpu_layers=settings.n_gpu_layers,
        type_k=settings.type_k,
        type_v=settings.type_v,
        flash_attn=settings.flash_attn,
        n_batch=settings.n_batch,
        n_ubatch=settings.n_ubatch,
        experts_on_cpu=settings.experts_on_cpu,
    )


def model_params(placement: Placement, *, use_mmap: bool, devices: Sequence[int] | None = None) -> ModelParams:
    """Return the parameters of loading a model.

    Args:
        placement: n_gpu_layers and experts_on_cpu count.
        use_mmap: map the file where the system can.
        devices: ggml's handles of the only devices to place layers on; None leaves the choice to llama.cpp.
    """
    params = C.llama_model_default_params()
    kept: list[Any] = []
    params.n_gpu_layers = placement.n_gpu_layers
    params.load_mode = C.LLAMA_LOAD_MODE_AUTO if use_mmap else C.LLAMA_LOAD_MODE_NONE
    if devices is not None:
        handles = (ctypes.c_void_p * (len(devices) + 1))(*devices, None)
        params.devices = ctypes.cast(handles, ctypes.c_void_p)
        kept.append(handles)
    if placement.experts_on_cpu:
        overrides = (_Override * 2)(_Override(EXPERT_TENSORS, ggml.cpu_buffer_type()), _Override(None, None))
        params.tensor_buft_overrides = ctypes.cast(overrides, ctypes.c_void_p)
        kept.append(overrides)
    return ModelParams(params, tuple(kept))


def probe_params(placement: Placement, devices: Sequence[int] | None = None, *, load_mtp: bool = False) -> ModelParams:
    """Return the parameters of opening a model for measuring: nothing is read but the header, nothing allocated.

    Args:
        placement: n_gpu_layers and experts_on_cpu count.
        devices: as in model_params.
        load_mtp: count the heads for multi-token prediction too.
    """
    # With any other mode llama.cpp ends the process (llama-model.cpp: GGML_ASSERT(!ml.no_alloc)).
    params = model_params(placement, use_mmap=False, devices=devices)
    params.value.no_alloc = True
    params.value.load_mtp = load_mtp
    return params


def context_params(placement: Placement) -> Any:
    """Return the parameters of a context; threads and callbacks are the caller's."""
    params = C.llama_context_default_params()
    params.n_ctx = placement.n_ctx
    params.n_batch = placement.n_batch
    params.n_ubatch = placement.n_ubatch
    params.n_seq_max = 1
    params.n_rs_seq = placement.n_rs_seq
    params.n_outputs_max = MAX_OUTPUTS
    params.type_k = kv_type_number(placement.type_k)
    params.type_v = kv_type_number(placement.type_v)
    params.flash_attn_type = (
        C.LLAMA_FLASH_ATTN_TYPE_ENABLED if placement.flash_attn else C.LLAMA_FLASH_ATTN_TYPE_DISABLED
    )
    params.swa_full = False
    params.offload_kqv = True
    params.no_perf = True
    return params
