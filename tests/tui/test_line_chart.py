"""Charts of lines in character cells."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from localspec.tui.braille import axis_top, braille_rows, level_row, mark_rows
from localspec.tui.widgets.line_chart import LineChart, Series, axis_number

RISING = ((0.0, 0.0), (1.0, 10.0))


def test_a_rising_line_goes_from_the_lower_left_to_the_upper_right() -> None:
    assert braille_rows(RISING, 2, 1, (0.0, 1.0), 10.0) == ("⡠⠊",)


def test_a_level_line_fills_its_row_only() -> None:
    rows = braille_rows(((0.0, 10.0), (1.0, 10.0)), 3, 2, (0.0, 1.0), 10.0)
    assert rows == ("⠉⠉⠉", "   ")


def test_a_gap_interrupts_the_line() -> None:
    points = ((0.0, 0.0), (1.0, None), (2.0, 0.0))
    assert braille_rows(points, 3, 1, (0.0, 2.0), 1.0) == ("⡀ ⢀",)


def test_marks_take_the_same_way() -> None:
    assert mark_rows(RISING, "x", 3, 3, (0.0, 1.0), 10.0) == ("  x", " x ", "x  ")


def test_nothing_to_draw_is_blank() -> None:
    assert braille_rows((), 3, 2, (0.0, 0.0), 1.0) == ("   ", "   ")
    assert braille_rows(RISING, 0, 0, (0.0, 1.0), 1.0) == ()


@given(
    points=st.lists(
        st.tuples(
            st.floats(allow_nan=True, allow_infinity=True), st.none() | st.floats(allow_nan=True, allow_infinity=True)
        ),
        max_size=8,
    ),
    width=st.integers(0, 12),
    height=st.integers(0, 5),
    top=st.floats(min_value=0.0, allow_infinity=False),
)
def test_whatever_the_points_the_rows_have_the_size(
    points: list[tuple[float, float | None]], width: int, height: int, top: float
) -> None:
    for rows in (
        braille_rows(points, width, height, (0.0, 1.0), top),
        mark_rows(points, "x", width, height, (0.0, 1.0), top),
    ):
        assert len(rows) == height
        assert all(len(row) == width for row in rows)


@pytest.mark.parametrize(
    ("values", "top"), [([], 1.0), ([0.0], 1.0), ([41.3], 50.0), ([100.0], 100.0), ([0.13], 0.15), ([math.inf], 1.0)]
)
def test_the_axis_ends_at_a_round_number(values: list[float], top: float) -> None:
    assert axis_top(values) == pytest.approx(top)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_no_value_lies_above_the_axis(value: float) -> None:
    assert value <= axis_top([value]) * (1.0 + 1e-8)


def test_a_level_is_found_only_inside() -> None:
    assert level_row(10.0, 5, 10.0) == 0
    assert level_row(0.0, 5, 10.0) == 4
    assert level_row(11.0, 5, 10.0) is None


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (41.3, "41.3"), (150.0, "150"), (0.15, "0.15"), (2e6, "2e+06")]
)
def test_numbers_on_an_axis_are_short(value: float, text: str) -> None:
    assert axis_number(value) == text


class ChartApp(App[None]):
    def compose(self) -> ComposeResult:
        yield LineChart()


async def test_the_chart_names_its_lines_and_tells_its_scale() -> None:
    app = ChartApp()
    async with app.run_test(size=(60, 12)) as pilot:
        chart = app.query_one(LineChart)
        chart.series = (Series("draft [/]", RISING), Series("off", ((0.0, 4.0), (1.0, 4.0)), "$warning", "o"))
        chart.baseline, chart.baseline_label = 6.0, "baseline 6.0"
        chart.y_label, chart.x_label = "tokens/s", "s"
        await pilot.pause()
        lines = [line.plain for line in chart.chart_lines(40, 9)]
    assert lines[0] == "tokens/s  ⠒⠒ draft [/]  oo off  ╌╌ base…"
    assert lines[1].startswith("10┤")
    assert lines[-2].startswith(" 0┤")
    assert lines[-1].startswith("   0") and lines[-1].endswith("1 s")
    assert any("o" * 8 in line for line in lines[1:])
    assert any("╌" * 8 in line for line in lines[1:])
    assert len(lines) == 9
    assert all(len(line) <= 40 for line in lines)


async def test_the_chart_keeps_within_any_size() -> None:
    app = ChartApp()
    async with app.run_test(size=(60, 12)):
        chart = app.query_one(LineChart)
        chart.series = (Series("\x1b[31m" + "long " * 2000, RISING),)
        for width, height in ((0, 0), (8, 1), (10, 2), (12, 3), (200, 4)):
            lines = chart.chart_lines(width, height)
            assert len(lines) <= height
            assert all(line.cell_length <= width for line in lines)
            assert "\x1b" not in "".join(line.plain for line in lines)
