"""Compare on the user's own chats, beside the workloads that come with localspec."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.session.profiles import read_profile
from localspec.settings import Settings
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.profiles import Profiles
from localspec.store.runs import Runs
from localspec.tui.compare_choice import CompareChoice, make_plan, obstacle, text_words
from localspec.tui.own_texts import texts_words
from localspec.tui.screens.compare import CompareScreen
from localspec.tui.screens.compare_text import CompareText
from localspec.tui.widgets.text_choice import TextChoice
from tests.scripted_engine import ArmScript, ScriptedEngine
from tests.tui.looking import notices
from tests.tui.two_models import TwoModels
from tests.tui.waiting import until

SECRET = "secret"
PLAIN = "Ferns and ivy like shade, and so do most of the plants that grow under trees in cool and quiet places."


def test_own_chats_are_a_text_like_others(tmp_path: Path) -> None:
    models = TwoModels(tmp_path, ScriptedEngine()).models
    own = CompareChoice(workloads=(), is_own=True)
    assert obstacle(own, models) is None and obstacle(CompareChoice(workloads=()), models) is not None
    assert text_words(own) == "my chats" and texts_words(("edit",), True) == "edit, my chats"
    # A prompt counts alone.
    assert text_words(CompareChoice(prompt="Go on.", is_own=True)) == "Go on."
    plan, _ = make_plan(CompareChoice(prompt="Go on.", is_own=True), models, Settings(), ())
    assert [workload.name for workload in plan.workloads] == ["own"]


def make_bench(folder: Path) -> TwoModels[ScriptedEngine]:
    return TwoModels(folder, ScriptedEngine(scripts={"draft": ArmScript(accepted=(3, 2, 4), draft_step_s=0.0005)}))


@pytest.mark.slow
async def test_they_are_chosen_raced_and_kept_without_their_words(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    with Database(bench.database) as database:
        chats = Chats(database)
        for number in range(4):
            chat_id = chats.start("t", {"target": {"name": "tiny"}, "draft": None})
            chats.add_message(chat_id, "user", f"What do ferns like, {SECRET} {number}?")
            chats.add_message(chat_id, "assistant", PLAIN, "stop")
    async with bench.app.run_test(size=(140, 40)) as pilot:
        bench.app.workbench = bench.models
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(bench.app.screen, CompareScreen))
        screen = bench.app.screen
        assert isinstance(screen, CompareScreen)
        await pilot.press("t")
        await until(pilot, lambda: isinstance(bench.app.screen, CompareText))
        texts = bench.app.screen.query_one(TextChoice)
        texts.deselect_all()
        await pilot.press("ctrl+s")
        assert isinstance(bench.app.screen, CompareText)
        texts.select("own")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bench.app.screen is screen)
        assert (screen.choice.workloads, screen.choice.is_own) == ((), True)
        await pilot.press("r")
        await until(pilot, lambda: not screen.is_at_work and screen.card is not None)
        card = screen.card
        assert card is not None and card.has_kinds
        assert "Own chats: chat (my_chat)" in card.texts[0].title
        assert card.notes[0].startswith("In your chats drafting pays for chat")
        assert "on my chats" in card.title
        await pilot.press("p")
        await until(pilot, lambda: bool(bench.app.screen.query("#field-name")))
        bench.app.screen.query_one("#field-name").value = "mine"  # type: ignore[attr-defined]
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "The profile mine is kept" in notices(bench.app))
    with Database(bench.database) as database:
        assert SECRET not in str(Runs(database).get(1).document)
        profile = read_profile(Profiles(database).get("mine"))
    assert profile.document.by_workload["chat"].method == "draft"


@pytest.mark.slow
async def test_too_few_of_them_are_said(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    async with bench.app.run_test(size=(80, 24)) as pilot:
        bench.app.workbench = bench.models
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(bench.app.screen, CompareScreen))
        screen = bench.app.screen
        assert isinstance(screen, CompareScreen)
        screen.choice = CompareChoice(workloads=(), is_own=True)
        await pilot.press("r")
        await until(pilot, lambda: "Too few chats" in notices(bench.app))
        assert not screen.is_at_work and screen.card is None and not bench.engine.generated
