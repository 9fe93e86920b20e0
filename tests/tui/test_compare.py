"""The Compare screen, on engines that follow a script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Checkbox, Input, RadioButton, SelectionList, Static, TextArea

from localspec.engine.events import EngineFailed, RoundFinished
from localspec.engine.requests import Configure, Generate
from localspec.engine.values import SpeculationSettings
from localspec.store.database import Database
from localspec.store.profiles import Profiles
from localspec.store.runs import Runs
from localspec.tui.screens.compare import CompareScreen
from localspec.tui.screens.compare_arm import CompareArm
from localspec.tui.screens.compare_text import CompareText
from localspec.tui.widgets.compare_card import CompareCard
from localspec.tui.widgets.compare_gauge import CompareGauge
from localspec.tui.widgets.compare_history import CompareHistory
from localspec.tui.widgets.compare_lane import CompareLane
from localspec.tui.widgets.compare_standing import CompareStanding
from localspec.tui.widgets.compare_text import CompareText as LaneText
from localspec.tui.widgets.compare_text import last_lines
from tests.scripted_engine import ArmScript, ScriptedEngine
from tests.tui.looking import notices
from tests.tui.two_models import TwoModels
from tests.tui.waiting import until

pytestmark = pytest.mark.slow

HOSTILE = "[/] [/path] [bold [type=x, v={'a[0]'}] \x1b[31mred \u202eright " + "long" * 2500


class Bench(TwoModels[ScriptedEngine]):
    """Has a race be run."""

    @property
    def screen(self) -> CompareScreen:
        return cast("CompareScreen", self.app.screen)

    async def open(self, pilot: Pilot[int], prompt: str = "Say it.", **choice: object) -> None:
        await pilot.press("f5")
        await pilot.pause()
        self.app.workbench = self.models
        given = {"prompt": prompt, "max_tokens": 30, **choice}
        self.screen.choice = replace(self.screen.choice, **given)  # type: ignore[arg-type]
        await pilot.pause()

    async def race(self, pilot: Pilot[int]) -> None:
        await pilot.press("r")
        await until(pilot, lambda: not self.screen.is_at_work)

    def text(self) -> str:
        card = self.screen.query_one(CompareCard).query_one(Static)
        return str(card.render())


def make_engine(pause_s: float = 0.0) -> ScriptedEngine:
    return ScriptedEngine(
        scripts={"draft": ArmScript(accepted=(2,), draft_step_s=0.001, verify_cost=1.2)}, pause_s=pause_s
    )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, make_engine())


@pytest.fixture
def slow(tmp_path: Path) -> Bench:
    return Bench(tmp_path, make_engine(pause_s=0.01))


async def test_a_race_gives_a_card_and_a_kept_run(bench: Bench) -> None:
    async with bench.app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot)
        await bench.race(pilot)
        methods = [method for method, _ in bench.engine.generated[2:]]
        assert methods == ["off", "draft", "draft", "off", "off", "draft", "off"]
        said = bench.text()
        for words in ("▲", "Faster here", "Same text as without drafts", "acceptance", "tau", "TTFT", "p95", "Power:"):
            assert words in said
        assert "Throttling:" in said
        card = bench.screen.card
        assert card is not None and card.run_id == 1 and card.best == "draft"
        assert "run 1" in str(bench.screen.query_one(CompareHistory).get_option_at_index(0).prompt)
        assert [lane.lane.state for lane in bench.screen.query(CompareLane)] == ["done", "done"]
    with Database(bench.database) as database:
        (summary,) = Runs(database).summaries()
    assert (summary.state, summary.kind) == ("done", "bench") and (summary.speedup or 0.0) > 1.0


async def test_afterwards_the_engine_drafts_as_the_bench_says(bench: Bench) -> None:
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await bench.race(pilot)
        last = [request for request in bench.engine.requests if isinstance(request, Configure)][-1]
        assert last.speculation == bench.models.speculation
        state = bench.app.engine_state
        assert state.busy == "" and state.speculation is not None and state.speculation.is_on


async def test_while_the_second_runs_the_first_is_its_ghost(tmp_path: Path) -> None:
    slow = Bench(tmp_path, make_engine(pause_s=0.03))
    async with slow.app.run_test(size=(140, 40)) as pilot:
        await slow.open(pilot, max_tokens=60)
        await pilot.press("r")

        def is_raced() -> bool:
            ghost, live = slow.screen.race.lanes
            return (ghost.state, live.state) == ("replayed", "live") and min(ghost.num_tokens, live.num_tokens) > 5

        await until(pilot, is_raced)
        left, right = slow.screen.query(CompareLane)
        assert left.has_class("-replayed") and right.has_class("-live")
        words = [str(lane.query_one(CompareGauge).render()) for lane in (left, right)]
        assert "ghost of pair 1" in words[0] and "live" in words[1]
        assert all("/60" in line and "━" in line for line in words)
        assert "ghost is" in str(slow.screen.query_one(CompareStanding).render())
        assert slow.app.engine_state.busy == "comparing"
        await pilot.press("escape")
        await until(pilot, lambda: not slow.screen.is_at_work)


async def test_esc_stops_soon_and_keeps_what_is_there(slow: Bench) -> None:
    async with slow.app.run_test(size=(80, 24)) as pilot:
        await slow.open(pilot, percent=0.0)
        await pilot.press("r")
        await until(pilot, lambda: len(slow.engine.generated) >= 6)
        await pilot.press("escape")
        await until(pilot, lambda: not slow.screen.is_at_work)
        assert "Ended early" in slow.text()
        assert "of 12 pairs" in slow.text()
        num_generated = len(slow.engine.generated)
        await pilot.pause(0.05)
        assert len(slow.engine.generated) == num_generated
    with Database(slow.database) as database:
        assert Runs(database).summaries()[0].state == "interrupted"


async def test_keys_that_come_at_once_begin_and_stop(bench: Bench) -> None:
    async with bench.app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot)
        bench.screen.action_run()
        bench.screen.action_stop()
        await until(pilot, lambda: not bench.screen.is_at_work)
        assert bench.screen.card is None
        await bench.race(pilot)
        assert bench.screen.card is not None


async def test_stopping_the_warm_up_leaves_no_card(slow: Bench) -> None:
    async with slow.app.run_test(size=(80, 24)) as pilot:
        await slow.open(pilot)
        await pilot.press("r")
        await until(pilot, lambda: len(slow.engine.generated) == 1)
        await pilot.press("escape")
        await until(pilot, lambda: not slow.screen.is_at_work)
        assert slow.screen.card is None
        assert "before anything was measured" in notices(slow.app)
        assert slow.app.room.is_free


async def test_it_goes_on_while_another_screen_is_looked_at(slow: Bench) -> None:
    async with slow.app.run_test(size=(80, 24)) as pilot:
        await slow.open(pilot)
        screen = slow.screen
        await pilot.press("r")
        await until(pilot, lambda: len(slow.engine.generated) >= 2)
        await pilot.press("f6")
        assert slow.app.engine_state.busy == "comparing"
        await until(pilot, lambda: not screen.is_at_work)
        await pilot.press("f5")
        await pilot.pause()
        assert screen.card is not None and "Faster here" in slow.text()


async def test_a_dead_engine_leaves_what_was_measured(bench: Bench) -> None:
    def answer(request: object) -> list[object] | None:
        if isinstance(request, Generate) and len(bench.engine.generated) >= 5:
            return [EngineFailed(request.id, "EngineDiedError", "[/] killed", "", is_fatal=True)]
        return None

    bench.engine.answer = answer  # type: ignore[assignment]
    async with bench.app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, percent=0.0)
        await bench.race(pilot)
        assert "It broke off: [/] killed" in bench.text()
        assert bench.screen.card is not None and bench.screen.card.run_id == 1
        state = bench.app.engine_state
        assert state.loaded is None and state.failure == "[/] killed" and state.busy == ""
        assert "[/] killed" in notices(bench.app)


async def test_without_a_model_it_says_what_to_do(bench: Bench) -> None:
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f5")
        await until(pilot, lambda: bool(bench.screen.remark))
        assert "No target model is chosen" in str(bench.screen.query_one(CompareStanding).render())
        await pilot.press("r")
        await pilot.pause()
        assert "Models screen" in notices(bench.app)
        assert not bench.screen.is_at_work and not bench.engine.requests


async def test_a_busy_engine_is_left_alone(bench: Bench) -> None:
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        async with bench.app.room.occupied("answering"):
            await pilot.pause()
            assert "busy: answering" in str(bench.screen.query_one(CompareStanding).render())
            await pilot.press("r")
            await pilot.pause()
            assert "busy: answering" in notices(bench.app)
            assert not bench.screen.is_at_work and not bench.engine.generated


async def test_a_draft_that_does_not_load_is_refused(bench: Bench) -> None:
    bench.engine.draft_failure = "[bold it is no pair."
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await bench.race(pilot)
        assert "The draft cannot be used: [bold it is no pair." in notices(bench.app)
        assert not bench.engine.generated


async def test_arms_are_edited_and_checked(bench: Bench) -> None:
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await pilot.press("b")
        await pilot.pause()
        dialog = cast("CompareArm", bench.app.screen)
        dialog.query_one("#field-n_min", Input).value = "9"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert "n_min 9 is over n_max 4" in str(dialog.query_one(".wrong", Static).render())
        dialog.query_one("#method-ngram", RadioButton).value = True
        await pilot.pause()
        assert not dialog.query_one("#row-p_min").display and dialog.query_one("#row-ngram_min").display
        dialog.query_one("#field-n_min", Input).value = "1"
        dialog.query_one("#field-n_max", Input).value = "[/]"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert "whole number from 1 to 32" in str(dialog.query_one(".wrong", Static).render())
        dialog.query_one("#field-n_max", Input).value = "7"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert bench.screen.choice.right == SpeculationSettings("ngram", n_max=7, n_min=1)
        assert "ngram n_max 7" in str(bench.screen.query_one("#compare-right", Button).label)


async def test_what_is_chosen_differs_by_a_character(bench: Bench) -> None:
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await pilot.press("b")
        await pilot.pause()
        marks = {str(radio.render())[:3]: radio.value for radio in bench.app.screen.query(RadioButton)}
        assert marks == {"(●)": True, "( )": False}
        await pilot.press("escape", "t")
        await until(pilot, lambda: isinstance(bench.app.screen, CompareText))
        texts = bench.app.screen.query_one(SelectionList)
        assert {texts.render_line(y).text[:3] for y in range(texts.size.height)} == {"[x]", "[ ]"}


async def test_a_long_result_is_scrolled_by_the_arrows(slow: Bench) -> None:
    async with slow.app.run_test(size=(80, 24)) as pilot:
        await slow.open(pilot)
        await pilot.press("r")
        await until(pilot, lambda: slow.screen.is_at_work)
        assert slow.screen.check_action("tune", ()) is False
        await until(pilot, lambda: not slow.screen.is_at_work)
        card = slow.screen.query_one(CompareCard)
        assert card.has_focus and card.max_scroll_y > 0
        await pilot.press("down")
        await until(pilot, lambda: card.scroll_y > 0)


async def test_two_ways_of_drafting_are_set_against_each_other(bench: Bench) -> None:
    async with bench.app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, left=SpeculationSettings("draft", n_max=2))
        await bench.race(pilot)
        said = bench.text()
        assert "Against draft n_max 2, draft n_max 4" in said
        assert "off" in said.split("tokens/s")[0]


async def test_text_and_extent_are_chosen(bench: Bench) -> None:
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, prompt="")
        await pilot.press("t")
        await until(pilot, lambda: bool(bench.app.screen.query(TextArea)))
        bench.app.screen.query_one(TextArea).text = HOSTILE
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert bench.screen.choice.prompt == HOSTILE.strip()
        await pilot.press("e")
        await pilot.pause()
        bench.app.screen.query_one("#field-pairs", Input).value = "2"
        bench.app.screen.query_one("#field-tokens", Input).value = "24"
        await pilot.press("ctrl+s")
        await pilot.pause()
        await bench.race(pilot)
        assert bench.screen.card is not None
        assert "Only 2 paired runs" in bench.text()
        last = bench.engine.generated[-1][1]
        assert last.messages[-1].content == HOSTILE.strip() and last.max_tokens == 24


async def test_hostile_text_of_a_model_stays_text_at_any_size(tmp_path: Path) -> None:
    class Hostile(ScriptedEngine):
        def _text(self, token: int, index: int) -> str:
            return HOSTILE if index == 1 else "\n[/] "

    bench = Bench(tmp_path, Hostile(pause_s=0.005))
    async with bench.app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, percent=0.0, num_pairs=1)
        await pilot.press("r")
        await until(pilot, lambda: bench.screen.left.num_tokens > 5)
        shown = "\n".join(bench.screen.query(CompareLane).first().query_one(LaneText)._lines)
        assert "[/]" in shown and "\x1b" not in shown and "\u202e" not in shown
        for size in ((60, 20), (100, 24), (160, 50), (40, 12), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        await until(pilot, lambda: not bench.screen.is_at_work)
        assert bench.screen.card is not None


@pytest.mark.parametrize(("size", "is_beside"), [((80, 24), False), ((100, 30), True), ((140, 40), True)])
async def test_lanes_lie_side_by_side_where_there_is_room(bench: Bench, size: tuple[int, int], is_beside: bool) -> None:
    async with bench.app.run_test(size=size) as pilot:
        await bench.open(pilot)
        left, right = bench.screen.query(CompareLane)
        assert (left.region.y == right.region.y) is is_beside
        await bench.race(pilot)
        await pilot.pause()
        assert bench.screen.query_one(CompareCard).region.height >= 5
        assert all(lane.region.height >= 3 for lane in (left, right))
        bars = [str(lane.query_one(CompareGauge).render()).count("━") for lane in (left, right)]
        assert bars[0] == bars[1] > 0
        run = bench.screen.query_one("#compare-run", Button)
        assert run.region.right <= size[0]


async def test_an_arm_is_kept_as_a_profile(bench: Bench) -> None:
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await bench.race(pilot)
        await pilot.press("p")
        await pilot.pause()
        dialog = bench.app.screen
        dialog.query_one("#field-name", Input).value = "[/]"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert "cannot be a profile's name" in str(dialog.query_one(".wrong", Static).render())
        dialog.query_one("#field-name", Input).value = "daily"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "daily" in notices(bench.app))
        await pilot.press("p")
        await pilot.pause()
        bench.app.screen.query_one("#field-name", Input).value = "daily"
        bench.app.screen.query_one(Checkbox).value = True
        await pilot.press("ctrl+s")
        await pilot.pause(0.1)
        assert "already" not in notices(bench.app)
    with Database(bench.database) as database:
        profile = Profiles(database).get("daily")
    assert profile.run_id == 1 and profile.document["speculation"]["method"] == "draft"


async def test_earlier_results_are_shown_again(bench: Bench) -> None:
    async with bench.app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, prompt="First.")
        await bench.race(pilot)
        await bench.open(pilot, prompt="Second.")
        await bench.race(pilot)
        history = bench.screen.query_one(CompareHistory)
        assert history.option_count == 2
        assert bench.screen.card is not None and "Second." in bench.screen.card.title
        history.focus()
        await pilot.press("down")
        await pilot.pause()
        assert bench.screen.card is not None and "First." in bench.screen.card.title
        assert bench.screen.card.run_id == 1


async def test_every_round_is_folded_once(bench: Bench) -> None:
    rounds: list[RoundFinished] = []
    bench.engine.on_round = lambda engine, event: rounds.append(event)
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await bench.race(pilot)
        lanes = {lane.lane.name: lane.lane for lane in bench.screen.query(CompareLane)}
        last = [event for event in rounds if event.drafter][-1].id
        emitted = [token.text for event in rounds if event.id == last for token in event.emitted]
        assert lanes["draft"].text == "".join(emitted) and lanes["draft"].num_tokens == len(emitted) == 30


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two three", ["one two", "three"]),
        ("a\n\nb\nc\nd", ["b", "c", "d"]),
        ("a\n", ["a", ""]),
        ("x" * 25, ["x" * 10, "x" * 10, "x" * 5]),
        ("漢字" * 6, ["漢字漢字漢", "字漢字漢字", "漢字"]),
        ("[/]\x1b[1m", ["[/][1m"]),
    ],
)
def test_a_lane_shows_the_last_lines_of_its_text(text: str, lines: list[str]) -> None:
    assert list(last_lines(text, 10, 3)) == lines


def test_a_long_text_is_wrapped_only_at_its_end() -> None:
    assert last_lines("word " * 100_000 + "end", 20, 5)[-1].endswith("end")
