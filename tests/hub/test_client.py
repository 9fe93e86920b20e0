"""The Hub as localspec asks it: searches, listings, where files are, and their bytes."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.failures import TransientHubError
from localspec.catalog.hub.listing import is_safe_path
from localspec.catalog.hub.values import RemoteFile, RepoFile, RepoListing
from localspec.errors import AccessError, DownloadError, HubError, LocalspecError, OfflineError
from tests.hub.server import TestHub

REPO = "maker/Tiny-GGUF"
DATA = bytes(range(256)) * 9000
TOKEN = "hf_SECRETtokenSECRET"


@pytest.fixture
def tiny(hub: TestHub) -> TestHub:
    """A Hub with one repository of 2.3 MB."""
    hub.add_repo(REPO, {"a.gguf": DATA, "README.md": b"# Tiny"}, base_models=["maker/Tiny"], downloads=7)
    return hub


async def find(client: Hub, path: str = "a.gguf", repo: str = REPO) -> tuple[RepoListing, RepoFile]:
    listing = await client.listing(repo)
    return listing, next(file for file in listing.files if file.path == path)


async def locate(client: Hub, path: str = "a.gguf", repo: str = REPO) -> RemoteFile:
    return await client.locate(*await find(client, path, repo))


async def fetch(client: Hub, remote: RemoteFile, start: int = 0, end: int | None = None) -> bytes:
    async with client.read(remote, start, end) as reply:
        return b"".join([chunk async for chunk in reply.chunks()])


async def test_search_finds_gguf_repositories(tiny: TestHub) -> None:
    tiny.add_repo("maker/Other-tiny", {"b.gguf": b""}, gguf={"total": 5, "architecture": "llama"}, downloads=9, likes=2)
    tiny.add_repo("maker/tiny", {"a.safetensors": b""}, downloads=99)
    async with Hub() as client:
        first, second = await client.search("tiny")
        assert await client.search("tiny", limit=1) == (first,)
    assert (first.repo, first.downloads, first.likes, first.architecture, first.num_params) == (
        "maker/Other-tiny",
        9,
        2,
        "llama",
        5,
    )
    assert (second.repo, second.base_models, second.last_modified) == (REPO, ("maker/Tiny",), "2025-03-01")


async def test_a_listing_has_sizes_hashes_and_the_commit(tiny: TestHub) -> None:
    async with Hub() as client:
        listing, file = await find(client)
        assert await client.listing(REPO, listing.commit) == replace(listing, revision=listing.commit)
    assert listing.commit == tiny.repositories[REPO].commit
    assert (file.size_bytes, file.sha256) == (len(DATA), tiny.repositories[REPO].files["a.gguf"].sha256)
    assert (listing.base_models, listing.licence, listing.is_gated) == (("maker/Tiny",), "apache-2.0", False)


BAD_PATHS = [
    "../a.gguf",
    "/etc/a.gguf",
    "x/../../a.gguf",
    "x//a.gguf",
    "./a.gguf",
    "x\\a.gguf",
    "C:a.gguf",
    "C:/a.gguf",
    "a\n.gguf",
    "a\x1b[31m.gguf",
    "a\u202egguf.exe",
    "NUL",
    "con.gguf",
    "x/LPT1.tar/a.gguf",
    "a.gguf ",
    "a.gguf.",
    "x" * 256,
    "é" * 128,
    "\udc80.gguf",
    "a/" * 600 + "a",
    "",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_paths_that_leave_a_folder_or_cannot_be_written_are_known(path: str) -> None:
    assert not is_safe_path(path)


async def test_files_with_bad_paths_are_left_out_of_a_listing(hub: TestHub) -> None:
    hub.add_repo(REPO, {path: b"x" for path in [*BAD_PATHS, "Q8_0/a b-é.gguf"]})
    async with Hub() as client:
        listing = await client.listing(REPO)
        assert [file.path for file in listing.files] == ["Q8_0/a b-é.gguf"]
        assert (listing.num_unsafe, listing.num_surplus) == (len(BAD_PATHS), 0)
        assert await fetch(client, await client.locate(listing, listing.files[0])) == b"x"
        with pytest.raises(DownloadError, match="leave the folder"):
            await client.locate(listing, RepoFile("../x", 1, ""))


def answer(hub: TestHub, document: object) -> None:
    hub.fault(body=json.dumps(document).encode())


async def test_numbers_that_nothing_real_has_count_as_unknown(hub: TestHub) -> None:
    huge = 10**400
    stored = {"sha256": "b" * 64, "size": huge, "pointerSize": 1}
    siblings = [
        {"rfilename": "a.gguf", "size": huge, "lfs": stored},
        {"rfilename": "b.gguf", "size": -5},
        {"rfilename": "c.gguf", "size": (1 << 41) + 1},
        {"rfilename": "d.gguf", "size": 1 << 41},
    ]
    async with Hub() as client:
        answer(hub, {"id": REPO, "sha": "a" * 40, "siblings": siblings, "downloads": huge})
        listing = await client.listing(REPO)
        assert listing.downloads == 0 and [file.size_bytes for file in listing.files] == [0, 0, 0, 1 << 41]
        hub.heal()
        answer(hub, [{"id": REPO, "downloads": huge, "likes": -huge, "gguf": {"total": huge}}])
        (hit,) = await client.search("x")
        assert (hit.downloads, hit.likes, hit.num_params) == (0, 0, 0)


@pytest.mark.parametrize(
    "bad",
    [None, 5, [], {}, {"id": 3}, {"id": "\x1b]0;x/y"}, {"id": "../x"}],
)
async def test_one_bad_entry_of_a_search_hides_no_other(hub: TestHub, bad: object) -> None:
    answer(hub, [{"id": "maker/a", "lastModified": "garbage", "cardData": [1], "tags": 5}, bad, {"id": "maker/b"}])
    async with Hub() as client:
        assert [hit.repo for hit in await client.search("x")] == ["maker/a", "maker/b"]


async def test_of_too_many_files_the_models_stay(hub: TestHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.catalog.hub.listing._MAX_FILES", 3)
    hub.add_repo(REPO, {"README.md": b"x", "x.bin": b"x", "a.gguf": b"x", "b.gguf": b"x", "z.GGUF": b"x"})
    async with Hub() as client:
        listing = await client.listing(REPO)
    assert {file.path for file in listing.files} == {"a.gguf", "b.gguf", "z.GGUF"}
    assert listing.num_surplus == 2


@pytest.mark.parametrize("packing", ["gzip", ""])
@pytest.mark.parametrize("status", [200, 302, 404])
async def test_an_answer_without_end_is_not_taken_in(hub: TestHub, packing: str, status: int) -> None:
    text = b" " * (40 << 20) + b"{}"
    body = gzip.compress(text, 1) if packing else text
    headers = {"Content-Encoding": packing} if packing else {}
    # For no longer than one answer: whoever follows the redirect gets the right one.
    hub.add_repo(REPO, {"a.gguf": b"x"})
    location = {"Location": f"/api/models/{REPO}/revision/main"} if status == 302 else {}
    hub.fault(body=body, status=status, headers=headers | location, times=1)
    async with Hub() as client:
        tracemalloc.start()
        try:
            if status == 302:
                assert (await client.listing(REPO)).files
            else:
                with pytest.raises(HubError, match="longer than 16 MiB" if status == 200 else "no repository"):
                    await client.listing(REPO)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 48 << 20


async def test_packed_answers_are_unpacked_and_packed_nonsense_is_not_the_hubs(tiny: TestHub) -> None:
    document = json.dumps([{"id": "maker/a"}] * 3).encode()
    async with Hub() as client:
        for body, packing in ((gzip.compress(document), "gzip"), (document, "identity")):
            tiny.heal()
            tiny.fault(body=body, headers={"Content-Encoding": packing})
            assert len(await client.search("x")) == 3
        for body, packing in ((b"xxxx", "gzip"), (document, "br"), (gzip.compress(document)[:20], "gzip")):
            tiny.heal()
            tiny.fault(body=body, headers={"Content-Encoding": packing})
            with pytest.raises(HubError, match="not the Hub's"):
                await client.search("x")


async def test_an_answer_that_drips_is_given_up(tiny: TestHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.catalog.hub.api.DEADLINE_S", -1.0)
    async with Hub() as client:
        with pytest.raises(TransientHubError, match="did not answer within"):
            await client.listing(REPO)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.just("maker/Base"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = ["id", "sha", "siblings", "tags", "gated", "downloads", "likes", "cardData", "gguf", "lastModified", "config"]
_FIELDS += ["baseModels", "createdAt", "inferenceProviderMapping", "safetensors"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=_VALUES | st.dictionaries(st.sampled_from(_FIELDS), _VALUES, min_size=1))
def test_whatever_the_api_answers_it_is_a_value_or_a_failure_in_words(tiny: TestHub, document: object) -> None:
    tiny.heal()
    answer(tiny, document)

    async def ask() -> None:
        async with Hub() as client:
            try:
                listing = await client.listing(REPO)
                assert len(listing.commit) == 40
            except HubError as error:
                assert error.hint
            try:
                for hit in await client.search("x"):
                    assert "/" in hit.repo
            except HubError as error:
                assert error.hint

    asyncio.run(ask())


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


async def test_the_token_goes_to_the_hub_and_never_to_another_port(tiny: TestHub) -> None:
    tiny.add_repo("maker/Closed-GGUF", {"c.gguf": DATA}, gated="manual", token_needed=TOKEN)
    tiny.fault("c.gguf", redirect=True)
    async with Hub(token=TOKEN) as client:
        remote = await locate(client, "c.gguf", "maker/Closed-GGUF")
        assert await fetch(client, remote) == DATA
        # As if the address had been found before the redirect was set up: the body request is redirected itself.
        own = replace(remote, url=f"{tiny.url}/maker/Closed-GGUF/resolve/{remote.commit}/c.gguf", sends_token=True)
        assert await fetch(client, own) == DATA
    ports = {(request.port, request.headers.get("authorization")) for request in tiny.requests}
    assert ports == {("hub", f"Bearer {TOKEN}"), ("cdn", None)}


async def test_the_token_does_not_follow_an_api_redirect_to_another_port(tiny: TestHub) -> None:
    tiny.fault(REPO, port="hub", location=f"{tiny.cdn_url}/api/models/{REPO}")
    async with Hub(token=TOKEN) as client:
        with pytest.raises(LocalspecError):
            await client.listing(REPO)
    (away,) = [request for request in tiny.requests if request.port == "cdn"]
    assert "authorization" not in away.headers


async def test_a_signed_address_that_has_run_out_is_asked_for_again(tiny: TestHub) -> None:
    tiny.fault("a.gguf", redirect=True)
    async with Hub() as client:
        remote = await locate(client)
        assert await fetch(client, replace(remote, url=remote.url.replace("Signature=", "Signature=old"))) == DATA
        tiny.signature = "other"
        tiny.fault("a.gguf", port="cdn", status=403)
        with pytest.raises(HubError, match="refused with status 403"):
            await fetch(client, remote)


async def test_a_gated_repository_needs_a_token_that_may_read(hub: TestHub) -> None:
    hub.add_repo(REPO, {"a.gguf": DATA}, gated="auto", token_needed=TOKEN)
    async with Hub() as client:
        with pytest.raises(AccessError) as caught:
            await locate(client)
        assert "hf auth login" in caught.value.hint and f"{hub.url}/{REPO}" in caught.value.hint
    async with Hub(token="hf_other") as client:
        with pytest.raises(AccessError, match="your account has no access"):
            await locate(client)
    async with Hub(token=TOKEN) as client:
        listing = await client.listing(REPO)
        assert listing.is_gated
        assert await fetch(client, await client.locate(listing, listing.files[0]), 0, 9) == DATA[:9]


async def test_the_stored_token_is_used_unless_forbidden(hub: TestHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add_repo(REPO, {"a.gguf": DATA}, token_needed=TOKEN)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    async with Hub() as client:
        assert (await client.listing(REPO)).files
    async with Hub(token=False) as client:
        with pytest.raises(AccessError, match="or it is private"):
            await client.listing(REPO)
    assert "authorization" not in hub.requests[-1].headers


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://127.0.0.1/a", "//", "http://[bad/", "data:,x"])
async def test_a_redirect_to_no_web_address_is_refused(tiny: TestHub, where: str) -> None:
    async with Hub() as client:
        listing, file = await find(client)
        remote = await client.locate(listing, file)
        tiny.fault("a.gguf", location=where, headers={"X-Repo-Commit": listing.commit})
        with pytest.raises(HubError):
            await client.locate(listing, file)
        with pytest.raises(HubError):
            await fetch(client, remote)


async def test_redirects_without_end_are_given_up(tiny: TestHub) -> None:
    async with Hub() as client:
        listing, file = await find(client)
        remote = await client.locate(listing, file)
        tiny.forget()
        tiny.fault(redirect_loop=True)
        with pytest.raises(HubError, match="in circles"):
            await fetch(client, remote)
        assert len(tiny.requests) == 6
        with pytest.raises(HubError, match="in circles"):
            await client.locate(listing, file)
        with pytest.raises(HubError, match="in circles"):
            await client.listing(REPO)


Ask = Callable[[Hub, RepoListing, RemoteFile], Awaitable[object]]

ASKS: dict[str, Ask] = {
    "search": lambda client, listing, remote: client.search("tiny"),
    "listing": lambda client, listing, remote: client.listing(REPO),
    "locate": lambda client, listing, remote: client.locate(listing, listing.files[0]),
    "read": lambda client, listing, remote: fetch(client, remote),
}


@pytest.mark.parametrize("name", ASKS)
async def test_cancelling_a_stalled_request_returns_at_once(tiny: TestHub, name: str) -> None:
    async with Hub() as client:
        listing, file = await find(client)
        remote = await client.locate(listing, file)
        tiny.fault(delay_s=30)
        task = asyncio.ensure_future(ASKS[name](client, listing, remote))
        while not tiny.stalled.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        # The answer is still held back: whoever waits for it would run into this limit.
        done, _ = await asyncio.wait([task], timeout=5)
        assert done and task.cancelled() and not tiny.is_released


async def test_cancelling_a_stalled_body_returns_at_once(tiny: TestHub) -> None:
    tiny.fault("a.gguf", stall_after=70_000)
    async with Hub() as client:
        remote = await locate(client)
        task = asyncio.create_task(fetch(client, remote))
        while not tiny.stalled.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=5)
        assert done and task.cancelled() and not tiny.is_released


@pytest.mark.parametrize("name", ASKS)
async def test_a_stalled_answer_ends_as_a_failure_that_may_pass(
    tiny: TestHub, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Hub() as client:
        listing, file = await find(client)
        remote = await client.locate(listing, file)
        tiny.fault(delay_s=30)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 0.05)
        with pytest.raises(TransientHubError, match="stopped answering"):
            await ASKS[name](client, listing, remote)


@pytest.mark.parametrize("name", ASKS)
async def test_offline_mode_asks_nothing(tiny: TestHub, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Hub() as client:
        listing, file = await find(client)
        remote = await client.locate(listing, file)
        tiny.forget()
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(OfflineError, match="HF_HUB_OFFLINE is set") as caught:
            await ASKS[name](client, listing, remote)
        assert "HF_HUB_OFFLINE" in caught.value.hint
    assert not tiny.requests


@pytest.mark.parametrize("name", ASKS)
async def test_without_a_hub_one_try_says_so(tiny: TestHub, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    async with Hub() as client:
        listing, file = await find(client)
        remote = await client.locate(listing, file)
        tiny.close()
        await client.close()
        with pytest.raises(OfflineError, match="connection refused") as caught:
            await ASKS[name](client, listing, remote)
    assert "Everything local works without it" in caught.value.hint
    assert not [pause for pause in pauses if pause >= 0.5]


@pytest.mark.parametrize("endpoint", ["file:///x", "nonsense", "https://", "http://host:port"])
def test_an_endpoint_must_be_a_web_address(endpoint: str) -> None:
    with pytest.raises(HubError, match="no web address"):
        Hub(endpoint)
