"""Kits are written: whole, without a trace of what failed, and over nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from localspec.catalog import kit_copy
from localspec.catalog.kit import KitPart, export_kit, import_kit, read_manifest
from localspec.catalog.progress import TransferProgress
from localspec.errors import ModelFileError, UsageError
from tests.unit.kit.folders import DRAFT, NAMES, TARGET, contents, slow_write


async def test_what_goes_in_comes_out(kit: Path, models: Path) -> None:
    manifest = read_manifest(kit)
    assert [(file.name, file.size, file.role) for file in manifest.files] == [
        (NAMES[0], len(TARGET), "target"),
        (NAMES[1], len(DRAFT), "draft"),
    ]
    assert manifest.files[0].sha256 == hashlib.sha256(TARGET).hexdigest()
    assert (manifest.files[0].repo, manifest.files[0].licence) == ("maker/Big-GGUF", "mit")
    assert sorted(contents(kit)) == sorted([*NAMES, "kit.json"])
    placed = await import_kit(kit, models)
    assert placed == tuple(models / name for name in NAMES)
    assert contents(models) == {NAMES[0]: TARGET, NAMES[1]: DRAFT}


async def test_progress_counts_every_byte(tmp_path: Path, parts: list[KitPart], models: Path) -> None:
    seen: list[TransferProgress] = []
    await export_kit(tmp_path / "kit", parts, seen.append)
    got: list[TransferProgress] = []
    await import_kit(tmp_path / "kit", models, got.append)
    for told in (seen, got):
        assert [(one.name, one.state) for one in told if one.state == "done"] == [(name, "done") for name in NAMES]
        assert {one.all_total_bytes for one in told} == {len(TARGET) + len(DRAFT)}
        done = [one.all_done_bytes for one in told]
        assert done == sorted(done) and done[-1] == len(TARGET) + len(DRAFT)


async def test_whole_files_are_kept_and_changed_ones_replaced(kit: Path, parts: list[KitPart]) -> None:
    (kit / NAMES[1]).write_bytes(bytes(len(DRAFT)))
    before = (kit / NAMES[0]).stat()
    seen: list[TransferProgress] = []
    await export_kit(kit, parts, seen.append)
    assert (kit / NAMES[0]).stat().st_mtime_ns == before.st_mtime_ns
    assert (kit / NAMES[0]).stat().st_ino == before.st_ino
    assert (kit / NAMES[1]).read_bytes() == DRAFT
    assert {one.name for one in seen if one.state == "copying"} == {NAMES[1]}


async def test_only_an_empty_folder_or_the_same_kit_is_written_to(
    kit: Path, parts: list[KitPart], tmp_path: Path
) -> None:
    diary = tmp_path / "diary"
    diary.mkdir()
    (diary / "monday.txt").write_text("private")
    with pytest.raises(UsageError, match="is not empty"):
        await export_kit(diary, parts)
    assert contents(diary) == {"monday.txt": b"private"}
    with pytest.raises(UsageError, match="another kit"):
        await export_kit(kit, parts[:1])
    with pytest.raises(UsageError, match="no folder"):
        await export_kit(diary / "monday.txt", parts)
    (kit / "kit.json").write_text("{}")
    with pytest.raises(UsageError, match="damaged kit"):
        await export_kit(kit, parts)
    stick = tmp_path / "stick"
    (stick / "System Volume Information").mkdir(parents=True)
    (stick / ".Trash").touch()
    await export_kit(stick, parts)
    assert read_manifest(stick).size_bytes == len(TARGET) + len(DRAFT)


async def test_parts_that_make_no_kit_are_refused(parts: list[KitPart], tmp_path: Path) -> None:
    target, draft = parts
    with pytest.raises(UsageError, match="needs a target"):
        await export_kit(tmp_path / "kit", [draft])
    with pytest.raises(UsageError, match="one name"):
        await export_kit(tmp_path / "kit", [target, KitPart(draft.path, "draft", name=NAMES[0].upper())])
    with pytest.raises(UsageError, match="no name for a file"):
        await export_kit(tmp_path / "kit", [KitPart(target.path, "target", name="../up.gguf")])
    with pytest.raises(ModelFileError, match="gone"):
        await export_kit(tmp_path / "kit", [KitPart(tmp_path / "gone.gguf", "target")])
    assert not (tmp_path / "kit").exists()


async def test_an_interrupted_export_goes_on(
    tmp_path: Path, parts: list[KitPart], models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "kit"

    def cancel_at(name: str, state: str) -> Any:
        def on_progress(progress: TransferProgress) -> None:
            if (progress.name, progress.state) == (name, state):
                task.cancel()

        return on_progress

    monkeypatch.setattr(kit_copy, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(kit_copy, "write_block", slow_write)
    task = asyncio.ensure_future(export_kit(folder, parts, cancel_at(NAMES[0], "copying")))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not (tmp_path / "new").exists()
    task = asyncio.ensure_future(export_kit(folder, parts, cancel_at(NAMES[0], "done")))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert contents(folder) == {NAMES[0]: TARGET, ".localspec-kit": b""}
    with pytest.raises(UsageError, match="was not finished"):
        await import_kit(folder, models)
    await export_kit(folder, parts)
    assert sorted(contents(folder)) == sorted([*NAMES, "kit.json"])


async def test_leftovers_of_a_killed_export_go_and_those_at_work_stay(kit: Path, parts: list[KitPart]) -> None:
    old, young = kit / ".localspec-0000.partial", kit / ".localspec-1111.partial"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    await export_kit(kit, parts)
    assert not old.exists() and young.exists()
