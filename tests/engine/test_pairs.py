"""Checking pairs of files by path, in this process and through the worker."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from localspec.catalog.header import GgufHeader
from localspec.catalog.pairing import PairVerdict
from localspec.engine.client import EngineClient
from localspec.engine.events import EngineFailed, Event, PairsChecked
from localspec.engine.interface import last_event
from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.header import read_header
from localspec.engine.llama.loading import load
from localspec.engine.llama.pairs import VocabularyFile, check_pairs
from localspec.engine.llama.precheck import precheck
from localspec.engine.llama.token_texts import repeated_text
from localspec.engine.model import Cancelled
from localspec.engine.requests import CheckPairs
from localspec.engine.values import ContextSettings
from localspec.errors import ModelFileError, ModelLoadError
from tests import damaged_gguf
from tests.damaged_gguf import I32, STRING, RawGguf, RawTensor, array, integer, string, text
from tests.tiny_gguf import write_llama, write_mamba


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pairs")
    return {
        "target": write_llama(folder / "target.gguf", n_layer=12),
        "split": write_llama(folder / "split.gguf", shards=3, n_layer=12),
        "draft": write_llama(folder / "draft.gguf", n_embd=16, n_layer=1),
        "padded": write_llama(folder / "padded.gguf", n_embd=16, n_layer=1, pad_vocab=64),
        "more": write_llama(folder / "more.gguf", n_vocab=600, n_embd=16, n_layer=1),
        "mamba": write_mamba(folder / "mamba.gguf", n_embd=8, n_layer=1),
    }


def sparse(path: Path, folder: Path) -> Path:
    """Write copies of a model's files that hold their headers and else nothing; return the first."""
    header = read_header(str(path))
    for shard in header.shards:
        copy = folder / Path(shard).name
        copy.write_bytes(Path(shard).read_bytes()[: precheck(shard).header_bytes])
        with copy.open("r+b") as file:
            file.truncate(Path(shard).stat().st_size)
    return folder / path.name


def check(target: Path, *drafts: Path) -> tuple[PairVerdict, ...]:
    return check_pairs(str(target), [str(draft) for draft in drafts])


def test_verdicts_come_in_the_order_of_the_drafts(files: dict[str, Path]) -> None:
    draft, padded, more, same = check(*(files[name] for name in ("target", "draft", "padded", "more", "target")))
    assert draft == PairVerdict("PAIR", "")
    assert padded.status == "PAIR_WITH_NOTE"
    assert "320 tokens in the target, 384 in the draft" in padded.notes[0]
    assert more.status == "NO_PAIR"
    assert "320 tokens, the draft 600" in more.reason
    assert same.status == "PAIR_WITH_NOTE"
    assert "same file" in same.notes[0]


