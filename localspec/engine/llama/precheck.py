"""A look at a GGUF's metadata before ggml's parser sees it.

ggml refuses what is malformed, but it says not where, and it believes any length that the rest of the file could hold:
in a file of gigabytes a false length costs gigabytes. This walk follows the lengths without reading values,
bounds what the parser will need, and names the byte at which a file goes wrong.
"""

from __future__ import annotations

import os
import stat
import struct
from typing import BinaryIO

from localspec.engine.llama.log import printable
from localspec.errors import ModelFileError

MAX_METADATA_BYTES = 48 << 20
"""Bytes of keys and values. A vocabulary of 262,144 tokens with its merges takes about 17 MB."""

MAX_PARSER_BYTES = 160 << 20
"""Memory that ggml's parser may need for all values, by the estimate below."""

MAX_KEYS = 1 << 16
MAX_TENSORS = 1 << 16

_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_COST_PER_STRING = 96
"""The parser holds an array twice while it reads it: 2 x (32 for std::string + 16 for malloc)."""
_COST_PER_NUMBER = 24
"""Not memory but time: each number is an fread of its own."""
_CHUNK = 1 << 20
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")

_AGAIN = "Download the file again. If it is what its maker published, it needs fixing there."
_STRANGERS = {
    b"version https://git-lfs": ("a Git LFS pointer, not the model itself", "Fetch the file with `git lfs pull`."),
    b"<!DOCTYPE": ("a web page", "Download the model file, not its page; a login may be needed."),
    b"<html": ("a web page", "Download the model file, not its page; a login may be needed."),
    b"PK\x03\x04": ("a zip or PyTorch file", "localspec runs GGUF files: look for a GGUF version of the model."),
    b"ggml": ("in an outdated format of llama.cpp", "Look for a GGUF version of the model."),
    b"lmgg": ("in an outdated format of llama.cpp", "Look for a GGUF version of the model."),
    b"tjgg": ("in an outdated format of llama.cpp", "Look for a GGUF version of the model."),
    b"FUGG": ("a big-endian GGUF", "Look for a little-endian version of the model."),
}


def precheck(path: str) -> int:
    """Check that a path is a GGUF file whose metadata can be parsed within bounds.

    Returns:
        The size of the file in bytes.

    Raises:
        ModelFileError: it is missing, no regular file, not a GGUF, of a foreign version, or its metadata is damaged or
            beyond the limits.
    """
    shown = printable(path)
    try:
        # Opening a FIFO would wait for a writer, so the kind of file is looked at first.
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise ModelFileError(f"{shown} is {kind}.", "Name a .gguf file.")
        with open(path, "rb") as file:
            return _Walk(file, shown).check()
    except FileNotFoundError:
        raise ModelFileError(f"There is no file {shown}.", "Check the path.") from None
    except PermissionError:
        raise ModelFileError(f"{shown} may not be read.", "Check the file's permissions.") from None
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{shown} cannot be read: {error}.", "Check the path and the disk.") from None


class _Walk:
    """Follows the lengths in a file's metadata."""

    def __init__(self, file: BinaryIO, shown: str) -> None:
        self._file = file
        self._shown = shown
        self._size = os.fstat(file.fileno()).st_size
        self._buffer = bytearray()
        self._at = 0
        self._cost = 0

    def check(self) -> int:
        self._check_start()
        num_tensors, num_keys = self._u64(), self._u64()
        if num_tensors > MAX_TENSORS:
            raise self._damaged(f"it claims {num_tensors} tensors", 8)
        if num_keys > MAX_KEYS:
            raise self._damaged(f"it claims {num_keys} metadata entries", 16)
        for _ in range(num_keys):
            self._skip_entry()
        return self._size

    def _check_start(self) -> None:
        if self._size == 0:
            raise ModelFileError(f"{self._shown} is empty.", "Download the file again.")
        start = self._file.read(32)
        if start[:4] != b"GGUF":
            for signature, (what, hint) in _STRANGERS.items():
                if start.startswith(signature):
                    raise ModelFileError(f"{self._shown} is {what}.", hint)
            if start[8:9] == b"{":
                raise ModelFileError(f"{self._shown} is a safetensors file.", "Look for a GGUF version of the model.")
            raise ModelFileError(
                f"{self._shown} is not a GGUF file: it does not begin with GGUF.", "Name a .gguf file."
            )
        self._buffer += start
        self._at = 4
        version = self._u32()
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

    def _skip_entry(self) -> None:
        begin = self._at
        length = self._u64()
        self._need(length, "a key")
        key = printable(self._buffer[self._at : self._at + min(length, 64)].decode("utf-8", errors="replace"))
        self._at += length
        number = self._u32()
        if number == _STRING:
            self._skip_strings(1, key)
        elif number == _ARRAY:
            self._skip_array(key)
        elif number in _SIZES:
            self._need(_SIZES[number], f"the value of {key}")
            self._at += _SIZES[number]
        else:
            raise self._damaged(f"{key} has the unknown type {number}", begin)

    def _skip_array(self, key: str) -> None:
        begin = self._at
        number, count = self._u32(), self._u64()
        if number == _STRING:
            self._skip_strings(count, key)
        elif number in _SIZES:
            size = count * _SIZES[number]
            self._spend(count * _COST_PER_NUMBER, key, begin)
            self._need(size, f"the {count} items of {key}")
            self._at += size
        elif number == _ARRAY:
            raise self._damaged(f"{key} is an array of arrays", begin)
        else:
            raise self._damaged(f"{key} is an array of the unknown type {number}", begin)

    def _skip_strings(self, count: int, key: str) -> None:
        begin = at = self._at
        self._spend(count * _COST_PER_STRING, key, begin)
        buffer, unpack = self._buffer, _U64.unpack_from
        for _ in range(count):
            self._at = at
            try:
                at += 8 + unpack(buffer, at)[0]
            except struct.error:
                self._need(8, f"a text of {key}")
                at += 8 + unpack(buffer, at)[0]
            if at > self._size:
                break
        self._need(at - self._at, f"a text of {key}")
        self._at = at
        self._spend(2 * (at - begin - 8 * count), key, begin)

    def _spend(self, cost: int, key: str, begin: int) -> None:
        self._cost += cost
        if self._cost > MAX_PARSER_BYTES:
            raise self._damaged(f"{key} is too long to be true", begin)

    def _u32(self) -> int:
        self._need(4, "a number")
        self._at += 4
        return int(_U32.unpack_from(self._buffer, self._at - 4)[0])

    def _u64(self) -> int:
        self._need(8, "a length")
        self._at += 8
        return int(_U64.unpack_from(self._buffer, self._at - 8)[0])

    def _need(self, size: int, what: str) -> None:
        """Have the file's bytes up to `size` after the present one in the buffer."""
        end = self._at + size
        if end > self._size:
            raise self._damaged(f"{what} would go on beyond its {self._size} bytes", self._at)
        if end > MAX_METADATA_BYTES:
            raise self._damaged(f"its metadata goes on beyond {MAX_METADATA_BYTES >> 20} MiB", self._at)
        while len(self._buffer) < end:
            chunk = self._file.read(_CHUNK)
            if not chunk:
                raise self._damaged("it became shorter while it was read", len(self._buffer))
            self._buffer += chunk

    def _damaged(self, what: str, offset: int) -> ModelFileError:
        return ModelFileError(f"{self._shown} is damaged: {what}, at byte {offset}.", _AGAIN)
