"""Tiny models with random weights: real enough for llama.cpp, small enough to load in milliseconds.

The vocabulary is SentencePiece-like with all 256 bytes, so that any text tokenises and decodes byte by byte. Output
weights are large, so that the best two logits lie well apart. With the default sizes, flash attention on, batches
under 64 tokens and contexts under 512, single and batched steps give the same bits on a CPU.
"""

from __future__ import annotations

import string
from itertools import product
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

UNK, BOS, EOS = 0, 1, 2
FIRST_BYTE = 3
"""Id of the token for byte 0."""
EOT = 259
NUM_FIXED = 260
"""Ids below this are special or bytes, whatever n_vocab is."""

CHATML = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""A chat template in the style of the common ones."""

STRICT = (
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "[{{ message.role }}]{{ message.content }}{% endfor %}"
)
"""A chat template that objects to a system role and to roles that do not alternate."""


def write_llama(
    path: Path,
    *,
    n_vocab: int = 320,
    n_embd: int = 70,
    n_layer: int = 2,
    seed: int = 1,
    n_ctx_train: int = 512,
    pad_vocab: int = 0,
    dtype: Literal["f32", "f16"] = "f32",
    template: str | None = None,
    noise: float = 0.0,
    noise_seed: int = 0,
    can_end: bool = True,
    shards: int = 1,
    name: str = "tiny",
) -> Path:
    """Write a llama-architecture model.

    Args:
        path: the file; with several shards, `stem-00001-of-0000N.gguf` and so on are written beside it.
        n_vocab: tokens, at least 260; the first 260 are special and byte tokens.
        n_embd: 70 or another even number that 4 does not divide: no matrix kernel then serves batches alone, and
            single and batched steps give the same bits. A multiple of 64 instead makes heads of 32 dimensions,
            as quantised weights and KV types need.
        n_layer: blocks.
        seed: two models with the same seed and sizes have the same weights.
        n_ctx_train: the context length that the file states.
        pad_vocab: unused tokens after the others, with weights, so that the model may propose them.
        dtype: type of the matrices; vectors stay F32.
        template: Jinja chat template, None for a file without one.
        noise: share of foreign weights mixed in; a noisy copy of a target is a draft that agrees often, not always.
        noise_seed: which foreign weights.
        can_end: whether end tokens can win; if not, greedy text goes on for ever.
        shards: number of files.
        name: general.name.

    Returns:
        The path of the (first) file.
    """
    writer = _writer(path, "llama", shards)
    is_aligned = n_embd % 64 == 0
    n_ff = 2 * n_embd if is_aligned else 2 * n_embd - 6
    n_head, n_head_kv, n_rot = (n_embd // 32, n_embd // 64, 32) if is_aligned else (3, 1, 34)
    writer.add_name(name)
    writer.add_context_length(n_ctx_train)
    writer.add_embedding_length(n_embd)
    writer.add_block_count(n_layer)
    writer.add_feed_forward_length(n_ff)
    writer.add_head_count(n_head)
    writer.add_head_count_kv(n_head_kv)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_key_length(n_rot)
    writer.add_value_length(n_rot)
    writer.add_rope_dimension_count(n_rot)
    _add_vocabulary(writer, n_vocab, pad_vocab, template)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32 if dtype == "f32" else gguf.LlamaFileType.MOSTLY_F16)

    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(n_layer):
        shapes |= {
            f"blk.{layer}.attn_q.weight": (n_rot * n_head, n_embd),
            f"blk.{layer}.attn_k.weight": (n_rot * n_head_kv, n_embd),
            f"blk.{layer}.attn_v.weight": (n_rot * n_head_kv, n_embd),
            f"blk.{layer}.attn_output.weight": (n_embd, n_rot * n_head),
            f"blk.{layer}.ffn_gate.weight": (n_ff, n_embd),
            f"blk.{layer}.ffn_up.weight": (n_ff, n_embd),
            f"blk.{layer}.ffn_down.weight": (n_embd, n_ff),
        }
    weights = _embeddings(seed, n_vocab, n_embd, pad_vocab, can_end) | _random(seed + 1, shapes)
    if noise:
        foreign = _embeddings(seed + 1000 + noise_seed, n_vocab, n_embd, pad_vocab, can_end)
        foreign |= _random(seed + 1001 + noise_seed, shapes)
        weights = {key: (1 - noise) * weights[key] + noise * foreign[key] for key in weights}
    for layer in range(n_layer):
        weights[f"blk.{layer}.attn_norm.weight"] = np.ones(n_embd, np.float32)
        weights[f"blk.{layer}.ffn_norm.weight"] = np.ones(n_embd, np.float32)
    weights["output_norm.weight"] = np.ones(n_embd, np.float32)
    return _finish(writer, path, weights, shards, np.float32 if dtype == "f32" else np.float16)


def write_mamba(path: Path, *, n_vocab: int = 320, n_embd: int = 32, n_layer: int = 2, seed: int = 1) -> Path:
    """Write a mamba model: recurrent, so that its memory cannot be cut back by a token."""
    writer = _writer(path, "mamba", 1)
    d_inner, d_conv, d_state, dt_rank = 2 * n_embd, 4, 16, 4
    writer.add_name("tiny mamba")
    writer.add_context_length(512)
    writer.add_embedding_length(n_embd)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(n_layer)
    writer.add_ssm_conv_kernel(d_conv)
    writer.add_ssm_inner_size(d_inner)
    writer.add_ssm_state_size(d_state)
    writer.add_ssm_time_step_rank(dt_rank)
    writer.add_layer_norm_rms_eps(1e-5)
    _add_vocabulary(writer, n_vocab, 0, None)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(n_layer):
        shapes |= {
            f"blk.{layer}.ssm_in.weight": (2 * d_inner, n_embd),
            f"blk.{layer}.ssm_conv1d.weight": (d_inner, d_conv),
            f"blk.{layer}.ssm_x.weight": (dt_rank + 2 * d_state, d_inner),
            f"blk.{layer}.ssm_dt.weight": (d_inner, dt_rank),
            f"blk.{layer}.ssm_out.weight": (n_embd, d_inner),
        }
    weights = _embeddings(seed, n_vocab, n_embd, 0, True) | _random(seed + 1, shapes)
    decay = -np.tile(np.arange(1, d_state + 1, dtype=np.float32), (d_inner, 1))
    for layer in range(n_layer):
        weights[f"blk.{layer}.attn_norm.weight"] = np.ones(n_embd, np.float32)
        weights[f"blk.{layer}.ssm_conv1d.bias"] = np.zeros(d_inner, np.float32)
        weights[f"blk.{layer}.ssm_dt.bias"] = np.zeros(d_inner, np.float32)
        weights[f"blk.{layer}.ssm_a"] = decay
        weights[f"blk.{layer}.ssm_d"] = np.ones(d_inner, np.float32)
    weights["output_norm.weight"] = np.ones(n_embd, np.float32)
    return _finish(writer, path, weights, 1, np.float32)


def write_pair(target: Path, draft: Path, *, noise: float = 0.05, **sizes: Any) -> tuple[Path, Path]:
    """Write a target and a draft of the same sizes that agrees with it often but not always."""
    return write_llama(target, **sizes), write_llama(draft, noise=noise, **sizes)


def write_padded_pair(target: Path, draft: Path, *, pad_target: int = 64, pad_draft: int = 0) -> tuple[Path, Path]:
    """Write two models with the same tokens, one of which has rows for unused tokens after them."""
    return write_llama(target, pad_vocab=pad_target), write_llama(draft, pad_vocab=pad_draft, noise=0.05)


def _writer(path: Path, architecture: str, shards: int) -> gguf.GGUFWriter:
    return gguf.GGUFWriter(path if shards == 1 else None, architecture, split_max_tensors=0)


def _add_vocabulary(writer: gguf.GGUFWriter, n_vocab: int, pad_vocab: int, template: str | None) -> None:
    if n_vocab < NUM_FIXED:
        raise ValueError(f"n_vocab is at least {NUM_FIXED}")
    kinds = gguf.TokenType
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "<|eot|>"]
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *([kinds.BYTE] * 256), kinds.CONTROL]
    pairs = ("".join(pair) for pair in product("etaoinshrdlu", repeat=2))
    longer = ("".join(triple) for triple in product(string.ascii_lowercase, repeat=3))
    pieces = ["\N{LOWER ONE EIGHTH BLOCK}", *string.ascii_lowercase, *pairs, *longer][: n_vocab - NUM_FIXED]
    tokens += pieces + [f"[PAD{index}]" for index in range(pad_vocab)]
    types += [kinds.NORMAL] * len(pieces) + [kinds.UNUSED] * pad_vocab
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * NUM_FIXED + [-float(index) for index in range(len(tokens) - NUM_FIXED)])
    writer.add_token_types(types)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_eot_token_id(EOT)
    writer.add_unk_token_id(UNK)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_vocab_size(len(tokens))
    if template is not None:
        writer.add_chat_template(template)


def _embeddings(seed: int, n_vocab: int, n_embd: int, pad_vocab: int, can_end: bool) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    embedding = rng.standard_normal((n_vocab, n_embd), np.float32)
    output = rng.standard_normal((n_vocab, n_embd), np.float32)
    output[[UNK, BOS] if can_end else [UNK, BOS, EOS, EOT]] = 0.0
    padding = np.random.default_rng((seed, pad_vocab)).standard_normal((2, pad_vocab, n_embd), np.float32)
    return {
        "token_embd.weight": np.concatenate([embedding, padding[0]]),
        "output.weight": np.concatenate([output, padding[1]]),
    }


def _random(seed: int, shapes: dict[str, tuple[int, ...]]) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape, np.float32) / shape[-1] ** 0.5 for name, shape in shapes.items()}


def _finish(writer: gguf.GGUFWriter, path: Path, weights: dict[str, Array], shards: int, dtype: Any) -> Path:
    if shards > 1:
        # Rounding up makes exactly this many files for any count of tensors that is at least shards squared.
        writer.split_max_tensors = -(-len(weights) // shards)
    for name, array in weights.items():
        is_matrix = array.ndim == 2 and "ssm_a" not in name and "conv1d" not in name
        writer.add_tensor(name, np.ascontiguousarray(array, dtype if is_matrix else np.float32))
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if shards == 1:
        return path
    return path.with_name(f"{path.stem}-00001-of-{shards:05d}.gguf")
