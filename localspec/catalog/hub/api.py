"""Questions to the Hub's API, whose answers are JSON. They block: ask them in a thread."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from localspec.catalog.hub.failures import (
    Asked,
    no_web_address,
    not_the_hub,
    status_failure,
    too_long,
    too_many_redirects,
    too_slow,
)
from localspec.catalog.hub.transport import MAX_REDIRECTS, is_hub, timeout
from localspec.errors import SettingsError

if TYPE_CHECKING:
    import httpx2

DEADLINE_S = 60.0
"""For one answer to a question. Timeouts count from byte to byte, and a drip would outlast them all."""

MAX_ANSWER_BYTES = 16 << 20
"""Of text, unpacked. The listing of a repository with 50,000 files is shorter; parsed, it takes 20 times as much."""

_PIECE_BYTES = 1 << 18
_GZIP = 16 + zlib.MAX_WBITS


def ask_api(
    url: str, query: Mapping[str, str | list[str]], *, hub_headers: Mapping[str, str], endpoint: str, asked: Asked
) -> Any:
    """Return the JSON document that answers a question.

    Args:
        url: of the API.
        query: what is asked.
        hub_headers: for the Hub alone, since they may hold the token.
        endpoint: the Hub's address.
        asked: for messages.

    Raises:
        LocalspecError: the Hub refused, or its answer is too long or too slow.
        Exception: whatever httpx2 raises where the Hub cannot be reached, and zlib or json where it is no answer.
    """
    session = _session()
    until = time.monotonic() + DEADLINE_S
    parameters: Mapping[str, str | list[str]] | None = query
    for _ in range(MAX_REDIRECTS + 1):
        headers = {**(hub_headers if is_hub(url, endpoint) else {}), "Accept-Encoding": "gzip"}
        request = session.build_request("GET", url, params=parameters, headers=headers, timeout=timeout())
        # Redirects are followed here: httpx2 would read the whole body of each, and unpack it.
        response = session.send(request, stream=True, follow_redirects=False)
        try:
            if not response.has_redirect_location:
                return _document(response, until, asked)
            parameters = None
            try:
                url = urljoin(url, response.headers["Location"])
                is_hub(url, endpoint)
            except ValueError:
                break
        finally:
            response.close()
    else:
        raise too_many_redirects(asked)
    raise no_web_address(asked)


def _session() -> httpx2.Client:
    """Return huggingface_hub's client, which is made on first use by the environment's proxies and certificates."""
    from huggingface_hub import get_session

    try:
        return get_session()
    except Exception:
        pass
    raise unusable_network()


def unusable_network() -> SettingsError:
    """Return the failure of an environment by which no connection can be made."""
    return SettingsError(
        "The settings of the network cannot be used as they stand.",
        "Check the environment variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR.",
    )


def _document(response: httpx2.Response, until: float, asked: Asked) -> Any:
    if response.status_code >= 400:
        raise status_failure(response.status_code, response.headers, asked)
    if response.status_code != 200:
        raise not_the_hub(asked)
    text = bytearray()
    for piece in _unpacked(response, asked):
        text += piece
        if len(text) > MAX_ANSWER_BYTES:
            raise too_long(asked, MAX_ANSWER_BYTES)
        if time.monotonic() > until:
            raise too_slow(asked, DEADLINE_S)
    return json.loads(text)


def _unpacked(response: httpx2.Response, asked: Asked) -> Iterator[bytes]:
    """Yield the body, unpacked in small pieces whatever it unpacks to."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        yield from response.iter_raw()
        return
    if encoding not in ("gzip", "x-gzip"):
        raise not_the_hub(asked)
    unpacker = zlib.decompressobj(_GZIP)
    for piece in response.iter_raw():
        is_more = True
        while is_more and not unpacker.eof:
            unpacked = unpacker.decompress(piece, _PIECE_BYTES)
            yield unpacked
            piece = unpacker.unconsumed_tail
            # A full piece may not have been all that these bytes unpack to.
            is_more = bool(piece) or len(unpacked) == _PIECE_BYTES
        if unpacker.eof:
            return
