"""The local models and what their headers say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from localspec.catalog.header import ArrayValue, GgufHeader, Scalar, TensorInfo
from localspec.catalog.header_cache import HeaderCache
from localspec.catalog.scan import FoundModel
from localspec.engine.events import EngineFailed, Event, HeaderRead
from localspec.engine.requests import ReadHeader, Request
from localspec.errors import ModelFileError, UsageError
from localspec.session.arguments import named_model
from localspec.session.library import MAX_DEATHS, local_models, read_library, scan_models
from localspec.settings import ModelsGroup, Settings


class HeaderEngine:
    """Answers ReadHeader as it is told to, and nothing else."""

    def __init__(self, answer: Callable[[ReadHeader], Event]) -> None:
        self.paths: list[str] = []
        self._answer = answer
        self._last_id = 0

    @property
    def death(self) -> str:
        return ""

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        assert isinstance(request, ReadHeader)
        self.paths.append(request.path)
        await asyncio.sleep(0)
        yield self._answer(request)

    async def cancel(self, request_id: int) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


def _header(request: ReadHeader) -> Event:
    tensors = (TensorInfo("token_embd.weight", "F32", (8, 4), 0, 128),)
    metadata: dict[str, Scalar | ArrayValue] = {
        "general.architecture": "llama",
        "general.name": Path(request.path).stem,
        "llama.block_count": 2,
    }
    header = GgufHeader(request.path, 3, 200, 64, (request.path,), metadata, tensors, 1, 32, 128)
    return HeaderRead(request.id, header)


def _failing(kind: str, on: str = "") -> Callable[[ReadHeader], Event]:
    def answer(request: ReadHeader) -> Event:
        if on in request.path:
            return EngineFailed(request.id, kind, f"{kind}!", "Do this.", is_fatal=kind == "EngineDiedError")
        return _header(request)

    return answer


def _models(folder: Path, *names: str) -> list[FoundModel]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.gguf").write_bytes(b"GGUF")
    return [FoundModel(name, folder / f"{name}.gguf", (folder / f"{name}.gguf",), "folder") for name in names]


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "headers.json"


async def test_headers_are_read_once(tmp_path: Path, memory: Path) -> None:
    found = _models(tmp_path, "a", "b")
    steps: list[tuple[int, int, str]] = []
    first = HeaderEngine(_header)
    entries = await read_library(first, found, lambda *step: steps.append(step), HeaderCache(memory))
    assert [entry.facts.title for entry in entries if entry.facts] == ["a", "b"]
    assert steps == [(0, 2, "a"), (1, 2, "b")]
    assert first.paths == [str(model.path) for model in found]

    found[1].path.write_bytes(b"GGUF changed")
    second = HeaderEngine(_header)
    assert await read_library(second, found, None, HeaderCache(memory)) == entries
    assert second.paths == [str(found[1].path)]


async def test_a_broken_file_is_an_entry_with_its_reason_and_read_once(tmp_path: Path, memory: Path) -> None:
    found = _models(tmp_path, "bad", "good")
    for expected in (["bad", "good"], []):
        engine = HeaderEngine(_failing("ModelFileError", "bad"))
        bad, good = await read_library(engine, found, None, HeaderCache(memory))
        assert (bad.facts, bad.failure, bad.hint) == (None, "ModelFileError!", "Do this.")
        assert good.facts is not None and good.failure == ""
        assert [Path(path).stem for path in engine.paths] == expected


@pytest.mark.parametrize("kind", ["EngineDiedError", "UsageError"])
async def test_a_failure_that_may_pass_is_not_remembered(kind: str, tmp_path: Path, memory: Path) -> None:
    found = _models(tmp_path, "a", "deadly", "c")
    entries = await read_library(HeaderEngine(_failing(kind, "deadly")), found, None, HeaderCache(memory))
    assert [entry.failure for entry in entries] == ["", f"{kind}!", ""]
    engine = HeaderEngine(_header)
    entries = await read_library(engine, found, None, HeaderCache(memory))
    assert [entry.failure for entry in entries] == ["", "", ""]
    assert engine.paths == [str(found[1].path)]


async def test_an_engine_that_never_lives_is_not_started_for_every_file(tmp_path: Path, memory: Path) -> None:
    known = _models(tmp_path, "known")
    await read_library(HeaderEngine(_header), known, None, HeaderCache(memory))
    found = [*_models(tmp_path, *(f"m{index}" for index in range(9))), *known]
    engine = HeaderEngine(_failing("EngineDiedError"))
    entries = await read_library(engine, found, None, HeaderCache(memory))
    assert len(engine.paths) == MAX_DEATHS
    assert [entry.failure for entry in entries] == ["EngineDiedError!"] * 9 + [""]


async def test_a_header_that_makes_no_sense_is_a_reason(tmp_path: Path, memory: Path) -> None:
    def answer(request: ReadHeader) -> Event:
        return HeaderRead(request.id, GgufHeader(request.path, 3, 200, 64, (), {}, (), num_tensors=5))

    (entry,) = await read_library(HeaderEngine(answer), _models(tmp_path, "a"), None, HeaderCache(memory))
    assert entry.facts is None and entry.failure and entry.hint


async def test_missing_files_are_named_without_asking_the_engine(tmp_path: Path, memory: Path) -> None:
    shard = tmp_path / "s-00001-of-00002.gguf"
    found = [
        FoundModel("s", shard, (shard,), "folder", missing=("s-00002-of-00002.gguf",)),
        FoundModel("o/n:Q8_0", shard, (), "hugging face", "o/n", missing=("n-Q8_0.gguf",), file_name="n-Q8_0.gguf"),
        FoundModel("m:t", shard, (), "ollama", missing=("sha256-0",)),
    ]
    engine = HeaderEngine(_header)
    split, hub, ollama = await read_library(engine, found, None, HeaderCache(memory))
    assert engine.paths == []
    assert split.failure == f"1 of its 2 files are missing in {tmp_path}: s-00002-of-00002.gguf."
    assert hub.hint.endswith("localspec pull o/n:n-Q8_0")
    assert ollama.hint.endswith("ollama pull m:t")


async def test_cancelling_keeps_what_was_read(tmp_path: Path, memory: Path) -> None:
    found = _models(tmp_path, "a", "b", "c")

    def stop(index: int, count: int, name: str) -> None:
        if index == 2:
            task.cancel()

    task = asyncio.ensure_future(read_library(HeaderEngine(_header), found, stop, HeaderCache(memory)))
    with pytest.raises(asyncio.CancelledError):
        await task
    engine = HeaderEngine(_header)
    await read_library(engine, found, None, HeaderCache(memory))
    assert engine.paths == [str(found[2].path)]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("LOCALSPEC_DATA", "LOCALSPEC_CACHE", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return Settings(models=ModelsGroup(folders=(tmp_path / "mine", tmp_path / "gone")))


def test_models_come_from_all_places_with_notes_on_the_others(settings: Settings, tmp_path: Path) -> None:
    _models(tmp_path / "mine", "mine-Q4_0")
    _models(tmp_path / "LOCALSPEC_DATA" / "models", "own")
    _models(tmp_path / "LOCALSPEC_CACHE" / "demo", "smollm2-135m-f16")
    assert [(model.name, model.place) for model in local_models(settings)] == [
        ("own", "localspec"),
        ("smollm2-135m-f16", "demo"),
        ("mine-Q4_0", "folder"),
    ]
    assert scan_models(settings).notes == (f"The folder {tmp_path / 'gone'} of the settings is not there.",)


async def test_an_argument_is_a_name_or_a_path(settings: Settings, tmp_path: Path) -> None:
    _models(tmp_path / "mine", "mine-Q4_0")
    _models(tmp_path / "elsewhere", "other")
    assert (named_model("mine", settings)).path == tmp_path / "mine" / "mine-Q4_0.gguf"
    assert (named_model(str(tmp_path / "elsewhere" / "other.gguf"), settings)).name == "other"
    with pytest.raises(UsageError):
        named_model("nothing-like-it", settings)
    with pytest.raises(ModelFileError):
        named_model(str(tmp_path / "nothing.gguf"), settings)
