from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.session.plain_text import one_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("[/] [bold] [type=x, v={'a[0]'}]", "[/] [bold] [type=x, v={'a[0]'}]"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("\x1b]0;title\x07", "]0;title"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("\x9b31m", "31m"),
        ("abc\u202edef", "abcdef"),
        ("\ud800", "\ufffd"),
        ("日本 é 🙂", "日本 é 🙂"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    shown = printable(text)
    assert all(character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs") for character in shown)
    assert printable(shown) == shown
    shown.encode("utf-8")


@given(st.text(), st.text())
def test_pieces_give_what_the_whole_gives(first: str, second: str) -> None:
    assert printable(first) + printable(second) == printable(first + second)


def test_one_line() -> None:
    assert one_line(" a\n\tb \x1b[0m ") == "a b [0m"
