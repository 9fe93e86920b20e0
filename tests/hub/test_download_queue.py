"""The app's queue of downloads against a Hub of its own: order, pause, resume, cancel, failures, the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.partials import list_partials
from localspec.errors import OfflineError, UsageError
from localspec.tui.download_queue import DownloadQueue, Transfers, offer_of_partial
from tests.hub.downloading import DATA, REPO, cache_of, offer_of, partial_of
from tests.hub.server import TestHub

pytestmark = pytest.mark.usefixtures("downloadable")

SHARDS = ("q/b-00001-of-00002.gguf", "q/b-00002-of-00002.gguf")


@pytest.fixture
async def states() -> list[Transfers]:
    return []


@pytest.fixture
async def queue(hub: TestHub, states: list[Transfers]) -> AsyncIterator[DownloadQueue]:
    made = DownloadQueue(Hub, states.append)
    yield made
    hub.release()
    await made.close()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.01)


def statuses(queue: DownloadQueue) -> list[str]:
    return [item.status for item in queue.transfers]


async def test_one_after_the_other_with_progress(queue: DownloadQueue, states: list[Transfers]) -> None:
    async with Hub() as client:
        assert queue.add(*await offer_of(client, "a.gguf"))
        assert queue.add(*await offer_of(client, *SHARDS))
        assert not queue.add(*await offer_of(client, *SHARDS))
    await until(lambda: statuses(queue) == ["done", "done"])
    assert all([item.status for item in state].count("running") <= 1 for state in states)
    progress = queue.transfers[1].progress
    assert progress is not None and progress.num_files == 2 and progress.all_done_bytes == progress.all_total_bytes
    queue.clear_finished()
    assert queue.transfers == ()


async def test_pause_keeps_what_came_and_resume_goes_on_with_it(hub: TestHub, queue: DownloadQueue) -> None:
    hub.fault("a.gguf", stall_after=300_000)
    async with Hub() as client:
        queue.add(*await offer_of(client, "a.gguf"))
    await until(lambda: partial_of(hub).exists() and partial_of(hub).stat().st_size == 300_000)
    queue.pause(1)
    await until(lambda: queue._fetching is None)
    assert statuses(queue) == ["paused"] and partial_of(hub).stat().st_size == 300_000
    hub.heal()
    hub.release()
    hub.forget()
    queue.resume(1)
    await until(lambda: statuses(queue) == ["done"])
    assert hub.bytes_sent("a.gguf") == len(DATA) - 300_000


async def test_what_waits_goes_on_when_the_first_is_paused(hub: TestHub, queue: DownloadQueue) -> None:
    hub.fault("a.gguf", stall_after=1000)
    async with Hub() as client:
        queue.add(*await offer_of(client, "a.gguf"))
        queue.add(*await offer_of(client, *SHARDS))
    await until(lambda: partial_of(hub).exists())
    queue.pause(1)
    await until(lambda: statuses(queue) == ["paused", "done"])


@pytest.mark.parametrize("is_kept", [True, False])
async def test_cancel_removes_the_part_on_wish(hub: TestHub, queue: DownloadQueue, is_kept: bool) -> None:
    hub.fault("a.gguf", stall_after=300_000)
    async with Hub() as client:
        queue.add(*await offer_of(client, "a.gguf"))
    await until(lambda: partial_of(hub).exists() and partial_of(hub).stat().st_size == 300_000)
    await queue.cancel(1, keeps_partial=is_kept)
    assert queue.transfers == ()
    assert len(list_partials(cache_of(hub))) == int(is_kept)


async def test_a_failure_has_its_hint_and_the_next_one_is_fetched(hub: TestHub, queue: DownloadQueue) -> None:
    hub.fault("a.gguf", status=403, method="HEAD")
    async with Hub() as client:
        queue.add(*await offer_of(client, "a.gguf"))
        queue.add(*await offer_of(client, *SHARDS))
    await until(lambda: statuses(queue) == ["failed", "done"])
    assert queue.transfers[0].failure and queue.transfers[0].hint
    hub.heal()
    queue.resume(1)
    await until(lambda: statuses(queue) == ["done", "done"])


async def test_closing_stops_at_once_and_keeps_what_came(hub: TestHub, queue: DownloadQueue) -> None:
    hub.fault("a.gguf", stall_after=300_000)
    async with Hub() as client:
        queue.add(*await offer_of(client, "a.gguf"))
    await until(lambda: partial_of(hub).exists() and partial_of(hub).stat().st_size == 300_000)
    await queue.close()
    await queue.close()
    assert partial_of(hub).stat().st_size == 300_000
    assert not [task for task in asyncio.all_tasks() if task.get_name() in ("download", "downloads")]


async def test_without_a_network_everything_fails_in_words(hub: TestHub) -> None:
    def no_hub() -> Hub:
        raise OfflineError("There is no network.", "Try later.")

    queue = DownloadQueue(no_hub, lambda state: None)
    async with Hub() as client:
        queue.add(*await offer_of(client, "a.gguf"))
    await until(lambda: statuses(queue) == ["failed"])
    assert (queue.transfers[0].failure, queue.transfers[0].hint) == ("There is no network.", "Try later.")
    await queue.close()


async def test_a_broken_off_download_is_found_again_by_its_part(hub: TestHub, queue: DownloadQueue) -> None:
    hub.fault("a.gguf", stall_after=300_000)
    async with Hub() as client:
        queue.add(*await offer_of(client, "a.gguf"))
        await until(lambda: partial_of(hub).exists() and partial_of(hub).stat().st_size == 300_000)
        await queue.cancel(1, keeps_partial=True)
        [partial] = list_partials(cache_of(hub))
        listing, offer = await offer_of_partial(client, partial)
        assert listing.repo == REPO and [file.path for file in offer.files] == ["a.gguf"]
        partial_of(hub).with_name(partial_of(hub).name.replace(".partial", ".json")).unlink()
        [nameless] = list_partials(cache_of(hub))
        with pytest.raises(UsageError, match="not known"):
            await offer_of_partial(client, nameless)
