"""Reading headers."""

from __future__ import annotations

import os
import re
import struct
from math import prod
from pathlib import Path

import pytest

from localspec.catalog.header import ArrayValue
from localspec.catalog.quantisation import header_quantisation
from localspec.engine.llama.header import read_header
from localspec.errors import ModelFileError
from tests import damaged_gguf, tiny_gguf


def test_metadata_and_tensors(tmp_path: Path) -> None:
    path = tiny_gguf.write_llama(tmp_path / "tiny.gguf", n_layer=3, n_ctx_train=777, template=tiny_gguf.CHATML)
    header = read_header(str(path))
    assert header.architecture == "llama"
    assert header.text("general.name") == "tiny"
    assert header.arch_integer("context_length") == 777
    assert header.metadata["tokenizer.ggml.add_bos_token"] is True
    assert header.metadata["llama.attention.layer_norm_rms_epsilon"] == pytest.approx(1e-5)
    assert header.text("tokenizer.chat_template") == tiny_gguf.CHATML
    assert header_quantisation(header) == "F32"
    assert header.file_bytes == path.stat().st_size
    by_name = {tensor.name: tensor for tensor in header.tensors}
    assert by_name["token_embd.weight"].shape == (70, 320)
    assert by_name["output_norm.weight"].shape == (70,)
    assert by_name["token_embd.weight"].size_bytes == 70 * 320 * 4
    assert header.num_tensors == len(header.tensors) == 3 + 9 * 3
    assert header.num_params == sum(prod(tensor.shape) for tensor in header.tensors)
    assert header.tensor_bytes == 4 * header.num_params


def test_every_type_of_value(tmp_path: Path) -> None:
    raw = damaged_gguf.whole()
    raw.entries |= {
        b"t.u8": struct.pack("<IB", 0, 200),
        b"t.i8": struct.pack("<Ib", 1, -100),
        b"t.u16": struct.pack("<IH", 2, 60_000),
        b"t.i16": struct.pack("<Ih", 3, -30_000),
        b"t.i32": struct.pack("<Ii", 5, -(2**31)),
        b"t.u64": struct.pack("<IQ", 10, 2**64 - 1),
        b"t.i64": struct.pack("<Iq", 11, -(2**63)),
        b"t.f64": struct.pack("<Id", 12, 0.1),
        b"t.bools": damaged_gguf.array(7, [b"\x01", b"\x00"]),
        b"t.longs": damaged_gguf.array(11, [struct.pack("<q", -5), struct.pack("<q", 6)]),
        b"t.none": damaged_gguf.array(8, []),
    }
    path = tmp_path / "types.gguf"
    path.write_bytes(raw.encode())
    metadata = read_header(str(path)).metadata
    assert metadata["t.u8"] == 200
    assert metadata["t.i8"] == -100
    assert metadata["t.u16"] == 60_000
    assert metadata["t.i16"] == -30_000
    assert metadata["t.i32"] == -(2**31)
    assert metadata["t.u64"] == 2**64 - 1
    assert metadata["t.i64"] == -(2**63)
    assert metadata["t.f64"] == 0.1
    assert metadata["t.bools"] == ArrayValue("bool", 2, (True, False))
    assert metadata["t.longs"] == ArrayValue("i64", 2, (-5, 6))
    assert metadata["t.none"] == ArrayValue("str", 0, ())


def test_long_arrays_are_cut(tmp_path: Path) -> None:
    path = tiny_gguf.write_llama(tmp_path / "tiny.gguf")
    header = read_header(str(path), with_tensors=False, max_array=4)
    assert header.metadata["tokenizer.ggml.tokens"] == ArrayValue("str", 320, ("<unk>", "<s>", "</s>", "<0x00>"))
    assert header.tensors == ()
    assert header.num_tensors == 21


def test_the_vocabulary_has_a_fingerprint(tmp_path: Path) -> None:
    first = read_header(str(tiny_gguf.write_llama(tmp_path / "first.gguf", n_embd=70)))
    second = read_header(str(tiny_gguf.write_llama(tmp_path / "second.gguf", n_embd=16, seed=5)), with_tensors=False)
    padded = read_header(str(tiny_gguf.write_llama(tmp_path / "padded.gguf", pad_vocab=1)))
    split = read_header(str(tiny_gguf.write_llama(tmp_path / "split.gguf", shards=3)).replace("-00001-", "-00003-"))
    assert re.fullmatch("[0-9a-f]{32}", first.vocabulary_fingerprint)
    assert first.vocabulary_fingerprint == second.vocabulary_fingerprint == split.vocabulary_fingerprint
    assert padded.vocabulary_fingerprint != first.vocabulary_fingerprint


