"""Where the Hub's files are, and their bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.failures import TransientHubError
from localspec.errors import DownloadError, HubError
from tests.hub.asking import DATA, REPO, fetch, find, locate
from tests.hub.server import TestHub


async def test_a_file_is_named_by_its_content_and_lies_where_the_redirect_leads(tiny: TestHub) -> None:
    async with Hub() as client:
        plain = await locate(client)
        assert (plain.etag, plain.size_bytes, plain.sends_token) == (
            tiny.repositories[REPO].files["a.gguf"].sha256,
            len(DATA),
            True,
        )
        assert len((await locate(client, "README.md")).etag) == 40
        tiny.fault("a.gguf", redirect=True)
        moved = await locate(client)
        assert moved.url.startswith(tiny.cdn_url) and not moved.sends_token
        assert moved == replace(plain, url=moved.url, sends_token=False)
        assert await fetch(client, moved) == DATA


async def test_without_a_usable_etag_the_listing_names_the_content(tiny: TestHub) -> None:
    async with Hub() as client:
        listing, file = await find(client)
        for wishes in ("../../evil", "d41d8cd98f00b204e9800998ecf8427e", "f" * 40):
            tiny.heal()
            tiny.fault("a.gguf", wrong_etag=wishes)
            assert (await client.locate(listing, file)).etag == file.sha256
        tiny.heal()
        tiny.fault("a.gguf", no_etag=True)
        assert (await client.locate(listing, file)).etag == file.sha256
        with pytest.raises(DownloadError, match="does not name the content"):
            await client.locate(listing, replace(file, sha256=""))


async def test_a_size_that_is_not_the_listings_or_of_no_model_is_refused(tiny: TestHub) -> None:
    tiny.add_virtual(REPO, "huge.gguf", 10**15)
    async with Hub() as client:
        with pytest.raises(HubError, match=f"claims {10**15} bytes"):
            await locate(client, "huge.gguf")
        listing, file = await find(client)
        tiny.fault("a.gguf", linked_size=5)
        with pytest.raises(DownloadError, match="has 5 bytes where the listing says"):
            await client.locate(listing, file)


@pytest.mark.parametrize("wishes", [{"html": True}, {"no_commit": True}], ids=["portal", "no commit"])
async def test_an_answer_that_is_not_the_hubs_is_known(tiny: TestHub, wishes: dict[str, bool]) -> None:
    async with Hub() as client:
        listing, file = await find(client)
        tiny.fault("a.gguf", html=wishes.get("html", False), no_commit=wishes.get("no_commit", False))
        with pytest.raises(HubError, match="not the Hub's"):
            await client.locate(listing, file)


@pytest.mark.parametrize(("start", "end"), [(0, 1), (5, 9), (100, None), (0, len(DATA)), (len(DATA) - 1, None)])
@pytest.mark.parametrize("ignore", [False, True])
async def test_reading_gives_the_bytes_that_were_asked_for(
    tiny: TestHub, start: int, end: int | None, ignore: bool
) -> None:
    tiny.fault("a.gguf", ignore_range=ignore)
    async with Hub() as client:
        remote = await locate(client)
        async with client.read(remote, start, end) as reply:
            chunks = [chunk async for chunk in reply.chunks()]
            assert (reply.start, reply.is_whole, reply.total_bytes) == (0 if ignore else start, ignore, len(DATA))
    assert b"".join(chunks) == DATA[reply.start : end]
    assert all(0 < len(chunk) <= 1 << 20 for chunk in chunks)
    assert tiny.requests_for("a.gguf", "GET")[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "said", ["bytes 6-8/2304000", "bytes 5-8/99", "bytes 5-4/2304000", "5-8", "bytes 5-8/" + "9" * 30]
)
async def test_bytes_from_elsewhere_are_refused(tiny: TestHub, said: str) -> None:
    tiny.fault("a.gguf", content_range=said)
    async with Hub() as client:
        with pytest.raises(DownloadError):
            await fetch(client, await locate(client), 5, 9)


async def test_compressed_bytes_and_ranges_beyond_the_end_are_refused(tiny: TestHub) -> None:
    async with Hub() as client:
        remote = await locate(client)
        with pytest.raises(DownloadError, match="no bytes from there"):
            await fetch(client, remote, len(DATA) + 5)
        tiny.fault("a.gguf", headers={"Content-Encoding": "gzip"})
        with pytest.raises(DownloadError, match="compressed"):
            await fetch(client, remote)


async def test_a_connection_that_is_cut_gives_what_came_and_may_be_tried_again(tiny: TestHub) -> None:
    tiny.fault("a.gguf", cut_after=100_000, times=1)
    async with Hub() as client:
        remote = await locate(client)
        came = b""
        with pytest.raises(TransientHubError) as caught:
            async with client.read(remote) as reply:
                async for chunk in reply.chunks():
                    came += chunk
        assert caught.value.is_transient and came == DATA[:100_000]
        assert await fetch(client, remote, 100_000) == DATA[100_000:]
