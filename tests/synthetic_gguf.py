"""Headers of full-size models without their weights: what a memory plan is made from, in a few KiB on disk.

Sizes are those that the models' makers publish; those of qwen3.5-0.8b, qwen3.5-397b and gemma-4-e4b were not looked
up and may be off, which does not matter where two ways of counting the same header are compared. Quantisation is
a plain Q4_K with Q6_K for some matrices, not the mix of published files. Embeddings that serve as output too are F16:
no processor repacks that type, so that the same header takes the same memory on every machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import gguf
import numpy as np

from tests.synthetic_families import Decoder, DeepSeek2, Dense, Gemma4, GptOss, Keys, Tensor, matrix
from tests.synthetic_recurrent import GatedDelta, Lfm2, Mamba2, StateSpace

ALIGNMENT = 32
"""Of tensors in the file, in bytes."""


@dataclass(frozen=True, slots=True)
class SyntheticModel:
    """A whole header."""

    architecture: str
    keys: Keys
    """Metadata by name, the architecture in front left out."""
    tensors: tuple[Tensor, ...]


LLAMA = Dense(
    architecture="llama",
    n_embd=4096,
    n_layer=32,
    n_ff=14336,
    n_head=32,
    n_head_kv=8,
    head_dim=128,
    n_vocab=128256,
    n_ctx_train=131072,
)
SMOLLM2 = replace(LLAMA, n_vocab=49152, n_ctx_train=8192, head_dim=64, is_tied=True)
QWEN2 = replace(LLAMA, architecture="qwen2", n_vocab=152064, n_ctx_train=32768, has_biases=True)
QWEN3 = replace(LLAMA, architecture="qwen3", n_vocab=151936, n_ctx_train=40960, has_norms=True)
GEMMA3 = Dense(
    architecture="gemma3",
    n_embd=2560,
    n_layer=34,
    n_ff=10240,
    n_head=8,
    n_head_kv=4,
    head_dim=256,
    n_vocab=262208,
    n_ctx_train=131072,
    window=1024,
    period=6,
    is_tied=True,
    has_norms=True,
    has_post_norms=True,
)
QWEN35 = GatedDelta(
    architecture="qwen35",
    n_embd=4096,
    n_layer=32,
    n_ff=12288,
    n_head=16,
    n_head_kv=4,
    head_dim=256,
    n_vocab=248320,
    n_ctx_train=262144,
    ssm=StateSpace(inner_size=4096, time_step_rank=32, group_count=16),
)
QWEN35_MOE = replace(QWEN35, architecture="qwen35moe", n_ff=0, n_head_kv=2)

DECODERS = MappingProxyType[str, Decoder](
    {
        "llama-3.1-8b": replace(LLAMA, num_rope_factors=64),
        "llama-3.1-405b": replace(LLAMA, n_embd=16384, n_layer=126, n_ff=53248, n_head=128, num_rope_factors=64),
        "llama-3.2-1b": replace(
            LLAMA, n_embd=2048, n_layer=16, n_ff=8192, head_dim=64, num_rope_factors=32, is_tied=True
        ),
        "smollm2-135m": replace(
            SMOLLM2, n_embd=576, n_layer=30, n_ff=1536, n_head=9, n_head_kv=3, matrix="Q8_0", wide="Q8_0"
        ),
        "smollm2-1.7b": replace(SMOLLM2, n_embd=2048, n_layer=24, n_ff=8192, n_head_kv=32),
        "qwen2.5-0.5b": replace(
            QWEN2,
            n_embd=896,
            n_layer=24,
            n_ff=4864,
            n_head=14,
            n_head_kv=2,
            head_dim=64,
            n_vocab=151936,
            is_tied=True,
            matrix="Q8_0",
            wide="Q8_0",
        ),
        "qwen2.5-7b": replace(QWEN2, n_embd=3584, n_layer=28, n_ff=18944, n_head=28, n_head_kv=4),
        "qwen3-0.6b": replace(QWEN3, n_embd=1024, n_layer=28, n_ff=3072, n_head=16, is_tied=True),
        "qwen3-8b": replace(QWEN3, n_layer=36, n_ff=12288),
        "gemma-3-270m": replace(
            GEMMA3,
            n_embd=640,
            n_layer=18,
            n_ff=2048,
            n_head=4,
            n_head_kv=1,
            n_vocab=262144,
            n_ctx_train=32768,
            window=512,
            matrix="Q8_0",
            wide="Q8_0",
        ),
        "gemma-3-4b": GEMMA3,
        "gpt-oss-20b": GptOss(
            architecture="gpt-oss",
            n_embd=2880,
            n_layer=24,
            n_ff=2880,
            n_head=64,
            n_head_kv=8,
            head_dim=64,
            n_vocab=201088,
            n_ctx_train=131072,
            window=128,
            num_experts=32,
            num_used=4,
            matrix="Q8_0",
            wide="Q8_0",
        ),
        "deepseek-v2-lite": DeepSeek2(
            architecture="deepseek2",
            n_embd=2048,
            n_layer=27,
            n_ff=10944,
            n_head=16,
            n_head_kv=1,
            n_vocab=102400,
            n_ctx_train=163840,
            lora_rank=512,
            rope_dim=64,
            plain_dim=128,
            value_dim=128,
            num_experts=64,
            num_used=6,
            num_shared=2,
            n_ff_expert=1408,
            num_dense=1,
        ),
        "qwen3.5-0.8b-mtp": replace(
            QWEN35,
            n_embd=1024,
            n_layer=24,
            n_ff=3584,
            n_head=8,
            n_head_kv=2,
            nextn=1,
            is_tied=True,
            ssm=StateSpace(inner_size=2048, time_step_rank=16, group_count=16),
        ),
        "qwen3.5-9b": QWEN35,
        "qwen3.5-27b": replace(
            QWEN35,
            n_embd=5120,
            n_layer=64,
            n_ff=17408,
            n_head=24,
            ssm=StateSpace(inner_size=6144, time_step_rank=48, group_count=16),
        ),
        "qwen3.5-35b-a3b": replace(QWEN35_MOE, n_embd=2048, n_layer=40, num_experts=256, num_used=8, n_ff_expert=512),
        "qwen3.5-397b-a17b": replace(
            QWEN35_MOE,
            n_layer=60,
            n_head=32,
            num_experts=512,
            num_used=10,
            n_ff_expert=1024,
            ssm=StateSpace(inner_size=8192, time_step_rank=64, group_count=16),
        ),
        "mamba2-2.7b": Mamba2(
            architecture="mamba2",
            n_embd=2560,
            n_layer=64,
            n_vocab=50288,
            n_ctx_train=1048576,
            is_tied=True,
            ssm=StateSpace(inner_size=5120, time_step_rank=80, group_count=1),
        ),
        "lfm2-1.2b": Lfm2(
            architecture="lfm2",
            n_embd=2048,
            n_layer=16,
            n_ff=8192,
            n_head=32,
            n_head_kv=8,
            head_dim=64,
            n_vocab=65536,
            n_ctx_train=128000,
            is_tied=True,
            attention_layers=(2, 5, 8, 10, 12, 14),
        ),
        "gemma-4-e4b": Gemma4(
            architecture="gemma4",
            n_embd=2560,
            n_layer=42,
            n_ff=10240,
            n_head=8,
            n_head_kv=2,
            head_dim=512,
            n_vocab=262144,
            n_ctx_train=131072,
            window=512,
            head_dim_window=256,
            num_shared=18,
            n_embd_layer=256,
            is_tied=True,
        ),
    }
)
"""What can be written, by name."""


def describe(name: str) -> SyntheticModel:
    """Return a model's header as values. Raises KeyError for a name that is not in DECODERS."""
    decoder = DECODERS[name]
    return SyntheticModel(decoder.architecture, _common_keys(decoder) | decoder.keys(), tuple(_tensors(decoder)))


