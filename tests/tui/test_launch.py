from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from localspec.engine.events import (
    Configured,
    EngineFailed,
    Event,
    GenerationFinished,
    HeaderRead,
    ModelsLoaded,
    RoundFinished,
)
from localspec.engine.recorded_session import RecordedSession
from localspec.engine.recording import read_recording
from localspec.engine.requests import (
    Configure,
    Generate,
    LoadModels,
    MeasureFootprint,
    Probe,
    ReadHeader,
    Request,
)
from localspec.engine.values import Message, SpeculationSettings
from localspec.entry import open_app
from localspec.errors import OfflineError, UsageError
from localspec.planning.footprint import Placement
from localspec.session.demo import DemoModels
from localspec.settings import Settings
from localspec.tui.app import LocalspecApp
from localspec.tui.replaying import replayed_session
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.compare import CompareScreen
from localspec.tui.screens.demo import DemoScreen
from localspec.tui.screens.models import ModelsScreen
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench
from localspec.tui.widgets.tour_line import tour_words
from tests.scripted_engine import EchoEngine
from tests.tui.waiting import until

pytestmark = pytest.mark.slow

RECORDING = Path(__file__).parent.parent / "recordings" / "smollm2_session.jsonl"


async def events_of(session: RecordedSession, request: Request) -> list[Event]:
    return [event async for event in session.stream(request)]


def ask(session: RecordedSession, text: str = "?") -> Generate:
    return Generate(session.next_id(), (Message("user", text),))


# The recorded session as an engine.


@pytest.fixture
def session() -> RecordedSession:
    return RecordedSession(read_recording(RECORDING), speed=None)


async def test_the_same_question_has_its_own_answer_as_often_as_it_is_asked(session: RecordedSession) -> None:
    await events_of(session, LoadModels(session.next_id(), "/t"))
    texts = []
    for question in ("Repeat the first one word for word.", "Write three short sentences about the sea.") * 2:
        events = await events_of(session, ask(session, question))
        assert {event.id for event in events} == {session._last_id}
        texts.append("".join(part.text for e in events if isinstance(e, RoundFinished) for part in e.emitted))
    assert texts[0] == texts[2]
    assert texts[1] == texts[3]
    assert texts[0] != texts[1]


@pytest.mark.parametrize("method", ["off", "draft"])
async def test_answers_are_drafted_as_was_asked_for(session: RecordedSession, method: str) -> None:
    await events_of(session, LoadModels(session.next_id(), "/t"))
    (answer,) = await events_of(session, Configure(session.next_id(), SpeculationSettings(method=method)))  # type: ignore[arg-type]
    assert isinstance(answer, Configured)
    for _ in range(3):
        last = (await events_of(session, ask(session)))[-1]
        assert isinstance(last, GenerationFinished)
        assert last.speculation.is_on is (method == "draft")


async def test_what_was_not_recorded_is_refused_in_words(session: RecordedSession) -> None:
    for request in (
        Configure(session.next_id(), SpeculationSettings(method="suffix")),
        ReadHeader(session.next_id(), "/elsewhere/other.gguf"),
        MeasureFootprint(session.next_id(), "/m/smollm2-135m-f16.gguf", Placement(123)),
    ):
        (answer,) = await events_of(session, request)
        assert isinstance(answer, EngineFailed)
        assert "The recorded session" in answer.message
    await session.close()
    (answer,) = await events_of(session, Probe(session.next_id()))
    assert isinstance(answer, EngineFailed)


async def test_files_are_known_by_their_names_wherever_they_lie(session: RecordedSession) -> None:
    (answer,) = await events_of(session, ReadHeader(session.next_id(), "/elsewhere/smollm2-135m-q4_0.gguf"))
    assert isinstance(answer, HeaderRead)
    assert answer.header.path.endswith("smollm2-135m-q4_0.gguf")


async def test_cancelling_ends_what_plays() -> None:
    session = RecordedSession(read_recording(RECORDING), speed=1e-3)
    # Loading has no waits in between that matter: it is played at once by a session of its own.
    request = ask(session)
    session._method = "draft"
    task = asyncio.create_task(events_of(session, request))
    await asyncio.sleep(0.05)
    await session.cancel(request.id)
    last = (await asyncio.wait_for(task, 5))[-1]
    assert isinstance(last, GenerationFinished)
    assert last.finish_reason == "cancelled"


# The app on it.


async def test_chat_and_compare_play_a_recording() -> None:
    with replayed_session(RECORDING, Settings(), speed=None) as (services, launch):
        app = LocalspecApp(services, launch)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            chat = app.screen
            assert isinstance(chat, ChatScreen)
            chat.prompt.put("Anything")
            await pilot.press("enter")
            await chat.workers.wait_for_complete()
            await pilot.pause()
            assert "sea" in chat.turns[-1].text
            assert app.engine_state.speculation is not None
            assert app.engine_state.speculation.is_on
            await pilot.press("f5")
            compare = app.screen
            assert isinstance(compare, CompareScreen)
            compare.choice = replace(compare.choice, workloads=("edit",), num_pairs=1, percent=0.0)
            compare.action_run()
            await compare.workers.wait_for_complete()
            await pilot.pause()
            assert compare.card is not None
            assert compare.card.texts
        folder = launch.workbench.target.path.parent if launch.workbench and launch.workbench.target else None
    assert folder is not None
    assert not folder.exists()


