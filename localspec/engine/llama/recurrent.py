"""The state of recurrent layers: llama.cpp really allocates it, even where it is only asked for sizes."""

from __future__ import annotations

from localspec.catalog.gguf_walk import printable
from localspec.catalog.header import ArrayValue, GgufHeader
from localspec.errors import ModelLoadError

MAX_TOUCHED_BYTES = 32 << 20
"""State is really made for measuring up to this size. Beyond it memory is promised only, and a state with snapshots is
one without them multiplied: to the byte the same, since snapshots are rows of the same tensors."""

MAX_STATE_BYTES = 4 << 30
"""Of one sequence without snapshots. No model comes near it; the largest known take about 0.2 GiB."""

ROLLS_BACK = frozenset(
    (
        "kimi-k3",
        "qwen35",
        "qwen35moe",
        "qwen4exp",
        "deepseek4",
        "glm5-next",
        "nemotron_h",
        "nemotron_h_moe",
        "lfm2",
        "lfm2moe",
        "bailingmoe3",
    )
)
"""Architectures that keep snapshots (llm_arch_supports_rs_rollback in src/llama-arch.cpp); elsewhere n_rs_seq is 0."""


def check_state(header: GgufHeader) -> None:
    """Refuse a header whose state would take the machine's memory.

    Raises:
        ModelLoadError: it claims more than any model has.
    """
    claimed = state_bound(header)
    if claimed > MAX_STATE_BYTES:
        raise ModelLoadError(
            f"{printable(header.path)} claims a recurrent state of {claimed >> 20} MiB.",
            "The file is damaged, or needs a newer version of localspec.",
        )


def state_bound(header: GgufHeader) -> int:
    """Return how many bytes one sequence's state takes if all layers are recurrent.

    Rows as in n_embd_r and n_embd_s of src/llama-hparams.cpp, in F32; n_layer times the two.
    """
    number = header.arch_integer
    n_embd = number("embedding_length")
    n_head = _largest(header, "attention.head_count")
    inner, state, conv = number("ssm.inner_size"), number("ssm.state_size"), number("ssm.conv_kernel")
    kda, wkv, cache = number("kda.head_dim"), number("wkv.head_size"), number("shortconv.l_cache")
    short = max(
        number("token_shift_count", 2) * n_embd if wkv else 0,
        n_embd * cache,
        3 * max(conv, 4) * n_head * kda,
        conv * (inner + 2 * number("ssm.group_count") * state),
    )
    long = max(n_embd * wkv, kda * kda * n_head, state * inner)
    return 4 * number("block_count") * (short + long)


def _largest(header: GgufHeader, key: str) -> int:
    stated = header.metadata.get(f"{header.architecture}.{key}")
    items = stated.items if isinstance(stated, ArrayValue) else (stated,)
    return max((item for item in items if isinstance(item, int)), default=0)
