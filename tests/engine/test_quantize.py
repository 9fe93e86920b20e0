"""Requantised and pruned copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.catalog.quantisation import header_quantisation
from localspec.engine.llama import log
from localspec.engine.llama.header import read_header
from localspec.engine.llama.quantize import quantize
from localspec.errors import LocalspecError, ModelFileError, UsageError
from tests import damaged_gguf, tiny_gguf


@pytest.fixture
def source(tmp_path: Path) -> str:
    return str(tiny_gguf.write_llama(tmp_path / "source.gguf", n_embd=64, n_layer=4))


@pytest.mark.parametrize(("name", "kind"), [("Q4_0", "q4_0"), ("q8_0", "q8_0"), ("F16", "f16"), ("BF16", "bf16")])
def test_types_of_the_copy(name: str, kind: str, source: str, tmp_path: Path) -> None:
    size_bytes = quantize(source, str(tmp_path / "copy.gguf"), name)
    header = read_header(str(tmp_path / "copy.gguf"))
    types = {tensor.name: tensor.type for tensor in header.tensors}
    assert header_quantisation(header) == name.upper()
    assert types["blk.0.ffn_up.weight"] == kind
    assert types["output_norm.weight"] == "f32"
    assert size_bytes == header.file_bytes < read_header(source).file_bytes


def test_progress_counts_all_tensors(source: str, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    quantize(source, str(tmp_path / "copy.gguf"), "Q8_0", n_threads=1, progress=lambda *step: seen.append(step))
    assert seen == [(number, 39) for number in range(1, 40)]


def test_pruned_layers_are_gone(source: str, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    quantize(source, str(tmp_path / "copy.gguf"), "F32", (2, 1, 1), progress=lambda *step: seen.append(step))
    before, after = read_header(source), read_header(str(tmp_path / "copy.gguf"))
    assert before.arch_integer("block_count") == 4
    assert after.arch_integer("block_count") == 2
    assert seen[-1] == (21, 21) == (after.num_tensors, after.num_tensors)

    def content(path: str, name: str) -> bytes:
        header = read_header(path)
        tensor = next(tensor for tensor in header.tensors if tensor.name == name)
        start = header.data_offset + tensor.offset
        return Path(path).read_bytes()[start : start + tensor.size_bytes]

    # The last layer has moved up to be the second.
    assert content(str(tmp_path / "copy.gguf"), "blk.1.ffn_up.weight") == content(source, "blk.3.ffn_up.weight")


def test_a_split_model_becomes_one_file(tmp_path: Path) -> None:
    source = tiny_gguf.write_llama(tmp_path / "many.gguf", n_embd=64, shards=3)
    quantize(str(source).replace("-00001-", "-00002-"), str(tmp_path / "copy.gguf"), "Q8_0")
    header = read_header(str(tmp_path / "copy.gguf"))
    assert len(header.shards) == 1
    assert header.num_tensors == 21


def test_an_old_copy_is_replaced(source: str, tmp_path: Path) -> None:
    (tmp_path / "copy.gguf").write_bytes(b"old")
    quantize(source, str(tmp_path / "copy.gguf"), "Q8_0")
    assert read_header(str(tmp_path / "copy.gguf")).num_tensors == 39


def test_wrong_wishes_are_refused(source: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.gguf")
    with pytest.raises(UsageError) as caught:
        quantize(source, copy, "Q9_9")
    assert "Q4_K_M" in caught.value.hint
    with pytest.raises(UsageError, match="layer 4 is none"):
        quantize(source, copy, "Q8_0", (0, 4))
    with pytest.raises(UsageError, match="All layers"):
        quantize(source, copy, "Q8_0", (0, 1, 2, 3))
    with pytest.raises(UsageError, match="is the model itself"):
        quantize(source, source, "Q8_0")
    with pytest.raises(UsageError, match="no folder"):
        quantize(source, str(tmp_path / "nowhere" / "copy.gguf"), "Q8_0")
    with pytest.raises(UsageError, match="is a folder"):
        quantize(source, str(tmp_path), "Q8_0")
    with pytest.raises(ModelFileError, match="no file"):
        quantize(str(tmp_path / "nonsuch.gguf"), copy, "Q8_0")
    assert [path.name for path in tmp_path.iterdir()] == ["source.gguf"]


def test_a_failure_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    raw = damaged_gguf.whole()
    raw.entries[b"general.architecture"] = damaged_gguf.text(b"nonsuch")
    source = tmp_path / "source.gguf"
    source.write_bytes(raw.encode())
    (tmp_path / "copy.gguf").write_bytes(b"old")
    mark = log.position()
    with pytest.raises(LocalspecError, match="nonsuch") as caught:
        quantize(str(source), str(tmp_path / "copy.gguf"), "Q8_0")
    assert "nonsuch" in caught.value.hint
    assert log.recent_errors(mark)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.gguf", "source.gguf"]
    assert (tmp_path / "copy.gguf").read_bytes() == b"old"


def test_a_full_disk_is_said(source: str, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(LocalspecError, match="disk may be full"):
            quantize(source, str(tmp_path / "copy.gguf"), "Q8_0")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == ["source.gguf"]