def test_a_replay_asks_no_hub_and_keeps_nothing_of_the_users(tmp_path: Path) -> None:
    with replayed_session(RECORDING, Settings()) as (services, launch):
        assert services.memory_file is None
        assert launch.screen == "chat"
        assert (services.settings.bench.max_tokens, services.settings.bench.pairs) == (48, 3)
        with pytest.raises(OfflineError):
            services.open_hub()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("hello\n", "damaged"),
        ("", "loads no models"),
        ('{"t": 0, "dir": "in", "message": {"id": 1, "type": "probe"}}\n', "loads no models"),
    ],
)
def test_a_bad_recording_is_refused_before_the_screen_is_taken(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "session.jsonl"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=words):
        open_app(False, file)


def test_recorded_paths_are_names_in_a_folder_of_its_own(tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.jsonl"
    hostile.write_text(RECORDING.read_text("utf-8").replace("/models/", "/../../etc/[bold]"), "utf-8")
    with replayed_session(hostile, Settings()) as (_, launch):
        assert launch.workbench is not None
        assert launch.workbench.target is not None
        assert launch.workbench.target.path.parent.name.startswith("localspec-replay-")


# The demo.


async def test_the_demo_opens_the_chat_on_its_models(services: AppServices, monkeypatch: pytest.MonkeyPatch) -> None:
    async def prepare(*_: object) -> DemoModels:
        return DemoModels(Path("/demo/target.gguf"), Path("/demo/draft.gguf"), None)

    monkeypatch.setattr("localspec.session.demo.prepare_demo_models", prepare)
    app = LocalspecApp(services, Launch(is_demo=True))
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.current_mode == "chat" and app.workbench.target is not None)
        assert app.current_mode == "chat"
        assert app.workbench.target == ChosenModel("target", Path("/demo/target.gguf"))
        assert app.workbench.draft == ChosenModel("draft", Path("/demo/draft.gguf"))
        assert app.workbench.speculation.method == "draft"


async def test_the_demo_can_be_stopped(services: AppServices, monkeypatch: pytest.MonkeyPatch) -> None:
    async def prepare(*_: object) -> DemoModels:
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr("localspec.session.demo.prepare_demo_models", prepare)
    app = LocalspecApp(services, Launch(is_demo=True))
    async with app.run_test() as pilot:
        await pilot.pause(0.1)
        assert isinstance(app.screen, DemoScreen)
        await pilot.press("escape")
        await pilot.pause(0.1)
        assert app.current_mode == "models"
        assert not isinstance(app.screen, DemoScreen)
        assert app.workbench.target is None


# Unloading and ending.


def loaded_bench(tmp_path: Path) -> Workbench:
    (tmp_path / "model.gguf").touch()
    return Workbench(target=ChosenModel("model", tmp_path / "model.gguf"))


async def test_unloading_gives_the_models_back(services: AppServices, tmp_path: Path) -> None:
    app = LocalspecApp(services, Launch(workbench=loaded_bench(tmp_path)))
    async with app.run_test() as pilot:
        async with app.room.occupied("loading"):
            await app.room.load(app.workbench, lambda _: None)
        assert isinstance(app.engine_state.loaded, ModelsLoaded)
        await pilot.press("f12")
        await app.workers.wait_for_complete()
        assert app.engine_state.loaded is None
        assert app.room.is_free
        async with app.room.occupied("loading"):
            assert await app.room.load(app.workbench, lambda _: None)


async def test_quitting_while_an_answer_comes_ends_both_engines(services: AppServices, tmp_path: Path) -> None:
    engines: list[EchoEngine] = []

    def make() -> EchoEngine:
        engines.append(EchoEngine(pause_s=0.05))
        return engines[-1]

    app = LocalspecApp(replace(services, make_engine=make), Launch(workbench=loaded_bench(tmp_path), screen="chat"))
    async with app.run_test() as pilot:
        chat = app.screen
        assert isinstance(chat, ChatScreen)
        assert app.room.probe is not app.room.engine
        chat.prompt.put("word " * 200)
        await pilot.press("enter")
        await pilot.pause(0.3)
        assert chat.is_working
        await pilot.press("ctrl+q")
    assert app.return_value == 0
    assert len(engines) == 2
    assert all(engine.is_closed for engine in engines)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_app_and_restores_the_terminal(number: signal.Signals) -> None:
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "localspec", "--replay", str(RECORDING)],
        stdin=side,
        stdout=side,
        stderr=side,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(side)
    said = b""
    try:
        deadline = time.monotonic() + 60
        while b"speculation" not in said and time.monotonic() < deadline:
            said += os.read(main, 65536)
        process.send_signal(number)
        while chunk := _read(main):
            said += chunk
        assert process.wait(30) == 128 + number
    finally:
        process.kill()
        process.wait()
        os.close(main)
    assert said.rfind(b"\x1b[?1049l") > said.rfind(b"\x1b[?1049h") >= 0


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # How Linux tells that nobody writes to it any more.
        return b""


