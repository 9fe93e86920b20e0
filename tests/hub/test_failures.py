"""Failures of the Hub in words: which kind, with which hint, and never with a secret."""

from __future__ import annotations

import io
import logging
import socket
import ssl
import subprocess
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest

from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.failures import Asked, TransientHubError, retry_after_s, status_failure, translated
from localspec.errors import AccessError, HubError, LocalspecError, OfflineError
from tests.hub.server import TestHub

REPO = "maker/Tiny-GGUF"
TOKEN = "hf_SECRETtokenSECRET"
ASKED = Asked("https://hub.example", REPO, "main", "a.gguf")


async def refused(hub: TestHub, token: str | None = None) -> LocalspecError:
    """What asking for the listing fails with."""
    async with Hub(token=token) as client:
        with pytest.raises(LocalspecError) as caught:
            await client.listing(REPO)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    return caught.value


@pytest.mark.parametrize(
    ("status", "code", "token", "kind", "words"),
    [
        (401, "RepoNotFound", None, AccessError, "There is no repository maker/Tiny-GGUF on the Hub, or it is private"),
        (401, "", None, AccessError, "or it is private"),
        (404, "RepoNotFound", TOKEN, HubError, "or it is private"),
        (404, "", None, HubError, "or it is private"),
        (401, "GatedRepo", None, AccessError, "open only to those who accepted its terms"),
        (403, "GatedRepo", TOKEN, AccessError, "your account has no access"),
        (403, "", TOKEN, AccessError, "does not let you read"),
        (404, "RevisionNotFound", None, HubError, "has no main branch"),
        (429, "", None, TransientHubError, "too many requests"),
        (500, "", None, TransientHubError, "status 500"),
        (502, "", None, TransientHubError, "status 502"),
        (400, "", None, HubError, "status 400"),
        (418, "", None, HubError, "status 418"),
    ],
)
async def test_each_refusal_has_its_kind_and_words(
    hub: TestHub, status: int, code: str, token: str | None, kind: type[LocalspecError], words: str
) -> None:
    hub.fault(status=status, error_code=code)
    error = await refused(hub, token)
    assert type(error) is kind
    assert words in error.message and error.hint


@pytest.mark.parametrize(
    ("asked", "words", "hint"),
    [
        (Asked("https://hub.example", REPO, "main"), "has no main branch", "after an @"),
        (Asked("https://hub.example", REPO, "v9"), "has no revision v9", "the part after the @"),
        (Asked("https://hub.example", REPO, "a" * 40, "a.gguf"), "no longer has the commit aaaa", "run this again"),
    ],
)
def test_a_missing_revision_is_blamed_on_whoever_named_it(asked: Asked, words: str, hint: str) -> None:
    failure = status_failure(404, {"X-Error-Code": "RevisionNotFound"}, asked)
    assert words in failure.message and hint in failure.hint


async def test_a_bad_token_is_told_from_a_missing_one(hub: TestHub) -> None:
    hub.fault(status=401, error_message="Invalid credentials in Authorization header")
    error = await refused(hub, TOKEN)
    assert isinstance(error, AccessError) and "does not accept your token" in error.message


async def test_a_disabled_repository_says_so(hub: TestHub) -> None:
    hub.fault(status=403, error_message="Access to this resource is disabled.")
    assert "disabled" in (await refused(hub)).message


async def test_who_has_no_token_is_told_how_to_get_one(hub: TestHub) -> None:
    hub.fault(status=401, error_code="GatedRepo")
    hint = (await refused(hub)).hint
    assert f"{hub.url}/{REPO}" in hint and "hf auth login" in hint and "HF_TOKEN" in hint


async def test_the_wait_that_the_hub_asks_for_is_passed_on(hub: TestHub) -> None:
    hub.fault(status=429, retry_after=17)
    error = await refused(hub)
    assert isinstance(error, TransientHubError) and error.is_transient
    assert error.retry_after_s == 17.0 and "17 seconds" in error.hint


@pytest.mark.parametrize(
    ("value", "wait"),
    [("0", 0.0), ("5", 5.0), ("999999999999", 3600.0), ("-3", None), ("soon", None), ("", None), ("²", None)],
)
def test_waits_are_bounded_and_nonsense_is_none(value: str, wait: float | None) -> None:
    assert retry_after_s({"Retry-After": value}) == wait


def test_a_wait_may_be_a_date_or_a_rate_limit() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=60)
    wait = retry_after_s({"Retry-After": format_datetime(soon)})
    assert wait is not None and 50 < wait <= 60
    assert retry_after_s({"ratelimit": '"api";r=0;t=55', "Retry-After": "1"}) == 55.0


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"sha": 3}', b"<html>hello</html>"])
async def test_answers_that_are_no_listing_are_not_the_hubs(hub: TestHub, body: bytes) -> None:
    hub.fault(body=body)
    error = await refused(hub)
    assert type(error) is HubError and "not the Hub's" in error.message


