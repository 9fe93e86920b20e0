from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.metrics.thinking import count_thinking, split_thinking


@pytest.mark.parametrize(
    ("text", "thinking", "answer", "is_open"),
    [
        ("plain", "", "plain", False),
        ("<think>a b</think>\n\nanswer", "a b", "answer", False),
        ("\n<think>\na\n", "a", "", True),
        ("<think></think>answer", "", "answer", False),
        ("thought\n</think>\nanswer", "thought", "answer", False),
        ("The mark `</think>` ends it.", "", "The mark `</think>` ends it.", False),
        ("It ends with <think>x</think>", "", "It ends with <think>x</think>", False),
        ("[THINK]a[/THINK]b", "a", "b", False),
        ("", "", "", False),
    ],
)
def test_thinking_and_answer(text: str, thinking: str, answer: str, is_open: bool) -> None:
    split = split_thinking(text)
    assert (split.thinking, split.answer, split.is_open) == (thinking, answer, is_open)


@pytest.mark.parametrize("text", ["<", "<thi", "<think"])
def test_the_beginning_of_a_mark_waits(text: str) -> None:
    assert split_thinking(text, is_complete=False).answer == ""
    assert split_thinking(text).answer == text


def test_tokens_of_the_thinking_are_counted() -> None:
    pieces = ["<think>", "a ", "b", "</think>", "\n", "answer"]
    ends = [sum(map(len, pieces[: index + 1])) for index in range(len(pieces))]
    assert count_thinking(ends, split_thinking("".join(pieces))) == 4
    assert count_thinking(ends, split_thinking("answer")) == 0


@given(st.text(), st.booleans())
def test_no_text_gets_lost_that_has_no_marks(text: str, is_complete: bool) -> None:
    split = split_thinking(f"x{text}".replace("think>", ""), is_complete)
    assert split.answer == f"x{text}".replace("think>", "") or "[/THINK]" in text
