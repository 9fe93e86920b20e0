"""Kits: what goes in comes out, and nothing else does, whatever was done to the folder on the way."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localspec.catalog import kit_copy
from localspec.catalog.kit import KitManifest, KitPart, export_kit, import_kit, read_manifest
from localspec.catalog.kit_manifest import name_fault
from localspec.catalog.progress import TransferProgress
from localspec.errors import DiskFullError, LocalspecError, ModelFileError, UsageError

TARGET, DRAFT = os.urandom(300_000), os.urandom(5_000)
NAMES = ["big-Q4_K_M.gguf", "small-Q8_0.gguf"]


@pytest.fixture
def parts(tmp_path: Path) -> list[KitPart]:
    """A target and a draft; the target is a link, as in the Hub's cache."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "blob").write_bytes(TARGET)
    (source / NAMES[0]).symlink_to("blob")
    (source / NAMES[1]).write_bytes(DRAFT)
    facts: dict[str, Any] = {"repo": "maker/Big-GGUF", "commit": "0" * 40, "quantisation": "Q4_K_M", "licence": "mit"}
    return [KitPart(source / NAMES[0], "target", **facts), KitPart(source / NAMES[1], "draft")]


@pytest.fixture
async def kit(tmp_path: Path, parts: list[KitPart]) -> Path:
    """A finished kit of both."""
    await export_kit(tmp_path / "my kit", parts)
    return tmp_path / "my kit"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Where kits are imported to; not there yet."""
    return tmp_path / "data" / "models"


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit(kit: Path, change: dict[str, Any], at: int = 0) -> None:
    """Change what kit.json says of a file."""
    manifest = json.loads((kit / "kit.json").read_text("utf-8"))
    manifest["files"][at] |= change
    (kit / "kit.json").write_text(json.dumps(manifest), "utf-8")


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


def slow_write(file: BinaryIO, block: bytes) -> None:
    """Write so slowly that an event loop can cancel in between."""
    file.write(block)
    time.sleep(0.001)


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


@pytest.mark.parametrize(
    "name",
    [
        "../up.gguf",
        "/etc/up.gguf",
        "a/b.gguf",
        "a\\b.gguf",
        "C:x.gguf",
        "nul.gguf",
        "COM1 .x.gguf",
        "a\0.gguf",
        "a\n.gguf",
        "a\x1b[31m.gguf",
        "a\u202efgug.gguf",
        ".hidden.gguf",
        "-rf.gguf",
        "a.sh",
        "a\u00a0.gguf",
        "a.gguf ",
        "..",
        "",
        "é" * 126 + ".gguf",
    ],
)
async def test_hostile_names_are_refused_before_anything_is_touched(kit: Path, models: Path, name: str) -> None:
    edit(kit, {"name": name})
    with pytest.raises(ModelFileError, match="no name for a file") as caught:
        await import_kit(kit, models)
    assert caught.value.message.isprintable()
    assert not models.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"size": -1},
        {"size": 2**60},
        {"sha256": "0" * 63},
        {"sha256": "G" * 64},
        {"role": "helper"},
        {"repo": "../../etc"},
        {"commit": "main"},
        {"name": NAMES[1].upper()},
        {"role": "draft"},
        {"licence": "x" * 1000},
    ],
    ids=str,
)
def test_a_list_with_nonsense_is_refused(kit: Path, change: dict[str, Any]) -> None:
    edit(kit, change)
    with pytest.raises(ModelFileError, match="is damaged"):
        read_manifest(kit)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b'{"version": 1, "files": [{"name": "\\ud800.gguf"}]}', "is damaged"),
        (b'{"version": 2, "parts": []}', "is of version 2"),
        (b" " * 2**20 + b"{}", "far too long"),
    ],
    ids=["empty", "deep", "half a character", "of the future", "long"],
)
def test_a_list_that_is_none_is_refused(kit: Path, text: bytes, message: str) -> None:
    (kit / "kit.json").write_bytes(text)
    with pytest.raises(ModelFileError, match=message):
        read_manifest(kit)


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


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
async def test_a_full_disk_leaves_whole_files_only(
    tmp_path: Path, parts: list[KitPart], models: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: BinaryIO, block: bytes) -> None:
        file.write(block)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(kit_copy, "write_block", fail)
    with pytest.raises(DiskFullError) as caught:
        await export_kit(tmp_path / "kit", parts)
    assert caught.value.hint
    assert not (tmp_path / "kit").exists()
    monkeypatch.undo()
    await export_kit(tmp_path / "kit", parts)
    monkeypatch.setattr(kit_copy, "write_block", fail)
    with pytest.raises(DiskFullError):
        await import_kit(tmp_path / "kit", models)
    assert not models.exists()


async def test_room_is_checked_before(kit: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit_copy, "SPARE_BYTES", 2**70)
    with pytest.raises(DiskFullError, match="has room for"):
        await import_kit(kit, models)
    assert not models.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        pytest.skip("no mount command")
    if done.returncode:
        pytest.skip("may not mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_disk_that_is_really_full(
    small_disk: Path, parts: list[KitPart], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit_copy, "SPARE_BYTES", -(2**20))
    with pytest.raises(DiskFullError, match="is full"):
        await export_kit(small_disk / "kit", parts)
    assert contents(small_disk) == {}


async def test_leftovers_of_a_killed_export_go_and_those_at_work_stay(kit: Path, parts: list[KitPart]) -> None:
    old, young = kit / ".localspec-0000.partial", kit / ".localspec-1111.partial"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    await export_kit(kit, parts)
    assert not old.exists() and young.exists()


@given(st.text(max_size=40).map(lambda text: f"{text}.gguf"))
@example("a/../../b.gguf")
@example("aux.x.gguf")
def test_every_accepted_name_is_one_plain_file(name: str) -> None:
    if name_fault(name):
        with pytest.raises(ValueError, match="no name"):
            manifest(name)
        return
    assert Path(name).name == name == os.path.basename(name)
    assert "\\" not in name and ":" not in name and name.isprintable() and not name.startswith(".")
    assert manifest(name).files[0].name == name


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}-(Q[2-8]_[0K]|F16)(-0000[1-3]-of-00003)?\.gguf", fullmatch=True))
def test_published_names_are_accepted(name: str) -> None:
    if name.partition(".")[0].lower() not in {"con", "aux", "nul", "prn"}:
        assert name_fault(name) == ""


def manifest(name: str) -> KitManifest:
    """Return a list of one file."""
    file = {"name": name, "size": 1, "sha256": "0" * 64, "role": "target"}
    return KitManifest.model_validate({"localspec": "0", "files": [file]})
