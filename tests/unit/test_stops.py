"""What becomes visible, and where an answer ends."""

from __future__ import annotations

import codecs

from hypothesis import given
from hypothesis import strategies as st

from localspec.engine.stops import VisibleText

END = 999


class ByteText:
    """Each token is a byte."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, token: int) -> str:
        return self._utf8.decode(bytes((token,)))

    def finish(self) -> str:
        return self._utf8.decode(b"", final=True)


def feed(text: str, stop: tuple[str, ...], chunks: int = 1) -> tuple[str, str | None, int]:
    visible = VisibleText(ByteText(), {END}, stop)
    shown = ""
    reason = None
    count = 0
    for byte in text.encode():
        reason = visible.ends(byte)
        count += 1
        if count % chunks == 0:
            shown += "".join(visible.take())
        if reason:
            break
    shown += "".join(visible.take())
    return shown + visible.finish(reason or "length"), reason, count


@given(st.text(max_size=30), st.integers(1, 5))
def test_without_a_stop_string_the_text_comes_whole(text: str, chunks: int) -> None:
    assert feed(text, (), chunks) == (text, None, len(text.encode()))


@given(st.text(alphabet="ab", max_size=30), st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3))
def test_text_ends_before_the_first_stop_string_to_be_complete(text: str, stop: list[str]) -> None:
    shown, reason, count = feed(text, tuple(stop))
    ends = [text.find(item) + len(item) for item in stop if item in text]
    if not ends:
        assert (shown, reason) == (text, None)
        return
    assert (reason, count) == ("stop_string", min(ends))
    begins = [text[: min(ends)].find(item) for item in stop if item in text[: min(ends)]]
    assert shown == text[: min(begins)]


def test_nothing_of_a_stop_string_is_ever_shown_early() -> None:
    visible = VisibleText(ByteText(), {END}, ("STOP",))
    for byte in b"go STO":
        visible.ends(byte)
    assert "".join(visible.take()) == "go "
    visible.ends(ord("P"))
    assert "".join(visible.take()) == ""
    assert visible.finish("stop_string") == ""


def test_a_false_beginning_is_shown_after_all() -> None:
    visible = VisibleText(ByteText(), {END}, ("STOP",))
    for byte in b"STO":
        visible.ends(byte)
    assert visible.finish("length") == "STO"


def test_a_character_over_several_tokens_appears_with_its_last_byte() -> None:
    visible = VisibleText(ByteText(), {END}, ())
    for byte in "a€".encode():
        visible.ends(byte)
    assert visible.take() == ["a", "", "", "€"]


def test_an_incomplete_character_at_the_end_becomes_one_replacement() -> None:
    visible = VisibleText(ByteText(), {END}, ())
    for byte in "€".encode()[:2]:
        visible.ends(byte)
    assert visible.finish("length") == "\ufffd"


def test_end_tokens_show_nothing() -> None:
    visible = VisibleText(ByteText(), {65}, ())
    assert visible.ends(65) == "stop"
    assert visible.take() == [""]


def test_a_stop_string_that_appears_only_with_the_last_bytes_is_not_shown() -> None:
    visible = VisibleText(ByteText(), {END}, ("\ufffd",))
    for byte in b"ok" + "€".encode()[:2]:
        visible.ends(byte)
    shown = "".join(visible.take())
    assert shown + visible.finish("length") == "ok"
