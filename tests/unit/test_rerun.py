"""The same again: where the files are, and what has changed since."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.catalog.found_model import FoundModel
from localspec.engine.events import Event, Probed
from localspec.engine.requests import Probe, Request
from localspec.errors import ModelFileError, StoreError
from localspec.session.measurement import measure, measurement_record
from localspec.session.rerun import differences_now, make_rerun
from localspec.session.run_request import request_of
from localspec.store.values import RunSummary, StoredRun
from tests.made_up_machine import BUILD, DEVICE
from tests.scripted_engine import ScriptedEngine
from tests.small_plan import small_plan


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "models" / "target.gguf"
    path.parent.mkdir()
    path.write_bytes(b"GGUF target")
    return path


async def kept(target: Path, draft: Path | None = None) -> StoredRun:
    """Return a run as the store gives it back."""
    wanted = small_plan(target, draft)
    measurement = await measure(ScriptedEngine(), wanted, lambda progress: None)
    summary = RunSummary(
        id=4,
        created_at="2026-01-01T00:00:00+00:00",
        finished_at="",
        state="done",
        kind="bench",
        target_name="target",
        draft_name="",
        workloads=("own",),
        speedup=None,
        speedup_low=None,
        speedup_high=None,
        best_arm="",
        build="",
        device="",
        profile="",
    )
    return StoredRun(summary, request_of(wanted), measurement_record(measurement), (), ())


def found(path: Path) -> FoundModel:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"GGUF target")
    return FoundModel(path.stem, path, (path,), "folder")


async def test_the_plan_is_the_same_again(target: Path) -> None:
    rerun = make_rerun(await kept(target), ())
    assert rerun.plan == small_plan(target)
    assert (rerun.run_id, rerun.moved) == (4, ())
    assert make_rerun(await kept(target), (), is_forced=True).plan.is_forced


async def test_nothing_has_changed(target: Path) -> None:
    rerun = make_rerun(await kept(target), ())
    assert await differences_now(ScriptedEngine(), rerun) == ()


class UpgradedEngine(ScriptedEngine):
    """Another build of llama.cpp, on another processor."""

    def __init__(self) -> None:
        super().__init__(answer=self._upgraded)

    def _upgraded(self, request: Request) -> list[Event] | None:
        if not isinstance(request, Probe):
            return None
        return [Probed(request.id, replace(BUILD, llama_cpp="b2"), (replace(DEVICE, description="Other"),))]


async def test_build_and_device_are_named(target: Path) -> None:
    rerun = make_rerun(await kept(target), ())
    texts = [str(difference) for difference in await differences_now(UpgradedEngine(), rerun)]
    assert texts[0] == "llama.cpp: b1 -> b2"
    assert texts[1].startswith("device: CPU (Processor") and texts[1].endswith("-> CPU (Other)")


async def test_another_file_of_the_same_name_is_noticed(target: Path) -> None:
    stored = await kept(target)
    target.write_bytes(b"GGUF something else")
    (difference,) = await differences_now(ScriptedEngine(), make_rerun(stored, ()))
    before, after = (hashlib.sha256(text).hexdigest()[:12] for text in (b"GGUF target", b"GGUF something else"))
    assert str(difference) == f"SHA-256 of the target: {before} -> {after}"


async def test_a_file_that_has_moved_is_found_by_its_name(target: Path, tmp_path: Path) -> None:
    stored = await kept(target)
    target.unlink()
    elsewhere = found(tmp_path / "elsewhere" / "target.gguf")
    rerun = make_rerun(stored, (elsewhere,))
    assert rerun.plan.target == elsewhere.path
    assert rerun.moved == (f"The target lies in {elsewhere.path.parent} now.",)
    assert await differences_now(ScriptedEngine(), rerun) == ()


@pytest.mark.parametrize("num_namesakes", [0, 2])
async def test_a_file_that_is_gone_is_said(num_namesakes: int, target: Path, tmp_path: Path) -> None:
    stored = await kept(target)
    target.unlink()
    namesakes = [found(tmp_path / f"place {number}" / "target.gguf") for number in range(num_namesakes)]
    with pytest.raises(ModelFileError) as caught:
        make_rerun(stored, namesakes)
    assert str(target) in caught.value.message
    assert hashlib.sha256(b"GGUF target").hexdigest() in caught.value.hint


async def test_damaged_settings_are_a_failure_in_words(target: Path) -> None:
    stored = await kept(target)
    with pytest.raises(StoreError):
        make_rerun(replace(stored, request={"target": {"path": 3}}), ())
