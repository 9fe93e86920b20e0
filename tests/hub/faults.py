"""What can go wrong with an answer of the test hub."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

Server = Literal["hub", "cdn"]


class Wishes(TypedDict, total=False):
    """The keywords of TestHub.fault; each has the meaning of Fault's field."""

    times: int | None
    method: str | None
    port: Server | None
    after: int
    status: int
    error_code: str
    error_message: str
    retry_after: str | int
    delay_s: float
    headers: Mapping[str, str]
    body: bytes
    html: bool
    redirect: bool
    redirect_loop: bool
    location: str
    wrong_etag: str
    no_etag: bool
    no_commit: bool
    wrong_length: int
    linked_size: int
    ignore_range: bool
    content_range: str
    chunked: bool
    cut_after: int
    stall_after: int
    bytes_per_s: float
    flip_byte: int


@dataclass(slots=True)
class Fault:
    """One thing that goes wrong, for some or all answers. What is None, empty or False stays right."""

    path: str | None
    """Of a file (`a.gguf`), a repository (`owner/name`) or any tail of the URL's path; None: every answer."""
    times: int | None = None
    """For so many answers that it really changed; None: for ever."""
    method: str | None = None
    port: Server | None = None
    """Only at the Hub itself, or only where a redirect leads."""
    after: int = 0
    """Spares so many requests first."""

    status: int | None = None
    """Answer with this status and no file."""
    error_code: str = ""
    """X-Error-Code: GatedRepo, RepoNotFound, RevisionNotFound or EntryNotFound."""
    error_message: str = ""
    retry_after: str | int | None = None
    delay_s: float = 0.0
    """Say nothing for so long, or until released."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Put over those of the right answer."""
    body: bytes | None = None
    """Answer with these bytes instead, as JSON."""
    html: bool = False
    """The page of a captive portal."""
    redirect: bool = False
    """Send requests for files to the other port, with a signature in the query."""
    redirect_loop: bool = False
    location: str = ""
    """Send requests to this address."""
    wrong_etag: str = ""
    no_etag: bool = False
    no_commit: bool = False
    wrong_length: int | None = None
    """Content-Length."""
    linked_size: int | None = None
    """X-Linked-Size."""
    ignore_range: bool = False
    content_range: str = ""
    chunked: bool = False
    """No Content-Length: the body comes in chunks of stated size."""
    cut_after: int | None = None
    """Close the connection after so many bytes of this body."""
    stall_after: int | None = None
    """Send no more after so many bytes of this body, until released or a minute has passed."""
    bytes_per_s: float | None = None
    flip_byte: int | None = None
    """Position in the file; the lowest bit is wrong."""


class Faults:
    """The faults in force. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Put a fault in force."""
        with self._lock:
            self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """From now on all goes well."""
        with self._lock:
            self._faults.clear()

    def matching(self, names: tuple[str, ...], method: str, port: Server) -> list[Fault]:
        """Return the faults that may concern a request, which goes by several names."""
        with self._lock:
            found = []
            for fault in self._faults:
                if fault.times == 0 or fault.method not in (None, method) or fault.port not in (None, port):
                    continue
                if fault.path is not None and not any(is_named(name, fault.path) for name in names):
                    continue
                if fault.after:
                    fault.after -= 1
                    continue
                found.append(fault)
            return found

    def use(self, fault: Fault) -> bool:
        """Count a fault as having happened; False if another request has had the last one."""
        with self._lock:
            if fault.times == 0:
                return False
            if fault.times is not None:
                fault.times -= 1
            return True


def is_named(name: str, path: str) -> bool:
    """Whether a path is a name or the tail of one, in whole parts."""
    return f"/{name.strip('/')}".endswith(f"/{path.strip('/')}")


def make_fault(path: str | None, wishes: Wishes) -> Fault:
    """Return a fault from keywords."""
    values: dict[str, Any] = dict(wishes)
    return Fault(path, **values)