async def test_a_captive_portal_is_named_as_what_it_may_be(hub: TestHub) -> None:
    hub.fault(html=True)
    assert "login page" in (await refused(hub)).hint


def with_cause(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def tls() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (with_cause(httpx2.ConnectError("x"), socket.gaierror(-2, "?")), OfflineError, "its name is not known here"),
        (with_cause(httpx2.ConnectError("x"), OSError(101, "Network is unreachable")), OfflineError, "unreachable"),
        (httpx2.ConnectTimeout("x"), OfflineError, "cannot be reached"),
        (with_cause(httpx2.ConnectError("x"), tls()), HubError, "not trusted: self-signed certificate"),
        (httpx2.ProxyError("407"), HubError, "proxy"),
        (httpx2.ReadTimeout("x"), TransientHubError, "stopped answering"),
        (httpx2.ReadError("x"), TransientHubError, "broke off"),
        (httpx2.RemoteProtocolError("x"), TransientHubError, "broke off"),
        (httpx2.LocalProtocolError("Illegal header value b'Bearer x\\n'"), HubError, "cannot be sent"),
        (httpx2.UnsupportedProtocol("x"), HubError, "not a web address"),
        (KeyError("sha"), HubError, "not the Hub's"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), HubError, "not the Hub's"),
    ],
)
def test_each_way_of_not_getting_through_has_its_words(error: Exception, kind: type[HubError], words: str) -> None:
    failure = translated(error, ASKED)
    assert type(failure) is kind
    assert words in failure.message and failure.hint


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that anything logs at any level, in this process."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


async def test_no_token_or_signature_is_ever_shown(
    hub: TestHub, log: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    hub.add_repo(REPO, {"a.gguf": bytes(100_000)}, token_needed=TOKEN)
    hub.fault("a.gguf", redirect=True)
    shown: list[str] = []

    def keep(error: BaseException) -> None:
        shown.extend((str(error), repr(error), "".join(traceback.format_exception(error))))
        shown.extend((getattr(error, "hint", ""), repr(vars(error))))

    async with Hub(token=TOKEN) as client:
        listing = await client.listing(REPO)
        remote = await client.locate(listing, listing.files[0])
        assert hub.signature in remote.url
        shown.extend((repr(client), repr(remote), str(remote), repr(listing)))
        for wishes in ({"status": 403}, {"status": 500}, {"html": True}, {"content_range": "x"}, {"cut_after": 9}):
            fault = hub.fault("a.gguf", port="cdn")
            for name, value in wishes.items():
                setattr(fault, name, value)
            try:
                async with client.read(remote, 5) as reply:
                    shown.append(repr(reply))
                    async for _ in reply.chunks():
                        pass
            except LocalspecError as error:
                keep(error)
            fault.times = 0
        hub.fault(status=500, error_message=f"you sent {TOKEN}")
        for ask in (client.search("x"), client.listing(REPO), client.locate(listing, listing.files[0])):
            try:
                await ask
            except LocalspecError as error:
                keep(error)
    hub.close()
    async with Hub(token=TOKEN) as client:
        try:
            await client.listing(REPO)
        except LocalspecError as error:
            keep(error)
    async with Hub(token=f"{TOKEN}\n") as client:
        try:
            await client.listing(REPO)
        except LocalspecError as error:
            keep(error)
    captured = capfd.readouterr()
    text = "\n".join([*shown, log.getvalue(), captured.out, captured.err])
    assert len(shown) > 40
    assert TOKEN not in text and hub.signature not in text
    assert "huggingface" not in captured.err


async def test_name_and_password_of_an_endpoint_are_not_shown(hub: TestHub) -> None:
    hub.fault(html=True)
    async with Hub(hub.url.replace("://", "://me:PASSWORD@")) as client:
        with pytest.raises(HubError) as caught:
            await client.listing(REPO)
    assert "PASSWORD" not in caught.value.message and hub.url in caught.value.message


def test_a_process_ends_though_a_request_hangs(hub: TestHub) -> None:
    hub.add_repo(REPO, {"a.gguf": b"x"})
    hub.fault(delay_s=60)
    script = (
        "import asyncio, sys\n"
        "from localspec.catalog.hub.client import Hub\n"
        "async def main():\n"
        "    try:\n"
        f"        await asyncio.wait_for(Hub().listing('{REPO}'), 0.5)\n"
        "    except TimeoutError:\n"
        "        print('given up')\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], env=hub.environment(), capture_output=True, text=True, timeout=30, check=False
    )
    # The answer was held back for a minute, and whoever waits for it runs into the limit of 30 seconds.
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "given up\n", "")
