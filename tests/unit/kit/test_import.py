"""Kits are read: nothing but what they list comes out, whatever was done to the folder on the way."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from localspec.catalog import kit_copy
from localspec.catalog.kit import import_kit, read_manifest
from localspec.catalog.progress import TransferProgress
from localspec.errors import LocalspecError, ModelFileError, UsageError
from tests.unit.kit.folders import DRAFT, NAMES, TARGET, contents, slow_write


@pytest.mark.parametrize("at", range(2))
async def test_a_cancelled_import_leaves_nothing(
    kit: Path, models: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit_copy, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(kit_copy, "write_block", slow_write)

    def on_progress(progress: TransferProgress) -> None:
        if (progress.index, progress.state) == (at, "copying"):
            task.cancel()

    task = asyncio.ensure_future(import_kit(kit, models, on_progress))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not models.exists()
    assert sorted(contents(kit)) == sorted([*NAMES, "kit.json"])


@pytest.mark.parametrize("at", [0, 1])
async def test_no_file_gets_its_name_when_one_is_damaged(kit: Path, models: Path, at: int) -> None:
    data = bytearray((kit / NAMES[at]).read_bytes())
    data[len(data) // 2] ^= 1
    (kit / NAMES[at]).write_bytes(data)
    with pytest.raises(ModelFileError, match=f"{NAMES[at]}.*is damaged") as caught:
        await import_kit(kit, models)
    assert "again" in caught.value.hint
    assert not models.exists()


async def test_missing_further_and_shortened_files_are_named(kit: Path, models: Path) -> None:
    (kit / "evil.py").write_text("print('run me')")
    with pytest.raises(UsageError, match=r"evil\.py"):
        await import_kit(kit, models)
    (kit / "evil.py").unlink()
    os.truncate(kit / NAMES[0], 1000)
    with pytest.raises(ModelFileError, match=r"1,000 bytes.*300,000"):
        await import_kit(kit, models)
    (kit / NAMES[0]).unlink()
    with pytest.raises(ModelFileError, match=f"lacks '{NAMES[0]}'"):
        await import_kit(kit, models)
    (kit / "kit.json").unlink()
    with pytest.raises(UsageError, match="is no kit"):
        await import_kit(kit, models)
    assert not models.exists()


async def test_links_pipes_and_folders_are_no_models(kit: Path, models: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(DRAFT)
    place = kit / NAMES[1]
    place.unlink()
    place.symlink_to(secret)
    with pytest.raises(ModelFileError, match="is a link"):
        await import_kit(kit, models)
    place.unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(place)
        with pytest.raises(ModelFileError, match="no file"):
            await import_kit(kit, models)
        place.unlink()
    place.mkdir()
    with pytest.raises(ModelFileError, match="no file"):
        await import_kit(kit, models)
    (kit / "kit.json").rename(tmp_path / "elsewhere.json")
    (kit / "kit.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(LocalspecError, match="no regular file"):
        read_manifest(kit)
    assert not models.exists()


async def test_nothing_is_overwritten(kit: Path, models: Path) -> None:
    models.mkdir(parents=True)
    (models / NAMES[1]).write_bytes(b"mine")
    placed = await import_kit(kit, models)
    assert placed == tuple(models / "my kit" / name for name in NAMES)
    assert contents(models) == {NAMES[1]: b"mine", f"my kit/{NAMES[0]}": TARGET, f"my kit/{NAMES[1]}": DRAFT}
    (models / "my kit" / NAMES[0]).write_bytes(bytes(len(TARGET)))
    placed = await import_kit(kit, models)
    assert placed[0] == models / "my kit-2" / NAMES[0]
    assert (models / "my kit" / NAMES[0]).read_bytes() == bytes(len(TARGET))


async def test_what_is_there_already_is_not_copied_again(kit: Path, models: Path) -> None:
    await import_kit(kit, models)
    (models / NAMES[0]).unlink()
    before = (models / NAMES[1]).stat().st_ino
    seen: list[TransferProgress] = []
    assert await import_kit(kit, models, seen.append) == tuple(models / name for name in NAMES)
    assert {one.name for one in seen if one.state == "copying"} == {NAMES[0]}
    assert (models / NAMES[1]).stat().st_ino == before
    assert contents(models) == {NAMES[0]: TARGET, NAMES[1]: DRAFT}


async def test_links_in_the_destination_are_not_written_through(kit: Path, models: Path, tmp_path: Path) -> None:
    models.mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (models / NAMES[0]).symlink_to(tmp_path / "nowhere")
    (models / "my kit").symlink_to(outside)
    placed = await import_kit(kit, models)
    assert placed[0] == models / "my kit-2" / NAMES[0]
    assert contents(outside) == {} and not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("content", [b"first", bytes(len(DRAFT))])
async def test_a_name_taken_in_the_last_moment_is_respected(
    content: bytes, kit: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(source: Path, place: Path) -> None:
        if place.name == NAMES[1]:
            place.write_bytes(content)
        link(source, place)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(UsageError, match="somebody else"):
        await import_kit(kit, models)
    assert contents(models) == {NAMES[1]: content}


@pytest.mark.parametrize("has_links", [True, False])
async def test_another_import_of_the_same_kit_may_be_first(
    has_links: bool, kit: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(source: Path, place: Path) -> None:
        place.write_bytes(source.read_bytes())
        raise FileExistsError(errno.EEXIST, "File exists") if has_links else OSError(errno.EPERM, "Not permitted")

    monkeypatch.setattr(os, "link", late)
    assert await import_kit(kit, models) == tuple(models / name for name in NAMES)
    assert contents(models) == {NAMES[0]: TARGET, NAMES[1]: DRAFT}


async def test_two_imports_of_one_kit_at_once(kit: Path, models: Path) -> None:
    placed = await asyncio.gather(*(import_kit(kit, models) for _ in range(4)))
    assert set(placed) == {tuple(models / name for name in NAMES)}
    assert contents(models) == {NAMES[0]: TARGET, NAMES[1]: DRAFT}


async def test_file_systems_without_links(kit: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, place: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    await import_kit(kit, models)
    assert contents(models) == {NAMES[0]: TARGET, NAMES[1]: DRAFT}
