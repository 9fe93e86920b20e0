"""One file into the cache: resumed, verified, retried, and nothing left over, against a Hub that goes wrong."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from pathlib import Path

import huggingface_hub
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.queue import Downloads
from localspec.catalog.progress import TransferProgress
from localspec.errors import AccessError, DownloadError, HubError, LocalspecError, OfflineError
from tests.hub.downloading import (
    DATA,
    ETAG,
    REPO,
    Naps,
    blobs_of,
    cache_of,
    clean_names,
    names_in,
    offer_of,
    partial_of,
    plant_partial,
    pull,
)
from tests.hub.server import TestHub

pytestmark = pytest.mark.usefixtures("downloadable")


def bodies(hub: TestHub) -> list[tuple[str, int]]:
    """Return the Range and the bytes of each answer with content."""
    found = hub.requests_for("a.gguf", "GET")
    return [(request.headers.get("range", ""), request.bytes_sent) for request in found]


async def test_a_file_gets_its_name_and_huggingface_hub_finds_it(hub: TestHub) -> None:
    path = await pull()
    assert path.read_bytes() == DATA
    assert path == cache_of(hub) / f"models--maker--Tiny-GGUF/snapshots/{hub.repositories[REPO].commit}/a.gguf"
    assert names_in(hub) == clean_names(hub)
    assert os.readlink(path) == f"../../blobs/{ETAG}"
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    assert huggingface_hub.try_to_load_from_cache(REPO, "a.gguf") == str(path)
    assert huggingface_hub.hf_hub_download(REPO, "a.gguf", local_files_only=True) == str(path)
    scan = huggingface_hub.scan_cache_dir(cache_of(hub))
    assert [(repo.repo_id, repo.size_on_disk) for repo in scan.repos] == [(REPO, len(DATA))]
    assert not scan.warnings and not scan.incomplete_files


async def test_what_huggingface_hub_has_fetched_is_not_fetched_again(hub: TestHub) -> None:
    theirs = huggingface_hub.hf_hub_download(REPO, "a.gguf")
    hub.forget()
    assert str(await pull()) == theirs
    assert not hub.requests_for("a.gguf")


async def test_a_small_file_is_verified_by_its_git_hash(hub: TestHub) -> None:
    hub.add_repo("maker/Plain", {"a.gguf": DATA}, lfs=False)
    path = await pull(repo="maker/Plain")
    assert path.resolve().name == hashlib.sha1(b"blob %d\0" % len(DATA) + DATA).hexdigest()
    hub.add_repo("maker/Other", {"a.gguf": DATA}, lfs=False)
    hub.fault("a.gguf", flip_byte=5)
    with pytest.raises(DownloadError, match="other content"):
        await pull(repo="maker/Other")


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(have=st.one_of(st.sampled_from([0, 1, len(DATA) - 1, len(DATA)]), st.integers(0, len(DATA))))
async def test_only_the_rest_is_fetched(hub: TestHub, have: int) -> None:
    hub.forget()
    (blobs_of(hub) / ETAG).unlink(missing_ok=True)
    plant_partial(hub, DATA[:have])
    seen: list[TransferProgress] = []
    path = await pull(seen=seen)
    assert path.read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == len(DATA) - have
    assert names_in(hub) == clean_names(hub)
    assert ("checking" in [progress.state for progress in seen]) == (have > 0)
    assert (seen[-1].state, seen[-1].done_bytes) == ("done", len(DATA))


async def test_a_server_that_ignores_ranges_starts_from_zero(hub: TestHub) -> None:
    plant_partial(hub, DATA[:300_000])
    hub.fault("a.gguf", ignore_range=True)
    assert (await pull()).read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == len(DATA)


@pytest.mark.parametrize("there", [DATA + b"more", DATA[:-1] + b"?", b"wrong from the start"])
async def test_a_wrong_partial_is_thrown_away(hub: TestHub, there: bytes) -> None:
    plant_partial(hub, there)
    assert (await pull()).read_bytes() == DATA
    assert names_in(hub) == clean_names(hub)


async def test_another_content_of_the_file_starts_from_zero_and_clears_up(hub: TestHub) -> None:
    hub.fault("a.gguf", cut_after=200_000, method="GET", times=1)
    hub.fault("a.gguf", status=403, method="GET", after=1)
    with pytest.raises(HubError):
        await pull()
    assert partial_of(hub).stat().st_size == 200_000
    hub.heal()
    hub.forget()
    new = random.Random(9).randbytes(400_000)
    hub.replace(REPO, "a.gguf", new)
    assert (await pull()).read_bytes() == new
    assert hub.bytes_sent("a.gguf") == len(new)
    assert names_in(hub) == clean_names(hub, contents=[new])


async def test_a_flipped_byte_is_never_accepted(hub: TestHub) -> None:
    hub.fault("a.gguf", flip_byte=650_000)
    with pytest.raises(DownloadError, match="other content") as caught:
        await pull()
    assert caught.value.hint
    assert names_in(hub) == []
    assert hub.bytes_sent("a.gguf") == len(DATA)


async def test_a_byte_that_was_flipped_in_a_resumed_file_costs_one_whole_fetch(hub: TestHub) -> None:
    plant_partial(hub, DATA[:600_000])
    hub.fault("a.gguf", flip_byte=650_000, times=1)
    assert (await pull()).read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == len(DATA) + 100_001


async def test_a_byte_that_is_always_flipped_ends_after_one_more_fetch(hub: TestHub) -> None:
    plant_partial(hub, DATA[:600_000])
    hub.fault("a.gguf", flip_byte=650_000)
    with pytest.raises(DownloadError, match="other content"):
        await pull()
    assert hub.bytes_sent("a.gguf") == len(DATA) + 100_001
    assert names_in(hub) == []


async def test_cut_connections_are_taken_up_again(hub: TestHub) -> None:
    hub.fault("a.gguf", cut_after=100_000)
    naps = Naps()
    assert (await pull(naps=naps)).read_bytes() == DATA
    # Every try brought something, so it went on for more than five, with short pauses.
    assert len(bodies(hub)) == 8 and naps.seconds == [1.0] * 7
    assert hub.bytes_sent("a.gguf") == len(DATA)


async def test_a_server_that_ignores_ranges_and_cuts_off_is_given_up(hub: TestHub) -> None:
    hub.fault("a.gguf", cut_after=100_000, ignore_range=True)
    naps = Naps()
    with pytest.raises(LocalspecError):
        await pull(naps=naps)
    # The first try brought something that was not there, the five after it did not.
    assert naps.seconds == [1.0, 1.0, 2.0, 4.0, 8.0]
    assert partial_of(hub).stat().st_size <= 100_000


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_hub_is_asked_again(hub: TestHub, status: int) -> None:
    hub.fault("a.gguf", status=status, method="GET", times=3)
    naps, seen = Naps(), list[TransferProgress]()
    assert (await pull(naps=naps, seen=seen)).read_bytes() == DATA
    assert naps.seconds == [1.0, 2.0, 4.0]
    assert "waiting" in [progress.state for progress in seen]


async def test_it_waits_as_long_as_the_hub_says(hub: TestHub) -> None:
    hub.fault("a.gguf", status=429, retry_after=17, times=1)
    naps = Naps()
    await pull(naps=naps)
    assert naps.seconds == [17.0]


async def test_it_does_not_wait_for_an_hour(hub: TestHub) -> None:
    hub.fault("a.gguf", status=429, retry_after=3000)
    naps = Naps()
    with pytest.raises(HubError, match="too many requests"):
        await pull(naps=naps)
    assert naps.seconds == []


async def test_five_tries_that_bring_nothing_are_enough(hub: TestHub) -> None:
    hub.fault("a.gguf", status=500, method="GET")
    naps = Naps()
    with pytest.raises(HubError):
        await pull(naps=naps)
    assert naps.seconds == [1.0, 2.0, 4.0, 8.0] and len(bodies(hub)) == 5
    assert names_in(hub) == []


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_refusal_is_final(hub: TestHub, status: int) -> None:
    hub.fault("a.gguf", status=status, method="GET")
    naps = Naps()
    with pytest.raises(HubError):
        await pull(naps=naps)
    assert naps.seconds == [] and len(bodies(hub)) == 1


async def test_without_a_network_it_says_so_at_once(hub: TestHub) -> None:
    async with Hub() as client:
        wanted = await offer_of(client, "a.gguf")
    naps = Naps()
    async with Hub("http://127.0.0.1:9") as nowhere:
        with pytest.raises(OfflineError):
            await Downloads(nowhere, sleep=naps).fetch([wanted], lambda progress: None)
    assert naps.seconds == []


async def test_a_file_may_come_from_another_port_and_the_token_does_not_go_there(hub: TestHub) -> None:
    hub.add_repo("maker/Gated", {"a.gguf": DATA}, gated="auto", token_needed="hf_secret")
    hub.fault("a.gguf", redirect=True)
    plant_partial(hub, DATA[:1000]).parent.parent.rename(blobs_of(hub, "maker/Gated").parent)
    path = await pull(repo="maker/Gated", token="hf_secret")
    assert path.read_bytes() == DATA
    elsewhere = [request for request in hub.requests if request.port == "cdn"]
    assert [request.bytes_sent for request in elsewhere] == [len(DATA) - 1000]
    assert all("authorization" not in request.headers for request in elsewhere)
    everything = b"".join(file.read_bytes() for file in cache_of(hub).rglob("*") if file.is_file())
    assert b"hf_secret" not in everything and hub.signature.encode() not in everything


async def test_a_gated_file_without_a_token_is_refused(hub: TestHub) -> None:
    hub.add_repo("maker/Gated", {"a.gguf": DATA}, gated="auto", token_needed="hf_secret")
    with pytest.raises(AccessError):
        await pull(repo="maker/Gated")
    assert not cache_of(hub).exists() or not blobs_of(hub, "maker/Gated").exists()


@pytest.mark.parametrize("stop_at", [0, 1, 300_000])
async def test_cancelling_keeps_what_came_and_nothing_else(hub: TestHub, stop_at: int) -> None:
    fault = hub.fault("a.gguf", method="GET", stall_after=stop_at)
    task = asyncio.create_task(pull())
    while not hub.stalled.is_set() or (partial_of(hub).stat().st_size if partial_of(hub).exists() else 0) < stop_at:
        await asyncio.sleep(0.01)
    task.cancel()
    # The server would stay silent for a minute.
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    etag_files = [f"blobs/{ETAG}.localspec.json", f"blobs/{ETAG}.localspec.partial"] if stop_at else []
    assert names_in(hub) == etag_files
    fault.times = 0
    hub.release()
    hub.forget()
    assert (await pull()).read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == len(DATA) - stop_at
    assert names_in(hub) == clean_names(hub)


async def test_slow_bytes_are_bytes(hub: TestHub) -> None:
    plant_partial(hub, DATA[:690_000])
    hub.fault("a.gguf", bytes_per_s=40_000)
    naps, seen = Naps(), list[TransferProgress]()
    assert (await pull(naps=naps, seen=seen)).read_bytes() == DATA
    assert naps.seconds == []
    done = [progress.done_bytes for progress in seen if progress.state == "fetching"]
    assert done == sorted(done) and done[0] == 690_000


async def test_where_links_are_not_possible_the_file_itself_moves(
    hub: TestHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*args: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", no_links)
    path = await pull()
    assert path.read_bytes() == DATA and not path.is_symlink()
    commit = hub.repositories[REPO].commit
    assert names_in(hub) == ["refs/main", f"snapshots/{commit}/a.gguf"]
    hub.forget()
    assert await pull() == path and not hub.requests_for("a.gguf")


@pytest.mark.parametrize("planted", ["blobs", "snapshots", "."])
async def test_links_that_lead_out_of_the_cache_are_not_followed(hub: TestHub, tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = blobs_of(hub).parent
    place = folder / planted if planted != "." else folder
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside, target_is_directory=True)
    with pytest.raises(DownloadError, match="leads out of the cache"):
        await pull()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("planted", ["link", "file", "folder", "link to a file"])
async def test_a_ref_that_cannot_be_written_does_not_undo_a_download(
    hub: TestHub, tmp_path: Path, planted: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    victim = outside / "victim"
    victim.write_text("precious")
    refs = blobs_of(hub).parent / "refs"
    refs.parent.mkdir(parents=True)
    if planted == "link":
        refs.symlink_to(outside, target_is_directory=True)
    elif planted == "file":
        refs.write_text("x")
    elif planted == "folder":
        (refs / "main").mkdir(parents=True)
    else:
        refs.mkdir()
        (refs / "main").symlink_to(victim)
    assert (await pull()).read_bytes() == DATA
    assert list(outside.iterdir()) == [victim] and victim.read_text() == "precious"


async def test_a_link_in_place_of_the_partial_is_not_written_through(hub: TestHub, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(DATA[:10])
    partial_of(hub).parent.mkdir(parents=True)
    partial_of(hub).symlink_to(victim)
    assert (await pull()).read_bytes() == DATA
    assert victim.read_bytes() == DATA[:10]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
