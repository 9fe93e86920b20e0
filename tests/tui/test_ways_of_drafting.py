"""All ways of drafting in the app: what it says of them, and what can be chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.widgets import Checkbox, Input, RadioButton, Select, Static

from localspec.engine.events import EmittedToken, PacingReported, RoundFinished
from localspec.engine.pacing_state import PacingState, to_text
from localspec.engine.requests import Configure, Request
from localspec.engine.values import Beliefs, SpeculationSettings, SpeculationState
from localspec.methods import METHODS
from localspec.metrics.live import LiveFigures
from localspec.metrics.pacing import PacingStats
from localspec.metrics.speculation import DrafterShare, SpeculationStats, fold_rounds
from localspec.session.pacing_memory import PacingMemory
from localspec.tui.app import LocalspecApp
from localspec.tui.chat_words import work_activity
from localspec.tui.engine_room import EngineRoom
from localspec.tui.palette import METHODS as COMMANDED
from localspec.tui.round_words import round_words
from localspec.tui.screens.chat_settings import ChatSettings
from localspec.tui.screens.compare_arm import CompareArm
from localspec.tui.state import ChosenModel, EngineState, Workbench
from localspec.tui.widgets.chat_drafting import drafter_lines, gauge_lines, histogram_lines, pacing_lines
from localspec.tui.widgets.chat_figures import figure_lines
from localspec.tui.widgets.speculation_badge import badge_wordings
from localspec.tui.widgets.status_line import status_parts
from tests.scripted_engine import ScriptedEngine

HOSTILE = "draft [/] [bold \x1b[31m" + "long" * 100
RESTING = Beliefs("suffix", 0, 1.0, 0.011, 0.01, 0.31, 0.58, is_resting=True)
DRAFTING = replace(RESTING, limit=4, expected_tokens=2.5, acceptance=0.71, is_resting=False)


def a_round(beliefs: Beliefs | None, drafter: str = "suffix", num_drafted: int = 4, index: int = 1) -> RoundFinished:
    emitted = (EmittedToken(1, "a ", "accepted"), EmittedToken(2, "b ", "correction"))
    return RoundFinished(
        *(1, index, drafter, tuple(range(num_drafted)), 1, 0, emitted, 0, "not_worth"),
        *(0.001, 0.01, 0.0, 0.012, 0.1, 10),
        match_length=7,
        beliefs=beliefs,
    )


def texts(lines: list[object]) -> str:
    return "\n".join(getattr(line, "plain", "") for line in lines)


def state(method: str, drafter: str, **changes: object) -> EngineState:
    settings = replace(SpeculationSettings(), method=method, **changes)  # type: ignore[arg-type]
    return EngineState(speculation=SpeculationState(True, settings.method, drafter, "", settings))


def test_a_resting_answer_says_why_with_both_numbers() -> None:
    stats = fold_rounds([a_round(DRAFTING), a_round(RESTING, num_drafted=0, index=2)])
    said = texts(list(pacing_lines(stats.pacing, 36)))
    assert "resting: acceptance 0.31, needs 0.58" in " ".join(said.split())
    assert "0.31, needs 0.58 ✗" in said and "length now none: resting" in said
    assert "expected   1.75 tokens in 11.0 ms" in said and "measured   2.00 tokens in 12.0 ms" in said
    assert "resting: acceptance 0.31" in work_activity(LiveFigures(stats)).text


def test_a_paying_answer_shows_its_length() -> None:
    said = texts(list(pacing_lines(fold_rounds([a_round(DRAFTING)]).pacing, 36)))
    assert "length now 4 tokens" in said and "0.71, needs 0.58 ✓" in said and "resting" not in said


def test_fixed_lengths_have_no_beliefs_to_show() -> None:
    assert not pacing_lines(fold_rounds([a_round(None)]).pacing, 36)
    assert not pacing_lines(PacingStats(), 36)


@pytest.mark.parametrize(("acceptance", "needed"), [(0.0, 0.0), (1.0, 1.0), (0.3, 2.5), (1.0, 0.5)])
def test_the_gauge_holds_its_mark_whatever_the_numbers(acceptance: float, needed: float) -> None:
    for width in (10, 26, 40):
        bar = gauge_lines(acceptance, needed, width)[1].plain
        assert bar.count("┃") == 1 and cell_len(bar) <= width


def test_the_histogram_has_a_column_for_each_length() -> None:
    columns, axis = (line.plain for line in histogram_lines((5, 0, 1, 0, 10), 30))
    assert columns[11:] == "▄·▁·█" and axis[11:] == "0   4"
    assert not histogram_lines((), 30) and not histogram_lines((0, 0), 30)
    assert all(cell_len(line.plain) <= 26 for line in histogram_lines((1,) * 33, 26))


def test_each_of_several_drafters_has_a_line_with_its_mark() -> None:
    shares = {"suffix": DrafterShare(4, 20, 10), HOSTILE: DrafterShare(2, 10, 1), "n-gram 4-6": DrafterShare(1, 0, 0)}
    lines = drafter_lines(SpeculationStats(by_drafter=shares), 30)
    assert [line.plain[0] for line in lines] == ["S", "D"]
    assert "10 of 20   50 %" in lines[0].plain and "1 of 10   10 %" in lines[1].plain
    assert all(line.cell_length <= 30 and "\x1b" not in line.plain for line in lines)
    assert not drafter_lines(SpeculationStats(by_drafter={"suffix": DrafterShare(1, 4, 2)}), 30)


@pytest.mark.parametrize("width", [33, 41])
def test_no_figure_is_wider_than_the_panel(width: int) -> None:
    stats = fold_rounds([a_round(RESTING, HOSTILE, num_drafted=16), a_round(DRAFTING, "suffix")])
    lines = figure_lines(LiveFigures(stats), None, EngineState(), width)
    assert all(line.cell_length <= width for line in lines if "not measured" not in line.plain)


def test_a_round_names_who_drafted_and_what_was_believed() -> None:
    said = round_words(a_round(DRAFTING), 9).plain
    assert "by suffix, 7 match, the next token was not worth its time" in said
    assert "asked for 4: acceptance 0.71, needs 0.58; expected 2.5 tokens" in said and "came 2 in 12.0 ms" in said
    assert "resting: acceptance 0.31" in round_words(a_round(RESTING, num_drafted=0), 9).plain


@pytest.mark.parametrize(
    ("found", "words", "brief"),
    [
        (state("draft", "draft X", n_max=4), "draft X, n_max 4", "ON draft 4"),
        (state("suffix", "suffix", n_max=8), "suffix, n_max 8", "ON suffix 8"),
        (state("auto", "suffix + draft X"), "auto: suffix + draft X, up to 16", "ON auto ≤16"),
        (state("draft", "draft X", pacing="adaptive"), "draft X, adaptive up to 4", "ON draft ≤4"),
        (state("draft", "draft X", verification="block"), "draft X, n_max 4, block at a temperature", "ON draft 4"),
    ],
)
def test_the_status_says_how_it_drafts(found: EngineState, words: str, brief: str) -> None:
    assert status_parts(Workbench(), found, 80)[0][0] == f"speculation ON ({words})"
    wordings = [text for text, _ in badge_wordings(found.speculation)]
    assert f"speculation ON ({words})" in wordings[0] and brief in wordings[-2]


def test_a_long_name_leaves_the_rest_of_the_status_to_be_seen() -> None:
    said = status_parts(Workbench(), state("auto", HOSTILE), 60)[0][0]
    assert said.endswith(", up to 16)") and cell_len(said) <= 60 and "\x1b" not in said


def test_the_palette_commands_every_method() -> None:
    assert {method for method, _ in COMMANDED} == set(METHODS)


async def test_what_was_learnt_is_recalled_and_kept(tmp_path: Path) -> None:
    (tmp_path / "big.gguf").write_bytes(b"GGUF")
    asked: list[Request] = []
    engine = ScriptedEngine(answer=asked.append)
    memory = PacingMemory(lambda: tmp_path / "learnt", "build", "machine")
    room = EngineRoom(lambda: engine, lambda state: None, open_learnt=lambda: memory)
    bench = Workbench(ChosenModel("big", tmp_path / "big.gguf"), speculation=SpeculationSettings("auto"))
    text = to_text(PacingState())
    async with room.occupied("loading"):
        await room.load(bench, lambda event: None)
        assert not any(isinstance(request, Configure) for request in asked)
        room.hear(PacingReported(9, text))
        await room.load(replace(bench, context=replace(bench.context, n_ctx=2048)), lambda event: None)
    assert [request.pacing_state for request in asked if isinstance(request, Configure)] == [text]


@pytest.mark.slow
async def test_the_drawer_shows_what_the_method_reads(app: LocalspecApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.session.earlier_answers.remembering_notice", lambda: f"Kept in {HOSTILE}.")
    taken: list[Workbench | None] = []
    async with app.run_test(size=(60, 20)) as pilot:
        drawer = ChatSettings(Workbench())
        app.push_screen(drawer, taken.append)
        await pilot.pause()

        def shown() -> set[str]:
            return {row.id or "" for row in drawer.query(".row") if row.display}

        assert "row-n_max" not in shown() and "row-method" in shown()
        drawer.query_one("#method", Select).value = "suffix"
        await pilot.pause()
        assert {"row-pacing", "row-suffix_factor", "row-remembers"} <= shown() and "row-p_min" not in shown()
        drawer.query_one("#remembers", Checkbox).value = True
        drawer.query_one("#suffix_p_min", Input).value = "0.2"
        await pilot.pause(0.1)
        said = str(drawer.query_one("#remembering", Static).render())
        assert "Kept in draft [/]" in said and "\x1b" not in said
        drawer.query_one("#pacing", Select).value = "adaptive"
        await pilot.press("ctrl+s")
    assert taken == [
        replace(
            Workbench(),
            speculation=SpeculationSettings("suffix", pacing="adaptive", suffix_p_min=0.2, remembers=True),
        )
    ]


@pytest.mark.slow
async def test_a_cascade_without_a_draft_model_is_refused(app: LocalspecApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        drawer = ChatSettings(Workbench())
        app.push_screen(drawer)
        await pilot.pause()
        drawer.query_one("#method", Select).value = "cascade"
        await pilot.press("ctrl+s")
        assert "cascade needs a draft model" in str(drawer.query_one("#refusal", Static).render())
        assert app.screen is drawer


@pytest.mark.slow
async def test_an_arm_of_any_kind_is_made(app: LocalspecApp) -> None:
    taken: list[SpeculationSettings | None] = []
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = CompareArm("B", SpeculationSettings("draft"), Workbench(draft=ChosenModel("d", Path("d.gguf"))))
        app.push_screen(dialog, taken.append)
        await pilot.pause()
        dialog.query_one("#method-cascade", RadioButton).value = True
        dialog.query_one("#pacing-adaptive", RadioButton).value = True
        dialog.query_one("#verification-block", RadioButton).value = True
        await pilot.pause()
        assert dialog.query_one("#row-draft_temperature").display and not dialog.query_one("#row-ngram_max").display
        dialog.query_one("#field-draft_temperature", Input).value = "0.6"
        await pilot.press("ctrl+s")
    assert taken == [SpeculationSettings("cascade", pacing="adaptive", verification="block", draft_temperature=0.6)]
