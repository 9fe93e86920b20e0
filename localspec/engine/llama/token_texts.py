"""A look at a vocabulary's texts before llama.cpp builds it: of two equal ones it ends the process."""

from __future__ import annotations

import struct

from localspec.catalog.gguf_walk import printable
from localspec.catalog.header import ArrayValue, GgufHeader
from localspec.errors import ModelFileError

_LENGTH = struct.Struct("<Q")
_NONE = ("none", "no_vocab")
"""tokenizer.ggml.model of files whose tokens llama.cpp does not read."""


def check_texts(header: GgufHeader) -> None:
    """Refuse a model with which llama.cpp would end the process.

    Raises:
        ModelFileError: two of its tokens have the same text.
    """
    if reason := repeated_text(header):
        raise ModelFileError(
            f"{printable(header.path)} is damaged: {reason}.", "Look for another conversion of the model."
        )


def repeated_text(header: GgufHeader) -> str:
    """Say why llama.cpp cannot be given a model's tokens, which two have the same text; nothing if all is well.

    Texts are compared as llama.cpp has them (llama_vocab::impl::load in src/llama-vocab.cpp): each ends at its first
    zero byte, and an empty one is called `[EMPTY_<id>]`.

    Args:
        header: as it was read from the file.
    """
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    is_read = header.text("tokenizer.ggml.model") not in _NONE
    if not header.vocabulary_at or not isinstance(tokens, ArrayValue) or not is_read:
        return ""
    try:
        with open(header.shards[0], "rb") as file:
            file.seek(header.vocabulary_at)
            texts = _texts(file.read(header.data_offset - header.vocabulary_at), tokens.length)
    except OSError as error:
        return f"its tokens cannot be read: {error.strerror}"
    except struct.error:
        return "it became shorter while it was read"
    if b"\0" in b"".join(texts):
        texts = [text.partition(b"\0")[0] for text in texts]
    distinct = set(texts)
    if b"" in distinct:
        texts = [text or b"[EMPTY_%d]" % token for token, text in enumerate(texts)]
        distinct = set(texts)
    return "" if len(distinct) == len(texts) else _first_repeat(texts)


def _texts(data: bytes, count: int) -> list[bytes]:
    unpack, at = _LENGTH.unpack_from, 0
    texts: list[bytes] = []
    # A quarter of a million turns in a large vocabulary.
    for _ in range(count):
        begin = at + 8
        at = begin + unpack(data, at)[0]
        texts.append(data[begin:at])
    return texts


def _first_repeat(texts: list[bytes]) -> str:
    seen: dict[bytes, int] = {}
    for token, text in enumerate(texts):
        first = seen.setdefault(text, token)
        if first != token:
            return f"tokens {first} and {token} have the same text"
    return ""
