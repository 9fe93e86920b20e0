"""Requests for bytes: one answer to a Range, followed over redirects with the token only where it belongs."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from localspec.catalog.hub.environment import origin
from localspec.catalog.hub.failures import (
    Asked,
    ForeignRefusalError,
    no_web_address,
    status_failure,
    too_many_redirects,
    translated,
)
from localspec.errors import DownloadError, HubError, LocalspecError

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS = 5
_CONNECT_S = 5.0
_MAX_CHUNK_BYTES = 1 << 20
_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)", re.ASCII)
_HUB_HOSTS = ("huggingface.co", "hf.co")


def timeout() -> httpx2.Timeout:
    """Return how long we wait, per step: huggingface_hub's own client would wait for ever."""
    import httpx2
    from huggingface_hub import constants

    return httpx2.Timeout(float(constants.HF_HUB_DOWNLOAD_TIMEOUT), connect=_CONNECT_S)


def settle_library() -> None:
    """Keep huggingface_hub and what it stands on from printing, from logging addresses, which may be signed, and from
    telling the Hub more than is asked of it (its user agent otherwise names what else is installed and running)."""
    import huggingface_hub.utils.logging  # noqa: F401  (it sets its level when imported)
    from huggingface_hub import constants

    constants.HF_HUB_DISABLE_TELEMETRY = True
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL + 1)
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)


def is_hub(url: str, endpoint: str) -> bool:
    """Say whether the token may go to an address: the endpoint's own origin, port included, or the Hub over TLS."""
    at = origin(url)
    return at == origin(endpoint) or (at[0] == "https" and at[1] in _HUB_HOSTS and at[2] == 443)


class RangeReply:
    """The answer to a request for part of a file."""

    def __init__(self, response: httpx2.Response, start: int, end: int | None, total: int | None, asked: Asked) -> None:
        self._response = response
        self._end = end
        self._asked = asked
        self.start = start
        """The byte of the file at which the body begins: 0 if the server ignored the range."""
        self.total_bytes = total
        """Of the whole file, as this answer says it; None where it does not."""

    @property
    def is_whole(self) -> bool:
        """Whether the server ignored the range and sends the file from its first byte to its last."""
        return self._response.status_code == 200

    async def chunks(self, *, beyond: bool = False) -> AsyncIterator[bytes]:
        """Yield the body in pieces of at most 1 MiB, and not a byte beyond the end that was asked for unless `beyond`.

        Raises:
            HubError: the connection broke off or stands still; mostly a TransientHubError.
        """
        left = None if self._end is None or beyond else self._end - self.start
        pieces = self._response.aiter_raw()
        while left is None or left > 0:
            failure = None
            try:
                piece = await anext(pieces, None)
            except Exception as error:
                failure = translated(error, self._asked)
            if failure is not None:
                raise failure
            if piece is None:
                return
            piece = piece if left is None else piece[:left]
            left = None if left is None else left - len(piece)
            for at in range(0, len(piece), _MAX_CHUNK_BYTES):
                yield piece[at : at + _MAX_CHUNK_BYTES]


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """Which bytes of which file to ask for."""

    url: str
    start: int
    end: int | None
    """Exclusive; None: to the file's end."""
    size_bytes: int
    """Of the whole file, as its metadata had it."""


@asynccontextmanager
async def open_range(
    client: httpx2.AsyncClient,
    wanted: RangeRequest,
    *,
    hub_headers: Mapping[str, str],
    endpoint: str,
    asked: Asked,
) -> AsyncIterator[RangeReply]:
    """Ask for bytes and give the answer, checked to be the range that was asked for or the whole file.

    `hub_headers` may hold the token; they go to the Hub alone.

    Raises:
        ForeignRefusalError: another host refused, as it does when the signature of an address has run out.
        LocalspecError: HubError and its kinds, DownloadError.
    """
    response = await _answer(client, wanted, hub_headers, endpoint, asked)
    try:
        yield _checked(response, wanted, asked)
    finally:
        await response.aclose()


async def _answer(
    client: httpx2.AsyncClient, wanted: RangeRequest, hub_headers: Mapping[str, str], endpoint: str, asked: Asked
) -> httpx2.Response:
    """Follow redirects to an answer that is no redirect and no failure."""
    last = "" if wanted.end is None else str(wanted.end - 1)
    common = {"Range": f"bytes={wanted.start}-{last}", "Accept-Encoding": "identity"}
    url, location = wanted.url, ""
    for _ in range(MAX_REDIRECTS + 1):
        failure: LocalspecError | None = None
        response = None
        try:
            url = urljoin(url, location)
            at_hub = is_hub(url, endpoint)
            own = dict(hub_headers) if at_hub else {"user-agent": hub_headers.get("user-agent", "localspec")}
            request = client.build_request("GET", url, headers={**own, **common}, timeout=timeout())
            response = await client.send(request, stream=True, follow_redirects=False)
            failure = _failure(response, at_hub, asked)
        except ValueError:
            failure = no_web_address(asked)
        except Exception as error:
            failure = translated(error, asked)
        if failure is not None:
            if response is not None:
                await response.aclose()
            raise failure
        assert response is not None
        if not response.has_redirect_location:
            return response
        location = response.headers["Location"]
        await response.aclose()
    raise too_many_redirects(asked)


def _failure(response: httpx2.Response, at_hub: bool, asked: Asked) -> LocalspecError | None:
    status = response.status_code
    if status in (200, 206) or response.has_redirect_location:
        return None
    if not at_hub and status in (400, 401, 403, 404):
        return ForeignRefusalError(
            f"The host of {asked.what} refused with status {status}.", "Try again: its address may have run out."
        )
    if status >= 400:
        return status_failure(status, response.headers, asked)
    return HubError(f"{asked.what}: the Hub answered with status {status}.", "Check HF_ENDPOINT.")


def _checked(response: httpx2.Response, wanted: RangeRequest, asked: Asked) -> RangeReply:
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise DownloadError(
            f"{asked.what} came compressed, which was not asked for.", "Check the proxy and HF_ENDPOINT."
        )
    if response.status_code == 200:
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else None
        _check_total(total, wanted, asked)
        return RangeReply(response, 0, wanted.end, total, asked)
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
    if match is None or int(match[1]) != wanted.start or int(match[2]) < wanted.start:
        raise DownloadError(
            f"{asked.what}: other bytes came than were asked for.", "Check the proxy and HF_ENDPOINT, and try again."
        )
    total = None if match[3] == "*" else int(match[3])
    _check_total(total, wanted, asked)
    return RangeReply(response, wanted.start, wanted.end, total, asked)


def _check_total(total: int | None, wanted: RangeRequest, asked: Asked) -> None:
    if total is not None and total != wanted.size_bytes:
        raise DownloadError(
            f"{asked.what} is said to have {total} bytes, and then {wanted.size_bytes}.",
            "It may have just been replaced: try again.",
        )
