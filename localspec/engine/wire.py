"""One JSON line per message. The only file that knows the format."""

from __future__ import annotations

from pydantic import ConfigDict, TypeAdapter, ValidationError

from localspec.engine.events import Event
from localspec.engine.requests import Request
from localspec.errors import LocalspecError

# A file's metadata and a model's logits may hold NaN and infinities: they pass as these constants, not as null.
_CONFIG = ConfigDict(ser_json_inf_nan="constants")
_REQUESTS: TypeAdapter[Request] = TypeAdapter(Request, config=_CONFIG)
_EVENTS: TypeAdapter[Event] = TypeAdapter(Event, config=_CONFIG)


class WireError(LocalspecError):
    """A line is no message of this protocol."""


def encode_request(request: Request) -> bytes:
    """Return the request as one line, newline included."""
    return _REQUESTS.dump_json(request) + b"\n"


def decode_request(line: bytes) -> Request:
    """Return the request in a line.

    Raises:
        WireError: the line is not a request.
    """
    try:
        return _REQUESTS.validate_json(line)
    except ValidationError as error:
        raise _bad_line("request", line, error) from None


def encode_event(event: Event) -> bytes:
    """Return the event as one line, newline included."""
    return _EVENTS.dump_json(event) + b"\n"


def decode_event(line: bytes) -> Event:
    """Return the event in a line.

    Raises:
        WireError: the line is not an event.
    """
    try:
        return _EVENTS.validate_json(line)
    except ValidationError as error:
        raise _bad_line("event", line, error) from None


def _bad_line(kind: str, line: bytes, error: ValidationError) -> WireError:
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "line"
    return WireError(
        f"This line is no {kind} of the engine protocol: {place}: {first['msg']}",
        f"The line begins with {line[:80]!r}. App and engine may be of different versions.",
    )
