"""What the Runs screen shows, as values: lines, filters, tables, bars, and a profile on the workbench."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from localspec.errors import UsageError
from localspec.session.figures import DASH
from localspec.store.values import RunSummary
from localspec.tui.runs.bench import bench_of
from localspec.tui.runs.changes import run_changes
from localspec.tui.runs.details import Figures, run_details
from localspec.tui.runs.rows import FASTER, SLOWER, UNCLEAR, UNUSABLE, filtered, pair_speedups, run_row, run_table
from localspec.tui.state import Workbench
from localspec.tui.widgets.bar_rows import Bar, bar_lines, bar_text
from localspec.tui.widgets.fact_list import FactList
from localspec.tui.widgets.figure_table import table_lines
from localspec.tui.widgets.runs_trend import spark_text, trend_line
from tests.kept_runs import made_up_run
from tests.profile_kit import drafting, model, named_profile, run_of
from tests.profile_kit import workload as workload_of
from tests.report_kit import made_up_document

HOSTILE = "[/] [/path] [bold [type=x, v={'a[0]'}] \x1b[31m \u202eabc" + "long " * 2000


def summary(run_id: int = 1, **changes: object) -> RunSummary:
    made = RunSummary(
        id=run_id,
        created_at="2026-01-02T03:04:05+00:00",
        finished_at="",
        state="done",
        kind="bench",
        target_name="target-3b",
        draft_name="draft-135m",
        workloads=("chat", "edit"),
        speedup=1.42,
        speedup_low=1.31,
        speedup_high=1.5,
        best_arm="draft",
        build="b1",
        device="Processor",
        profile="daily",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "mark"), [(1.1, 1.5, FASTER), (0.7, 0.9, SLOWER), (0.9, 1.1, UNCLEAR), (None, None, "")]
)
def test_a_line_has_the_verdict_as_a_mark(low: float | None, high: float | None, mark: str) -> None:
    assert run_row(summary(speedup_low=low, speedup_high=high)).mark == mark


def test_nothing_is_claimed_of_an_unusable_run() -> None:
    made = {"off": (100.0, 200.0, 300.0), "draft": (150.0, 300.0, 450.0)}
    assert run_row(summary(is_unusable=True)).mark == UNUSABLE
    assert pair_speedups((summary(2, is_unusable=True), summary(1)), summary()) == (1.42,)
    stored = replace(run_of(), document=made_up_run(made))
    assert [sentence.tone for sentence in run_details(stored).workloads[0].sentences] == ["unusable"]
    changes = run_changes(replace(run_of(), document=made_up_run()), stored)
    assert "unusable" in changes.workloads[0].note


def test_a_run_that_compared_nothing_has_a_dash() -> None:
    row = run_row(summary(speedup=None, speedup_low=None, speedup_high=None, best_arm="", state="lost"))
    assert (row.speedup, row.best_arm, row.mark, row.state) == (DASH, DASH, "", "lost")


@pytest.mark.parametrize(("words", "found"), [("", 2), ("3B chat", 2), ("lost", 1), ("daily 135m", 2), ("nowhere", 0)])
def test_every_word_of_a_filter_must_occur(words: str, found: int) -> None:
    assert len(filtered((summary(2), summary(1, state="lost")), words)) == found


def test_the_trend_is_of_the_same_pair_only() -> None:
    runs = (summary(3, speedup=1.3), summary(2, draft_name="other"), summary(1, speedup=1.1), summary(4, speedup=None))
    assert pair_speedups(runs, runs[0]) == (1.1, 1.3)


def test_a_wide_table_has_all_columns_and_a_narrow_one_what_matters() -> None:
    rows = (run_row(summary()),)
    wide, narrow = run_table(rows, 160), run_table(rows, 46)
    assert wide.headers == ("No.", "Date", "Models", "Workloads", "Speedup", "Best arm", "State")
    assert "▲ 1.42x (1.31 to 1.50)" in wide.rows[0]
    assert narrow.headers == ("No.", "Models", "Speedup", "State")
    assert narrow.rows[0] == ("1", "target-3b + draft-135m", "▲ 1.42x", "done")


@given(st.integers(40, 200), st.text(max_size=80), st.text(max_size=80))
def test_a_table_keeps_to_its_width(width: int, target: str, draft: str) -> None:
    table = run_table((run_row(summary(target_name=target, draft_name=draft)),), width)
    used = sum(max(map(cell_len, column)) + 2 for column in zip(table.headers, *table.rows, strict=True))
    assert used <= max(width, 50)


def test_details_have_tables_pictures_and_a_receipt() -> None:
    stored = replace(run_of(), document=made_up_document("edit", "chat", num_tokens=64))
    details = run_details(stored)
    first = details.workloads[0]
    assert first.figures.columns == ("off", "draft", "ngram")
    assert [row[0] for row in first.figures.rows][:3] == ["tokens/s", "speedup", "acceptance"]
    assert [arm.arm for arm in first.acceptance] == ["draft", "ngram"]
    assert first.traces is not None and first.lengths
    assert details.verify_costs[0].num_checked == 0
    assert details.arms == ("off", "draft", "ngram")
    assert any(row.label == "target, SHA-256" and row.fact == "ab" * 32 for row in details.receipt.models)


def test_two_runs_beside_each_other() -> None:
    slow = replace(run_of(run_id=1), document=made_up_run({"off": (100.0, 101.0, 99.0), "draft": (90.0, 91.0, 89.0)}))
    fast = replace(run_of(run_id=2), document=made_up_run())
    changes = run_changes(slow, fast)
    rows = {row[0]: row[1:] for row in changes.workloads[0].figures.rows}
    assert rows["so it is"] == ("≈ no clear difference", "▲ faster")
    assert rows["so the gain is"][1] == "▲ larger"
    assert changes.differences == ()


def test_figures_that_do_not_fit_come_below() -> None:
    figures = Figures(("off", "draft"), (("tokens/s", "19.2 (18.6 to 20.0)", "23.8 (21.1 to 27.0)"),))
    assert len(table_lines(figures, 80)) == 2
    broken = [line.plain.rstrip() for line in table_lines(figures, 40)]
    assert broken[1:] == ["tokens/s  19.2          23.8", "          18.6 to 20.0  21.1 to 27.0"]
    narrow = [line.plain.rstrip() for line in table_lines(figures, 26)]
    assert len(narrow) == 7
    assert narrow[-2].split() == ["tokens/s", "23.8"] and narrow[-1].strip() == "21.1 to 27.0"


@given(st.integers(1, 120), st.lists(st.text(max_size=30), min_size=1, max_size=4))
def test_figures_keep_to_their_width(width: int, cells: list[str]) -> None:
    figures = Figures(tuple(f"arm {place}" for place in range(len(cells))), (("label", *cells),))
    assert all(line.cell_length <= width for line in table_lines(figures, width))


def test_bars_are_fine_to_an_eighth_and_nothing_measured_is_nothing() -> None:
    assert bar_text(0.5, 4) == "██"
    assert bar_text(0.0001, 4) == "▏"
    assert bar_text(0.0, 4) == ""
    assert bar_text(7.0, 4) == "████"


def test_a_bar_has_its_number_and_its_remark_where_there_is_room() -> None:
    bars = (Bar("1", 0.9, "of all"), Bar("2", 0.0))
    wide, zero = (line.plain for line in bar_lines(bars, 60))
    assert "90 %  of all" in wide and "0 %" in zero
    assert "of all" not in bar_lines(bars, 24)[0].plain


def test_the_spark_is_drawn_from_zero() -> None:
    assert spark_text((1.0, 2.0, 0.0)) == "▄█▁"
    assert trend_line((1.0, 1.5), 60).plain == "this pair, 2 runs 1.00x ▅█ 1.50x"
    assert trend_line((1.0,), 60).plain == ""


def test_facts_keep_hostile_text_as_text() -> None:
    facts = FactList((("path", HOSTILE),))
    lines = [line.plain for line in facts.lines_for(50)]
    assert all(cell_len(line) <= 50 for line in lines)
    assert lines[0].startswith("path  [/] [/path] [bold") and "\x1b" not in "".join(lines)


def test_a_profile_on_the_workbench(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("target.gguf", "draft.gguf")]
    for path in paths:
        path.write_bytes(b"GGUF")
    profile = named_profile(target=model(str(paths[0])), draft=model(str(paths[1])))
    bench = bench_of(profile, Workbench(max_tokens=77))
    assert bench.target is not None and bench.draft is not None
    assert (bench.target.path, bench.draft.path) == tuple(paths)
    assert (bench.speculation.method, bench.speculation.n_max) == ("draft", 5)
    assert (bench.context.n_ctx, bench.draft_context.n_ctx, bench.max_tokens) == (4096, 4096, 77)


def test_a_profile_without_drafts_needs_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "target.gguf"
    path.write_bytes(b"GGUF")
    bench = bench_of(named_profile(target=model(str(path)), speculation=drafting("ngram")), Workbench())
    assert bench.draft is None
    assert bench.speculation.method == "ngram"


def test_a_profile_whose_target_is_gone_changes_nothing() -> None:
    with pytest.raises(UsageError, match="target is gone"):
        bench_of(named_profile(), Workbench())


def test_a_run_without_figures_has_details() -> None:
    details = run_details(run_of(workload_of("chat")))
    assert details.workloads[0].acceptance == ()
    assert details.verify_costs == ()
