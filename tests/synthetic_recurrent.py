"""Families of decoders with recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.synthetic_families import Decoder, Keys, Tensor, bias, head_dims, matrix, vector


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace:
    """Sizes of a recurrent layer."""

    conv_kernel: int = 4
    inner_size: int
    state_size: int = 128
    time_step_rank: int
    group_count: int

    def keys(self) -> Keys:
        """Metadata `ssm.*`."""
        names = ("conv_kernel", "inner_size", "state_size", "time_step_rank", "group_count")
        return {f"ssm.{name}": getattr(self, name) for name in names}

    @property
    def conv_width(self) -> int:
        """Channels that the convolution sees."""
        return self.inner_size + 2 * self.group_count * self.state_size


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDelta(Decoder):
    """qwen35, qwen35moe: three recurrent layers, then one of attention; perhaps a mixture, perhaps further tokens."""

    ssm: StateSpace
    num_experts: int = 0
    num_used: int = 0
    n_ff_expert: int = 0

    def keys(self) -> Keys:
        keys = self.ssm.keys() | head_dims(self.head_dim)
        keys |= {"full_attention_interval": 4, "rope.dimension_count": 64, "rope.dimension_sections": [11, 11, 10, 0]}
        if self.num_experts:
            keys |= {"expert_count": self.num_experts, "expert_used_count": self.num_used}
            keys |= dict.fromkeys(("expert_feed_forward_length", "expert_shared_feed_forward_length"), self.n_ff_expert)
        return keys

    def block(self, layer: int) -> Iterator[Tensor]:
        n_embd, ssm = self.n_embd, self.ssm
        yield vector("attn_norm", n_embd)
        yield vector("post_attention_norm", n_embd)
        if layer >= self.n_layer or (layer + 1) % 4 == 0:
            yield from self.attention(gate=2, has_norms=True)
        else:
            yield matrix("attn_qkv", self.matrix, n_embd, ssm.conv_width)
            yield matrix("attn_gate", self.matrix, n_embd, ssm.inner_size)
            yield vector("ssm_conv1d", ssm.conv_kernel, ssm.conv_width)
            yield bias("ssm_dt", ssm.time_step_rank)
            yield Tensor("ssm_a", "F32", (ssm.time_step_rank,))
            yield matrix("ssm_beta", "Q8_0", n_embd, ssm.time_step_rank)
            yield matrix("ssm_alpha", "Q8_0", n_embd, ssm.time_step_rank)
            yield vector("ssm_norm", ssm.state_size)
            yield matrix("ssm_out", self.matrix, ssm.inner_size, n_embd)
        if self.num_experts:
            yield vector("ffn_gate_inp", n_embd, self.num_experts)
            yield from self.feed_forward("ffn_{}_exps", self.n_ff_expert, self.num_experts)
            yield vector("ffn_gate_inp_shexp", n_embd)
            yield from self.feed_forward("ffn_{}_shexp", self.n_ff_expert)
        else:
            yield from self.feed_forward()
        if layer >= self.n_layer:
            yield matrix("nextn.eh_proj", "Q8_0", 2 * n_embd, n_embd)
            for name in ("enorm", "hnorm", "shared_head_norm"):
                yield vector(f"nextn.{name}", n_embd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2(Decoder):
    """mamba2: recurrent alone."""

    ssm: StateSpace

    def keys(self) -> Keys:
        return self.ssm.keys()

    def block(self, layer: int) -> Iterator[Tensor]:
        n_embd, ssm, rank = self.n_embd, self.ssm, self.ssm.time_step_rank
        yield vector("attn_norm", n_embd)
        yield matrix("ssm_in", self.matrix, n_embd, ssm.inner_size + ssm.conv_width + rank)
        yield vector("ssm_conv1d", ssm.conv_kernel, ssm.conv_width)
        yield bias("ssm_conv1d", ssm.conv_width)
        yield bias("ssm_dt", rank)
        yield Tensor("ssm_a", "F32", (1, rank))
        yield Tensor("ssm_d", "F32", (1, rank))
        yield vector("ssm_norm", ssm.inner_size // ssm.group_count, ssm.group_count)
        yield matrix("ssm_out", self.matrix, ssm.inner_size, n_embd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lfm2(Decoder):
    """lfm2: short convolutions, and attention where the array of KV heads is not 0."""

    attention_layers: tuple[int, ...]
    cache_length: int = 3

    def keys(self) -> Keys:
        heads = [self.n_head_kv if layer in self.attention_layers else 0 for layer in range(self.n_layer)]
        return {"shortconv.l_cache": self.cache_length, "attention.head_count_kv": heads}

    def block(self, layer: int) -> Iterator[Tensor]:
        yield vector("attn_norm", self.n_embd)
        yield vector("ffn_norm", self.n_embd)
        yield from self.feed_forward()
        if layer in self.attention_layers:
            yield from self.attention(has_norms=True)
        else:
            yield vector("shortconv.conv", self.cache_length, self.n_embd)
            yield matrix("shortconv.in_proj", self.matrix, self.n_embd, 3 * self.n_embd)
            yield matrix("shortconv.out_proj", self.matrix, self.n_embd, self.n_embd)

    def others(self) -> Iterator[Tensor]:
        yield vector("token_embd_norm", self.n_embd)
