"""The Hub: search, listings, where a file is, and its bytes. Made of huggingface_hub wherever that does the job."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from localspec import __version__
from localspec.catalog.hub.api import DEADLINE_S, ask_api, unusable_network
from localspec.catalog.hub.environment import import_library, origin
from localspec.catalog.hub.failures import (
    Asked,
    ForeignRefusalError,
    no_web_address,
    not_the_hub,
    offline_mode,
    too_slow,
    translated,
)
from localspec.catalog.hub.listing import MAX_FILE_BYTES, hit_of, is_safe_path, listing_of
from localspec.catalog.hub.threads import in_daemon_thread
from localspec.catalog.hub.transport import (
    RangeReply,
    RangeRequest,
    is_hub,
    open_range,
    settle_library,
    timeout,
)
from localspec.catalog.hub.values import RemoteFile, RepoFile, RepoHit, RepoListing
from localspec.errors import DownloadError, HubError

if TYPE_CHECKING:
    import httpx2
    from huggingface_hub.file_download import HfFileMetadata

T = TypeVar("T")

_ETAG = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}", re.ASCII)
_EXPANDED = ("baseModels", "cardData", "downloads", "gated", "gguf", "lastModified", "likes", "tags")


class Hub:
    """The Hugging Face Hub, or what HF_ENDPOINT names in its place.

    All methods raise HubError or one of its kinds, or DownloadError. They can be cancelled at any moment and then
    return at once. One Hub belongs to one event loop.
    """

    def __init__(self, endpoint: str | None = None, token: str | Literal[False] | None = None) -> None:
        """Ask `endpoint` with `token`; None is what huggingface_hub is set to, False is no token.

        Raises:
            HubError: the endpoint is no web address.
            SettingsError: an environment variable by which the Hub is reached is wrong.
        """
        import_library()
        from huggingface_hub import constants

        settle_library()
        self._endpoint = (endpoint or constants.ENDPOINT).rstrip("/")
        self._token = token
        self._client: httpx2.AsyncClient | None = None
        self._headers: dict[str, str] = {}
        """With the token, if there is one; empty until first needed."""
        is_address = True
        try:
            origin(self._endpoint)
        except ValueError:
            is_address = False
        if not is_address:
            raise HubError(
                "The Hub's endpoint is no web address.", "Set HF_ENDPOINT to one with https://, or unset it."
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def search(self, words: str, limit: int = 20) -> tuple[RepoHit, ...]:
        """Return the GGUF repositories that match words, those that are downloaded most first."""

        def ask() -> tuple[RepoHit, ...]:
            # HfApi.list_models does this with five retries and pauses between: without a network it would take 23 s
            # to say so, and a search is asked again more quickly than that.
            query: dict[str, str | list[str]] = {
                "search": words,
                "filter": "gguf",
                "sort": "downloads",
                "limit": str(limit),
                "expand": list(_EXPANDED),
            }
            answers = self._answer(f"{self._endpoint}/api/models", query, self._asked())
            if not isinstance(answers, list):
                raise ValueError("no list")
            return tuple(hit for answer in answers[:limit] if (hit := hit_of(answer)) is not None)

        return await self._ask(ask, self._asked())

    async def listing(self, repo: str, revision: str = "main") -> RepoListing:
        """Return a repository's files at a branch, tag or commit."""

        def ask() -> RepoListing:
            from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

            # HfApi.model_info would unpack an answer of any length.
            validate_repo_id(repo)
            url = f"{self._endpoint}/api/models/{repo}/revision/{quote(revision, safe='')}"
            return listing_of(self._answer(url, {"blobs": "true"}, self._asked(repo, revision)), repo, revision)

        return await self._ask(ask, self._asked(repo, revision))

    async def locate(self, listing: RepoListing, file: RepoFile) -> RemoteFile:
        """Return where a file's bytes are to be had.

        Raises:
            DownloadError: its size or name there is not what the listing says, or is none.
        """
        asked = self._asked(listing.repo, listing.commit, file.path)
        if not is_safe_path(file.path):
            raise DownloadError("A file's path would leave the folder that it belongs to.", "Choose another file.")
        url = self._url(listing.repo, listing.commit, file.path)

        def ask() -> HfFileMetadata:
            from huggingface_hub import get_hf_file_metadata

            return get_hf_file_metadata(
                url, token=False, headers=self._headers, timeout=_untyped_timeout(), endpoint=self._endpoint
            )

        found = await self._ask(ask, asked)
        # As huggingface_hub does: without this header it is some proxy or login page that answers.
        if found.commit_hash != listing.commit:
            raise not_the_hub(asked)
        location, sends_token = _address(url, found.location, self._endpoint, asked)
        return RemoteFile(
            repo=listing.repo,
            commit=listing.commit,
            path=file.path,
            url=location,
            etag=_etag(found.etag, file, asked),
            size_bytes=_size(found.size, file, asked),
            sends_token=sends_token,
        )

    @asynccontextmanager
    async def read(self, remote: RemoteFile, start: int = 0, end: int | None = None) -> AsyncIterator[RangeReply]:
        """Give the answer to a request for the bytes from `start` to before `end` (None: to the last one)."""
        self._check_online()
        if not self._headers:
            await self._ask(self._fill_headers, self._asked())
        asked = self._asked(remote.repo, remote.commit, remote.path, is_body=True)
        client = self._async_client()
        own_url = self._url(remote.repo, remote.commit, remote.path)

        def opened(url: str) -> AbstractAsyncContextManager[RangeReply]:
            wanted = RangeRequest(url, start, end, remote.size_bytes)
            return open_range(client, wanted, hub_headers=self._headers, endpoint=self._endpoint, asked=asked)

        async with AsyncExitStack() as stack:
            urls = (remote.url,) if remote.url == own_url else (remote.url, own_url)
            refusal: ForeignRefusalError | None = None
            for url in urls:
                # Signed addresses run out within the hour; the Hub's own leads to a new one.
                try:
                    reply = await stack.enter_async_context(opened(url))
                    break
                except ForeignRefusalError as error:
                    refusal = error
            else:
                assert refusal is not None
                raise refusal
            yield reply

    def _answer(self, url: str, query: Mapping[str, str | list[str]], asked: Asked) -> Any:
        return ask_api(url, query, hub_headers=self._headers, endpoint=self._endpoint, asked=asked)

    def _async_client(self) -> httpx2.AsyncClient:
        from huggingface_hub import get_async_session

        if self._client is None:
            with suppress(Exception):
                self._client = get_async_session()
        if self._client is None:
            raise unusable_network()
        # This hook unpacks the bodies of refusals, which nobody reads, to whatever length they have.
        self._client.event_hooks = {**self._client.event_hooks, "response": []}
        return self._client

    def _url(self, repo: str, commit: str, path: str) -> str:
        from huggingface_hub import hf_hub_url

        return hf_hub_url(repo, path, revision=commit, endpoint=self._endpoint)

    def _asked(self, repo: str = "", revision: str = "", path: str = "", is_body: bool = False) -> Asked:
        parts = urlsplit(self._endpoint)
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        return Asked(shown, repo, revision, path, has_token="authorization" in self._headers, is_body=is_body)

    def _check_online(self) -> None:
        from huggingface_hub import constants

        if constants.is_offline_mode():
            raise offline_mode()

    def _fill_headers(self) -> None:
        """Find the token, for which huggingface_hub may read files and refresh a login over the network."""
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        if not self._headers:
            self._headers = build_hf_headers(token=self._token, library_name="localspec", library_version=__version__)

    async def _ask(self, function: Callable[[], T], asked: Asked) -> T:
        """Return what a blocking question answers, in a thread of its own, with all failures translated."""
        self._check_online()

        def ask() -> T:
            try:
                self._fill_headers()
                return function()
            except Exception as error:
                failure = translated(error, replace(asked, has_token="authorization" in self._headers))
            raise failure

        try:
            async with asyncio.timeout(DEADLINE_S):
                return await in_daemon_thread(ask)
        except TimeoutError:
            pass
        raise too_slow(asked, DEADLINE_S)


