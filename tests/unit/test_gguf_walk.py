"""The walk over a GGUF's start gives one verdict however its bytes are cut, and never asks for more than the header."""

from __future__ import annotations

import hashlib
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.catalog.gguf_walk import HeaderWalk
from localspec.errors import ModelFileError
from tests.damaged_gguf import FAULTS, STRING, U8, RawGguf, array, integer, string, text, whole


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, bytes]]:
    """Size and first bytes of each damaged file; a sparse file's zeros are left out."""
    folder = tmp_path_factory.mktemp("starts")
    found = {}
    for fault in FAULTS:
        path = folder / fault.name
        fault.make(path)
        size = path.stat().st_size
        with path.open("rb") as file:
            found[fault.name] = size, file.read(min(size, 1 << 16))
        path.unlink()
    return found


def verdict(size: int, start: bytes, cuts: list[int]) -> tuple[str, int, str]:
    """Return the words of the failure, the header's length and the fingerprint."""
    try:
        walk = HeaderWalk(size, "model.gguf")
        for begin, end in zip([0, *cuts], [*cuts, len(start)], strict=True):
            walk.feed(start[begin:end])
    except ModelFileError as error:
        return error.message, 0, ""
    return "", walk.header_bytes, walk.fingerprint


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), num_cuts=st.integers(1, 60))
@pytest.mark.parametrize("name", [fault.name for fault in FAULTS])
def test_pieces_give_the_verdict_of_the_whole(
    name: str, starts: dict[str, tuple[int, bytes]], seed: int, num_cuts: int
) -> None:
    size, start = starts[name]
    draw = random.Random(seed)
    cuts = sorted(draw.randint(0, len(start)) for _ in range(num_cuts))
    assert verdict(size, start, cuts) == verdict(size, start, [])


def test_single_bytes_give_the_verdict_of_the_whole() -> None:
    encoded = whole().encode()
    found = verdict(len(encoded), encoded, list(range(1, len(encoded))))
    assert found == verdict(len(encoded), encoded, [])
    assert found[1] == len(whole().head() + whole().table())


@st.composite
def sound(draw: st.DrawFn) -> RawGguf:
    """A file with random entries before those of a sound model, and random lengths of vocabulary."""
    raw = whole()
    texts = st.binary(max_size=40).map(string)
    values = st.one_of(
        st.binary(max_size=3000).map(text),
        st.integers(0, 2**32 - 1).map(integer),
        st.lists(texts, max_size=300).map(lambda items: array(STRING, items)),
        st.binary(max_size=500).map(lambda items: array(U8, [items], len(items))),
    )
    names = st.binary(min_size=1, max_size=90).map(lambda name: b"x." + name)
    raw.entries = draw(st.dictionaries(names, values, max_size=6)) | raw.entries
    return raw


@settings(max_examples=60, deadline=None)
@given(raw=sound(), first=st.integers(0, 4000), more=st.integers(0, 200))
def test_what_is_needed_is_never_beyond_the_header_and_suffices(raw: RawGguf, first: int, more: int) -> None:
    encoded, true_end = raw.encode(), len(raw.head() + raw.table())
    walk = HeaderWalk(len(encoded))
    walk.feed(encoded[:first])
    needed = 0
    while not walk.is_complete:
        assert walk.received_bytes < walk.needed_bytes <= true_end
        assert walk.needed_bytes >= needed
        assert walk.header_bytes == 0
        needed = walk.needed_bytes
        walk.feed(encoded[walk.received_bytes : needed + more])
    assert walk.header_bytes == walk.needed_bytes == true_end


def test_few_rounds_fetch_a_vocabulary() -> None:
    raw = whole()
    raw.entries[b"tokenizer.ggml.tokens"] = array(STRING, [string(b"token %d" % index) for index in range(50_000)])
    encoded = raw.encode()
    walk = HeaderWalk(len(encoded))
    rounds = 0
    while not walk.is_complete:
        walk.feed(encoded[walk.received_bytes : walk.needed_bytes + 4096])
        rounds += 1
    assert rounds < 20


def test_the_fingerprint_is_of_the_token_texts_alone() -> None:
    tokens = [b"a", b"bc", b""]
    value = array(STRING, [string(token) for token in tokens])
    raw, other = whole(), whole()
    for each in (raw, other):
        each.entries[b"tokenizer.ggml.tokens"] = value
    other.entries[b"general.name"] = text(b"another name")
    fingerprints = set()
    for encoded in (raw.encode(), other.encode()):
        walk = HeaderWalk(len(encoded))
        walk.feed(encoded)
        fingerprints.add(walk.fingerprint)
    raw_array = struct.pack("<Q", 3) + b"".join(string(token) for token in tokens)
    assert fingerprints == {hashlib.sha256(raw_array).hexdigest()[:32]}


def test_without_a_vocabulary_there_is_no_fingerprint() -> None:
    raw = whole()
    del raw.entries[b"tokenizer.ggml.tokens"]
    raw.entries[b"tokenizer.ggml.tokens.more"] = array(STRING, [string(b"a")])
    encoded = raw.encode()
    walk = HeaderWalk(len(encoded))
    walk.feed(encoded)
    assert walk.is_complete
    assert walk.fingerprint == ""


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (array(STRING, [string(b"")], 100_000), "the 100000 items of x would go on beyond"),
        (text(b"x" * 100, 10**6), r"a text of x would go on beyond its \d+ bytes"),
    ],
)
def test_what_the_file_cannot_hold_is_refused_before_its_bytes_come(value: bytes, words: str) -> None:
    raw = whole()
    raw.entries = {b"x": value} | raw.entries
    encoded = raw.encode()
    walk = HeaderWalk(len(encoded), "far.gguf")
    with pytest.raises(ModelFileError, match=words):
        walk.feed(encoded[:80])
    with pytest.raises(ModelFileError, match=words):
        walk.feed(encoded[80:])
    assert not walk.is_complete


def test_a_petabyte_is_not_asked_for() -> None:
    size = 10**15
    raw = whole()
    raw.entries = {b"x": text(b"x", 10**14)} | raw.entries
    walk = HeaderWalk(size)
    with pytest.raises(ModelFileError, match="beyond 48 MiB"):
        walk.feed(raw.head()[:64])
    assert walk.needed_bytes < 10_000


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": b"x" * 64}, "name of tensor 3 is too long"),
        ({"name": b"x" * 2**10}, "name of tensor 3 is too long"),
        ({"shape": [2] * 5}, "tensor 3 has an invalid number of dimensions, 5"),
    ],
)
def test_a_row_beyond_the_bounds(changes: dict[str, object], words: str) -> None:
    raw = whole()
    for name, value in changes.items():
        setattr(raw.tensors[3], name, value)
    encoded = raw.encode()
    with pytest.raises(ModelFileError, match=rf"{words}.*, at byte \d+"):
        HeaderWalk(len(encoded)).feed(encoded)


def test_bytes_after_the_header_are_passed_over() -> None:
    encoded = whole().encode()
    walk = HeaderWalk(len(encoded))
    walk.feed(encoded)
    end = walk.header_bytes
    walk.feed(b"more")
    assert walk.header_bytes == end < len(encoded)


def test_an_empty_file() -> None:
    with pytest.raises(ModelFileError, match=r"^The file is empty"):
        HeaderWalk(0)
