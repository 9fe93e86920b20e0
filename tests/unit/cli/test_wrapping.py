from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from localspec.cli.wrapping import WordWrap

TEXTS = st.text(st.sampled_from("ab c\n\t.\u65e5\u672c\u3002\u0301\u200d\U0001f642"))


def wrap(text: str, width: int) -> str:
    wrapper = WordWrap(width)
    return wrapper.feed(text) + wrapper.flush()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one two three", "one two\nthree"),
        ("  indented text", "  indented\ntext"),
        ("a\n\n  b", "a\n\n  b"),
        ("a\tb", "a\tb"),
        ("abcdefgh\tb", "abcdefgh\nb"),
        ("trailing ", "trailing "),
        ("a abcdefghijklm b", "a\nabcdefghijklm b"),
        ("\u65e5" * 7, "\u65e5" * 5 + "\n" + "\u65e5" * 2),
        ("\u65e5" * 5 + "\u3002", "\u65e5" * 4 + "\n\u65e5\u3002"),
    ],
)
def test_breaks(text: str, shown: str) -> None:
    assert wrap(text, 10) == shown


@given(TEXTS, st.integers(1, 20))
def test_nothing_is_lost_or_reordered(text: str, width: int) -> None:
    assert "".join(wrap(text, width).split()) == "".join(text.split())
    assert wrap(text, 10_000) == text


@given(TEXTS, TEXTS, st.integers(1, 20))
def test_pieces_give_what_the_whole_gives(first: str, second: str, width: int) -> None:
    wrapper = WordWrap(width)
    assert wrapper.feed(first) + wrapper.feed(second) + wrapper.flush() == wrap(first + second, width)


@given(st.lists(st.text(st.sampled_from("ab"), min_size=1, max_size=10), min_size=1), st.integers(10, 30))
def test_lines_of_short_words_fit(words: list[str], width: int) -> None:
    assert all(cell_len(line) <= width for line in wrap(" ".join(words), width).split("\n"))