def write_synthetic(name: str, path: Path) -> Path:
    """Write a model's header as a sparse file that is as long as the model; see `describe`."""
    model = describe(name)
    writer = gguf.GGUFWriter(path, model.architecture)
    writer.add_string("tokenizer.ggml.model", "no_vocab")
    for key, value in model.keys.items():
        _add(writer, f"{model.architecture}.{key}", value)
    for tensor in model.tensors:
        kind = gguf.GGMLQuantizationType[tensor.type]
        writer.add_tensor_info(tensor.name, tensor.shape[::-1], np.dtype(np.float16), tensor.num_bytes, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    sizes = (path.stat().st_size, *(tensor.num_bytes for tensor in model.tensors))
    os.truncate(path, sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes))
    return path


def _common_keys(decoder: Decoder) -> Keys:
    keys: Keys = {
        "context_length": decoder.n_ctx_train,
        "embedding_length": decoder.n_embd,
        "block_count": decoder.n_layer + decoder.nextn,
        "vocab_size": decoder.n_vocab,
        "attention.layer_norm_rms_epsilon": 1e-6,
    }
    if decoder.n_head:
        keys |= {"attention.head_count": decoder.n_head, "attention.head_count_kv": decoder.n_head_kv}
        keys["rope.freq_base"] = 1e6
    if decoder.n_ff:
        keys["feed_forward_length"] = decoder.n_ff
    if decoder.nextn:
        keys["nextn_predict_layers"] = decoder.nextn
    return keys


def _tensors(decoder: Decoder) -> Iterator[Tensor]:
    yield matrix("token_embd", "F16" if decoder.is_tied else decoder.wide, decoder.n_embd, decoder.n_vocab)
    if not decoder.is_tied:
        yield matrix("output", decoder.wide, decoder.n_embd, decoder.n_vocab)
    yield from decoder.others()
    for layer in range(decoder.n_layer + decoder.nextn):
        for tensor in decoder.block(layer):
            yield replace(tensor, name=f"blk.{layer}.{tensor.name}")


def _add(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    match value:
        case str():
            writer.add_string(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case _:
            writer.add_array(key, value)
