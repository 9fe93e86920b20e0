"""How answers are shown, folded, copied and looked into, at any size."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import Collapsible, Static

from localspec.engine.events import EmittedToken, Event
from localspec.engine.requests import Request
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat_xray import ChatXray
from localspec.tui.widgets import chat_transcript
from localspec.tui.widgets.chat_answer import ChatAnswer
from localspec.tui.widgets.chat_panel import ChatPanel
from localspec.tui.widgets.chat_tokens import ChatTokens
from localspec.tui.widgets.chat_transcript import ChatQuestion, EarlierTurns
from tests.scripted_engine import EchoEngine
from tests.tui.chat_kit import (
    answer_with,
    ask,
    figures,
    opened,
    round_of,
    round_text,
    screen_of,
)
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


HOSTILE = (
    "[/]",
    "[/path]",
    "[bold",
    "[type=x, v={'a[0]'}]",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202eright to left\u200f \u05e9\u05dc\u05d5\u05dd",
    "x" * 10_000,
    "<script>alert(1)</script> <b>bold</b>",
    "> " * 60 + "deep",
    "```\nnever closed [/]",
    "[a link](javascript:[/])",
    "漢字 👩‍👩‍👧 e\u0301 \u200b",
)


async def test_hostile_texts_stay_texts(app: LocalspecApp, engine: EchoEngine) -> None:
    async with opened(app, (60, 20)) as pilot:
        for text in HOSTILE:
            engine.answer = lambda request, text=text: answer_with(request, text)  # type: ignore[misc]
            await ask(pilot, app, text)
            shown = list(screen_of(app).query(ChatAnswer))[-1].markdown.source
            assert "\x1b" not in shown and "\u202e" not in shown
            assert len(shown) >= len(text) - 8
        rounds = [round_of(1, index, (EmittedToken(1, text, "bonus"),)) for index, text in enumerate(HOSTILE)]
        app.push_screen(ChatXray(rounds))
        await pilot.pause()
        await pilot.press("end")
        await pilot.pause()
        assert f"round {len(HOSTILE)} of {len(HOSTILE)}" in round_text(app)
        await pilot.press("escape")
        await pilot.resize_terminal(120, 30)
        await pilot.pause()
        assert app.export_screenshot()


async def test_html_in_an_answer_is_shown(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.answer = lambda request: answer_with(request, "<div>seen</div>")
    async with opened(app) as pilot:
        await ask(pilot, app, "html")
        blocks = screen_of(app).query_one(ChatAnswer).markdown.query(Static)
        assert any("<div>seen</div>" in str(block.render()) for block in blocks)


async def test_thinking_is_folded_and_counted(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.answer = lambda request: answer_with(
        request, "<think>", "so ", "and ", "so", "</think>", "\n\nThe ", "answer"
    )
    async with opened(app) as pilot:
        await ask(pilot, app, "why")
        answer = screen_of(app).query_one(ChatAnswer)
        folded = answer.query_one(Collapsible)
        assert answer.markdown.source.strip() == "The answer"
        assert folded.display and folded.collapsed
        assert "5 tokens" in str(folded.title)
        assert "5 of them thinking" in figures(app)
        folded.collapsed = False
        await pilot.pause()
        assert str(answer.query_one(".thinking", Static).content) == "so and so"
        await pilot.press("ctrl+y")
        assert app.clipboard == "The answer"


async def test_code_is_copied_alone(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.answer = lambda request: answer_with(request, "See:\n\n```python\nprint(1)\n```\n\nDone.")
    async with opened(app) as pilot:
        await ask(pilot, app, "code")
        await pilot.press("f8")
        assert app.clipboard == "print(1)\n"


async def test_the_xray_tells_what_was_guessed(app: LocalspecApp, engine: EchoEngine) -> None:
    def answer(request: Request) -> list[Event] | None:
        events = answer_with(request, "The ")
        if events is None:
            return None
        emitted = (EmittedToken(1, "cat", "accepted"), EmittedToken(2, " sat", "correction"))
        guess = replace(
            round_of(request.id, 1, emitted), drafted=(1, 3), num_accepted=1, drafted_texts=("cat", " [/ran]")
        )
        return [*events[:2], replace(guess, drafter="draft tiny"), events[2]]

    engine.answer = answer
    async with opened(app) as pilot:
        await ask(pilot, app, "x")
        await pilot.press("ctrl+t")
        await pilot.pause()
        assert "round 1 of 2" in round_text(app)
        await pilot.press("right")
        await pilot.pause()
        text = round_text(app)
        assert "DC" in text and "1 of 2 drafted tokens accepted" in text
        assert '" [/ran]"' in text and 'instead " sat"' in text
        tokens = app.screen.query_one(ChatTokens)
        assert tokens.render_line(0).text.rstrip() == "The cat sat"
        await pilot.press("right", "ctrl+t")
        assert app.screen is screen_of(app)


@pytest.mark.parametrize(("width", "is_shown"), [(60, False), (80, False), (110, True), (160, True)])
async def test_the_panel_stands_beside_where_there_is_room(app: LocalspecApp, width: int, is_shown: bool) -> None:
    async with opened(app, (width, 24)) as pilot:
        panel = screen_of(app).query_one(ChatPanel)
        assert panel.display == is_shown
        await pilot.press("ctrl+l")
        await pilot.pause()
        assert panel.display != is_shown
        await ask(pilot, app, "one two three four five six")
        assert screen_of(app).prompt.region.width > 10
        assert panel.live.stats.num_tokens == 6


async def test_resizing_in_the_middle_of_an_answer(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.pause_s = 0.001
    async with opened(app, (160, 50)) as pilot:
        screen = screen_of(app)
        screen.prompt.put("漢字 wide " * 60)
        await pilot.press("enter")
        for size in ((60, 20), (80, 24), (160, 50), (60, 20)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        await until(pilot, lambda: not screen.is_working)
        assert len(screen.turns[0].text.split()) == 120
        assert len(screen.query_one(ChatAnswer).markdown.source.split()) == 120


async def test_a_long_chat_mounts_its_newest_answers_only(app: LocalspecApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_transcript, "MAX_MOUNTED", 4)
    async with opened(app) as pilot:
        for number in range(6):
            await ask(pilot, app, f"q{number}")
        screen = screen_of(app)
        assert len(screen.query(ChatAnswer)) == 4
        assert str(screen.query_one(EarlierTurns).content) == "… 2 earlier exchanges"
        assert [bool(turn.rounds) for turn in screen.turns].count(True) == 4
        screen.query_one(EarlierTurns).post_message(EarlierTurns.Wanted())
        await until(pilot, lambda: len(screen.query(ChatAnswer)) == 6)
        assert str(next(iter(screen.query(ChatQuestion))).content) == "q0"
