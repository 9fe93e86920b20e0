"""The chat screen on scripted engines: every key, and everything that can go wrong in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.events import Key, Paste
from textual.pilot import Pilot
from textual.widgets import Collapsible, Input, OptionList, Select, Static

from localspec.engine.events import EmittedToken, EngineFailed, Event, GenerationStarted, RoundFinished
from localspec.engine.requests import Configure, Generate, LoadModels, Request
from localspec.engine.values import SamplingSettings, SpeculationSettings
from localspec.errors import StoreError
from localspec.paths import log_dir
from localspec.session.conversation import Answer
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import StoredChat
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.chat_list import ChatList
from localspec.tui.screens.chat_save import ChatSave
from localspec.tui.screens.chat_settings import ChatSettings
from localspec.tui.screens.chat_xray import ChatXray
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Workbench
from localspec.tui.widgets import chat_transcript
from localspec.tui.widgets.chat_activity import ChatActivity
from localspec.tui.widgets.chat_answer import ChatAnswer
from localspec.tui.widgets.chat_panel import ChatPanel
from localspec.tui.widgets.chat_prompt import MAX_CHARACTERS
from localspec.tui.widgets.chat_tokens import ChatTokens
from localspec.tui.widgets.chat_transcript import ChatQuestion, EarlierTurns
from localspec.tui.widgets.key_line import KeyLine
from tests.scripted_engine import EchoEngine

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


@pytest.fixture(autouse=True)
def only_the_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open with the chat, so that no other screen takes part."""
    monkeypatch.setattr(LocalspecApp, "DEFAULT_MODE", "chat")


@pytest.fixture
def engine() -> EchoEngine:
    return EchoEngine()


@pytest.fixture
def app(engine: EchoEngine, services: AppServices, tmp_path: Path) -> LocalspecApp:
    app = LocalspecApp(replace(services, make_engine=lambda: engine))
    for name in ("target.gguf", "draft.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    app.workbench = Workbench(
        target=ChosenModel("target", tmp_path / "target.gguf"),
        draft=ChosenModel("draft", tmp_path / "draft.gguf"),
        speculation=SpeculationSettings("draft", n_max=3),
    )
    return app


@contextlib.asynccontextmanager
async def opened(app: LocalspecApp, size: tuple[int, int] = (100, 30)) -> AsyncIterator[Pilot[int]]:
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot


def screen_of(app: LocalspecApp) -> ChatScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, ChatScreen)
    return screen


async def until(pilot: Pilot[int], condition: Callable[[], bool]) -> None:
    for _ in range(500):
        await pilot.pause()
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to that")


async def ask(pilot: Pilot[int], app: LocalspecApp, question: str) -> None:
    screen = screen_of(app)
    screen.prompt.put(question)
    await pilot.press("enter")
    await until(pilot, lambda: not screen.is_working)


def figures(app: LocalspecApp) -> str:
    return str(list(screen_of(app).query(ChatAnswer))[-1].query_one(".figures", Static).content)


def says(app: LocalspecApp) -> str:
    return screen_of(app).query_one(ChatActivity).render().plain


def notices(app: LocalspecApp) -> str:
    return "\n".join(notice.message for notice in app._notifications)


@pytest.fixture
def kept(database_path: Path) -> Iterator[Callable[[], StoredChat]]:
    def read() -> StoredChat:
        with Database(database_path) as database:
            chats = Chats(database)
            return chats.get(chats.summaries()[0].id)

    yield read


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


async def test_hostile_texts_stay_texts(app: LocalspecApp, engine: EchoEngine) -> None:
    async with opened(app, (60, 20)) as pilot:
        for text in HOSTILE:
            engine.answer = lambda request, text=text: _says(request, text)  # type: ignore[misc]
            await ask(pilot, app, text)
            shown = list(screen_of(app).query(ChatAnswer))[-1].markdown.source
            assert "\x1b" not in shown and "\u202e" not in shown
            assert len(shown) >= len(text) - 8
        rounds = [_round(1, index, (EmittedToken(1, text, "bonus"),)) for index, text in enumerate(HOSTILE)]
        app.push_screen(ChatXray(rounds))
        await pilot.pause()
        await pilot.press("end")
        await pilot.pause()
        assert f"round {len(HOSTILE)} of {len(HOSTILE)}" in _round_text(app)
        await pilot.press("escape")
        await pilot.resize_terminal(120, 30)
        await pilot.pause()
        assert app.export_screenshot()


