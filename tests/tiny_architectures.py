"""Tiny models of architectures whose memories differ: biases, norms, windows, mixtures, state space, short convolution.

Random weights and the vocabulary of tiny_gguf. They load for real in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import gguf
import numpy as np

from tests.tiny_gguf import _add_vocabulary, _finish, _writer

Shapes = dict[str, tuple[int, ...]]
"""Rows first, as numpy has them."""

N_EMBD, N_FF, N_HEAD, N_HEAD_KV, HEAD_DIM, N_VOCAB = 64, 128, 2, 1, 32, 320
WINDOW = 128


def write_tiny(architecture: str, path: Path) -> Path:
    """Write a model of one of ARCHITECTURES."""
    writer = _writer(path, architecture, 1)
    writer.add_name(f"tiny {architecture}")
    writer.add_context_length(8192)
    writer.add_embedding_length(N_EMBD)
    writer.add_feed_forward_length(N_FF)
    writer.add_layer_norm_rms_eps(1e-5)
    _add_vocabulary(writer, N_VOCAB, 0, None)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    shapes = {"token_embd.weight": (N_VOCAB, N_EMBD), **ARCHITECTURES[architecture](writer)}
    random = np.random.default_rng(1)
    weights = {name: random.standard_normal(shape, np.float32) * 0.1 for name, shape in shapes.items()}
    return _finish(writer, path, weights, 1, np.float32)


def _attention(writer: gguf.GGUFWriter, n_layer: int) -> None:
    writer.add_block_count(n_layer)
    writer.add_head_count(N_HEAD)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_rope_dimension_count(HEAD_DIM)


def _attention_shapes(block: str, *, biases: bool = False, norms: bool = False) -> Shapes:
    query, key = N_HEAD * HEAD_DIM, N_HEAD_KV * HEAD_DIM
    shapes: Shapes = {
        f"{block}.attn_norm.weight": (N_EMBD,),
        f"{block}.attn_q.weight": (query, N_EMBD),
        f"{block}.attn_k.weight": (key, N_EMBD),
        f"{block}.attn_v.weight": (key, N_EMBD),
        f"{block}.attn_output.weight": (N_EMBD, query),
    }
    if biases:
        shapes |= {f"{block}.attn_{name}.bias": (size,) for name, size in (("q", query), ("k", key), ("v", key))}
    if norms:
        shapes |= {f"{block}.attn_{name}_norm.weight": (HEAD_DIM,) for name in "qk"}
    return shapes


def _feed_forward_shapes(block: str) -> Shapes:
    return {
        f"{block}.ffn_norm.weight": (N_EMBD,),
        f"{block}.ffn_gate.weight": (N_FF, N_EMBD),
        f"{block}.ffn_up.weight": (N_FF, N_EMBD),
        f"{block}.ffn_down.weight": (N_EMBD, N_FF),
    }


def _qwen2(writer: gguf.GGUFWriter) -> Shapes:
    """Biases; the embedding serves as output too."""
    _attention(writer, 2)
    shapes: Shapes = {"output_norm.weight": (N_EMBD,)}
    for block in ("blk.0", "blk.1"):
        shapes |= _attention_shapes(block, biases=True) | _feed_forward_shapes(block)
    return shapes


def _qwen3(writer: gguf.GGUFWriter) -> Shapes:
    _attention(writer, 2)
    shapes: Shapes = {"output_norm.weight": (N_EMBD,), "output.weight": (N_VOCAB, N_EMBD)}
    for block in ("blk.0", "blk.1"):
        shapes |= _attention_shapes(block, norms=True) | _feed_forward_shapes(block)
    return shapes


def _qwen3moe(writer: gguf.GGUFWriter) -> Shapes:
    """Four experts, of which two are used."""
    _attention(writer, 2)
    writer.add_expert_count(4)
    writer.add_expert_used_count(2)
    writer.add_expert_feed_forward_length(N_EMBD)
    shapes: Shapes = {"output_norm.weight": (N_EMBD,), "output.weight": (N_VOCAB, N_EMBD)}
    for block in ("blk.0", "blk.1"):
        shapes |= _attention_shapes(block, norms=True)
        shapes |= {f"{block}.ffn_norm.weight": (N_EMBD,), f"{block}.ffn_gate_inp.weight": (4, N_EMBD)}
        shapes |= {f"{block}.ffn_{name}_exps.weight": (4, N_EMBD, N_EMBD) for name in ("gate", "up", "down")}
    return shapes


def _gemma3(writer: gguf.GGUFWriter) -> Shapes:
    """A sliding window on five of six layers."""
    _attention(writer, 6)
    writer.add_sliding_window(WINDOW)
    shapes: Shapes = {"output_norm.weight": (N_EMBD,)}
    for block in (f"blk.{index}" for index in range(6)):
        shapes |= _attention_shapes(block, norms=True) | _feed_forward_shapes(block)
        shapes |= {f"{block}.post_attention_norm.weight": (N_EMBD,), f"{block}.post_ffw_norm.weight": (N_EMBD,)}
    return shapes


def _mamba2(writer: gguf.GGUFWriter) -> Shapes:
    """Recurrent state and nothing else."""
    inner, conv, state, num_heads = 2 * N_EMBD, 4, 16, 4
    writer.add_block_count(2)
    writer.add_head_count(0)
    writer.add_ssm_conv_kernel(conv)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(state)
    writer.add_ssm_group_count(1)
    writer.add_ssm_time_step_rank(num_heads)
    shapes: Shapes = {"output_norm.weight": (N_EMBD,), "output.weight": (N_VOCAB, N_EMBD)}
    mixed = inner + 2 * state
    for block in ("blk.0", "blk.1"):
        shapes |= {
            f"{block}.attn_norm.weight": (N_EMBD,),
            f"{block}.ssm_in.weight": (inner + mixed + num_heads, N_EMBD),
            f"{block}.ssm_conv1d.weight": (mixed, conv),
            f"{block}.ssm_conv1d.bias": (mixed,),
            f"{block}.ssm_dt.bias": (num_heads,),
            f"{block}.ssm_a": (num_heads, 1),
            f"{block}.ssm_d": (num_heads, 1),
            f"{block}.ssm_norm.weight": (1, inner),
            f"{block}.ssm_out.weight": (N_EMBD, inner),
        }
    return shapes


def _lfm2(writer: gguf.GGUFWriter) -> Shapes:
    """Attention on every other layer, a short convolution with state on the others; it keeps snapshots."""
    _attention(writer, 4)
    writer.add_head_count_kv([0, N_HEAD_KV, 0, N_HEAD_KV])
    writer.add_shortconv_l_cache(3)
    shapes: Shapes = {"token_embd_norm.weight": (N_EMBD,)}
    for index in range(4):
        block = f"blk.{index}"
        shapes |= {f"{block}.attn_norm.weight": (N_EMBD,)} | _feed_forward_shapes(block)
        if index % 2:
            shapes |= _attention_shapes(block, norms=True)
        else:
            shapes[f"{block}.shortconv.conv.weight"] = (N_EMBD, 3)
            shapes[f"{block}.shortconv.in_proj.weight"] = (3 * N_EMBD, N_EMBD)
            shapes[f"{block}.shortconv.out_proj.weight"] = (N_EMBD, N_EMBD)
    return shapes


ARCHITECTURES: MappingProxyType[str, Callable[[gguf.GGUFWriter], Shapes]] = MappingProxyType(
    {
        "qwen2": _qwen2,
        "qwen3": _qwen3,
        "qwen3moe": _qwen3moe,
        "gemma3": _gemma3,
        "mamba2": _mamba2,
        "lfm2": _lfm2,
    }
)
"""What adds an architecture's own keys and returns the shapes of its tensors."""