@pytest.mark.parametrize(("used", "is_sound"), [((2, 4), True), ((2, 0), False), ((2, 9), False)])
def test_each_layer_may_use_its_own_number_of_experts(used: tuple[int, ...], is_sound: bool, tmp_path: Path) -> None:
    raw = damaged_gguf.whole()
    raw.entries[b"llama.expert_count"] = damaged_gguf.integer(8)
    counts = [struct.pack("<i", count) for count in used]
    raw.entries[b"llama.expert_used_count"] = damaged_gguf.array(damaged_gguf.I32, counts)
    path = tmp_path / "experts.gguf"
    path.write_bytes(raw.encode())
    if is_sound:
        assert read_header(str(path)).metadata["llama.expert_used_count"] == ArrayValue("i32", 2, used)
    else:
        with pytest.raises(ModelFileError, match=rf"expert_used_count is {used[1]}"):
            read_header(str(path))


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    raw = damaged_gguf.whole()
    raw.entries[b"general.name"] = damaged_gguf.text(b"a\xffb")
    path = tmp_path / "name.gguf"
    path.write_bytes(raw.encode())
    assert read_header(str(path)).text("general.name") == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("given", [1, 2, 3])
def test_any_shard_stands_for_the_model(given: int, tmp_path: Path) -> None:
    single = read_header(str(tiny_gguf.write_llama(tmp_path / "one.gguf")))
    first = tiny_gguf.write_llama(tmp_path / "many.gguf", shards=3)
    header = read_header(str(first).replace("-00001-", f"-0000{given}-"))
    assert header.path == str(first)
    assert [Path(shard).name for shard in header.shards] == [f"many-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    assert header.architecture == "llama"
    assert header.num_params == single.num_params
    assert {tensor.name for tensor in header.tensors} == {tensor.name for tensor in single.tensors}
    assert header.file_bytes == sum(os.path.getsize(shard) for shard in header.shards)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    first = tiny_gguf.write_llama(tmp_path / "many.gguf", shards=3)
    (tmp_path / "many-00002-of-00003.gguf").unlink()
    with pytest.raises(ModelFileError, match=r"1 of the 3 files .*many-00002-of-00003\.gguf"):
        read_header(str(first))


def test_shards_in_the_wrong_places(tmp_path: Path) -> None:
    first = tiny_gguf.write_llama(tmp_path / "many.gguf", shards=3)
    second, third = tmp_path / "many-00002-of-00003.gguf", tmp_path / "many-00003-of-00003.gguf"
    third.write_bytes(second.read_bytes())
    with pytest.raises(ModelFileError, match=r"00003-of-00003\.gguf is not number 3"):
        read_header(str(first))


def test_shards_of_different_models(tmp_path: Path) -> None:
    first = tiny_gguf.write_llama(tmp_path / "many.gguf", shards=3)
    other = tiny_gguf.write_llama(tmp_path / "other.gguf", shards=3, n_layer=4)
    (tmp_path / "many-00002-of-00003.gguf").write_bytes(other.with_name("other-00002-of-00003.gguf").read_bytes())
    with pytest.raises(ModelFileError, match="do not belong together"):
        read_header(str(first))


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no file"):
        read_header(str(tmp_path / "missing.gguf"))
    with pytest.raises(ModelFileError, match="is a folder"):
        read_header(str(tmp_path))
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_header("a\0b")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(ModelFileError, match="not a regular file"):
            read_header(str(tmp_path / "fifo"))
        with pytest.raises(ModelFileError, match="not a regular file"):
            read_header("/dev/zero")


def test_control_characters_of_a_path_stay_out_of_messages(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as caught:
        read_header(str(tmp_path / "\x1b[31mred"))
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS pointer"),
        (b"PK\x03\x04" + bytes(40), "zip or PyTorch"),
        (struct.pack("<Q", 300) + b'{"__metadata__"', "safetensors"),
    ],
)
def test_other_formats_are_recognised(start: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(start)
    with pytest.raises(ModelFileError, match=words):
        read_header(str(path))
