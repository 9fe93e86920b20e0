"""The app is killed, asked to end, or loses its terminal amid an answer: nothing is lost, and nothing left."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import StoredChat
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.chat_list import ChatList
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are of Unix", allow_module_level=True)

from tests.terminal_kit import Terminal, engine_processes, have_ended, on_terminal, own_environment, until, used_before
from tests.tiny_gguf import CHATML, write_llama

pytestmark = pytest.mark.slow

MOST_LOST_S = 1.0
"""What a kill may cost of an answer."""

QUESTION = " ".join(f"w{index}" for index in range(400))


@contextmanager
def chatting(folder: Path, stall_after: int | None = None, is_controlling: bool = True) -> Iterator[Terminal]:
    """Give the app, with a scripted engine that repeats the question slowly and has begun to."""
    model = folder / "model.gguf"
    model.touch()
    stall = () if stall_after is None else (str(stall_after),)
    command = [sys.executable, "-m", "tests.slow_app", str(model), str(folder / "said"), *stall]
    with on_terminal(command, own_environment(folder), is_controlling=is_controlling) as terminal:
        terminal.until_said("loaded with your first")
        terminal.paste(QUESTION)
        terminal.keys("\r")
        until(lambda: len(words_said(folder)) > 2, "the first words")
        yield terminal


@contextmanager
def chatting_for_real(folder: Path) -> Iterator[tuple[Terminal, list[psutil.Process]]]:
    """Give the app and its engine, with a tiny model that has begun to answer and goes on for long."""
    model = write_llama(folder / "model.gguf", template=CHATML, can_end=False, n_ctx_train=32768)
    with on_terminal([sys.executable, "-m", "tests.slow_app", str(model)], own_environment(folder)) as terminal:
        terminal.until_said("loaded with your first")
        terminal.keys("Tell me everything\r")
        terminal.until_said("tokens/s now")
        engines = engine_processes(terminal.pid)
        assert engines
        yield terminal, engines


def words_said(folder: Path) -> list[tuple[float, str]]:
    """Return what the scripted engine has said so far: when, and which word."""
    path = folder / "said"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [(float(line.split()[0]), line.split()[1]) for line in lines if line.count(" ") == 1]


def kept_chat(folder: Path) -> StoredChat:
    """Return the one chat in the data folder."""
    with Database(folder / "data" / "localspec.sqlite3") as database:
        (summary,) = Chats(database).summaries(10)
        return Chats(database).get(summary.id)


def assert_kept(folder: Path, killed_s: float) -> list[str]:
    """Check that all words said a second before the end are on record, in order; return the kept ones."""
    said = words_said(folder)
    question, answer = kept_chat(folder).messages
    assert question.content == QUESTION
    kept = answer.content.split()
    assert kept == [word for _, word in said][: len(kept)]
    assert len(kept) >= sum(at_s < killed_s - MOST_LOST_S for at_s, _ in said)
    return kept


# kill -9.


@pytest.mark.parametrize("later_s", [0.3, 1.7])
def test_a_kill_costs_a_second_of_the_answer_at_most(tmp_path: Path, later_s: float) -> None:
    with chatting(tmp_path) as terminal:
        time.sleep(later_s)
        killed_s = time.monotonic()
        terminal.process.kill()
        assert terminal.wait() == -signal.SIGKILL
    assert assert_kept(tmp_path, killed_s) or later_s < MOST_LOST_S
    assert kept_chat(tmp_path).messages[-1].finish_reason == "incomplete"


def test_an_answer_that_stalls_is_all_on_record_a_second_later(tmp_path: Path) -> None:
    # Nine words in half a second: the last of them come between two writings, and nothing comes after them.
    with chatting(tmp_path, stall_after=9) as terminal:
        until(lambda: len(words_said(tmp_path)) == 9, "nine words")
        time.sleep(MOST_LOST_S)
        terminal.process.kill()
        terminal.wait()
    assert len(assert_kept(tmp_path, time.monotonic() + 10)) == 9


async def test_the_next_start_goes_on_with_the_chat(tmp_path: Path, services: AppServices) -> None:
    with chatting(tmp_path) as terminal:
        time.sleep(1.5)
        terminal.process.kill()
        terminal.wait()
    kept = kept_chat(tmp_path).messages[-1].content
    database = tmp_path / "data" / "localspec.sqlite3"
    bench = Workbench(target=ChosenModel("model", tmp_path / "model.gguf"))
    again = replace(services, open_database=lambda: Database(database))
    app = LocalspecApp(again, Launch(workbench=bench, screen="chat"))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert isinstance(app.screen, ChatList)
        await app.screen.workers.wait_for_complete()
        await pilot.press("enter")
        chat = app.screen
        while not (isinstance(chat, ChatScreen) and chat.turns):
            await pilot.pause(0.02)
            chat = app.screen
        assert [turn.text for turn in chat.turns] == [kept]
        chat.prompt.put("And then?")
        await pilot.press("enter")
        await chat.workers.wait_for_complete()
        await pilot.pause()
        assert len(chat.turns) == 2
    assert len(kept_chat(tmp_path).messages) == 4


def test_a_killed_app_leaves_no_engine(tmp_path: Path) -> None:
    with chatting_for_real(tmp_path) as (terminal, engines):
        terminal.process.kill()
        assert terminal.wait() == -signal.SIGKILL
        assert have_ended(engines)
    assert kept_chat(tmp_path).messages[0].content == "Tell me everything"


@pytest.mark.model
@pytest.mark.timeout(200)
def test_a_demo_killed_in_the_making_is_made_the_next_time(tmp_path: Path) -> None:
    command, environment = (sys.executable, "-m", "localspec", "--demo"), own_environment(used_before(tmp_path))
    with on_terminal(command, environment) as terminal:
        terminal.until_said("making")
        until(lambda: engine_processes(terminal.pid), "the engine")
        engines = engine_processes(terminal.pid)
        terminal.process.kill()
        terminal.wait()
        assert have_ended(engines)
    assert not list((tmp_path / "cache").rglob("*.gguf"))
    with on_terminal(command, environment) as terminal:
        terminal.until_said("loaded with your first", patience_s=150)
        terminal.keys("\x11")
        assert terminal.wait() == 0
    assert len(list((tmp_path / "cache").rglob("*.gguf"))) == 2


# Signals, and the end of the terminal.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_app_in_the_midst_of_an_answer(tmp_path: Path, number: signal.Signals) -> None:
    with chatting(tmp_path) as terminal:
        time.sleep(0.5)
        killed_s = time.monotonic()
        os.kill(terminal.pid, number)
        assert terminal.wait() == 128 + number
        assert terminal.is_restored
        assert b"Traceback" not in terminal.said
    # There was time to write all of it.
    kept = assert_kept(tmp_path, killed_s + MOST_LOST_S)
    assert kept_chat(tmp_path).messages[-1].finish_reason == "cancelled"
    assert kept


def test_a_signal_ends_the_engine_too(tmp_path: Path) -> None:
    with chatting_for_real(tmp_path) as (terminal, engines):
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.wait() == 128 + signal.SIGTERM
        assert terminal.is_restored
        assert have_ended(engines, patience_s=0.5)
    assert kept_chat(tmp_path).messages[-1].finish_reason == "cancelled"


@pytest.mark.parametrize("is_controlling", [True, False], ids=["told", "not told"])
def test_closing_the_terminal_ends_the_app(tmp_path: Path, is_controlling: bool) -> None:
    with chatting(tmp_path, is_controlling=is_controlling) as terminal:
        time.sleep(0.3)
        closed_s = time.monotonic()
        terminal.hang_up()
        assert terminal.wait(20) == 128 + signal.SIGHUP
    assert_kept(tmp_path, closed_s + MOST_LOST_S)
    assert kept_chat(tmp_path).messages[-1].finish_reason == "cancelled"


def test_closing_the_terminal_ends_the_engine_too(tmp_path: Path) -> None:
    with chatting_for_real(tmp_path) as (terminal, engines):
        terminal.hang_up()
        assert terminal.wait(20) == 128 + signal.SIGHUP
        assert have_ended(engines, patience_s=0.5)


def test_quitting_in_the_midst_of_an_answer_is_no_failure(tmp_path: Path) -> None:
    with chatting_for_real(tmp_path) as (terminal, engines):
        terminal.keys("\x11")
        assert terminal.wait() == 0
        assert terminal.is_restored
        assert have_ended(engines, patience_s=0.5)
    assert kept_chat(tmp_path).messages[-1].finish_reason == "cancelled"


def test_what_the_app_dies_of_goes_to_the_log_and_not_to_the_screen(tmp_path: Path) -> None:
    code = (
        "from localspec.tui.screens.chat import ChatScreen\n"
        "from localspec.entry import main\n"
        "def fail(self): raise ZeroDivisionError('on purpose')\n"
        "ChatScreen.action_copy = fail\n"
        "main()\n"
    )
    with on_terminal([sys.executable, "-c", code], own_environment(used_before(tmp_path))) as terminal:
        terminal.until_said("There are no models here yet")
        terminal.keys("\x1bOS")
        terminal.until_said("No model is chosen yet")
        terminal.keys("\x19")
        assert terminal.wait() == 1
        assert terminal.is_restored
    last = terminal.said.rpartition(b"\x1b[?1049l")[2]
    assert b"should not have happened (ZeroDivisionError)" in last
    assert b"Traceback" not in last
    log = (tmp_path / "log" / "localspec.log").read_text("utf-8")
    assert "on purpose" in log
