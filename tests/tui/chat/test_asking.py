"""Asking, stopping and asking again: every key of the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from textual.events import Key, Paste

from localspec.engine.requests import LoadModels
from localspec.engine.values import SamplingSettings
from localspec.store.values import StoredChat
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.state import Workbench
from localspec.tui.widgets.chat_answer import ChatAnswer
from localspec.tui.widgets.chat_prompt import MAX_CHARACTERS
from localspec.tui.widgets.chat_transcript import ChatQuestion
from tests.scripted_engine import EchoEngine
from tests.tui.chat_kit import (
    ask,
    figures,
    opened,
    says,
    screen_of,
)
from tests.tui.looking import notices
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


async def test_a_question_is_answered_and_kept(app: LocalspecApp, kept: Callable[[], StoredChat]) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one **two** three")
        screen = screen_of(app)
        assert screen.query_one(ChatAnswer).markdown.source.split() == ["one", "**two**", "three"]
        assert figures(app).startswith("3 tokens")
        assert screen.prompt.text == ""
        assert app.engine_state.speculation is not None and app.engine_state.speculation.is_on
        assert app.engine_state.busy == ""
    contents = [(message.role, message.content.split()) for message in kept().messages]
    assert contents == [("user", ["one", "**two**", "three"]), ("assistant", ["one", "**two**", "three"])]
    assert kept().messages[1].figures is not None


async def test_the_conversation_goes_on(app: LocalspecApp, engine: EchoEngine) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "first")
        await ask(pilot, app, "second")
    roles = [message.role for message in engine.generated[-1][1].messages]
    assert roles == ["user", "assistant", "user"]
    assert sum(isinstance(request, LoadModels) for request in engine.requests) == 1


async def test_escape_stops_and_keeps_what_came(
    app: LocalspecApp, engine: EchoEngine, kept: Callable[[], StoredChat]
) -> None:
    engine.pause_s = 0.005
    async with opened(app) as pilot:
        screen = screen_of(app)
        screen.prompt.put("word " * 800)
        await pilot.press("enter")
        await until(pilot, lambda: screen.live.stats.num_tokens > 5)
        await pilot.press("escape")
        await until(pilot, lambda: not screen.is_working)
        assert figures(app).endswith("stopped")
        assert 5 < len(screen.turns[0].text.split()) < 800
        assert app.engine_state.busy == ""
        await ask(pilot, app, "and on")
        assert len(screen.turns) == 2
    assert kept().messages[1].finish_reason == "cancelled"


async def test_stopped_before_the_first_word_the_question_is_back(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.pause_s = 0.2
    async with opened(app) as pilot:
        screen = screen_of(app)
        screen.prompt.put("too early")
        await pilot.press("enter")
        await until(pilot, lambda: bool(engine.generated))
        await pilot.press("escape")
        await until(pilot, lambda: not screen.is_working)
        assert screen.prompt.text == "too early"
        assert screen.turns == ()
        assert not screen.query(ChatQuestion)


@pytest.mark.parametrize("keys", [("enter", "escape"), ("enter", "enter", "escape"), ("ctrl+k", "escape")])
@pytest.mark.parametrize("num_turns", (0, 2, 6))
async def test_keys_that_come_at_once_are_obeyed(
    app: LocalspecApp, engine: EchoEngine, keys: tuple[str, ...], num_turns: int
) -> None:
    engine.pause_s = 0.2
    async with opened(app) as pilot:
        screen = screen_of(app)
        screen.prompt.put("too early")
        *first, last = keys
        for key in first:
            app.post_message(Key(key, None))
        # The last one comes at any moment of the beginning.
        for _ in range(num_turns):
            await asyncio.sleep(0)
        app.post_message(Key(last, None))
        await until(pilot, lambda: bool(screen.prompt.text) and not screen.is_working)
        await pilot.pause(0.05)
        assert screen.prompt.text == "too early"
        assert not screen.is_working
        assert screen.turns == ()
        assert "stopping" not in says(app) and "at work" not in notices(app)
        engine.pause_s = 0.0
        await ask(pilot, app, "and on")
        assert len(screen.turns) == 1


async def test_again_takes_another_seed_and_the_place_of_the_first(
    app: LocalspecApp, engine: EchoEngine, kept: Callable[[], StoredChat]
) -> None:
    app.workbench = replace(app.workbench, sampling=SamplingSettings(temperature=0.8, seed=7))
    async with opened(app) as pilot:
        await ask(pilot, app, "same")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: not screen_of(app).is_working)
        assert len(screen_of(app).turns) == 1
        assert len(screen_of(app).query(ChatAnswer)) == 1
    assert [request.sampling.seed for _, request in engine.generated] == [7, 8]
    assert [len(request.messages) for _, request in engine.generated] == [1, 1]
    assert len(kept().messages) == 2


async def test_the_last_question_can_be_changed(app: LocalspecApp, kept: Callable[[], StoredChat]) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "first")
        await ask(pilot, app, "wrogn")
        await pilot.press("ctrl+e")
        assert screen_of(app).prompt.text == "wrogn"
        await ask(pilot, app, "right")
        assert [turn.question for turn in screen_of(app).turns] == ["first", "right"]
    assert [message.content.strip() for message in kept().messages] == ["first", "first", "right", "right"]


async def test_escape_gives_up_editing(app: LocalspecApp) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "first")
        await pilot.press("ctrl+e", "escape")
        assert screen_of(app).prompt.text == ""
        await ask(pilot, app, "second")
        assert len(screen_of(app).turns) == 2


async def test_history_at_the_edges_and_new_lines(app: LocalspecApp) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "first")
        await ask(pilot, app, "second")
        prompt = screen_of(app).prompt
        await pilot.press("d", "up")
        assert prompt.text == "second"
        await pilot.press("up")
        assert prompt.text == "first"
        await pilot.press("down", "down")
        assert prompt.text == "d"
        await pilot.press("ctrl+j", "e")
        assert prompt.text == "d\ne"
        await pilot.press("up")
        assert (prompt.text, prompt.cursor_location[0]) == ("d\ne", 0)


async def test_nothing_starts_while_an_answer_comes(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.pause_s = 0.01
    async with opened(app) as pilot:
        screen = screen_of(app)
        screen.prompt.put("word " * 500)
        await pilot.press("enter")
        await until(pilot, lambda: screen.live.stats.num_tokens > 0)
        screen.prompt.put("another")
        await pilot.press("enter", "ctrl+r", "ctrl+n", "ctrl+b", "ctrl+k")
        assert screen.prompt.text == "another"
        assert len(engine.generated) == 1
        await pilot.press("escape")
        await until(pilot, lambda: not screen.is_working)


async def test_leaving_in_the_middle_of_an_answer(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.pause_s = 0.01
    async with opened(app) as pilot:
        screen = screen_of(app)
        screen.prompt.put("word " * 500)
        await pilot.press("enter")
        await until(pilot, lambda: screen.live.stats.num_tokens > 0)
        await pilot.press("ctrl+q")
    assert app.return_value == 0
    assert engine.is_closed


async def test_without_a_target_it_says_where_to_choose_one(app: LocalspecApp, engine: EchoEngine) -> None:
    app.workbench = Workbench()
    async with opened(app) as pilot:
        await ask(pilot, app, "hello")
        assert "No target model is chosen" in notices(app)
        assert screen_of(app).prompt.text == "hello"
    assert not engine.requests


async def test_a_paste_that_would_freeze_the_prompt_is_refused(app: LocalspecApp) -> None:
    async with opened(app) as pilot:
        prompt = screen_of(app).prompt
        prompt.put("typed")
        app.post_message(Paste("x" * MAX_CHARACTERS))
        await until(pilot, lambda: "200,000 characters" in notices(app))
        assert prompt.text == "typed"
        app.post_message(Paste(" and pasted"))
        await until(pilot, lambda: prompt.text == "typed and pasted")
        assert not prompt.put("x" * (MAX_CHARACTERS + 1))
        assert prompt.text == "typed and pasted"


async def test_once_the_models_are_there_the_prompt_is_prepared(
    app: LocalspecApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(app) as pilot:
        told: list[str] = []
        post = screen_of(app).post_message

        def listen(message: object) -> bool:
            if isinstance(message, ChatScreen.Progressed):
                told.append(message.activity.text)
            return post(message)  # type: ignore[arg-type]

        monkeypatch.setattr(screen_of(app), "post_message", listen)
        await ask(pilot, app, "one")
    loading = max(place for place, text in enumerate(told) if text.startswith("loading"))
    assert told[loading + 1] == "preparing the prompt"
