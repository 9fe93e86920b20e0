"""What is left of downloads: listed, removable, never more than that; and the layout of the cache itself."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.catalog.hub.cache_layout import (
    cached_files,
    hub_cache,
    remove_cached,
    repo_folder,
    snapshot_path,
)
from localspec.catalog.hub.locks import BlobLock
from localspec.catalog.hub.partials import list_partials, note_path, remove_partial
from localspec.errors import DownloadError, LocalspecError, UsageError
from tests.hub.downloading import (
    DATA,
    ETAG,
    REPO,
    SHARD,
    blobs_of,
    cache_of,
    clean_names,
    names_in,
    partial_of,
    plant_partial,
    pull,
)
from tests.hub.server import TestHub

pytestmark = pytest.mark.usefixtures("downloadable")

COMMIT = "c" * 40
SHARDS = ("q/b-00001-of-00002.gguf", "q/b-00002-of-00002.gguf")


async def leave_partial(hub: TestHub) -> None:
    hub.fault("a.gguf", cut_after=1000, method="GET", times=1)
    hub.fault("a.gguf", status=403, method="GET", after=1)
    with pytest.raises(LocalspecError):
        await pull()
    hub.heal()


async def test_a_partial_is_listed_and_removed(hub: TestHub) -> None:
    await leave_partial(hub)
    (part,) = list_partials(cache_of(hub))
    assert (part.repo, part.path, part.have_bytes, part.size_bytes) == (REPO, "a.gguf", 1000, len(DATA))
    assert part.is_ours and part.etag == ETAG and part.file == partial_of(hub)
    remove_partial(part)
    assert list_partials(cache_of(hub)) == ()
    assert list(cache_of(hub).iterdir()) == []
    remove_partial(part)


async def test_the_draft_of_a_ref_that_a_killed_run_left_goes(hub: TestHub) -> None:
    blobs_of(hub).mkdir(parents=True)
    (blobs_of(hub).parent / ".ref.123.localspec.tmp").write_text("half")
    await pull()
    assert names_in(hub) == clean_names(hub)


async def test_while_a_file_is_partial_huggingface_hub_does_not_complain(hub: TestHub) -> None:
    await leave_partial(hub)
    assert huggingface_hub.scan_cache_dir(cache_of(hub)).warnings == []


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"repo": "x"}', b"\xff" * 100, b"{}" * 100_000])
async def test_a_broken_note_means_an_unknown_file(hub: TestHub, note: bytes) -> None:
    plant_partial(hub, DATA[:10])
    note_path(blobs_of(hub) / ETAG).write_bytes(note)
    (part,) = list_partials(cache_of(hub))
    assert (part.repo, part.path, part.size_bytes) == (REPO, "", None)
    hub.forget()
    await pull()
    assert hub.bytes_sent("a.gguf") == len(DATA) - 10 and names_in(hub) == clean_names(hub)


def test_what_huggingface_hub_left_is_listed_as_such_and_removed(hub: TestHub) -> None:
    blobs_of(hub).mkdir(parents=True)
    theirs = blobs_of(hub) / f"{ETAG}.0123abcd.incomplete"
    theirs.write_bytes(b"x" * 5)
    (blobs_of(hub) / "something.incomplete").write_bytes(b"no etag")
    (part,) = list_partials(cache_of(hub))
    assert (part.file, part.is_ours, part.have_bytes, part.path) == (theirs, False, 5, "")
    remove_partial(part)
    assert not theirs.exists() and (blobs_of(hub) / "something.incomplete").exists()


def test_one_that_is_being_written_is_not_removed(hub: TestHub) -> None:
    plant_partial(hub, b"abc")
    (part,) = list_partials(cache_of(hub))
    with BlobLock(blobs_of(hub) / ETAG) as lock:
        assert lock.try_take()
        with pytest.raises(UsageError, match="being downloaded"):
            remove_partial(part)
        assert partial_of(hub).exists()
    remove_partial(part)
    assert not partial_of(hub).exists()


def test_nothing_else_is_removed(hub: TestHub, tmp_path: Path) -> None:
    plant_partial(hub, b"abc")
    (part,) = list_partials(cache_of(hub))
    outside = tmp_path / "models--x--y" / "blobs"
    outside.mkdir(parents=True)
    for victim in (outside / partial_of(hub).name, blobs_of(hub) / ETAG, tmp_path / "victim"):
        victim.write_bytes(b"precious")
        with pytest.raises(LocalspecError):
            remove_partial(replace(part, file=victim))
        assert victim.exists()
    blobs_of(hub).rename(tmp_path / "moved")
    blobs_of(hub).symlink_to(tmp_path / "moved")
    assert list_partials(cache_of(hub)) == ()
    with pytest.raises(DownloadError, match="leads out"):
        remove_partial(part)
    assert (tmp_path / "moved" / part.file.name).exists()


def test_no_cache_has_no_partials_and_no_files(tmp_path: Path) -> None:
    assert list_partials(tmp_path / "none") == () == cached_files(tmp_path / "none")


async def test_files_of_the_cache(hub: TestHub) -> None:
    assert hub_cache() == cache_of(hub)
    await pull("a.gguf", *SHARDS)
    commit = hub.repositories[REPO].commit
    (blobs_of(hub).parent / "snapshots" / commit / "broken.gguf").symlink_to("../../blobs/none")
    (blobs_of(hub).parent / "snapshots" / commit / "README.md").write_text("words")
    found = cached_files(cache_of(hub))
    assert [(each.repo, each.commit, each.path, each.size_bytes) for each in found] == [
        (REPO, commit, "a.gguf", len(DATA)),
        (REPO, commit, SHARDS[0], len(SHARD)),
        (REPO, commit, SHARDS[1], 100_000),
    ]
    assert found[0].file.read_bytes() == DATA


async def test_removing_one_file_leaves_the_others(hub: TestHub) -> None:
    await pull("a.gguf", *SHARDS)
    commit = hub.repositories[REPO].commit
    assert remove_cached(cache_of(hub), REPO, commit, ["a.gguf", "no-such.gguf"]) == len(DATA)
    assert names_in(hub) == clean_names(hub, SHARDS, (SHARD, DATA[:100_000]))
    assert remove_cached(cache_of(hub), REPO, commit, SHARDS) == len(SHARD) + 100_000
    assert list(cache_of(hub).iterdir()) == []


async def test_a_blob_that_another_commit_shows_stays(hub: TestHub) -> None:
    old = await pull()
    old_commit = hub.repositories[REPO].commit
    hub.replace(REPO, "README.md", b"new words")
    new = await pull()
    assert remove_cached(cache_of(hub), REPO, old_commit, ["a.gguf"]) == 0
    assert not old.parent.exists() and new.read_bytes() == DATA
    assert huggingface_hub.scan_cache_dir(cache_of(hub)).warnings == []
    assert remove_cached(cache_of(hub), REPO, hub.repositories[REPO].commit, ["a.gguf"]) == len(DATA)
    assert not blobs_of(hub).parent.exists()


async def test_what_is_being_downloaded_is_not_removed(hub: TestHub) -> None:
    path = await pull()
    with BlobLock(blobs_of(hub) / ETAG) as lock:
        assert lock.try_take()
        with pytest.raises(UsageError, match="being downloaded"):
            remove_cached(cache_of(hub), REPO, hub.repositories[REPO].commit, ["a.gguf"])
    assert path.read_bytes() == DATA


async def test_removing_goes_through_no_link_out_of_the_cache(hub: TestHub, tmp_path: Path) -> None:
    path = await pull()
    commit = hub.repositories[REPO].commit
    (tmp_path / "precious.gguf").write_bytes(b"precious")
    (path.parent / "out").symlink_to(tmp_path)
    (path.parent / "away.gguf").symlink_to(tmp_path / "precious.gguf")
    with pytest.raises(DownloadError, match="leads out"):
        remove_cached(cache_of(hub), REPO, commit, ["out/precious.gguf"])
    with pytest.raises(DownloadError, match="not used"):
        remove_cached(cache_of(hub), REPO, commit, ["../../../../precious.gguf"])
    # A link to a file elsewhere is only a link.
    assert remove_cached(cache_of(hub), REPO, commit, ["away.gguf"]) == 0
    assert (tmp_path / "precious.gguf").read_bytes() == b"precious"


def plant_elsewhere(hub: TestHub, place: Path) -> Path:
    """Lay out a repository whose bytes lie elsewhere, behind a link; return the file there."""
    elsewhere = place / "blobs"
    elsewhere.mkdir(parents=True)
    (elsewhere / ETAG).write_bytes(b"precious")
    snapshot = blobs_of(hub).parent / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    blobs_of(hub).symlink_to(elsewhere)
    (snapshot / "a.gguf").symlink_to(f"../../blobs/{ETAG}")
    return elsewhere / ETAG


@pytest.mark.parametrize("place", ["outside", "hf-home/hub/models--other--repo"])
def test_bytes_behind_a_linked_folder_are_not_removed(hub: TestHub, tmp_path: Path, place: str) -> None:
    precious = plant_elsewhere(hub, tmp_path / place)
    pointer = blobs_of(hub).parent / "snapshots" / COMMIT / "a.gguf"
    assert pointer.read_bytes() == b"precious"
    with pytest.raises(DownloadError, match="through a link"):
        remove_cached(cache_of(hub), REPO, COMMIT, ["a.gguf"])
    assert precious.read_bytes() == b"precious" and pointer.is_symlink()


async def test_a_linked_snapshot_of_another_repository_is_not_emptied(hub: TestHub) -> None:
    path = await pull()
    snapshots = cache_of(hub) / "models--other--repo" / "snapshots"
    snapshots.mkdir(parents=True)
    (snapshots / COMMIT).symlink_to(path.parent)
    with pytest.raises(DownloadError, match="through a link"):
        remove_cached(cache_of(hub), "other/repo", COMMIT, ["a.gguf"])
    assert path.read_bytes() == DATA


async def test_cleaning_up_after_a_removal_follows_no_links(hub: TestHub, tmp_path: Path) -> None:
    path = await pull()
    commit, folder = hub.repositories[REPO].commit, blobs_of(hub).parent
    for part, inside in (("refs", "main"), (".no_exist", f"{commit}/README.md")):
        victim = tmp_path / part / inside
        victim.parent.mkdir(parents=True)
        victim.write_text(commit)
        (tmp_path / part / "empty").mkdir()
        shutil.rmtree(folder / part, ignore_errors=True)
        (folder / part).symlink_to(tmp_path / part)
    assert remove_cached(cache_of(hub), REPO, commit, ["a.gguf"]) == len(DATA)
    assert not path.exists()
    for part, inside in (("refs", "main"), (".no_exist", f"{commit}/README.md")):
        assert (tmp_path / part / inside).read_text() == commit and (tmp_path / part / "empty").is_dir()


def test_a_pipe_in_place_of_a_note_or_a_ref_is_not_waited_for(hub: TestHub) -> None:
    plant_partial(hub, b"abc")
    os.mkfifo(note_path(blobs_of(hub) / ETAG))
    (part,) = list_partials(cache_of(hub))
    assert (part.path, part.have_bytes) == ("", 3)
    refs = blobs_of(hub).parent / "refs"
    refs.mkdir()
    os.mkfifo(refs / "main")
    remove_cached(cache_of(hub), REPO, COMMIT, ["a.gguf"])
    remove_partial(part)
    assert list_partials(cache_of(hub)) == () and (refs / "main").exists()


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,20}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,20})?", fullmatch=True))
def test_folders_are_named_as_huggingface_hub_names_them(repo: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.file_download import repo_folder_name

    try:
        theirs = repo_folder_name(repo_id=repo, repo_type="model")
    except HFValidationError:
        return
    assert repo_folder(Path("/cache"), repo) == Path("/cache", theirs)


@given(st.text(max_size=60))
def test_no_path_leaves_its_snapshot(path: str) -> None:
    base = Path("/cache/models--a--b/snapshots") / ("0" * 40)
    try:
        found = snapshot_path(Path("/cache"), "a/b", "0" * 40, path)
    except DownloadError:
        return
    assert base in Path(os.path.abspath(found)).parents
