"""Every request and event survives the wire, whatever it holds, on one line."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localspec.catalog.header import ArrayValue, GgufHeader, Scalar, TensorInfo
from localspec.engine import events, requests
from localspec.engine.events import Event, HeaderRead, LoadProgress
from localspec.engine.interface import LAST_EVENTS
from localspec.engine.requests import Generate, Probe, Request
from localspec.engine.wire import WireError, decode_event, decode_request, encode_event, encode_request

REQUEST_TYPES: tuple[type[Any], ...] = get_args(get_args(requests.Request)[0])
EVENT_TYPES: tuple[type[Any], ...] = get_args(get_args(events.Event)[0])

FLOATS = st.floats(allow_nan=False)
TEXTS = st.text(max_size=20)
SCALARS = st.integers(-(2**63), 2**64 - 1) | FLOATS | st.booleans() | TEXTS
ARRAYS = st.builds(
    ArrayValue,
    type=TEXTS,
    length=st.integers(0, 2**63),
    items=st.lists(st.integers(), max_size=4).map(tuple) | st.lists(TEXTS, max_size=4).map(tuple),
)
HEADERS = st.builds(
    GgufHeader,
    path=TEXTS,
    version=st.just(3),
    file_bytes=st.integers(0),
    data_offset=st.integers(0),
    shards=st.lists(TEXTS, max_size=2).map(tuple),
    metadata=st.dictionaries(TEXTS, SCALARS | ARRAYS, max_size=4),
    tensors=st.lists(
        st.builds(
            TensorInfo,
            name=TEXTS,
            type=TEXTS,
            shape=st.lists(st.integers(), max_size=4).map(tuple),
            offset=st.integers(),
            size_bytes=st.integers(),
        ),
        max_size=2,
    ).map(tuple),
)

st.register_type_strategy(float, FLOATS)
st.register_type_strategy(str, TEXTS)
st.register_type_strategy(GgufHeader, HEADERS)

quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def values(kind: type[Any]) -> st.SearchStrategy[Any]:
    tag = kind.__dataclass_fields__["type"].default
    return st.from_type(kind).map(lambda value: value if value.type == tag else pytest.fail("wrong tag"))


def test_each_message_type_has_its_own_tag() -> None:
    for kinds in (REQUEST_TYPES, EVENT_TYPES):
        tags = [kind.__dataclass_fields__["type"].default for kind in kinds]
        assert len(set(tags)) == len(tags) > 5
    assert set(LAST_EVENTS) <= {kind.__dataclass_fields__["type"].default for kind in EVENT_TYPES}


@pytest.mark.parametrize("kind", REQUEST_TYPES, ids=lambda kind: kind.__name__)
@quick
@given(data=st.data())
def test_requests_come_back_equal(kind: type[Any], data: st.DataObject) -> None:
    request: Request = data.draw(values(kind))
    line = encode_request(request)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode_request(line) == request
    assert type(decode_request(line)) is kind


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
@quick
@given(data=st.data())
def test_events_come_back_equal(kind: type[Any], data: st.DataObject) -> None:
    event: Event = data.draw(values(kind))
    line = encode_event(event)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode_event(line) == event
    assert type(decode_event(line)) is kind


def test_numbers_of_metadata_keep_their_types() -> None:
    metadata: dict[str, Scalar | ArrayValue] = {"whole": 1, "real": 1.0, "flag": True, "text": "1", "large": 2**64 - 1}
    event = HeaderRead(1, GgufHeader("p", 3, 1, 1, (), metadata))
    back = decode_event(encode_event(event))
    assert isinstance(back, HeaderRead)
    assert {key: type(value) for key, value in back.header.metadata.items()} == {
        key: type(value) for key, value in metadata.items()
    }


def test_not_a_number_passes() -> None:
    back = decode_event(encode_event(LoadProgress(1, "target", math.nan)))
    assert isinstance(back, LoadProgress)
    assert math.isnan(back.fraction)


def test_line_ends_inside_text_stay_inside_the_line() -> None:
    request = Generate(1, text="a\nb\r\n\x85\u2028\x00\x1b[31m")
    line = encode_request(request)
    assert line.count(b"\n") == 1
    assert b"\x1b" not in line
    assert decode_request(line) == request


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{}",
        b"[]",
        b"null",
        b"llama_model_load: error\n",
        b'{"type": "probe"}',
        b'{"type": "launch", "id": 1}',
        b'{"type": "probe", "id": "one"}',
        b'{"type": "generate", "id": 1, "tokens": ["\xff"]}',
        b"[" * 5000,
        b"\xff\xfe\x1b[2J",
    ],
)
def test_what_is_no_message_is_a_wire_error_without_escape_codes(line: bytes) -> None:
    for decode in (decode_request, decode_event):
        with pytest.raises(WireError) as caught:
            decode(line)
        assert "\x1b" not in caught.value.message + caught.value.hint
        assert len(caught.value.hint) < 1000


def test_requests_and_events_are_not_taken_for_each_other() -> None:
    with pytest.raises(WireError):
        decode_event(encode_request(Probe(1)))
    with pytest.raises(WireError):
        decode_request(encode_event(LoadProgress(1, "target", 0.5)))