async def test_quitting_while_a_download_comes_ends_it(services: AppServices, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    class Downloads:
        def __init__(self, *_: object) -> None: ...

        async def fetch(self, *_: object) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("download")

    class Hub:
        async def close(self) -> None:
            ended.append("hub")

    monkeypatch.setattr("localspec.catalog.hub.queue.Downloads", Downloads)
    app = LocalspecApp(replace(services, open_hub=Hub))  # type: ignore[arg-type]
    async with app.run_test() as pilot:
        # Nothing but the names is looked at here.
        listing, offer = (
            SimpleNamespace(repo="a/b", commit="c"),
            SimpleNamespace(quantisation="Q8_0", files=(), size_bytes=1),
        )
        app.downloads.add(listing, offer)  # type: ignore[arg-type]
        while not app.transfers or app.transfers[0].status != "running":
            await pilot.pause(0.01)
        await pilot.pause(0.05)
        await pilot.press("ctrl+q")
    assert app.return_value == 0
    assert ended == ["download", "hub"]


@pytest.mark.model
def test_quitting_in_the_midst_of_the_demo_leaves_no_process(tmp_path: Path) -> None:
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "localspec", "--demo"],
        stdin=side,
        stdout=side,
        stderr=side,
        env={**os.environ, "TERM": "xterm-256color", "LOCALSPEC_CACHE": str(tmp_path), "LOCALSPEC_DATA": str(tmp_path)},
        start_new_session=True,
    )
    os.close(side)
    children: list[psutil.Process] = []
    try:
        deadline = time.monotonic() + 60
        while not children and time.monotonic() < deadline:
            if select.select([main], [], [], 0.05)[0]:
                os.read(main, 65536)
            children = psutil.Process(process.pid).children(recursive=True)
        assert children
        os.write(main, b"\x11")
        while _read(main):
            pass
        assert process.wait(30) == 0
        assert psutil.wait_procs(children, 10)[1] == []
    finally:
        process.kill()
        process.wait()
        os.close(main)


async def test_a_replay_has_the_recorded_models_and_none_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALSPEC_DATA", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.gguf").write_bytes(b"GGUF")
    with replayed_session(RECORDING, Settings(), speed=None) as (services, launch):
        app = LocalspecApp(services, replace(launch, screen="models"))
        async with app.run_test() as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            screen = app.screen
            assert isinstance(screen, ModelsScreen)
            assert [entry.found.name for entry in screen.library.entries] == ["smollm2-135m-f16", "smollm2-135m-q4_0"]
            assert not any(entry.failure for entry in screen.library.entries)
    assert os.environ["LOCALSPEC_DATA"] == str(tmp_path)


def test_the_tour_says_what_to_try_on_every_screen() -> None:
    for mode in LocalspecApp.MODES:
        words = {tour_words(mode, is_busy, has_worked) for is_busy in (False, True) for has_worked in (False, True)}
        assert all(0 < len(line) <= 78 - len("Tour 1/5  ") for line in words)
    assert tour_words("chat", False, True) != tour_words("chat", True, True) != tour_words("chat", False, False)


async def test_the_recorded_questions_are_put_one_after_the_other() -> None:
    with replayed_session(RECORDING, Settings(), speed=None) as (services, launch):
        app = LocalspecApp(services, launch)
        async with app.run_test(size=(100, 30)) as pilot:
            chat = app.screen
            assert isinstance(chat, ChatScreen)
            for question in launch.questions:
                assert chat.prompt.text == question
                await pilot.press("enter")
                await chat.workers.wait_for_complete()
                await pilot.pause()
            assert chat.prompt.text == ""
            assert [turn.question for turn in chat.turns] == list(launch.questions)


async def test_a_question_that_was_never_asked_gets_the_same_text_either_way(session: RecordedSession) -> None:
    texts: dict[str, list[tuple[int, ...]]] = {"off": [], "draft": []}
    for method in ("off", "draft", "draft", "off"):
        await events_of(session, Configure(session.next_id(), SpeculationSettings(method=method)))
        for question in ("What is new?", "And what is not?"):
            request = replace(ask(session, question), is_fresh=True, max_tokens=32)
            events = [event for event in await events_of(session, request) if isinstance(event, RoundFinished)]
            texts[method].append(tuple(part.id for event in events for part in event.emitted))
    assert texts["off"] == texts["draft"]
    assert texts["off"][0] != texts["off"][1]
