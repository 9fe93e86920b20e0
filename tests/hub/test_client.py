"""The client of the Hub: whom its token is told, where it is led, and when it gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.failures import TransientHubError
from localspec.catalog.hub.values import RemoteFile, RepoListing
from localspec.errors import AccessError, HubError, LocalspecError, OfflineError
from tests.hub.asking import DATA, REPO, fetch, find, locate
from tests.hub.server import TestHub

TOKEN = "hf_SECRETtokenSECRET"


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