async def test_html_in_an_answer_is_shown(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.answer = lambda request: _says(request, "<div>seen</div>")
    async with opened(app) as pilot:
        await ask(pilot, app, "html")
        blocks = screen_of(app).query_one(ChatAnswer).markdown.query(Static)
        assert any("<div>seen</div>" in str(block.render()) for block in blocks)


async def test_thinking_is_folded_and_counted(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.answer = lambda request: _says(request, "<think>", "so ", "and ", "so", "</think>", "\n\nThe ", "answer")
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


async def test_other_settings_count_without_loading_again(app: LocalspecApp, engine: EchoEngine) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one")
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert isinstance(app.screen, ChatSettings)
        app.screen.query_one("#n_min", Input).value = "9"
        await pilot.press("ctrl+s")
        assert "n_min 9 is over n_max 3" in str(app.screen.query_one("#refusal", Static).content)
        app.screen.query_one("#n_min", Input).value = "0"
        app.screen.query_one("#n_max", Input).value = "5"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert app.workbench.speculation.n_max == 5
        await ask(pilot, app, "two")
        assert app.engine_state.speculation is not None
        assert app.engine_state.speculation.settings.n_max == 5
    assert sum(isinstance(request, LoadModels) for request in engine.requests) == 1
    assert sum(isinstance(request, Configure) for request in engine.requests) == 1


async def test_escape_closes_an_open_list_and_keeps_the_drawer(app: LocalspecApp) -> None:
    async with opened(app, (80, 24)) as pilot:
        await pilot.press("ctrl+s")
        await pilot.pause()
        app.screen.query_one("#n_max", Input).value = "7"
        app.screen.query_one("#method", Select).focus()
        await pilot.press("enter")
        assert app.screen.query_one("#method", Select).expanded
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, ChatSettings) and not app.screen.query_one("#method", Select).expanded
        assert app.screen.query_one("#n_max", Input).value == "7"
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, ChatScreen)


async def test_the_footer_offers_to_stop_only_what_goes_on(app: LocalspecApp) -> None:
    async with opened(app, (80, 24)) as pilot:
        shown = [key.words for key in app.screen.query_one(KeyLine).keys]
        assert shown[:4] == ["Settings", "X-ray", "Panel", "Baseline"]
        await ask(pilot, app, "one")
        await pilot.press("ctrl+e")
        await pilot.pause()
        assert app.screen.query_one(KeyLine).keys[0].words == "Stop"


async def test_another_context_loads_again(app: LocalspecApp, engine: EchoEngine) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one")
        await pilot.press("ctrl+s")
        await pilot.pause()
        app.screen.query_one("#n_ctx", Input).value = "2048"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert "loaded anew" in notices(app)
        await ask(pilot, app, "two")
    loads = [request for request in engine.requests if isinstance(request, LoadModels)]
    assert [load.context.n_ctx for load in loads] == [4096, 2048]


async def test_a_drafter_that_is_refused_is_said_and_off(app: LocalspecApp) -> None:
    app.workbench = replace(app.workbench, draft=None)
    async with opened(app) as pilot:
        await ask(pilot, app, "one")
        assert "Speculation is OFF: there is no draft model" in notices(app)
        assert app.engine_state.speculation is not None and not app.engine_state.speculation.is_on
        assert "acceptance" not in figures(app)


async def test_no_multiple_without_a_measured_baseline(app: LocalspecApp) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one two three four five six seven eight nine ten")
        assert "x," not in figures(app) and "saved" not in figures(app)
        await pilot.press("ctrl+b")
        await until(pilot, lambda: not screen_of(app).is_working and screen_of(app).baseline is not None)
        await pilot.pause()
        assert "saved" in figures(app)
        assert "x," in figures(app)
        assert app.engine_state.speculation is not None and app.engine_state.speculation.is_on
        await pilot.press("ctrl+s")
        await pilot.pause()
        app.screen.query_one("#n_max", Input).value = "2"
        await pilot.press("ctrl+s")
        await ask(pilot, app, "with other settings nothing is measured yet")
        assert "saved" not in figures(app)


async def test_a_dead_engine_leaves_the_chat_and_one_key(
    app: LocalspecApp, engine: EchoEngine, kept: Callable[[], StoredChat]
) -> None:
    died = EngineFailed(9, "EngineDiedError", "The engine ran out of memory.", "", is_fatal=True)
    async with opened(app) as pilot:
        await ask(pilot, app, "before")
        engine.answer = lambda request: [*(_says(request, "half a ") or ())[:2], died] if _asks(request) else None
        await ask(pilot, app, "dies")
        assert "The engine ran out of memory." in says(app)
        assert "ctrl+k" in says(app)
        assert [turn.text.strip() for turn in screen_of(app).turns] == ["before", "half a"]
        assert figures(app).endswith("broken off")
        engine.answer = lambda request: None
        await pilot.press("ctrl+k")
        await until(pilot, lambda: not screen_of(app).is_working)
        assert app.engine_state.loaded is not None
        await ask(pilot, app, "after")
        assert len(screen_of(app).turns) == 3
    assert [message.finish_reason for message in kept().messages if message.role == "assistant"] == [
        "stop",
        "incomplete",
        "stop",
    ]


