"""A chat to ask, and what its screen shows."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from localspec.engine.events import EmittedToken, Event, GenerationFinished, GenerationStarted, RoundFinished
from localspec.engine.requests import Generate, Request
from localspec.engine.values import SpeculationSettings, SpeculationState
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.widgets.chat_activity import ChatActivity
from localspec.tui.widgets.chat_answer import ChatAnswer
from tests.tui.waiting import until


@contextlib.asynccontextmanager
async def opened(app: LocalspecApp, size: tuple[int, int] = (100, 30)) -> AsyncIterator[Pilot[int]]:
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot


def screen_of(app: LocalspecApp) -> ChatScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, ChatScreen)
    return screen


async def ask(pilot: Pilot[int], app: LocalspecApp, question: str) -> None:
    screen = screen_of(app)
    screen.prompt.put(question)
    await pilot.press("enter")
    await until(pilot, lambda: not screen.is_working)


def figures(app: LocalspecApp) -> str:
    return str(list(screen_of(app).query(ChatAnswer))[-1].query_one(".figures", Static).content)


def says(app: LocalspecApp) -> str:
    return screen_of(app).query_one(ChatActivity).render().plain


def is_question(request: Request) -> bool:
    return isinstance(request, Generate)


def answer_with(request: Request, *texts: str) -> list[Event] | None:
    """Return the answer of these texts, a round each; None to what is no question."""
    if not isinstance(request, Generate):
        return None
    state = SpeculationState(False, "off", "", "the method is off", SpeculationSettings())
    rounds = [round_of(request.id, index, (EmittedToken(index, text, "bonus"),)) for index, text in enumerate(texts)]
    finished = GenerationFinished(request.id, "stop", "", state, 0.1, 20, 1, 0, 1.0)
    return [GenerationStarted(request.id, (1, 2), 0, state, 0.0), *rounds, finished]


def round_of(request_id: int, index: int, emitted: tuple[EmittedToken, ...]) -> RoundFinished:
    at_s = 0.1 * (index + 1)
    return RoundFinished(request_id, index, "", (), 0, 0, emitted, 0, "off", 0.0, 0.1, 0.0, 0.1, at_s, 10 + index)


def num_listed(app: LocalspecApp) -> int:
    return app.screen.query_one(OptionList).option_count


def round_text(app: LocalspecApp) -> str:
    return str(app.screen.query_one("#round", Static).content)
