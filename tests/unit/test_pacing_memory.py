from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine.events import Configured, ModelsLoaded, PacingReported
from localspec.engine.pacing_state import PacingState, from_text, to_text
from localspec.engine.requests import Configure, LoadModels
from localspec.engine.values import SpeculationSettings
from localspec.session import pacing_memory
from localspec.session.pacing_memory import COLD, PacingKeeper, PacingMemory, pacing_key
from tests.made_up_machine import model_info
from tests.scripted_engine import ScriptedEngine

STATE = to_text(PacingState({1: 0.01, 2: 0.012}, {}))
OTHER = to_text(PacingState({1: 0.02}, {}))
TARGET = model_info("/m/target.gguf")
DRAFT = model_info("/m/draft.gguf")


@pytest.fixture
def memory(tmp_path: Path) -> PacingMemory:
    return PacingMemory(lambda: tmp_path / "pacing", "build 1", "this machine")


def test_cold_is_no_state() -> None:
    assert COLD and from_text(COLD) is None


def test_a_state_is_found_again_by_whatever_process(memory: PacingMemory, tmp_path: Path) -> None:
    assert memory.find(TARGET, None) == ""
    memory.keep(TARGET, None, STATE)
    again = PacingMemory(lambda: tmp_path / "pacing", "build 1", "this machine")
    assert again.find(TARGET, None) == STATE
    memory.keep(TARGET, None, OTHER)
    assert again.find(TARGET, None) == OTHER
    assert len(memory.sizes()) == 1
    memory.forget(TARGET, None)
    assert again.find(TARGET, None) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"n_gpu_layers": 7},
        {"n_threads": 3},
        {"n_threads_batch": 9},
        {"type_k": "q8_0"},
        {"type_v": "q4_0"},
        {"flash_attn": not TARGET.flash_attn},
        {"quantisation": "Q2_K"},
        {"size_bytes": TARGET.size_bytes + 1},
    ],
)
def test_whatever_changes_the_times_starts_anew(memory: PacingMemory, change: dict[str, object]) -> None:
    memory.keep(TARGET, DRAFT, STATE)
    other = replace(TARGET, **change)  # type: ignore[arg-type]
    assert memory.find(other, DRAFT) == ""
    assert memory.find(TARGET, replace(DRAFT, **change)) == ""  # type: ignore[arg-type]
    assert memory.find(TARGET, None) == ""
    assert memory.find(replace(TARGET, n_ctx=TARGET.n_ctx * 2, path="/elsewhere/t.gguf"), DRAFT) == STATE


def test_builds_and_machines_are_told_apart() -> None:
    keys = {pacing_key(TARGET, None, build, machine) for build in ("1", "2") for machine in ("here", "there")}
    assert len(keys) == 4 and all(key.isalnum() for key in keys)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[1]", b"x" * (pacing_memory.MAX_BYTES + 1)])
def test_a_damaged_file_counts_as_not_known(memory: PacingMemory, tmp_path: Path, content: bytes) -> None:
    memory.keep(TARGET, None, STATE)
    (file,) = (tmp_path / "pacing").iterdir()
    file.write_bytes(content)
    assert memory.find(TARGET, None) == ""
    memory.keep(TARGET, None, STATE)
    assert memory.find(TARGET, None) == STATE


def test_what_is_no_state_is_not_kept(memory: PacingMemory, tmp_path: Path) -> None:
    for text in ("", COLD, "no JSON", STATE + " " * pacing_memory.MAX_BYTES):
        memory.keep(TARGET, None, text)
    assert not (tmp_path / "pacing").exists()


def test_the_oldest_make_room(memory: PacingMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing_memory, "MAX_FILES", 3)
    targets = [replace(TARGET, num_params=number) for number in range(5)]
    for age, target in enumerate(targets):
        memory.keep(target, None, STATE)
        for file in (tmp_path / "pacing").iterdir():
            facts = file.stat()
            os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns - (5 - age) * 10**9))
    assert [memory.find(target, None) != "" for target in targets] == [False, False, True, True, True]
    assert memory.clear() == 3 and memory.sizes() == ()


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "pacing").write_text("a file")
    memory = PacingMemory(lambda: tmp_path / "pacing")
    memory.keep(TARGET, None, STATE)
    assert memory.find(TARGET, None) == "" and memory.sizes() == () and memory.clear() == 0


async def test_an_engine_is_told_and_what_it_learns_is_kept(memory: PacingMemory) -> None:
    engine, keeper = ScriptedEngine(), PacingKeeper(memory)
    request = LoadModels(engine.next_id(), "/m/target.gguf", speculation=SpeculationSettings("auto"))
    loaded = [event async for event in engine.stream(request)][-1]
    assert isinstance(loaded, ModelsLoaded)
    assert await keeper.recall(engine, loaded) == loaded.speculation
    assert not [one for one in engine.requests if isinstance(one, Configure)]
    keeper.observe(PacingReported(2, STATE))
    assert memory.find(loaded.target, None) == STATE
    state = await PacingKeeper(memory).recall(engine, loaded)
    assert state.is_on and state.method == "auto"
    (told,) = [one for one in engine.requests if isinstance(one, Configure)]
    assert (told.pacing_state, told.speculation.method) == (STATE, "auto")


def test_another_draft_has_a_state_of_its_own(memory: PacingMemory) -> None:
    keeper = PacingKeeper(memory)
    keeper.observe(PacingReported(1, STATE))
    assert memory.sizes() == ()
    off = ScriptedEngine()._state
    keeper.observe(ModelsLoaded(2, TARGET, None, "", off, 0.1))
    keeper.observe(PacingReported(3, STATE))
    keeper.observe(Configured(4, DRAFT, off))
    keeper.observe(PacingReported(5, OTHER))
    assert (memory.find(TARGET, None), memory.find(TARGET, DRAFT)) == (STATE, OTHER)
    keeper.forget()
    assert (memory.find(TARGET, None), memory.find(TARGET, DRAFT)) == (STATE, "")