def _untyped_timeout() -> Any:
    # huggingface_hub declares a float but hands it on to httpx2, which takes one limit for each step.
    return timeout()


def _etag(said: str | None, file: RepoFile, asked: Asked) -> str:
    etag = (said or "").lower()
    if file.sha256 and len(etag) != len(file.sha256):
        etag = file.sha256
    if not _ETAG.fullmatch(etag):
        if not file.sha256:
            raise DownloadError(f"The Hub does not name the content of {asked.what}.", "Try another mirror or file.")
        etag = file.sha256
    return etag


def _size(said: int | None, file: RepoFile, asked: Asked) -> int:
    size = file.size_bytes if said is None else said
    if size < 0 or size > MAX_FILE_BYTES:
        claim = f"{size} bytes" if abs(size) < 10**20 else "a size beyond all bounds"
        raise HubError(f"{asked.what} claims {claim}, which no model has.", "Do not trust this repository.")
    if file.size_bytes and size != file.size_bytes:
        raise DownloadError(
            f"{asked.what} has {size} bytes where the listing says {file.size_bytes}.", "Try again in a while."
        )
    if said is None and not size:
        raise DownloadError(f"The Hub does not say how long {asked.what} is.", "Try another mirror or file.")
    return size


def _address(own: str, location: str, endpoint: str, asked: Asked) -> tuple[str, bool]:
    """Return where a file lies, and whether the token may go there."""
    try:
        url = urljoin(own, location)
        return url, is_hub(url, endpoint)
    except ValueError:
        failure = no_web_address(asked)
    raise failure
