"""Families of decoders, as tables of tensors and metadata: those with attention in every layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import gguf

Value = int | float | str | Sequence[int] | Sequence[bool]
Keys = dict[str, Value]
"""Metadata by name, the architecture in front left out."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One line of the tensor table."""

    name: str
    type: str
    """gguf's name, such as `Q4_K`."""
    shape: tuple[int, ...]
    """ggml's order: the length of a row first."""

    @property
    def num_bytes(self) -> int:
        """Bytes in the file, padding left out."""
        return row_bytes(self.type, self.shape[0]) * prod(self.shape[1:])


def row_bytes(type_name: str, length: int) -> int:
    """Return the bytes of a row of `length` values of a tensor type."""
    block_length, block_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[type_name]]
    if length % block_length:
        raise ValueError(f"{length} values are no whole number of {type_name} blocks of {block_length}")
    return length // int(block_length) * int(block_bytes)


def matrix(name: str, type_name: str, *shape: int) -> Tensor:
    return Tensor(f"{name}.weight", type_name, shape)


def vector(name: str, *shape: int) -> Tensor:
    return Tensor(f"{name}.weight", "F32", shape)


def bias(name: str, *shape: int) -> Tensor:
    return Tensor(f"{name}.bias", "F32", shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """What every family has: an embedding, blocks, an output."""

    architecture: str
    n_embd: int
    n_layer: int
    n_vocab: int
    n_ctx_train: int
    n_ff: int = 0
    n_head: int = 0
    n_head_kv: int = 0
    head_dim: int = 0
    nextn: int = 0
    """Blocks after the others that predict further tokens."""
    is_tied: bool = False
    matrix: str = "Q4_K"
    wide: str = "Q6_K"
    """Type of attn_v, ffn_down and the output."""

    def keys(self) -> Keys:
        """Metadata of the family."""
        return {}

    def block(self, layer: int) -> Iterator[Tensor]:
        """Tensors of one block, which `describe` names `blk.N.*`."""
        raise NotImplementedError

    def others(self) -> Iterator[Tensor]:
        """Tensors outside the blocks beside embedding and output."""
        yield vector("output_norm", self.n_embd)

    def attention(
        self, head_dim: int = 0, *, gate: int = 1, has_norms: bool = False, has_kv: bool = True
    ) -> list[Tensor]:
        """Projections of one attention layer; `gate` 2 where the query matrix holds an output gate too."""
        head_dim = head_dim or self.head_dim
        n_kv = self.n_head_kv * head_dim
        tensors = [
            matrix("attn_q", self.matrix, self.n_embd, self.n_head * head_dim * gate),
            matrix("attn_output", self.matrix, self.n_head * head_dim, self.n_embd),
        ]
        if has_kv:
            tensors += [
                matrix("attn_k", self.matrix, self.n_embd, n_kv),
                matrix("attn_v", self.wide, self.n_embd, n_kv),
            ]
        if has_norms:
            tensors += [vector("attn_q_norm", head_dim)] + [vector("attn_k_norm", head_dim)] * has_kv
        return tensors

    def feed_forward(self, name: str = "ffn_{}", n_ff: int = 0, *experts: int, down: str = "") -> list[Tensor]:
        """A gated feed-forward network, or one of several experts."""
        n_ff = n_ff or self.n_ff
        return [
            matrix(name.format("gate"), self.matrix, self.n_embd, n_ff, *experts),
            matrix(name.format("up"), self.matrix, self.n_embd, n_ff, *experts),
            matrix(name.format("down"), down or self.wide, n_ff, self.n_embd, *experts),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense(Decoder):
    """llama, qwen2, qwen3, gemma3."""

    has_biases: bool = False
    has_norms: bool = False
    has_post_norms: bool = False
    window: int = 0
    period: int = 0
    """Every this many layers, one sees the whole context."""
    num_rope_factors: int = 0

    def keys(self) -> Keys:
        window: Keys = {"attention.sliding_window": self.window, "attention.sliding_window_pattern": self.period}
        return head_dims(self.head_dim) | (window if self.window else {})

    def block(self, layer: int) -> Iterator[Tensor]:
        yield vector("attn_norm", self.n_embd)
        yield from self.attention(has_norms=self.has_norms)
        if self.has_biases:
            yield bias("attn_q", self.n_head * self.head_dim)
            yield bias("attn_k", self.n_head_kv * self.head_dim)
            yield bias("attn_v", self.n_head_kv * self.head_dim)
        yield vector("ffn_norm", self.n_embd)
        yield from self.feed_forward()
        if self.has_post_norms:
            yield vector("post_attention_norm", self.n_embd)
            yield vector("post_ffw_norm", self.n_embd)

    def others(self) -> Iterator[Tensor]:
        yield vector("output_norm", self.n_embd)
        if self.num_rope_factors:
            yield vector("rope_freqs", self.num_rope_factors)


@dataclass(frozen=True, slots=True, kw_only=True)
class GptOss(Decoder):
    """gpt-oss: a mixture in MXFP4, every second layer with a window, biases and sinks."""

    window: int
    num_experts: int
    num_used: int

    def keys(self) -> Keys:
        experts: Keys = {"expert_count": self.num_experts, "expert_used_count": self.num_used}
        experts |= {"expert_feed_forward_length": self.n_ff, "attention.sliding_window": self.window}
        return head_dims(self.head_dim) | experts

    def block(self, layer: int) -> Iterator[Tensor]:
        n_embd, n_ff, experts = self.n_embd, self.n_ff, self.num_experts
        n_q, n_kv = self.n_head * self.head_dim, self.n_head_kv * self.head_dim
        yield vector("attn_norm", n_embd)
        yield vector("post_attention_norm", n_embd)
        yield from self.attention()
        for name, length in (("attn_q", n_q), ("attn_k", n_kv), ("attn_v", n_kv), ("attn_output", n_embd)):
            yield bias(name, length)
        yield vector("attn_sinks", self.n_head)
        yield vector("ffn_gate_inp", n_embd, experts)
        yield bias("ffn_gate_inp", experts)
        for name, length, rows in (("gate", n_embd, n_ff), ("up", n_embd, n_ff), ("down", n_ff, n_embd)):
            yield matrix(f"ffn_{name}_exps", "MXFP4", length, rows, experts)
            yield bias(f"ffn_{name}_exps", rows, experts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepSeek2(Decoder):
    """deepseek2: latent attention, whose cache is one compressed row, and a mixture after a few dense layers."""

    lora_rank: int
    rope_dim: int
    plain_dim: int
    """Of a key head, the part without rotation."""
    value_dim: int
    num_experts: int
    num_used: int
    num_shared: int
    n_ff_expert: int
    num_dense: int

    def keys(self) -> Keys:
        return {
            "attention.kv_lora_rank": self.lora_rank,
            "attention.key_length": self.lora_rank + self.rope_dim,
            "attention.value_length": self.lora_rank,
            "attention.key_length_mla": self.plain_dim + self.rope_dim,
            "attention.value_length_mla": self.value_dim,
            "rope.dimension_count": self.rope_dim,
            "leading_dense_block_count": self.num_dense,
            "expert_count": self.num_experts,
            "expert_used_count": self.num_used,
            "expert_feed_forward_length": self.n_ff_expert,
            "expert_shared_count": self.num_shared,
        }

    def block(self, layer: int) -> Iterator[Tensor]:
        yield vector("attn_norm", self.n_embd)
        yield vector("attn_kv_a_norm", self.lora_rank)
        yield matrix("attn_q", self.matrix, self.n_embd, self.n_head * (self.plain_dim + self.rope_dim))
        yield matrix("attn_kv_a_mqa", self.matrix, self.n_embd, self.lora_rank + self.rope_dim)
        yield matrix("attn_k_b", "Q8_0", self.plain_dim, self.lora_rank, self.n_head)
        yield matrix("attn_v_b", "Q8_0", self.lora_rank, self.value_dim, self.n_head)
        yield matrix("attn_output", self.matrix, self.n_head * self.value_dim, self.n_embd)
        yield vector("ffn_norm", self.n_embd)
        if layer < self.num_dense:
            yield from self.feed_forward(down="Q8_0")
            return
        yield vector("ffn_gate_inp", self.n_embd, self.num_experts)
        yield from self.feed_forward("ffn_{}_exps", self.n_ff_expert, self.num_experts, down="Q8_0")
        yield from self.feed_forward("ffn_{}_shexp", self.n_ff_expert * self.num_shared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma4(Decoder):
    """gemma4: two head sizes, late layers that use the KV of earlier ones, an embedding for every layer."""

    window: int
    head_dim_window: int
    num_shared: int
    n_embd_layer: int

    @property
    def windows(self) -> list[bool]:
        """Which layers have the window."""
        return [(layer + 1) % 6 != 0 for layer in range(self.n_layer)]

    def keys(self) -> Keys:
        keys = head_dims(self.head_dim) | {
            "attention.key_length_swa": self.head_dim_window,
            "attention.value_length_swa": self.head_dim_window,
            "attention.sliding_window": self.window,
            "attention.sliding_window_pattern": self.windows,
            "attention.shared_kv_layers": self.num_shared,
            "embedding_length_per_layer_input": self.n_embd_layer,
            "rope.dimension_count": self.head_dim,
            "rope.dimension_count_swa": self.head_dim_window,
        }
        return keys

    def block(self, layer: int) -> Iterator[Tensor]:
        n_embd, n_embd_layer = self.n_embd, self.n_embd_layer
        head_dim = self.head_dim_window if self.windows[layer] else self.head_dim
        yield from self.attention(head_dim, has_norms=True, has_kv=layer < self.n_layer - self.num_shared)
        yield from self.feed_forward()
        for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm"):
            yield vector(name, n_embd)
        yield vector("layer_output_scale", 1)
        yield vector("inp_gate", n_embd, n_embd_layer)
        yield vector("proj", n_embd_layer, n_embd)

    def others(self) -> Iterator[Tensor]:
        all_layers = self.n_embd_layer * self.n_layer
        yield vector("output_norm", self.n_embd)
        yield matrix("per_layer_token_embd", "Q6_K", all_layers, self.n_vocab)
        yield matrix("per_layer_model_proj", "F16", self.n_embd, all_layers)
        yield vector("per_layer_proj_norm", self.n_embd_layer)
        yield vector("rope_freqs", self.head_dim // 2)


def head_dims(head_dim: int) -> Keys:
    return {"attention.key_length": head_dim, "attention.value_length": head_dim}
