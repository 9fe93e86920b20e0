"""Damaged and hostile GGUF files, each whole but for one fault.

Run as a program it reads (and, where the header is sound, loads) the files named on the command line under limits of
memory and time, and prints a JSON line for each. The limits end the program by a signal where Python cannot.
"""

from __future__ import annotations

import json
import logging
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

MAX_ADDRESS_BYTES = 1 << 30
MAX_S = 5

U8, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 5, 6, 7, 8, 9, 10

Outcome = Literal["header", "load", "loads", "ends"]
"""Refused by the header's reader, refused by the loader, harmless, or the end of the process with a last log line."""


def integer(value: int) -> bytes:
    """Return a u32 with its type number."""
    return struct.pack("<II", U32, value)


def real(value: float) -> bytes:
    """Return an f32 with its type number."""
    return struct.pack("<If", F32, value)


def string(value: bytes, length: int | None = None) -> bytes:
    """Return a string without type number; `length` is what it claims to be."""
    return struct.pack("<Q", len(value) if length is None else length) + value


def text(value: bytes, length: int | None = None) -> bytes:
    """Return a string with its type number."""
    return struct.pack("<I", STRING) + string(value, length)


def array(kind: int, items: list[bytes], length: int | None = None) -> bytes:
    """Return an array with its type number; `length` is what it claims to be."""
    return struct.pack("<IIQ", ARRAY, kind, len(items) if length is None else length) + b"".join(items)


@dataclass
class RawTensor:
    """One row of the tensor table."""

    name: bytes
    shape: list[int]
    offset: int
    type: int = 0


@dataclass
class RawGguf:
    """A GGUF file in parts, any of which may be wrong."""

    entries: dict[bytes, bytes]
    tensors: list[RawTensor]
    data: bytes
    magic: bytes = b"GGUF"
    version: int = 3
    num_tensors: int | None = None
    num_entries: int | None = None
    extra_entries: list[tuple[bytes, bytes]] = field(default_factory=list)
    alignment: int = 32

    def head(self) -> bytes:
        """Return the counts and the metadata."""
        entries = [*self.entries.items(), *self.extra_entries]
        num_tensors = len(self.tensors) if self.num_tensors is None else self.num_tensors
        num_entries = len(entries) if self.num_entries is None else self.num_entries
        counts = struct.pack("<IQQ", self.version, num_tensors, num_entries)
        return self.magic + counts + b"".join(string(key) + value for key, value in entries)

    def table(self) -> bytes:
        """Return the tensor table."""
        rows = []
        for tensor in self.tensors:
            shape = b"".join(struct.pack("<Q", size % 2**64) for size in tensor.shape)
            ending = struct.pack("<iQ", tensor.type, tensor.offset)
            rows.append(string(tensor.name) + struct.pack("<I", len(tensor.shape)) + shape + ending)
        return b"".join(rows)

    def encode(self) -> bytes:
        """Return the file."""
        start = self.head() + self.table()
        return start + bytes(-len(start) % self.alignment) + self.data


