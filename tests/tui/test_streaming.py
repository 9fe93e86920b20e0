"""An answer while it comes: what is whole is Markdown, what is not are plain lines, and little is drawn of both."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Markdown

from localspec.metrics.thinking import split_thinking
from localspec.tui.chat_fold import SNAPSHOT_S
from localspec.tui.markdown_blocks import last_block_at
from localspec.tui.pace import LONG_REST, MAX_PAUSE_S, REST, Pace
from localspec.tui.widgets.chat_answer import ChatAnswer
from localspec.tui.widgets.chat_tail import ChatTail
from localspec.tui.widgets.chat_transcript import MAX_CHARACTERS, MAX_MOUNTED, first_shown
from tests.scripted_engine import FakeClock
from tests.tui.chat_turns import turn_of

HOSTILE = "[/] [/path] [bold [type=x, v={'a[0]'}] \x1b[31mred\x1b[0m \u202eright\u202c \U0001f468\u200d\U0001f469 日本"

# Where blocks end.


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", ""),
        ("one line", ""),
        ("one line\nand another", ""),
        ("a paragraph\n\nthe next", "a paragraph\n\n"),
        ("- an item\n- another\n\nnot", "- an item\n- another\n\n"),
        ("text\n\n```python\nx = 1\n\ny = 2\n", "text\n\n"),
        ("```\na\n\nb\n```\nnext", "```\na\n\nb\n```\n"),
        ("~~~\n```\n~~~\nnext", "~~~\n```\n~~~\n"),
        ("````\n```\n````\nnext", "````\n```\n````\n"),
        ("```\n``` not closed\n", ""),
        ("a\n   \nb", "a\n   \n"),
    ],
)
def test_whole_blocks(text: str, whole: str) -> None:
    assert text[: last_block_at(text)] == whole


@given(st.lists(st.sampled_from(["word", " ", "\n", "\n\n", "```", "~~~\n", "- ", "# "]), max_size=40))
def test_what_is_whole_stays_whole_however_it_comes(pieces: list[str]) -> None:
    text, known = "", 0
    for piece in pieces:
        text += piece
        place = last_block_at(text, known)
        assert known <= place <= len(text)
        assert place == last_block_at(text)
        known = place


# How they are shown.


class AnswerApp(App[None]):
    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield ChatAnswer()

    @property
    def answer(self) -> ChatAnswer:
        return self.query_one(ChatAnswer)

    @property
    def tail(self) -> ChatTail:
        return self.query_one(ChatTail)


async def test_the_text_is_complete_at_every_moment() -> None:
    app = AnswerApp()
    text = f"# Title\n\nA paragraph of {HOSTILE} and more.\n\n- one\n- two\n\n```python\nx = 1\n\ny = 2\n```\nThe end"
    async with app.run_test(size=(60, 20)) as pilot:
        for end in range(1, len(text) + 1, 7):
            await app.answer.grow(split_thinking(text[:end], is_complete=False), 0)
            shown = app.answer.markdown.source + app.tail.text
            assert text[:end].replace("\x1b", "").replace("\u202e", "").replace("\u202c", "") == shown
            assert last_block_at(shown) == len(app.answer.markdown.source)
        await pilot.pause()
        assert app.tail.size.height > 0
        await app.answer.settle(split_thinking(text), 0, "12 tokens")
        await pilot.pause()
        assert app.tail.size.height == 0
        assert app.answer.markdown.source.endswith("The end")
        assert len(app.answer.query("MarkdownFence")) == 1
        assert len(app.answer.query("MarkdownH1")) == 1


async def test_a_line_is_made_room_for_before_it_is_needed_and_not_each_time() -> None:
    app = AnswerApp()
    async with app.run_test(size=(40, 20)) as pilot:
        heights = []
        words = ""
        for number in range(30):
            words += f"word{number} and another "
            await app.answer.grow(split_thinking(words, is_complete=False), 0)
            await pilot.pause()
            assert app.tail.size.height >= len(app.tail._lines)
            heights.append(app.tail.size.height)
        changes = sum(before != after for before, after in pairwise(heights))
        assert len(app.tail._lines) > 12
        assert changes <= 4


async def test_hostile_text_and_long_lines_are_shown_as_they_are_at_any_width() -> None:
    app = AnswerApp()
    text = HOSTILE + " x" * 5000 + "y" * 10_000
    async with app.run_test(size=(60, 20)) as pilot:
        await app.answer.grow(split_thinking(text, is_complete=False), 0)
        await pilot.pause()
        assert "[/] [/path] [bold [type=x, v={'a[0]'}] [31mred" in "".join(app.tail._lines)
        assert "\x1b" not in "".join(app.tail._lines)
        narrow = len(app.tail._lines)
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert len(app.tail._lines) < narrow
        assert all(len(line) <= app.tail.content_size.width for line in app.tail._lines)


async def test_an_answer_that_turns_out_otherwise_is_shown_anew() -> None:
    # What looked like an answer was the thinking, whose mark the template had opened.
    app = AnswerApp()
    async with app.run_test(size=(60, 20)) as pilot:
        await app.answer.grow(split_thinking("so and so\n\nthus", is_complete=False), 0)
        assert app.answer.markdown.source == "so and so\n\n"
        await app.answer.grow(split_thinking("so and so\n\nthus\n</think>\nYes", is_complete=False), 4)
        await pilot.pause()
        assert (app.answer.markdown.source, app.tail.text) == ("", "Yes")
        await app.answer.settle(split_thinking("so and so\n\nthus\n</think>\nYes"), 4, "")
        assert app.answer.markdown.source == "Yes"


async def test_only_changed_lines_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    app = AnswerApp()
    async with app.run_test(size=(40, 20)) as pilot:
        await app.answer.grow(split_thinking("word " * 40, is_complete=False), 0)
        await pilot.pause()
        drawn: list[int] = []
        monkeypatch.setattr(ChatTail, "refresh", lambda self, *regions, **_: drawn.extend(r.y for r in regions))
        monkeypatch.setattr(Markdown, "append", None)
        await app.answer.grow(split_thinking("word " * 40 + "more", is_complete=False), 0)
        await asyncio.sleep(0)
        assert drawn == [len(app.tail._lines) - 1]


# How often.


def test_drawing_takes_its_share_and_no_more() -> None:
    clock = FakeClock()
    for rest, cost_s in ((REST, 0.01), (LONG_REST, 0.004), (LONG_REST, 1.0)):
        pace = Pace(clock, SNAPSHOT_S)
        pace.begin(rest)
        num_drawn = 0
        for _ in range(2000):
            clock.advance(0.005)
            if pace.is_due():
                num_drawn += 1
                clock.advance(cost_s)
                pace.note(cost_s)
        elapsed_s = 2000 * 0.005
        assert num_drawn >= elapsed_s / (MAX_PAUSE_S + 0.005) - 2
        if cost_s < 1.0:
            assert num_drawn * cost_s / (elapsed_s + num_drawn * cost_s) < 1.2 / rest


# How much of a long chat is mounted.


def test_long_answers_make_room() -> None:
    short, long = turn_of("short"), turn_of("x" * (MAX_CHARACTERS // 3))
    assert first_shown(()) == 0
    assert first_shown((short,) * MAX_MOUNTED) == 0
    assert first_shown((short,) * (MAX_MOUNTED + 5)) == 5
    assert first_shown((short,) * (MAX_MOUNTED + 5), num_more=1) == 6
    assert first_shown((long,) * 10) == 7
    assert first_shown((short, turn_of("x" * (2 * MAX_CHARACTERS)))) == 1


# Where layouts wait for their time, lines that have no room push out the first ones.


@pytest.mark.slow
async def test_without_time_for_a_layout_the_last_lines_are_seen_in_the_room_that_there_is() -> None:
    app = AnswerApp()
    lines = [f"- line {number}" for number in range(60)]
    async with app.run_test(size=(40, 20)) as pilot:
        is_due = True

        async def grow(num_lines: int) -> bool:
            text = "\n".join(lines[:num_lines])
            is_laid_out = await app.answer.grow(split_thinking(text, is_complete=False), 0, lambda: is_due, waits=True)
            await pilot.pause()
            return is_laid_out

        assert await grow(2)
        is_due = False
        room = app.tail.size.height
        assert not await grow(40)
        assert app.tail.size.height == room < 40
        shown = [app.tail.render_line(y).text.rstrip() for y in range(room)]
        assert [line.strip() for line in shown] == lines[40 - room : 40]
        is_due = True
        assert await grow(42)
        assert app.tail.size.height >= 42
        assert app.tail.render_line(0).text.strip() == lines[0]
        # What has become Markdown leaves some room for what follows.
        text = "\n".join(lines[:42]) + "\n\nNext"
        assert await app.answer.grow(split_thinking(text, is_complete=False), 0, lambda: True, waits=True)
        await pilot.pause()
        assert app.tail.text == "Next" and 1 < app.tail.size.height <= 11
        await app.answer.settle(split_thinking(text), 0, "")
        await pilot.pause()
        assert app.tail.size.height == 0


async def test_blocks_wait_for_their_time() -> None:
    app = AnswerApp()
    async with app.run_test(size=(40, 20)):
        asked = 0

        def is_due() -> bool:
            nonlocal asked
            asked += 1
            return False

        await app.answer.grow(split_thinking("so", is_complete=False), 0, is_due)
        # Only where there is something whole.
        assert asked == 0
        await app.answer.grow(split_thinking("so and so\n\nthus", is_complete=False), 0, is_due)
        assert asked == 1 and app.answer.markdown.source == ""
        await app.answer.grow(split_thinking("so and so\n\nthus far", is_complete=False), 0)
        assert app.answer.markdown.source == "so and so\n\n"


def test_a_pace_can_be_hurried_and_slowed_by_other_limits() -> None:
    clock = FakeClock()
    pace = Pace(clock, 0.5, most_s=4.0)
    assert pace.is_due() and not pace.is_due()
    pace.hurry(0.1)
    clock.advance(0.09)
    assert not pace.is_due()
    clock.advance(0.02)
    assert pace.is_due()
    # It never makes anything come later.
    clock.advance(0.45)
    pace.hurry(0.2)
    clock.advance(0.06)
    assert pace.is_due()
    pace.begin(24.0)
    for _ in range(20):
        pace.note(1.0)
    clock.advance(3.9)
    assert not pace.is_due()
    clock.advance(0.2)
    assert pace.is_due()
