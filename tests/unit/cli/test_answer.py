from __future__ import annotations

import io

import pytest
from rich.console import Console

from localspec.cli.answer import AnswerStream


def make(is_terminal: bool, width: int | None) -> tuple[AnswerStream, io.StringIO, io.StringIO]:
    output, notices = io.StringIO(), io.StringIO()
    return AnswerStream(output, Console(file=notices, force_terminal=is_terminal, width=40), width), output, notices


def test_a_pipe_gets_the_text_as_it_is() -> None:
    stream, output, notices = make(False, None)
    stream.note_prefill(0, 900)
    stream.show_prefill()
    for piece in ("one  two", " three ", "\x1b[31m\n"):
        stream.show(piece)
    stream.close()
    assert output.getvalue() == "one  two three [31m\n\n"
    assert notices.getvalue() == ""


def test_a_terminal_gets_whole_words() -> None:
    stream, output, _ = make(True, 10)
    for piece in ("one tw", "o thr", "ee four"):
        stream.show(piece)
    assert output.getvalue() == "one two\nthree"
    stream.close()
    assert output.getvalue() == "one two\nthree four\n"


def test_the_line_on_a_long_prompt_goes_before_the_text_comes() -> None:
    stream, output, notices = make(True, 80)
    stream.note_prefill(0, 900)
    assert notices.getvalue() == ""
    stream.show_prefill()
    stream.note_prefill(512, 900)
    assert "reading the prompt 0 of 900" in notices.getvalue()
    assert notices.getvalue().endswith("\rreading the prompt 512 of 900\x1b[K")
    stream.show("text")
    assert notices.getvalue().endswith("\r\x1b[K")
    before = notices.getvalue()
    stream.show_prefill()
    stream.close()
    assert notices.getvalue() == before
    assert output.getvalue() == "text\n"


@pytest.mark.parametrize("is_shown", [True, False])
def test_an_answer_that_fails_leaves_no_line(is_shown: bool) -> None:
    stream, _, notices = make(True, 80)
    stream.note_prefill(0, 900)
    if is_shown:
        stream.show_prefill()
    stream.close()
    assert notices.getvalue().endswith("\x1b[K") == is_shown