def write_eagle3(path: Path, target_width: int = N_EMBD) -> Path:
    """Write an EAGLE-3 head: one layer that reads three of its target's and uses its embedding and output."""
    writer = _writer(path, "eagle3", 1)
    writer.add_name("tiny head")
    writer.add_context_length(8192)
    writer.add_embedding_length(N_EMBD)
    writer.add_feed_forward_length(N_FF)
    writer.add_layer_norm_rms_eps(1e-5)
    _attention(writer, 1)
    writer.add_array("eagle3.target_layers", [0, 1, 1])
    writer.add_uint32("eagle3.target_hidden_size", target_width)
    _add_vocabulary(writer, N_VOCAB, 0, None)
    block = "blk.0"
    shapes = {"fc.weight": (N_EMBD, 3 * target_width), "output_norm.weight": (N_EMBD,)}
    shapes |= _attention_shapes(block) | _feed_forward_shapes(block)
    shapes |= {f"{block}.attn_{name}.weight": (shapes[f"{block}.attn_{name}.weight"][0], 2 * N_EMBD) for name in "qkv"}
    shapes[f"{block}.attn_norm_2.weight"] = (N_EMBD,)
    random = np.random.default_rng(1)
    weights = {name: random.standard_normal(shape, np.float32) * 0.1 for name, shape in shapes.items()}
    return _finish(writer, path, weights, 1, np.float32)
