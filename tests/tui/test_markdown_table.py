"""Tables and code of an answer: nothing of them is cut, however narrow the pane is, and while they come."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Label

from localspec.metrics.thinking import split_thinking
from localspec.tui.markdown_blocks import last_block_at
from localspec.tui.markdown_table import Table, column_widths, table_lines
from localspec.tui.widgets.chat_answer import ChatAnswer
from localspec.tui.widgets.chat_markdown import ChatCode, ChatTable
from localspec.tui.widgets.chat_tail import ChatTail
from tests.tui.looking import screen_text

WORDS = ("planet", "diameter", "what it is known for", "moons")
ROWS = (
    ("Jupiter", "142984", "the largest of all, with a storm that is older than any map of it", "95"),
    ("Saturn", "120536", "rings of ice and rock, seen first by Galilei, who took them for ears", "146"),
    ("Earth", "12756", "the only one where somebody writes tables", "1"),
)
MARKDOWN = "\n".join(
    [
        "| " + " | ".join(WORDS) + " |",
        "|:--|--:|---|---:|",
        *("| " + " | ".join(row) + " |" for row in ROWS),
    ]
)
HOSTILE = "[/] [/path] [bold [type=x, v={'a[0]'}] \x1b[31mred \u202eflipped"


def table_of(*rows: tuple[str, ...], headers: tuple[str, ...] = WORDS) -> Table:
    return Table(tuple(map(Content, headers)), tuple(tuple(map(Content, row)) for row in rows))


def plain(lines: list[Content]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def words_of(text: str) -> set[str]:
    return set(text.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())


# How a table is laid out.


def test_a_table_that_fits_has_a_line_for_each_row() -> None:
    lines = plain(table_lines(table_of(("a", "1"), ("b", "22"), headers=("name", "n")), 40))
    assert lines == ["name │ n", "─────┼───", "a    │ 1", "b    │ 22"]


def test_columns_are_aligned_as_the_answer_says() -> None:
    table = Table(
        (Content("n"), Content("name")), ((Content("7"), Content("x")), (Content("100"), Content("y"))), (True,)
    )
    assert plain(table_lines(table, 40)) == ["  n │ name", "────┼─────", "  7 │ x", "100 │ y"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_cells_that_are_too_long_are_broken_and_rows_told_apart(width: int) -> None:
    lines = table_lines(table_of(*ROWS), width)
    assert all(line.cell_length <= width for line in lines)
    text = "\n".join(plain(lines))
    assert words_of(" ".join(" ".join(row) for row in ROWS)) <= words_of(text)
    assert len([line for line in plain(lines) if set(line) == {"─", "┼"}]) == len(ROWS)


def test_where_columns_would_be_slivers_each_row_is_a_record() -> None:
    headers = tuple(f"column {place}" for place in range(8))
    lines = plain(table_lines(table_of(tuple(f"a cell of column {place}" for place in range(8)), headers=headers), 44))
    assert lines[:2] == ["column 0  a cell of column 0", "column 1  a cell of column 1"]
    many = table_of(("x",) * 60, headers=("y",) * 60)
    assert all(line.cell_length <= 44 for line in table_lines(many, 44))


def test_names_of_records_are_whole_where_they_stand_first() -> None:
    headers = tuple(f"what is known of column {place}" for place in range(6))
    first, second = ("a", "b", "c", "d", "e", ""), ("f", "g", "h", "i", "j", "k")
    cells = {cell for cell in (*first, *second) if cell}
    lines = plain(table_lines(table_of(first, second, headers=headers), 30))
    assert all(" ".join(lines).count(f"column {place}") == 1 for place in range(6))
    assert words_of(" ".join(headers)) | cells <= words_of(" ".join(lines))
    alone = plain(table_lines(table_of(headers=headers), 30))
    assert alone == list(headers)


def test_rows_that_are_short_and_none_at_all() -> None:
    assert len(table_lines(table_of(("a",)), 80)) == 3
    assert len(table_lines(table_of(), 80)) == 2
    assert table_lines(Table(), 80) == []


@given(
    width=st.integers(1, 120),
    rows=st.lists(st.lists(st.text(max_size=20), min_size=1, max_size=5).map(tuple), min_size=1, max_size=4),
)
@settings(max_examples=60)
def test_no_line_is_wider_than_there_is_room(width: int, rows: list[tuple[str, ...]]) -> None:
    clean = [tuple(" ".join(cell.split()) for cell in row) for row in rows]
    lines = table_lines(table_of(*clean[1:], headers=clean[0]), width)
    assert all(line.cell_length <= max(2, width) for line in lines)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=6),
    room=st.integers(1, 200),
)
def test_columns_give_way_only_as_far_as_they_must(sizes: list[tuple[int, int]], room: int) -> None:
    natural = [max(pair) for pair in sizes]
    least = [min(pair) for pair in sizes]
    found = column_widths(natural, least, room)
    assert all(1 <= size <= whole for size, whole in zip(found, natural, strict=True))
    if len(natural) <= room:
        assert sum(found) == min(room, sum(natural))
    if sum(least) <= room:
        assert all(size >= low for size, low in zip(found, least, strict=True))


# What of a table is whole while it comes.


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("| a | b |\n|---|---|\n", "| a | b |\n|---|---|\n"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3", "| a | b |\n|---|---|\n| 1 | 2 |\n"),
        ("a | b\n:-- | --:\n1 | 2\n", "a | b\n:-- | --:\n1 | 2\n"),
        ("text\n\n| a |\n| - |\n| 1 |\n\nnext", "text\n\n| a |\n| - |\n| 1 |\n\n"),
        ("| a | b |\n", ""),
        ("| a | b |\n| c | d |\n", ""),
        ("a\n---\n", ""),
        ("```\n| a |\n|---|\n| 1 |\n", ""),
        ("| a |\n|---|\n```\nx\n", "| a |\n|---|\n"),
    ],
)
def test_rows_of_a_table_are_whole_one_by_one(text: str, whole: str) -> None:
    assert text[: last_block_at(text)] == whole


@given(st.lists(st.sampled_from(["| a ", "|", "\n", "---", "|---|", "\n\n", "```", "word"]), max_size=40))
def test_what_is_whole_stays_whole_with_tables(pieces: list[str]) -> None:
    text, known = "", 0
    for piece in pieces:
        text += piece
        place = last_block_at(text, known)
        assert place == last_block_at(text) >= known
        known = place


# In the transcript.


class AnswerApp(App[None]):
    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield ChatAnswer()

    @property
    def answer(self) -> ChatAnswer:
        return self.query_one(ChatAnswer)


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 60, 140])
async def test_a_whole_table_is_shown(width: int) -> None:
    app = AnswerApp()
    async with app.run_test(size=(width, 50)) as pilot:
        await app.answer.settle(split_thinking(f"Here:\n\n{MARKDOWN}\n\nThat was all."), 0, "")
        await pilot.pause()
        assert words_of(" ".join(" ".join(row) for row in ROWS)) <= words_of(screen_text(app))
        assert len(app.query(ChatTable)) == 1


@pytest.mark.slow
async def test_a_table_grows_row_by_row() -> None:
    app = AnswerApp()
    async with app.run_test(size=(60, 40)) as pilot:
        for end in range(1, len(MARKDOWN) + 1, 31):
            text = MARKDOWN[:end]
            await app.answer.grow(split_thinking(text), 0)
            num_rows = text.count("\n") - 2
            tables = list(app.query(ChatTable))
            await pilot.pause()
            if num_rows >= 1:
                assert len(tables[0]._table.rows) == num_rows
                assert "\n" not in app.query_one(ChatTail).text
        await app.answer.settle(split_thinking(MARKDOWN), 0, "")
        await pilot.pause()
        assert len(app.query_one(ChatTable)._table.rows) == len(ROWS)
        assert "writes tables" in " ".join(screen_text(app).split()) and "|" not in screen_text(app)
        await pilot.resize_terminal(36, 40)
        await pilot.pause()
        assert words_of(" ".join(" ".join(row) for row in ROWS)) <= words_of(screen_text(app))


@pytest.mark.slow
async def test_hostile_cells_are_text_and_links_are_copied() -> None:
    app = AnswerApp()
    async with app.run_test(size=(80, 30)) as pilot:
        table = f"| a | b |\n|---|---|\n| {HOSTILE} | [name](http://x/[/]) |\n| {'x' * 10_000} | y |\n"
        await app.answer.settle(split_thinking(table), 0, "")
        await pilot.pause()
        shown = screen_text(app)
        assert "[/] [/path] [bold" in shown and "\x1b" not in shown
        lines = app.query_one(ChatTable).render().plain.splitlines()
        y = next(place for place, line in enumerate(lines) if "name" in line)
        await pilot.click(ChatTable, offset=(lines[y].index("name") + 1, y))
        await pilot.pause()
        assert app.clipboard == "http://x/[/]"


async def test_long_lines_of_code_are_broken_and_copied_whole() -> None:
    app = AnswerApp()
    line = "result = " + " + ".join(f"term_{place}" for place in range(20))
    async with app.run_test(size=(50, 30)) as pilot:
        await app.answer.settle(split_thinking(f"```python\n{line}\n```\n"), 0, "")
        await pilot.pause()
        assert words_of(line) <= words_of(screen_text(app))
        label = app.query_one(ChatCode).query_one(Label)
        assert line in str(label.render())
