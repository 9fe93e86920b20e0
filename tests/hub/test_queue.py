"""Several files in one queue: order, sharing, what is there already, and progress."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants

from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.queue import Downloads
from localspec.catalog.hub.values import Offer, RepoFile, RepoListing
from localspec.catalog.progress import TransferProgress
from localspec.errors import DownloadError, HubError, OfflineError
from tests.hub.downloading import (
    DATA,
    REPO,
    SHARD,
    Naps,
    blobs_of,
    cache_of,
    clean_names,
    names_in,
    offer_of,
    pull,
)
from tests.hub.server import TestHub

pytestmark = pytest.mark.usefixtures("downloadable")

SHARDS = ("q/b-00001-of-00002.gguf", "q/b-00002-of-00002.gguf")


def ignore(progress: TransferProgress) -> None:
    pass


async def test_each_file_is_told_and_what_is_here_counts_before_its_turn(hub: TestHub) -> None:
    await pull(SHARDS[1])
    seen: list[TransferProgress] = []
    await pull(*SHARDS, seen=seen)
    assert [file.name for file in seen[0].files] == list(SHARDS)
    assert seen[0].files[1].done_bytes == seen[0].files[1].total_bytes == 100_000
    assert all(sum(file.done_bytes for file in each.files) == each.all_done_bytes for each in seen)
    assert all(file.done_bytes == file.total_bytes for file in seen[-1].files)


async def test_target_draft_and_shards_come_in_order_and_once(hub: TestHub) -> None:
    seen: list[TransferProgress] = []
    async with Hub() as client:
        model, shards = await offer_of(client, "a.gguf"), await offer_of(client, *SHARDS)
        paths = await Downloads(client).fetch([shards, model, shards], seen.append)
    assert [path.name for path in paths] == ["b-00001-of-00002.gguf", "a.gguf", "b-00001-of-00002.gguf"]
    assert (paths[0].parent / "b-00002-of-00002.gguf").read_bytes() == DATA[:100_000]
    asked = [(request.method, request.names[1].removeprefix(f"{REPO}/")) for request in hub.requests[2:]]
    order = [*SHARDS, "a.gguf"]
    assert asked == [("HEAD", path) for path in order] + [("GET", path) for path in order]
    total = len(SHARD) + 100_000 + len(DATA)
    assert hub.bytes_sent("a.gguf") + sum(hub.bytes_sent(path) for path in SHARDS) == total
    assert names_in(hub) == clean_names(hub, ("a.gguf", *SHARDS), (DATA, SHARD, DATA[:100_000]))
    done = [progress for progress in seen if progress.state == "done"]
    assert [(each.name, each.index, each.num_files) for each in done] == [
        (SHARDS[0], 0, 3),
        (SHARDS[1], 1, 3),
        ("a.gguf", 2, 3),
    ]
    assert {each.all_total_bytes for each in seen} == {total}
    all_done = [each.all_done_bytes for each in seen]
    assert all_done == sorted(all_done) and all_done[-1] == total and seen[-1].eta_s == 0.0


async def test_what_the_snapshot_holds_costs_no_request(hub: TestHub, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Hub() as client:
        wanted = [await offer_of(client, "a.gguf"), await offer_of(client, *SHARDS)]
        paths = await Downloads(client).fetch(wanted, ignore)
        hub.forget()
        # Offline, and with a cache that cannot even be asked.
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        seen: list[TransferProgress] = []
        assert await Downloads(client).fetch(wanted, seen.append) == paths
    assert hub.requests == ()
    assert [progress.state for progress in seen] == ["done"] * 3


async def test_a_new_commit_with_the_same_content_fetches_nothing(hub: TestHub) -> None:
    old = await pull()
    hub.replace(REPO, "README.md", b"new words")
    hub.forget()
    new = await pull()
    assert new != old and new.resolve() == old.resolve()
    assert hub.bytes_sent("a.gguf") == 0
    assert (blobs_of(hub).parent / "refs/main").read_text() == hub.repositories[REPO].commit


async def test_a_file_of_wrong_size_in_the_cache_is_replaced(hub: TestHub) -> None:
    path = await pull()
    path.resolve().write_bytes(DATA[:1000])
    assert (await pull()).read_bytes() == DATA


async def test_if_one_fails_the_earlier_ones_stay(hub: TestHub) -> None:
    hub.fault(SHARDS[1], status=403, method="GET")
    with pytest.raises(HubError):
        await pull(*SHARDS)
    assert names_in(hub) == clean_names(hub, SHARDS[:1], (SHARD,))
    hub.heal()
    hub.forget()
    await pull(*SHARDS)
    assert hub.bytes_sent(SHARDS[0]) == 0 and hub.bytes_sent(SHARDS[1]) == 100_000


async def test_a_missing_file_is_known_before_the_first_byte(hub: TestHub) -> None:
    hub.fault(SHARDS[1], status=404, method="HEAD")
    with pytest.raises(HubError):
        await pull(*SHARDS)
    assert hub.bytes_sent(SHARDS[0]) == 0


async def test_a_busy_hub_is_asked_again_where_a_file_is(hub: TestHub) -> None:
    hub.fault("a.gguf", status=503, method="HEAD", times=2)
    naps = Naps()
    await pull(naps=naps)
    assert naps.seconds == [1.0, 2.0]


async def test_two_in_one_process_share_one_download(hub: TestHub) -> None:
    hub.fault("a.gguf", method="GET", stall_after=200_000, times=1)
    first, second = list[TransferProgress](), list[TransferProgress]()
    tasks = [asyncio.create_task(pull(seen=first))]
    while not first or first[-1].state != "fetching":
        await asyncio.sleep(0.01)
    tasks.append(asyncio.create_task(pull(seen=second)))
    while not second or second[-1].done_bytes < 200_000:
        await asyncio.sleep(0.01)
    assert {progress.state for progress in second} == {"waiting"}
    hub.release()
    one, other = await asyncio.gather(*tasks)
    assert one == other and one.read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == len(DATA)
    assert second[-1].state == "done"


async def test_waiting_for_another_can_be_cancelled(hub: TestHub) -> None:
    hub.fault("a.gguf", method="GET", stall_after=200_000, times=1)
    first = asyncio.create_task(pull())
    seen: list[TransferProgress] = []
    while not hub.stalled.is_set():
        await asyncio.sleep(0.01)
    second = asyncio.create_task(pull(seen=seen))
    while not seen:
        await asyncio.sleep(0.01)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(second, 10)
    hub.release()
    assert (await first).read_bytes() == DATA


async def test_the_one_that_waits_takes_over_when_the_first_is_cancelled(hub: TestHub) -> None:
    hub.fault("a.gguf", method="GET", stall_after=200_000, times=1)
    first = asyncio.create_task(pull())
    seen: list[TransferProgress] = []
    while not hub.stalled.is_set():
        await asyncio.sleep(0.01)
    second = asyncio.create_task(pull(seen=seen))
    while not seen or seen[-1].done_bytes < 200_000:
        await asyncio.sleep(0.01)
    first.cancel()
    assert (await second).read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == len(DATA)
    states = list(dict.fromkeys(progress.state for progress in seen))
    assert states == ["waiting", "checking", "fetching", "done"]


@pytest.mark.parametrize(
    "path", ["../evil.gguf", "/etc/evil.gguf", "a/../../evil.gguf", "", "a//b.gguf", "a\\b.gguf", "c:evil.gguf", "a\0b"]
)
async def test_names_that_lead_out_are_refused(hub: TestHub, path: str) -> None:
    listing = RepoListing(REPO, "main", "0" * 40, (), (), "", False, 0)
    offer = Offer("Q4_K_M", "model", (RepoFile(path, 5, "a" * 64),))
    async with Hub() as client:
        with pytest.raises(DownloadError, match="not used"):
            await Downloads(client).fetch([(listing, offer)], ignore)
    assert hub.requests == () and not cache_of(hub).exists()


@pytest.mark.parametrize("commit", ["../../x", "", "main", "0" * 39, "0" * 41])
async def test_a_commit_is_checked(hub: TestHub, commit: str) -> None:
    async with Hub() as client:
        listing, offer = await offer_of(client, "a.gguf")
        with pytest.raises(DownloadError, match="which is none"):
            await Downloads(client).fetch([(replace(listing, commit=commit), offer)], ignore)
    assert not cache_of(hub).exists()


@pytest.mark.parametrize("repo", ["../x", "a/../b", "a/b/c", "/etc", "a--b/c", "a/..", "a/", "a\\b", "a/b\n"])
async def test_a_repository_is_checked(hub: TestHub, repo: str) -> None:
    async with Hub() as client:
        listing, offer = await offer_of(client, "a.gguf")
        with pytest.raises(DownloadError, match="no name of a repository"):
            await Downloads(client).fetch([(replace(listing, repo=repo), offer)], ignore)
    assert not cache_of(hub).exists()


async def test_a_listing_and_an_answer_that_differ_are_not_believed(hub: TestHub) -> None:
    hub.fault("a.gguf", wrong_etag="b" * 64)
    with pytest.raises(DownloadError, match="content changed"):
        await pull()
    assert names_in(hub) == []


async def test_reports_come_ten_times_a_second_and_at_every_change(hub: TestHub, tmp_path: Path) -> None:
    hub.fault("a.gguf", bytes_per_s=2_000_000)
    now = [0.0]

    def clock() -> float:
        now[0] += 0.01
        return now[0]

    seen: list[TransferProgress] = []
    async with Hub() as client:
        wanted = await offer_of(client, "a.gguf")
        await Downloads(client, tmp_path / "other", clock=clock).fetch([wanted], seen.append)
    assert seen[0].state == "fetching" and seen[0].speed is None and seen[0].eta_s is None
    assert seen[-1].state == "done"
    # Each piece reads the clock two times or so; without a brake there would be a report for each.
    assert 3 <= len(seen) <= now[0] / 0.1 + 3


@pytest.mark.parametrize("revision", ["../x", "a/../../x", "/x"])
async def test_a_revision_writes_nothing_outside(hub: TestHub, revision: str) -> None:
    async with Hub() as client:
        listing, offer = await offer_of(client, "a.gguf")
        (path,) = await Downloads(client).fetch([(replace(listing, revision=revision), offer)], ignore)
    assert path.read_bytes() == DATA
    assert [name for name in names_in(hub) if not name.startswith(("blobs/", "snapshots/"))] == []
    assert sorted(place.name for place in cache_of(hub).iterdir()) == [".locks", blobs_of(hub).parent.name]


async def test_offline_nothing_is_tried(hub: TestHub, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Hub() as client:
        wanted = await offer_of(client, "a.gguf")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        naps = Naps()
        with pytest.raises(OfflineError, match="HF_HUB_OFFLINE"):
            await Downloads(client, sleep=naps).fetch([wanted], ignore)
    assert naps.seconds == [] and hub.bytes_sent("a.gguf") == 0