async def test_models_that_cannot_be_loaded(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.failures["load_models"] = EngineFailed(1, "ModelLoadError", "It is [/] broken.", "Take another.")
    async with opened(app) as pilot:
        await ask(pilot, app, "hello")
        assert "It is [/] broken." in notices(app)
        assert "It is [/] broken." in says(app)
        assert screen_of(app).prompt.text == "hello"
        await pilot.press("enter")
        await until(pilot, lambda: len(screen_of(app).turns) == 1)


async def test_a_failing_store_stops_no_chat(services: AppServices, app: LocalspecApp, engine: EchoEngine) -> None:
    def fails() -> Database:
        raise StoreError("The disk is full.", "Make room.")

    broken = LocalspecApp(replace(services, make_engine=lambda: engine, open_database=fails))
    broken.workbench = app.workbench
    async with opened(broken) as pilot:
        await ask(pilot, broken, "one")
        await ask(pilot, broken, "two")
        assert len(screen_of(broken).turns) == 2
        assert notices(broken).count("not kept") == 1


async def test_a_chat_that_could_not_be_kept_does_not_stop_the_next_one(
    services: AppServices, app: LocalspecApp, engine: EchoEngine, kept: Callable[[], StoredChat]
) -> None:
    is_full = True

    def opens() -> Database:
        if is_full:
            raise StoreError("The disk is full.", "Make room.")
        return services.open_database()

    broken = LocalspecApp(replace(services, make_engine=lambda: engine, open_database=opens))
    broken.workbench = app.workbench
    async with opened(broken) as pilot:
        await ask(pilot, broken, "one")
        is_full = False
        await pilot.press("ctrl+n")
        await ask(pilot, broken, "two")
        # Somebody else deletes it.
        await screen_of(broken).archive.current()
        with Database(services.open_database().path) as database:
            Chats(database).delete(kept().summary.id)
        await ask(pilot, broken, "three")
        assert notices(broken).count("not kept") == 1
        assert "deleted elsewhere" in notices(broken)
        await pilot.press("ctrl+n")
        await ask(pilot, broken, "four")
    assert [message.content.strip() for message in kept().messages] == ["four", "four"]


async def test_an_earlier_chat_is_found_and_goes_on(app: LocalspecApp, engine: EchoEngine) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "about whales [/]")
        await pilot.press("ctrl+n")
        await pilot.pause()
        assert screen_of(app).turns == ()
        await ask(pilot, app, "about bears")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ChatList) and _num_listed(app) == 2)
        await pilot.press(*"whal")
        await until(pilot, lambda: _num_listed(app) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: [turn.question for turn in screen_of(app).turns] == ["about whales [/]"])
        assert len(screen_of(app).query(ChatAnswer)) == 1
        await ask(pilot, app, "more")
    assert [message.content.strip() for message in engine.generated[-1][1].messages] == [
        "about whales [/]",
        "about whales [/]",
        "more",
    ]


async def test_a_question_that_failed_takes_nothing_from_another_chat(
    app: LocalspecApp, engine: EchoEngine, kept: Callable[[], StoredChat]
) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "about whales")
        await pilot.press("ctrl+n")
        engine.failures["generate"] = EngineFailed(0, "DecodeError", "It failed.", "")
        await ask(pilot, app, "about bears")
        assert screen_of(app).turns == ()
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ChatList) and _num_listed(app) == 2)
        await pilot.press(*"whal")
        await until(pilot, lambda: _num_listed(app) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: bool(screen_of(app).turns))
        await ask(pilot, app, "more")
    assert [message.content.strip() for message in kept().messages] == ["about whales", "about whales", "more", "more"]


async def test_a_chat_is_written_as_markdown(app: LocalspecApp, tmp_path: Path) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one two")
        await pilot.press("f7")
        await until(pilot, lambda: isinstance(app.screen, ChatSave))
        app.screen.query_one(Input).value = str(tmp_path / "target.gguf")
        await pilot.press("enter")
        assert "already" in str(app.screen.query_one("#note", Static).content)
        app.screen.query_one(Input).value = str(tmp_path / "out.md")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen_of(app))
    assert "one two" in (tmp_path / "out.md").read_text(encoding="utf-8")


