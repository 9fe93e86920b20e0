"""A look at the start of a GGUF, piece by piece as it comes from a disk or a network, before ggml's parser sees it.

ggml refuses what is malformed, but it says not where, and it believes any length that the rest of the file could hold:
in a file of gigabytes a false length costs gigabytes. This walk follows the lengths without reading values,
bounds what the parser will need, and names the byte at which a file goes wrong.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Generator

from localspec.catalog.strangers import recognise
from localspec.errors import ModelFileError

MAX_METADATA_BYTES = 48 << 20
"""Bytes of keys, values and the tensor table. A vocabulary of 262,144 tokens with its merges takes about 17 MB."""

MAX_PARSER_BYTES = 160 << 20
"""Memory that ggml's parser may need for all values, by the estimate below."""

MAX_KEYS = 1 << 16
MAX_TENSORS = 1 << 16
MAX_NAME_BYTES = 63
"""Of a tensor; ggml has 64 with the closing zero."""
MAX_DIMS = 4

_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_COST_PER_STRING = 96
"""The parser holds an array twice while it reads it: 2 x (32 for std::string + 16 for malloc)."""
_COST_PER_NUMBER = 24
"""Not memory but time: each number is an fread of its own."""
_START_BYTES = 24
"""Signature, version and the two counts; also enough to know strangers by."""
_LEAST_ENTRY_BYTES = 8 + 4 + 1
"""Length of the key, type, the smallest value."""
_LEAST_ROW_BYTES = 8 + 4 + 4 + 8
"""Length of the name, number of dimensions, type, offset."""
_TOKENS = b"tokenizer.ggml.tokens"
_SHOWN_KEY_BYTES = 64
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")

_AGAIN = "Download the file again. If it is what its maker published, it needs fixing there."
_Steps = Generator[None, None, None]
_Number = Generator[None, None, int]


