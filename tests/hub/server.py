"""A Hub on 127.0.0.1 that answers what huggingface_hub asks for, and can go wrong in every way that a network can.

Files come from one port, or by redirect from a second one, the "CDN". Everything that was asked is on record.
"""

from __future__ import annotations

import os
import socket
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Unpack, cast

from tests.hub.answers import Answering, Request
from tests.hub.faults import Fault, Faults, Server, Wishes, is_named, make_fault
from tests.hub.repositories import Repository, content_of, virtual_content

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY", "WS_PROXY", "WSS_PROXY")
_STALL_S = 60.0


class TestHub:
    """A Hub and its CDN, served by threads until closed."""

    __test__ = False

    def __init__(self, home: Path | None = None) -> None:
        self._folder = None if home else tempfile.TemporaryDirectory(prefix="hub-")
        self.home = home or Path(cast("tempfile.TemporaryDirectory[str]", self._folder).name)
        """HF_HOME for whoever uses this Hub."""
        self.repositories: dict[str, Repository] = {}
        self.faults = Faults()
        self.signature = "f00dSIGNATUREf00d"
        """In the query of every redirect to the CDN; nobody should ever see it."""
        self.stalled = threading.Event()
        """Set once an answer is stalled or delayed."""
        self.lock = threading.Lock()
        self.failures: list[BaseException] = []
        self._requests: list[Request] = []
        self._released = threading.Event()
        self._servers: dict[Server, _Server] = {"hub": _Server(self, "hub"), "cdn": _Server(self, "cdn")}

    def add_repo(
        self,
        name: str,
        files: Mapping[str, bytes | Path] | None = None,
        *,
        tags: Iterable[str] = (),
        base_models: Iterable[str] = (),
        gated: bool | Literal["auto", "manual"] = False,
        token_needed: str | None = None,
        licence: str = "apache-2.0",
        downloads: int = 0,
        likes: int = 0,
        lfs: bool = True,
        gguf: Mapping[str, Any] | None = None,
    ) -> Repository:
        """Add a repository with one commit.

        Args:
            name: `owner/name`.
            files: content by path in the repository. `.gguf` files are in large-file storage if `lfs`.
            tags: further ones; `gguf`, `base_model:…` and `license:…` come by themselves.
            base_models: `owner/name` of each.
            gated: anybody sees the listing, but files need the token (nobody has it if none is named).
            token_needed: the token that may read; if the repository is not gated, it is private.
            licence: by its short name, empty for none.
            downloads: as many as the Hub claims.
            likes: likewise.
            lfs: whether `.gguf` files are in large-file storage.
            gguf: what the Hub says of the model, such as {"total": 135_000_000, "architecture": "llama"}.
        """
        repository = Repository(
            name, tuple(tags), tuple(base_models), gated, token_needed, licence, downloads, likes, lfs, gguf
        )
        repository.put({path: content_of(data) for path, data in (files or {}).items()})
        self.repositories[name] = repository
        return repository

    def add_virtual(self, repo: str, path: str, size: int, prefix: bytes = b"") -> None:
        """Add a file that claims a size: it begins with the prefix, and all the rest is zeros."""
        self.repositories[repo].put({path: virtual_content(size, prefix)})

    def replace(self, repo: str, path: str, data: bytes | Path) -> None:
        """Add or replace a file: a new commit and ETag; the old commit remains."""
        self.repositories[repo].put({path: content_of(data)})

    def fault(self, path: str | None = None, **wishes: Unpack[Wishes]) -> Fault:
        """Let something go wrong from now on; faults.Fault says what there is. Several faults add up."""
        return self.faults.add(make_fault(path, wishes))

    def heal(self) -> None:
        """Take all faults back."""
        self.faults.clear()

    @property
    def url(self) -> str:
        """The address that HF_ENDPOINT takes."""
        return self._servers["hub"].url

    @property
    def cdn_url(self) -> str:
        """The address that files may be redirected to."""
        return self._servers["cdn"].url

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests since the start or the last forget(), oldest first, those under way included."""
        with self.lock:
            return tuple(replace(request) for request in self._requests)

    def requests_for(self, path: str, method: str | None = None) -> tuple[Request, ...]:
        """Return the requests that are about a file, a repository or a URL path."""
        return tuple(
            request
            for request in self.requests
            if any(is_named(name, path) for name in request.names) and method in (None, request.method)
        )

    def bytes_sent(self, path: str | None = None) -> int:
        """Return how many bytes of bodies went out, answers of the API included unless a path is named."""
        found = self.requests if path is None else self.requests_for(path)
        return sum(request.bytes_sent for request in found)

    def forget(self) -> None:
        """Empty the record of requests."""
        with self.lock:
            self._requests.clear()

    def release(self) -> None:
        """Let all stalled and delayed answers go on, and all later ones too."""
        self._released.set()

    def environment(self) -> dict[str, str]:
        """Return an environment for subprocesses in which this is the Hub: this process's own, with no token, no
        proxy, and nothing else that huggingface_hub reads."""
        kept = {name: value for name, value in os.environ.items() if not is_hub_variable(name)}
        # Telemetry off: huggingface_hub otherwise asks the Hub for a list of its own before the first request.
        return kept | {"HF_ENDPOINT": self.url, "HF_HOME": str(self.home), "HF_HUB_DISABLE_TELEMETRY": "1"}

    def close(self) -> None:
        """End both servers and what they are sending.

        Raises:
            AssertionError: a request made the server itself fail.
        """
        self._released.set()
        for server in self._servers.values():
            server.close()
        if self._folder is not None:
            self._folder.cleanup()
        if self.failures:
            raise AssertionError("The test hub failed.") from self.failures[0]

    def __enter__(self) -> TestHub:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def record(self, request: Request) -> None:
        """Put a request on record."""
        with self.lock:
            self._requests.append(request)

    def wait(self, seconds: float = _STALL_S) -> None:
        """Hold a stalled answer until released, for some seconds at most."""
        self._released.wait(seconds)

    @property
    def is_released(self) -> bool:
        """Whether stalled answers go on."""
        return self._released.is_set()


def is_hub_variable(name: str) -> bool:
    """Whether an environment variable has a say in where huggingface_hub finds things, or how it gets there."""
    upper = name.upper()
    prefixes = ("HF_", "HUGGING", "TRANSFORMERS_OFFLINE", "DO_NOT_TRACK", "DISABLE_TELEMETRY")
    return upper.startswith(prefixes) or upper in (*_PROXIES, "SSL_CERT_FILE", "SSL_CERT_DIR")


class _Server(ThreadingHTTPServer):
    """One port."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, hub: TestHub, port_name: Server) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.hub = hub
        self.port_name: Server = port_name
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._connections: set[socket.socket] = set()
        self._is_closed = False
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), name=f"test {port_name}", daemon=True)
        self._thread.start()

    def server_bind(self) -> None:
        # http.server's own asks the resolver for the machine's name, which may take seconds without a network.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self.hub.lock:
            self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self.hub.lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        # Clients that go away in the middle are what many tests are about.
        if error is not None and not self._is_closed and not isinstance(error, ConnectionError | TimeoutError):
            self.hub.failures.append(error)

    def close(self) -> None:
        self._is_closed = True
        self.shutdown()
        self._thread.join()
        with self.hub.lock:
            open_connections = tuple(self._connections)
        for connection in open_connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()