async def test_code_is_copied_alone(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.answer = lambda request: _says(request, "See:\n\n```python\nprint(1)\n```\n\nDone.")
    async with opened(app) as pilot:
        await ask(pilot, app, "code")
        await pilot.press("f8")
        assert app.clipboard == "print(1)\n"


async def test_the_xray_tells_what_was_guessed(app: LocalspecApp, engine: EchoEngine) -> None:
    def answer(request: Request) -> list[Event] | None:
        events = _says(request, "The ")
        if events is None:
            return None
        emitted = (EmittedToken(1, "cat", "accepted"), EmittedToken(2, " sat", "correction"))
        guess = replace(
            _round(request.id, 1, emitted), drafted=(1, 3), num_accepted=1, drafted_texts=("cat", " [/ran]")
        )
        return [*events[:2], replace(guess, drafter="draft tiny"), events[2]]

    engine.answer = answer
    async with opened(app) as pilot:
        await ask(pilot, app, "x")
        await pilot.press("ctrl+t")
        await pilot.pause()
        assert "round 1 of 2" in _round_text(app)
        await pilot.press("right")
        await pilot.pause()
        text = _round_text(app)
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


async def test_without_a_target_it_says_where_to_choose_one(app: LocalspecApp, engine: EchoEngine) -> None:
    app.workbench = Workbench()
    async with opened(app) as pilot:
        await ask(pilot, app, "hello")
        assert "No target model is chosen" in notices(app)
        assert screen_of(app).prompt.text == "hello"
    assert not engine.requests


def _asks(request: Request) -> bool:
    return isinstance(request, Generate)


def _says(request: Request, *texts: str) -> list[Event] | None:
    """Answer with these texts, a round each."""
    from localspec.engine.events import GenerationFinished
    from localspec.engine.values import SpeculationState

    if not isinstance(request, Generate):
        return None
    state = SpeculationState(False, "off", "", "the method is off", SpeculationSettings())
    rounds = [_round(request.id, index, (EmittedToken(index, text, "bonus"),)) for index, text in enumerate(texts)]
    finished = GenerationFinished(request.id, "stop", "", state, 0.1, 20, 1, 0, 1.0)
    return [GenerationStarted(request.id, (1, 2), 0, state, 0.0), *rounds, finished]


def _round(request_id: int, index: int, emitted: tuple[EmittedToken, ...]) -> RoundFinished:
    at_s = 0.1 * (index + 1)
    return RoundFinished(request_id, index, "", (), 0, 0, emitted, 0, "off", 0.0, 0.1, 0.0, 0.1, at_s, 10 + index)


def _num_listed(app: LocalspecApp) -> int:
    return app.screen.query_one(OptionList).option_count


def _round_text(app: LocalspecApp) -> str:
    return str(app.screen.query_one("#round", Static).content)


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


async def test_a_chat_that_another_app_deleted_is_kept_again(
    app: LocalspecApp, database_path: Path, kept: Callable[[], StoredChat]
) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one")
        await until(pilot, lambda: kept().messages[-1].finish_reason == "stop")
        with Database(database_path) as database:
            Chats(database).delete(kept().summary.id)
        await ask(pilot, app, "two")
    chat = kept()
    assert [message.content.strip() for message in chat.messages] == ["one", "one", "two", "two"]
    assert [message.finish_reason for message in chat.messages if message.role == "assistant"] == ["stop", "stop"]
    assert not app.is_chat_unkept()


async def test_a_chat_deleted_amid_an_answer_is_kept_again(
    app: LocalspecApp, database_path: Path, kept: Callable[[], StoredChat]
) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one")
        archive, finish = screen_of(app).archive, screen_of(app).archive.finish

        def delete_before(answer: Answer) -> None:
            with Database(database_path) as database:
                Chats(database).delete(kept().summary.id)
            finish(answer)

        archive.finish = delete_before  # type: ignore[method-assign]
        await ask(pilot, app, "two")
    assert [message.content.strip() for message in kept().messages] == ["one", "one", "two", "two"]


async def test_a_chat_that_could_not_be_kept_is_said_at_the_end(app: LocalspecApp, database_path: Path) -> None:
    Database(database_path).close()
    with contextlib.closing(sqlite3.connect(database_path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        async with opened(app) as pilot:
            await ask(pilot, app, "one")
            await pilot.press("ctrl+o")
            await until(pilot, lambda: isinstance(app.screen, ChatList))
            assert str(app.screen.query_one("#nothing", Static).content) == "reading …"
            app.exit()
        assert app.is_chat_unkept()


async def test_a_long_failure_is_cut_and_written_to_the_log(app: LocalspecApp) -> None:
    async with opened(app) as pilot:
        app.show_failure(StoreError("long [/] " * 1000, "\n".join("abcdefghijkl")))
        await until(pilot, lambda: len(app._notifications) == 1)
        (notice,) = app._notifications
        assert len(notice.message.splitlines()) <= 6 and len(notice.message.splitlines()[0]) <= 502
        assert "localspec.log" in notice.message
    assert "long [/] " * 1000 in (log_dir() / "localspec.log").read_text("utf-8")


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
