"""Tokens and their text."""

from __future__ import annotations

import codecs
import ctypes
from functools import cached_property
from typing import Any

import llama_cpp.llama_cpp as C

from localspec.errors import DecodeError


class Vocabulary:
    """Tokeniser of one loaded model. Pieces are bytes: a token may hold part of a character."""

    def __init__(self, model: Any) -> None:
        self._vocab = C.llama_model_get_vocab(model)
        self.n_tokens: int = C.llama_vocab_n_tokens(self._vocab)
        self.type: int = C.llama_vocab_type(self._vocab)
        self.bos: int = C.llama_vocab_bos(self._vocab)
        self.eos: int = C.llama_vocab_eos(self._vocab)
        self.adds_bos: bool = C.llama_vocab_get_add_bos(self._vocab)
        self.adds_eos: bool = C.llama_vocab_get_add_eos(self._vocab)
        self._pieces: dict[tuple[int, bool], bytes] = {}

    @property
    def handle(self) -> Any:
        """llama.cpp's vocabulary pointer."""
        return self._vocab

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        """Every id that ends a generation, as llama.cpp sees it."""
        return frozenset(token for token in range(self.n_tokens) if C.llama_vocab_is_eog(self._vocab, token))

    def is_control(self, token: int) -> bool:
        """Whether a token is a special one that stands for no text."""
        return bool(C.llama_vocab_is_control(self._vocab, token))

    def tokenize(self, text: str, add_special: bool, parse_special: bool) -> list[int]:
        """Return the token ids of a text.

        Args:
            text: what to tokenise; lone surrogates become "?".
            add_special: put BOS and EOS where the model wants them.
            parse_special: read special tokens written out in the text, as chat templates need.

        Raises:
            DecodeError: llama.cpp's tokeniser failed.
        """
        raw = text.encode("utf-8", "replace")
        size = len(raw) + 8
        for _ in range(2):
            buffer = (C.llama_token * size)()
            count = C.llama_tokenize(self._vocab, raw, len(raw), buffer, size, add_special, parse_special)
            if count >= 0:
                return list(buffer[:count])
            size = -count
        raise DecodeError(
            f"llama.cpp could not tokenise a text of {len(raw)} bytes.", "Shorten the text, or report the model file."
        )

    def piece(self, token: int, with_special: bool = False) -> bytes:
        """Return the bytes of a token; special tokens have none unless they are asked for."""
        key = (token, with_special)
        cached = self._pieces.get(key)
        if cached is None:
            cached = self._pieces[key] = self._read_piece(token, with_special)
        return cached

    def _read_piece(self, token: int, with_special: bool) -> bytes:
        size = 64
        for _ in range(2):
            buffer = ctypes.create_string_buffer(size)
            count = C.llama_token_to_piece(self._vocab, token, buffer, size, 0, with_special)
            if count >= 0:
                return buffer.raw[:count]
            size = -count
        return b""

    def token_text(self, token: int) -> bytes:
        """Return a token as the file spells it, such as `▁the` or `<|im_end|>`."""
        return bytes(C.llama_vocab_get_text(self._vocab, token) or b"")


class TextDecoder:
    """Turns pieces into text as far as it is certain: an incomplete character waits for its rest."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, token: int) -> str:
        """Return the text that became readable with this token."""
        return self._utf8.decode(self._vocabulary.piece(token))

    def finish(self) -> str:
        """Return what is left: a replacement character for bytes that never became one."""
        return self._utf8.decode(b"", final=True)