def printable(text: str) -> str:
    """Return text without control characters, which a file's names may smuggle into messages."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text.expandtabs(1))


class HeaderWalk:
    """Follows the lengths in a GGUF's start: metadata, then the tensor table.

    The bytes are given in order and in pieces of any size; what has been walked is neither kept nor walked again.
    """

    def __init__(self, size_bytes: int, name: str = "") -> None:
        """Begin before the first byte.

        Args:
            size_bytes: of the whole file.
            name: what messages call it.

        Raises:
            ModelFileError: the file is empty.
        """
        self.size_bytes = size_bytes
        self.is_complete = False
        """Whether all of the header has been fed and found sound, as far as lengths go."""
        self.needed_bytes = 0
        """What is known of the header's length: it is at least this much, counted from the file's beginning."""
        self.fingerprint = ""
        """SHA-256, 32 hexadecimal digits, over the vocabulary's array from its count on; empty without one."""
        self._shown = printable(name) or "The file"
        self._buffer = bytearray()
        self._base = 0
        """Byte of the file at which the buffer begins."""
        self._at = 0
        self._cost = 0
        self._hash = hashlib.sha256()
        self._hash_begin = self._hash_end = -1
        """The vocabulary's bytes; -1 until they are known."""
        self._least_rest = 0
        """Fewest bytes that can follow the entry or row in hand."""
        self._failure: ModelFileError | None = None
        if size_bytes <= 0:
            raise ModelFileError(f"{self._shown} is empty.", "Download the file again.")
        self._steps = self._walk()
        next(self._steps)

    @property
    def received_bytes(self) -> int:
        """Bytes fed so far."""
        return self._base + len(self._buffer)

    @property
    def header_bytes(self) -> int:
        """Where the tensor table ends, padding not included; 0 before the walk is complete."""
        return self._at if self.is_complete else 0

    @property
    def vocabulary_at(self) -> int:
        """Byte at which the vocabulary's texts begin, their count passed over; 0 as long as none is known."""
        return self._hash_begin + _U64.size if self._hash_begin >= 0 else 0

    def feed(self, data: bytes) -> None:
        """Take the file's next bytes. Those after the header are passed over.

        Raises:
            ModelFileError: this is no GGUF, one of a foreign version, or its header is damaged or beyond the limits.
        """
        if self._failure is not None:
            raise self._failure
        if self.is_complete:
            return
        self._buffer += data
        try:
            next(self._steps)
        except ModelFileError as error:
            self._failure = error
            raise
        except StopIteration:
            self._drop()
            self._buffer.clear()
            self.is_complete = True
            self.needed_bytes = self._at
            if self._hash_end >= 0:
                self.fingerprint = self._hash.hexdigest()[:32]
        else:
            self._drop()

    def _drop(self) -> None:
        """Let go of what has been walked."""
        count = min(self._at - self._base, len(self._buffer))
        if self._hash_begin >= 0:
            first = max(0, self._hash_begin - self._base)
            last = count if self._hash_end < 0 else min(count, self._hash_end - self._base)
            if first < last:
                self._hash.update(self._buffer[first:last])
        del self._buffer[:count]
        self._base += count

    def _walk(self) -> _Steps:
        yield from self._have(min(_START_BYTES, self.size_bytes), "its start")
        self._check_signature()
        self._at = 4
        self._check_version((yield from self._u32()))
        num_tensors = yield from self._u64()
        num_keys = yield from self._u64()
        if num_tensors > MAX_TENSORS:
            raise self._damaged(f"it claims {num_tensors} tensors", 8)
        if num_keys > MAX_KEYS:
            raise self._damaged(f"it claims {num_keys} metadata entries", 16)
        for left in range(num_keys - 1, -1, -1):
            self._least_rest = left * _LEAST_ENTRY_BYTES + num_tensors * _LEAST_ROW_BYTES
            yield from self._skip_entry()
        for index in range(num_tensors):
            self._least_rest = (num_tensors - 1 - index) * _LEAST_ROW_BYTES
            yield from self._skip_row(index)
        self._least_rest = 0
        yield from self._have(0, "the header")

    def _check_signature(self) -> None:
        found = recognise(bytes(self._buffer[:_START_BYTES]))
        if found is not None:
            what, hint = found
            raise ModelFileError(f"{self._shown} is {what}.", hint)

    def _check_version(self, version: int) -> None:
        if version & 0xFFFF == 0 and version:
            raise ModelFileError(
                f"{self._shown} is a big-endian GGUF.", "Look for a little-endian version of the model."
            )
        if version not in (2, 3):
            raise ModelFileError(
                f"{self._shown} is GGUF version {version}; this llama.cpp reads versions 2 and 3.",
                "Look for a newer conversion of the model."
                if version < 2
                else "A newer llama-cpp-python may read it, if the file is not damaged.",
            )

    def _skip_entry(self) -> _Steps:
        begin = self._at
        length = yield from self._u64()
        self._check_end(self._at + length, "a key")
        yield from self._have(min(length, _SHOWN_KEY_BYTES), "a key")
        at = self._at - self._base
        raw = bytes(self._buffer[at : at + min(length, _SHOWN_KEY_BYTES)])
        key = printable(raw.decode("utf-8", errors="replace"))
        self._at += length
        number = yield from self._u32()
        if number == _STRING:
            yield from self._skip_strings(1, key)
        elif number == _ARRAY:
            yield from self._skip_array(key, length == len(raw) and raw == _TOKENS)
        elif number in _SIZES:
            self._check_end(self._at + _SIZES[number], f"the value of {key}")
            self._at += _SIZES[number]
        else:
            raise self._damaged(f"{key} has the unknown type {number}", begin)

    def _skip_array(self, key: str, is_vocabulary: bool) -> _Steps:
        begin = self._at
        number = yield from self._u32()
        count_at = self._at
        count = yield from self._u64()
        if number == _STRING:
            is_hashed = is_vocabulary and count > 0 and self._hash_begin < 0
            if is_hashed:
                self._hash_begin = count_at
            yield from self._skip_strings(count, key)
            if is_hashed:
                self._hash_end = self._at
        elif number in _SIZES:
            size = count * _SIZES[number]
            self._spend(count * _COST_PER_NUMBER, key, begin)
            self._check_end(self._at + size, f"the {count} items of {key}")
            self._at += size
        elif number == _ARRAY:
            raise self._damaged(f"{key} is an array of arrays", begin)
        else:
            raise self._damaged(f"{key} is an array of the unknown type {number}", begin)

    def _skip_strings(self, count: int, key: str) -> _Steps:
        begin, what = self._at, f"a text of {key}"
        self._spend(count * _COST_PER_STRING, key, begin)
        if count > 1:
            self._check_end(begin + 8 * count, f"the {count} items of {key}")
        limit = min(self.size_bytes, MAX_METADATA_BYTES)
        unpack, left = _U64.unpack_from, count
        while left:
            buffer, base = self._buffer, self._base
            first = at = self._at - base
            end = limit - base
            done = 0
            # Half a million turns in a large vocabulary: nothing is called here that need not be.
            try:
                for done in range(left):  # noqa: B007
                    first = at
                    at += 8 + unpack(buffer, at)[0]
                    if at > end:
                        break
                else:
                    done = left
            except struct.error:
                pass
            if at > end:
                self._at = base + first
                self._check_end(base + at, what)
            left -= done
            self._at = base + at
            if left:
                yield from self._have(8, what, 8 * left)
        self._spend(2 * (self._at - begin - 8 * count), key, begin)

    def _skip_row(self, index: int) -> _Steps:
        begin = self._at
        length = yield from self._u64()
        if length > MAX_NAME_BYTES:
            raise self._damaged(f"the name of tensor {index} is too long, {length} bytes", begin)
        yield from self._have(length + 4, "a row of the tensor table")
        self._at += length
        num_dims = yield from self._u32()
        if num_dims > MAX_DIMS:
            raise self._damaged(f"tensor {index} has an invalid number of dimensions, {num_dims}", begin)
        yield from self._have(8 * num_dims + 12, "a row of the tensor table")
        self._at += 8 * num_dims + 12

    def _u32(self) -> _Number:
        yield from self._have(4, "a number")
        self._at += 4
        return int(_U32.unpack_from(self._buffer, self._at - 4 - self._base)[0])

    def _u64(self) -> _Number:
        yield from self._have(8, "a length")
        self._at += 8
        return int(_U64.unpack_from(self._buffer, self._at - 8 - self._base)[0])

    def _have(self, size: int, what: str, least: int = 0) -> _Steps:
        """Wait for `size` bytes from the present one on; of this entry at least `least` follow from there."""
        end = self._at + size
        self._check_end(end, what)
        while self.received_bytes < end:
            bound = max(end, self._at + least) + self._least_rest
            self.needed_bytes = max(self.needed_bytes, min(bound, self.size_bytes))
            yield

    def _spend(self, cost: int, key: str, begin: int) -> None:
        self._cost += cost
        if self._cost > MAX_PARSER_BYTES:
            raise self._damaged(f"{key} is too long to be true", begin)

    def _check_end(self, end: int, what: str) -> None:
        """Check that something that begins at the present byte may end at `end`."""
        if end > self.size_bytes:
            raise self._damaged(f"{what} would go on beyond its {self.size_bytes} bytes", self._at)
        if end > MAX_METADATA_BYTES:
            raise self._damaged(f"its metadata goes on beyond {MAX_METADATA_BYTES >> 20} MiB", self._at)

    def _damaged(self, what: str, offset: int) -> ModelFileError:
        return ModelFileError(f"{self._shown} is damaged: {what}, at byte {offset}.", _AGAIN)