def test_a_link_is_the_same_file(files: dict[str, Path], tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(files["target"])
    assert "same file" in check(files["target"], link)[0].notes[0]


@pytest.mark.parametrize("name", ["target", "split"])
def test_headers_alone_will_do(name: str, files: dict[str, Path], tmp_path: Path) -> None:
    copy = sparse(files[name], tmp_path)
    assert check(copy, files["draft"], files["more"]) == check(files[name], files["draft"], files["more"])
    assert check(copy, files["draft"])[0].status == "PAIR"


def _fault(name: str) -> Callable[[Path], None]:
    return next(fault.make for fault in damaged_gguf.FAULTS if fault.name == name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cut_in_metadata", "damaged"),
        ("unknown_architecture", "could not load it: .*nonsuch"),
        ("no_tokenizer_model", "could not load it: .*tokenizer.ggml.model"),
    ],
)
def test_a_broken_file_is_unknown_with_its_reason(
    name: str, words: str, files: dict[str, Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    _fault(name)(broken)
    as_draft = check(files["target"], broken, files["draft"])
    as_target = check(broken, files["draft"], files["padded"])
    assert [verdict.status for verdict in as_draft] == ["UNKNOWN", "PAIR"]
    assert [verdict.status for verdict in as_target] == ["UNKNOWN", "UNKNOWN"]
    for verdict in (as_draft[0], *as_target):
        assert re.search(words, verdict.reason)


def test_a_missing_file(files: dict[str, Path], tmp_path: Path) -> None:
    (verdict,) = check(files["target"], tmp_path / "nowhere.gguf")
    assert verdict.status == "UNKNOWN"
    assert "no file" in verdict.reason


def test_a_file_without_a_vocabulary(files: dict[str, Path], tmp_path: Path) -> None:
    raw = damaged_gguf.whole()
    for key in [key for key in raw.entries if key.startswith(b"tokenizer.")]:
        del raw.entries[key]
    raw.entries[b"tokenizer.ggml.model"] = text(b"no_vocab")
    path = tmp_path / "none.gguf"
    path.write_bytes(raw.encode())
    (verdict,) = check(files["target"], path)
    assert (verdict.status, verdict.reason) == (
        "UNKNOWN",
        "the draft's vocabulary cannot be compared: the file holds none",
    )


def test_freeing_twice(files: dict[str, Path]) -> None:
    file = VocabularyFile(read_header(str(files["draft"])))
    assert file.vocabulary.n_tokens == 320
    file.close()
    file.close()


def test_it_stops_between_files(files: dict[str, Path]) -> None:
    asked = 0

    def is_cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    with pytest.raises(Cancelled):
        check_pairs(str(files["target"]), [str(files["draft"])] * 5, is_cancelled)
    assert asked == 3


def eagle3(path: Path, width: int = 70, last_layer: int = 9) -> Path:
    """Write a head for the target above, with zeros for weights."""
    layers = [integer(layer)[4:] for layer in (2, 6, last_layer)]
    entries = {
        b"general.architecture": text(b"eagle3"),
        b"eagle3.block_count": integer(1),
        b"eagle3.embedding_length": integer(70),
        b"eagle3.target_hidden_size": integer(width),
        b"eagle3.target_layers": array(I32, layers),
    }
    second = (4 * 3 * width * 70 + 31) // 32 * 32
    tensors = [RawTensor(b"fc.weight", [3 * width, 70], 0), RawTensor(b"d2t", [32], second)]
    path.write_bytes(RawGguf(entries, tensors, bytes(second + 128)).encode())
    return path


def test_an_eagle3_head(files: dict[str, Path], tmp_path: Path) -> None:
    head = eagle3(tmp_path / "head.gguf")
    wide = eagle3(tmp_path / "wide.gguf", width=80)
    deep = eagle3(tmp_path / "deep.gguf", last_layer=13)
    found = check(files["target"], head, wide, deep)
    assert [verdict.status for verdict in found] == ["PAIR_WITH_NOTE", "NO_PAIR", "NO_PAIR"]
    assert {verdict.method for verdict in found} == {"eagle3"}
    assert "hidden states of 80" in found[1].reason
    assert "layer 13" in found[2].reason
    assert check(head, files["draft"])[0].reason == "the target is an EAGLE-3 head and cannot run alone"


def test_a_head_is_not_loaded_alone(tmp_path: Path) -> None:
    head = eagle3(tmp_path / "head.gguf")
    with pytest.raises(ModelLoadError, match="an EAGLE-3 head, which cannot run alone"):
        load(str(head), ContextSettings(n_ctx=256), 1, AbortFlag(), lambda _: True)


@pytest.mark.skipif(sys.platform == "win32", reason="the worker is tested on POSIX")
async def test_through_the_worker(files: dict[str, Path], tmp_path: Path) -> None:
    engine = EngineClient(tmp_path / "engine.log")
    try:
        paths = tuple(str(files[name]) for name in ("draft", "more"))
        answer = await last_event(engine, CheckPairs(engine.next_id(), str(files["target"]), paths))
        assert isinstance(answer, PairsChecked)
        assert answer.verdicts == check_pairs(str(files["target"]), paths)
        request = CheckPairs(engine.next_id(), str(files["target"]), paths * 10_000)
        waiting = asyncio.create_task(_last(engine, request))
        await asyncio.sleep(0.1)
        await engine.cancel(request.id)
        stopped = await asyncio.wait_for(waiting, 10)
        assert isinstance(stopped, EngineFailed)
        assert stopped.kind == "Cancelled"
    finally:
        await engine.close()


async def _last(engine: EngineClient, request: CheckPairs) -> Event | None:
    last: Event | None = None
    async for event in engine.stream(request):
        last = event
    return last


def with_text(path: Path, copy: Path, old: bytes, new: bytes) -> Path:
    """Write a copy with the text of the first token that reads so changed to one of the same length."""
    raw = bytearray(path.read_bytes())
    at = raw.index(old)
    raw[at : at + len(old)] = new
    copy.write_bytes(raw)
    return copy


REPEATS = [
    (b"<0x0B>", b"<0x0C>", "tokens 14 and 15 have the same text"),
    # Texts end at a zero byte for llama.cpp; "<0x0C>" becomes "<unk>", token 0.
    (b"<0x0C>", b"<unk>\0", "tokens 0 and 15 have the same text"),
    # An empty one is called by its number.
    (b"<0x41>", b"\0" * 6, ""),
]


@pytest.mark.parametrize(("old", "new", "reason"), REPEATS)
def test_a_text_twice_does_not_end_the_process(
    files: dict[str, Path], tmp_path: Path, old: bytes, new: bytes, reason: str
) -> None:
    twice = with_text(files["draft"], tmp_path / "twice.gguf", old, new)
    assert repeated_text(read_header(str(twice))) == reason
    if not reason:
        assert "the draft says '[EMPTY_68]'" in check(files["target"], twice)[0].reason
        return
    for target, draft, who in ((files["target"], twice, "draft"), (twice, files["draft"], "target")):
        [verdict] = check(target, draft)
        assert verdict == PairVerdict("UNKNOWN", f"the {who}'s vocabulary cannot be compared: {reason}")
    # The one after it is still compared.
    assert [verdict.status for verdict in check(files["target"], twice, files["draft"])] == ["UNKNOWN", "PAIR"]
    with pytest.raises(ModelFileError, match=reason):
        load(str(twice), ContextSettings(n_ctx=256), 1, AbortFlag(), lambda _: True)


def test_the_name_of_an_empty_text_may_be_taken(tmp_path: Path) -> None:
    def file(texts: list[bytes], model: bytes = b"llama") -> GgufHeader:
        entries = {
            b"general.architecture": text(b"llama"),
            b"llama.block_count": integer(1),
            b"tokenizer.ggml.model": text(model),
            b"tokenizer.ggml.tokens": array(STRING, [string(one) for one in texts]),
            b"after": array(STRING, [string(b"x"), string(b"x")]),
        }
        path = tmp_path / "model.gguf"
        path.write_bytes(RawGguf(entries, [], b"").encode())
        return read_header(str(path), max_array=0)

    assert repeated_text(file([b"a", b"", b"[EMPTY_1]"])) == "tokens 1 and 2 have the same text"
    assert repeated_text(file([b"a", b"", b"[EMPTY_2]"])) == ""
    assert repeated_text(file([b"a", b"b", b"a"], model=b"none")) == ""
    assert repeated_text(file([])) == ""
