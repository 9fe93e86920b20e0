"""How the test hub answers one request: what would be right, then what the faults make of it."""

from __future__ import annotations

import hashlib
import json
import select
import socket
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.hub.faults import Fault, Server
from tests.hub.repositories import Content
from tests.hub.right_answers import Answer, Target, api_answer, file_answer, ranged, target_of

if TYPE_CHECKING:
    from tests.hub.server import TestHub, _Server

_PIECE_BYTES = 2**16
_PORTAL = b"<!DOCTYPE html><html><body><h1>Welcome to the airport</h1><a href='/accept'>Accept</a></body></html>"


@dataclass(slots=True)
class Request:
    """One request and what became of it."""

    method: str
    path: str
    """With the query."""
    names: tuple[str, ...]
    """What it is about: the path without the query, and `owner/name` or `owner/name/file`."""
    headers: dict[str, str]
    """Names in small letters."""
    port: Server
    status: int = 0
    bytes_sent: int = 0
    """Of the body, given to the network."""
    is_done: bool = False


class Answering(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "TestHub"
    sys_version = ""
    # Headers and bodies go out separately; together with delayed acknowledgements that would cost 40 ms an answer.
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet: the record of requests says it all."""

    def do_GET(self) -> None:
        """Answer with headers and a body."""
        self._answer()

    def do_HEAD(self) -> None:
        """Answer with headers alone."""
        self._answer()

    @property
    def hub(self) -> TestHub:
        return self.server.hub

    def _answer(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        target = target_of(self.hub, self.server.port_name, path)
        names = (path, target.name) if target.name else (path,)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, names, headers, self.server.port_name)
        self.hub.record(request)
        faults = self.hub.faults.matching(names, self.command, self.server.port_name)
        try:
            self._send(request, self._decide(request, target, parse_qs(url.query), faults), faults)
        finally:
            with self.hub.lock:
                request.is_done = True

    def _decide(self, request: Request, target: Target, query: dict[str, list[str]], faults: list[Fault]) -> Answer:
        """Return the answer, with all faults that concern its status and headers."""
        for fault in faults:
            if fault.delay_s and self.hub.faults.use(fault):
                self.hub.stalled.set()
                self.hub.wait(fault.delay_s)
        for fault in faults:
            instead = self._instead(request, target, fault)
            if instead is not None and self.hub.faults.use(fault):
                return instead
        range_header = None if any(fault.ignore_range for fault in faults) else request.headers.get("range")
        if self.server.port_name == "cdn":
            answer = self._from_cdn(request, target, query, range_header)
        elif target.kind == "file":
            answer = file_answer(target, request.headers, range_header)
        else:
            answer = api_answer(self.hub, target, request.headers, query)
        if range_header is None and "range" in request.headers and request.method == "GET":
            for fault in faults:
                if fault.ignore_range:
                    self.hub.faults.use(fault)
        return answer

    def _instead(self, request: Request, target: Target, fault: Fault) -> Answer | None:
        """Return what a fault answers with in place of the right answer, if it does."""
        if fault.status is not None or fault.body is not None:
            headers = {"Content-Type": "application/json"} | dict(fault.headers)
            if fault.retry_after is not None:
                headers["Retry-After"] = str(fault.retry_after)
            if fault.error_code:
                headers["X-Error-Code"] = fault.error_code
            if fault.error_message:
                headers["X-Error-Message"] = fault.error_message
            status = fault.status or 200
            body = fault.body if fault.body is not None else json.dumps({"error": fault.error_message}).encode()
            return Answer(status, headers, body)
        if fault.html:
            return Answer(200, {"Content-Type": "text/html; charset=utf-8"}, _PORTAL)
        if fault.location:
            return Answer(302, {"Location": fault.location})
        if fault.redirect_loop:
            path, _, count = request.path.partition("?hop=")
            return Answer(302, {"Location": f"{self.server.url}{path}?hop={int(count or 0) + 1}"})
        if fault.redirect and self.server.port_name == "hub" and target.kind == "file":
            return self._redirected(target, request.headers)
        return None

    def _redirected(self, target: Target, headers: dict[str, str]) -> Answer | None:
        answer = file_answer(target, headers, None)
        if answer.status != 200:
            return None
        place = f"{target.commit}/{quote(target.repository.name)}/{quote(target.path)}" if target.repository else ""
        query = f"Expires=4102444800&Signature={self.hub.signature}"
        kept = {name: value for name, value in answer.headers.items() if name.startswith("X-")}
        # As the Hub: the ETag of the redirect itself names the content too.
        kept |= {"ETag": answer.headers["ETag"], "Location": f"{self.hub.cdn_url}/cdn/{place}?{query}"}
        return Answer(302, kept, b"Found. Redirecting")

    def _from_cdn(
        self, request: Request, target: Target, query: dict[str, list[str]], range_header: str | None
    ) -> Answer:
        if query.get("Signature") != [self.hub.signature] or "authorization" in request.headers:
            # S3 refuses a signed address that comes with another kind of authorisation.
            status = 400 if "authorization" in request.headers else 403
            return Answer(status, {"Content-Type": "application/xml"}, b"<Error><Code>AccessDenied</Code></Error>")
        if target.content is None:
            return Answer(404, {"Content-Type": "application/xml"}, b"<Error><Code>NoSuchKey</Code></Error>")
        etag = hashlib.md5(target.content.sha256.encode(), usedforsecurity=False).hexdigest()
        return ranged(target.content, {"ETag": f'"{etag}"'}, request.headers, range_header)

    def _send(self, request: Request, answer: Answer, faults: list[Fault]) -> None:
        headers = dict(answer.headers)
        length = answer.length if answer.content is not None else len(answer.body)
        is_chunked, is_wrong = False, False
        for fault in faults:
            changed = _changed_headers(headers, length, fault, answer.status)
            is_body = request.method == "GET" and answer.content is not None
            if fault.chunked and is_body:
                is_chunked = True
            elif changed == headers:
                continue
            if self.hub.faults.use(fault):
                headers, is_wrong = changed, is_wrong or fault.wrong_length is not None
        if is_chunked:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers.setdefault("Content-Length", str(length))
        if is_wrong:
            headers["Connection"] = "close"
        with self.hub.lock:
            request.status = answer.status
        self.send_response(answer.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if request.method == "HEAD":
            return
        if answer.content is None:
            self._write(request, answer.body)
        else:
            self._stream(request, answer, faults, is_chunked)
        if is_wrong:
            self.close_connection = True

    def _stream(self, request: Request, answer: Answer, faults: list[Fault], is_chunked: bool) -> None:
        """Send a file's bytes, with the faults that happen on the way."""
        content = cast("Content", answer.content)
        cuts = [fault for fault in faults if fault.cut_after is not None and fault.cut_after < answer.length]
        stalls = [fault for fault in faults if fault.stall_after is not None and fault.stall_after < answer.length]
        flips = [f for f in faults if f.flip_byte is not None and 0 <= f.flip_byte - answer.start < answer.length]
        flips = [fault for fault in flips if self.hub.faults.use(fault)]
        speed = min((fault.bytes_per_s for fault in faults if fault.bytes_per_s), default=None)
        piece_bytes = max(1, min(_PIECE_BYTES, int(speed / 50))) if speed else _PIECE_BYTES
        stops = sorted(fault.cut_after or 0 for fault in cuts) + sorted(fault.stall_after or 0 for fault in stalls)
        sent = 0
        while sent < answer.length:
            for cut in [fault for fault in cuts if fault.cut_after == sent]:
                if self.hub.faults.use(cut):
                    self._hang_up()
                    return
            for stall in [fault for fault in stalls if fault.stall_after == sent]:
                if self.hub.faults.use(stall):
                    self.hub.stalled.set()
                    self.hub.wait()
            limit = min([answer.length, sent + piece_bytes, *(stop for stop in stops if stop > sent)])
            piece = bytearray(content.read(answer.start + sent, limit - sent))
            for flip in flips:
                at = cast(int, flip.flip_byte) - answer.start - sent
                if 0 <= at < len(piece):
                    piece[at] ^= 1
            if is_chunked:
                self.connection.sendall(b"%x\r\n" % len(piece))
            self._write(request, piece)
            if is_chunked:
                self.connection.sendall(b"\r\n")
            sent = limit
            if speed and not self.hub.is_released:
                self.hub.wait(len(piece) / speed)
        if is_chunked:
            self.connection.sendall(b"0\r\n\r\n")

    def _write(self, request: Request, data: bytes | bytearray) -> None:
        """Send bytes and count those that the network has taken."""
        view = memoryview(data)
        while view:
            # Sent and counted at once: whoever has the bytes and then looks at the record finds them there.
            with self.hub.lock, suppress(BlockingIOError):
                sent = self.connection.send(view, getattr(socket, "MSG_DONTWAIT", 0))
                request.bytes_sent += sent
                view = view[sent:]
            if view:
                select.select([], [self.connection], [], 0.1)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


def _changed_headers(headers: dict[str, str], length: int, fault: Fault, status: int) -> dict[str, str]:
    """Return the headers of the right answer as a fault puts them."""
    changed = headers | dict(fault.headers)
    etags = {name for name in changed if name in ("ETag", "X-Linked-Etag")}
    if fault.wrong_etag:
        changed |= dict.fromkeys(etags, f'"{fault.wrong_etag}"')
    if fault.no_etag:
        changed = {name: value for name, value in changed.items() if name not in etags}
    if fault.no_commit:
        changed.pop("X-Repo-Commit", None)
    if fault.wrong_length is not None and status < 300 and fault.wrong_length != length:
        changed["Content-Length"] = str(fault.wrong_length)
    if fault.linked_size is not None and "X-Linked-Size" in changed:
        changed["X-Linked-Size"] = str(fault.linked_size)
    if fault.content_range and "Content-Range" in changed:
        changed["Content-Range"] = fault.content_range
    return changed