def whole() -> RawGguf:
    """Return a sound llama model with one layer and zeros for weights."""
    n_vocab, n_embd, n_ff = 260, 32, 32
    tokens = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % byte for byte in range(256)), b"a"]
    kinds = [2, 3, 3, *([6] * 256), 1]
    entries = {
        b"general.architecture": text(b"llama"),
        b"general.name": text(b"whole"),
        b"llama.context_length": integer(64),
        b"llama.embedding_length": integer(n_embd),
        b"llama.block_count": integer(1),
        b"llama.feed_forward_length": integer(n_ff),
        b"llama.attention.head_count": integer(1),
        b"llama.attention.head_count_kv": integer(1),
        b"llama.attention.layer_norm_rms_epsilon": real(1e-5),
        b"llama.rope.dimension_count": integer(n_embd),
        b"tokenizer.ggml.model": text(b"llama"),
        b"tokenizer.ggml.tokens": array(STRING, [string(token) for token in tokens]),
        b"tokenizer.ggml.scores": array(F32, [struct.pack("<f", 0.0)] * n_vocab),
        b"tokenizer.ggml.token_type": array(I32, [struct.pack("<i", kind) for kind in kinds]),
        b"tokenizer.ggml.add_space_prefix": struct.pack("<Ib", BOOL, 0),
    }
    shapes = {b"token_embd.weight": [n_embd, n_vocab], b"output_norm.weight": [n_embd]}
    shapes |= {b"blk.0.attn_%s.weight" % part: [n_embd, n_embd] for part in (b"q", b"k", b"v", b"output")}
    shapes |= {b"blk.0.attn_norm.weight": [n_embd], b"blk.0.ffn_norm.weight": [n_embd]}
    shapes |= {b"blk.0.ffn_%s.weight" % part: [n_embd, n_ff] for part in (b"gate", b"up", b"down")}
    tensors: list[RawTensor] = []
    offset = 0
    for name, shape in shapes.items():
        tensors.append(RawTensor(name, shape, offset))
        offset += 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
    return RawGguf(entries, tensors, bytes(offset))


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of damage: how to make it, and what must become of it."""

    name: str
    make: Callable[[Path], None]
    outcome: Outcome
    words: str
    """Regular expression that the message, or the last log line, matches."""
    file_name: str = "model.gguf"


def _bytes(change: Callable[[RawGguf], bytes | None]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        raw = whole()
        encoded = change(raw)
        path.write_bytes(raw.encode() if encoded is None else encoded)

    return make


def _entry(key: bytes, value: bytes) -> Callable[[Path], None]:
    return _bytes(lambda raw: raw.entries.update({key: value}))


def _without(key: bytes) -> Callable[[Path], None]:
    return _bytes(lambda raw: raw.entries.pop(key) and None)


def _tensor(index: int, **changes: object) -> Callable[[Path], None]:
    def change(raw: RawGguf) -> None:
        for name, value in changes.items():
            setattr(raw.tensors[index], name, value)

    return _bytes(change)


def _field(**changes: object) -> Callable[[Path], None]:
    def change(raw: RawGguf) -> None:
        for name, value in changes.items():
            setattr(raw, name, value)

    return _bytes(change)


def _aligned(value: bytes) -> Callable[[Path], None]:
    return _entry(b"general.alignment", value)


def _sparse(entry: bytes) -> Callable[[Path], None]:
    """Make a file of 3 GB, of which little is on the disk, so that false lengths stay within it."""

    def make(path: Path) -> None:
        raw = whole()
        raw.entries = {b"x": entry} | raw.entries
        path.write_bytes(raw.head()[: 24 + 9 + len(entry)])
        with path.open("r+b") as file:
            file.truncate(3_000_000_000)

    return make


def _swap(raw: RawGguf) -> bytes:
    head = raw.encode()
    return head[:4] + head[4:8][::-1] + head[8:16][::-1] + head[16:24][::-1] + head[24:]


def _nested(raw: RawGguf) -> None:
    raw.entries[b"x"] = struct.pack("<I", ARRAY) + struct.pack("<IQ", ARRAY, 1) * 10_000 + struct.pack("<IQB", U8, 1, 0)


BILLION = 10**9

FAULTS = (
    Fault("whole", _bytes(lambda _: None), "loads", ""),
    Fault("empty", _bytes(lambda _: b""), "header", "is empty"),
    Fault("three_bytes", _bytes(lambda _: b"GGU"), "header", "not a GGUF"),
    Fault("magic_alone", _bytes(lambda _: b"GGUF"), "header", "go on beyond its"),
    Fault("bad_magic", _field(magic=b"GGUX"), "header", "not a GGUF"),
    Fault("web_page", _bytes(lambda _: b"<!DOCTYPE html><html>"), "header", "web page"),
    Fault("version_0", _field(version=0), "header", "version 0"),
    Fault("version_1", _field(version=1), "header", "version 1"),
    Fault("version_99", _field(version=99), "header", "version 99"),
    Fault("big_endian", _bytes(_swap), "header", "big-endian"),
    Fault("cut_in_metadata", _bytes(lambda raw: raw.head()[:-600]), "header", r"go on beyond its .* at byte \d+"),
    Fault("cut_in_tensor_table", _bytes(lambda raw: raw.head() + raw.table()[:-40]), "header", r"row .* at byte \d+"),
    Fault("cut_in_data", _bytes(lambda raw: raw.encode()[:-1000]), "header", r"cut short: .* end at byte \d+"),
    Fault("cut_before_data", _bytes(lambda raw: raw.encode()[: -len(raw.data)]), "header", "cut short"),
    Fault("huge_entry_count", _field(num_entries=2**40), "header", "metadata entries"),
    Fault("negative_entry_count", _field(num_entries=2**64 - 1), "header", "metadata entries"),
    Fault("one_entry_too_many", _field(num_entries=16), "header", "damaged"),
    Fault("huge_tensor_count", _field(num_tensors=2**40), "header", "tensors"),
    Fault("negative_tensor_count", _field(num_tensors=2**63), "header", "tensors"),
    Fault("one_tensor_too_many", _field(num_tensors=12), "header", "damaged"),
    Fault("text_of_2_to_63", _entry(b"x", text(b"x", 2**63)), "header", "text of x would .* byte 6387"),
    Fault("text_beyond_end", _entry(b"x", text(b"x", 10**6)), "header", "go on beyond its"),
    Fault("key_of_2_to_64", _bytes(lambda raw: raw.head()[:24] + b"\xff" * 400), "header", "a key would"),
    Fault("empty_key", _entry(b"", integer(1)), "header", "is empty"),
    Fault("billion_bytes", _entry(b"x", array(U8, [b"x"], BILLION)), "header", "x is too long"),
    Fault("billion_texts", _entry(b"x", array(STRING, [string(b"x")], BILLION)), "header", "x is too long"),
    Fault("array_of_2_to_64", _entry(b"x", array(U64, [], 2**64 - 1)), "header", "x is too long"),
    Fault("array_beyond_end", _entry(b"x", array(U64, [], 10**6)), "header", "items of x would"),
    Fault("sparse_bytes", _sparse(array(U8, [], BILLION)), "header", "x is too long"),
    Fault("sparse_texts", _sparse(array(STRING, [], 10**8)), "header", "x is too long"),
    Fault("sparse_text", _sparse(text(b"", BILLION)), "header", "too long|beyond 48 MiB"),
    Fault("sparse_most_numbers", _sparse(array(U8, [], 6_990_000)), "header", "damaged"),
    Fault("sparse_most_texts", _sparse(array(STRING, [], 1_740_000)), "header", "damaged"),
    Fault("array_of_arrays", _entry(b"x", array(ARRAY, [struct.pack("<IQ", U8, 0)])), "header", "array of arrays"),
    Fault("deeply_nested", _bytes(_nested), "header", "array of arrays"),
    Fault("unknown_value_type", _entry(b"x", struct.pack("<IQ", 77, 0)), "header", "unknown type 77"),
    Fault("unknown_item_type", _entry(b"x", array(77, [])), "header", "unknown type 77"),
    Fault("duplicate_key", _field(extra_entries=[(b"general.name", text(b"again"))]), "header", "duplicate key"),
    Fault("duplicate_tensor", _tensor(5, name=b"token_embd.weight"), "header", "duplicate tensor"),
    Fault("long_tensor_name", _tensor(5, name=b"x" * 300), "header", "too long"),
    Fault("zero_dimension", _tensor(0, shape=[32, 0]), "header", "offset|shape"),
    Fault("last_dimension_zero", _tensor(-1, shape=[32, 0]), "header", "shape 32 x 0"),
    Fault("negative_dimension", _tensor(0, shape=[32, -1]), "header", "invalid number of elements"),
    Fault("five_dimensions", _tensor(0, shape=[2, 2, 2, 2, 2]), "header", "number of dimensions"),
    Fault("size_overflow", _tensor(0, shape=[2**32, 2**32, 2**32, 2]), "header", "overflow"),
    Fault("byte_overflow", _tensor(0, shape=[2**31, 2**31, 1]), "header", "damaged"),
    Fault("unknown_tensor_type", _tensor(0, type=999), "header", "invalid ggml type 999"),
    Fault("negative_tensor_type", _tensor(0, type=-1), "header", "invalid ggml type -1"),
    Fault("removed_tensor_type", _tensor(0, type=4), "header", "block size"),
    Fault("half_a_block", _tensor(1, type=2, shape=[31]), "header", "block size"),
    Fault("tensors_overlap", _tensor(1, offset=0), "header", "offset 0, expected"),
    Fault("tensor_misaligned", _tensor(1, offset=33283), "header", "offset 33283, expected"),
    Fault("tensor_beyond_end", _tensor(-1, shape=[32, 10**9]), "header", "cut short"),
    Fault("alignment_0", _aligned(integer(0)), "header", "alignment 0"),
    Fault("alignment_3", _aligned(integer(3)), "header", "alignment 3"),
    Fault("alignment_huge", _aligned(integer(2**31)), "header", "data section|alignment"),
    Fault("alignment_of_text", _aligned(text(b"32")), "header", "must be of type"),
    Fault("key_not_utf8", _entry(b"general.\xff\xfe", integer(1)), "loads", ""),
    Fault("text_not_utf8", _entry(b"general.name", text(b"\xff\xfe\x1b[31mred")), "loads", ""),
    Fault("bool_of_2", _entry(b"tokenizer.ggml.add_bos_token", struct.pack("<Ib", BOOL, 2)), "loads", ""),
    Fault("no_architecture", _without(b"general.architecture"), "load", "architecture"),
    Fault("unknown_architecture", _entry(b"general.architecture", text(b"nonsuch")), "load", "nonsuch"),
    Fault("architecture_a_number", _entry(b"general.architecture", integer(1)), "load", "architecture"),
    Fault("no_vocabulary", _without(b"tokenizer.ggml.tokens"), "load", "could not load"),
    Fault("no_tokenizer_model", _without(b"tokenizer.ggml.model"), "load", "tokenizer.ggml.model"),
    Fault("no_layer_count", _without(b"llama.block_count"), "load", "block_count"),
    Fault("huge_layer_count", _entry(b"llama.block_count", integer(2**31 - 1)), "header", "block_count is 2147483647"),
    Fault("no_layers", _entry(b"llama.block_count", integer(0)), "header", "block_count is 0"),
    Fault("huge_expert_count", _entry(b"llama.expert_count", integer(10**6)), "header", "expert_count is 1000000"),
    Fault("no_expert_used", _entry(b"llama.expert_count", integer(8)), "header", "expert_used_count is 0"),
    Fault("no_heads", _entry(b"llama.attention.head_count", integer(0)), "load", "."),
    Fault("no_width", _entry(b"llama.embedding_length", integer(0)), "load", "."),
    Fault("no_context", _entry(b"llama.context_length", integer(0)), "loads", ""),
    Fault("end_token_out_of_range", _entry(b"tokenizer.ggml.eos_token_id", integer(10**9)), "loads", ""),
    Fault("unknown_rope_scaling", _entry(b"llama.rope.scaling.type", text(b"nonsuch")), "ends", "rope_scaling_type"),
    Fault("wrong_width", _entry(b"llama.embedding_length", integer(64)), "load", "n_rot"),
    Fault("missing_tensor", _tensor(-1, name=b"blk.0.nonsuch.weight"), "load", "ffn_down|missing tensor"),
    Fault("split_by_name_only", _entry(b"split.count", struct.pack("<IH", 2, 3)), "header", "one of 3 files"),
    Fault(
        "split_with_others_missing",
        _entry(b"split.count", struct.pack("<IH", 2, 3)),
        "header",
        "2 of the 3 files",
        "model-00001-of-00003.gguf",
    ),
)


def _main(paths: list[str]) -> None:
    # Imported here, since the tests that name the faults need no llama.cpp.
    import resource

    from localspec.engine.llama.header import read_header
    from localspec.engine.llama.library import start_library
    from localspec.engine.llama.model import LlamaModel
    from localspec.engine.values import ContextSettings
    from localspec.errors import LocalspecError

    logging.basicConfig(stream=sys.stderr, level=logging.ERROR)
    start_library()
    unit = 1 if sys.platform == "darwin" else 1024
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_BYTES, MAX_ADDRESS_BYTES))
    for path in paths:
        signal.alarm(MAX_S)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        stage, message, hint = "header", "", ""
        try:
            header = read_header(path)
            stage = "load"
            LlamaModel(header, ContextSettings()).close()
            stage = "loads"
        except LocalspecError as error:
            message, hint = error.message, error.hint
        seconds = time.perf_counter() - started
        growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit
        report = {"stage": stage, "message": message, "hint": hint, "seconds": seconds, "growth": growth}
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1:])
