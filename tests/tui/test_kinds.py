"""A profile with a setting for each kind of text: the chat drafts by the kind of the question, and says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from localspec.engine.requests import Configure
from localspec.engine.values import SpeculationSettings
from localspec.tui.app import LocalspecApp
from localspec.tui.engine_room import EngineRoom
from localspec.tui.kinds import drafting_for, kinds_in_force
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, EngineState, KindSettings, Launch, Workbench
from localspec.tui.widgets.status_line import status_parts
from tests.scripted_engine import ArmScript, ScriptedEngine
from tests.tui.waiting import until

USUAL = SpeculationSettings("ngram", n_max=3)
EDIT = SpeculationSettings("suffix", n_max=8)
CODE = SpeculationSettings("off")
EDITING = "Rename the variable.\n\n```python\nx = 1\nprint(x)\n```"
CHATTING = "What do ferns like?"
CODING = "Write a Python function that adds two numbers."


def bench_with(path: Path, **changes: object) -> Workbench:
    kinds = KindSettings((("edit", EDIT), ("code", CODE)), USUAL, path)
    bench = Workbench(ChosenModel("big", path), speculation=USUAL, kinds=kinds)
    return replace(bench, **changes)  # type: ignore[arg-type]


def test_they_count_until_a_person_chooses_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "big.gguf"
    bench = bench_with(path)
    assert kinds_in_force(bench) == {"edit": EDIT, "code": CODE}
    # Whether answers are kept is no way of drafting.
    assert kinds_in_force(replace(bench, speculation=replace(USUAL, remembers=True)))
    assert kinds_in_force(replace(bench, speculation=replace(USUAL, n_max=4))) == {}
    assert kinds_in_force(replace(bench, target=ChosenModel("other", tmp_path / "other.gguf"))) == {}
    assert kinds_in_force(replace(bench, target=None)) == {}
    assert kinds_in_force(replace(bench, kinds=None)) == {}


def test_the_kind_of_the_question_decides(tmp_path: Path) -> None:
    bench = bench_with(tmp_path / "big.gguf", speculation=replace(USUAL, remembers=True))
    assert drafting_for(bench, EDITING, ()) == ("edit", replace(EDIT, remembers=True))
    assert drafting_for(bench, CHATTING, ()) == ("chat", replace(USUAL, remembers=True))
    assert drafting_for(replace(bench, kinds=None), EDITING, ()) == ("", bench.speculation)


def test_a_kind_is_forgotten_with_its_way_of_drafting(tmp_path: Path) -> None:
    room = EngineRoom(ScriptedEngine, lambda state: None)
    engine = ScriptedEngine()
    engine._switch(EDIT)
    room.note_speculation(engine._state, "edit")
    assert room.state.kind == "edit"
    room.note_speculation(engine._state)
    assert room.state.kind == "edit"
    engine._switch(USUAL)
    room.note_speculation(engine._state)
    assert room.state.kind == ""


def test_the_status_line_names_the_kind() -> None:
    engine = ScriptedEngine()
    for settings, words in ((EDIT, "speculation ON for edit (suffix"), (CODE, "speculation OFF for edit (")):
        engine._switch(settings)
        state = EngineState(speculation=engine._state, kind="edit")
        assert status_parts(Workbench(), state, 100)[0][0].startswith(words)


def configured(engine: ScriptedEngine) -> list[SpeculationSettings]:
    return [request.speculation for request in engine.requests if isinstance(request, Configure)]


async def ask(pilot: Pilot[int], screen: ChatScreen, question: str) -> None:
    num_turns = len(screen.turns)
    screen.prompt.put(question)
    screen.prompt.action_send()
    await until(pilot, lambda: len(screen.turns) > num_turns and not screen.is_working)


def open_chat(path: Path, engine: ScriptedEngine) -> LocalspecApp:
    path.write_bytes(b"GGUF")
    app = LocalspecApp(AppServices(make_engine=ScriptedEngine), Launch(workbench=bench_with(path), screen="chat"))
    app.room._engine = engine
    return app


@pytest.mark.slow
async def test_each_answer_is_drafted_for_its_kind(tmp_path: Path) -> None:
    engine = ScriptedEngine(scripts={"off": ArmScript(num_tokens=5)})
    engine.scripts = dict.fromkeys(("off", "ngram", "suffix"), ArmScript(num_tokens=5))
    app = open_chat(tmp_path / "big.gguf", engine)
    async with app.run_test(size=(100, 30)) as pilot:
        screen = app.screen
        assert isinstance(screen, ChatScreen)
        await ask(pilot, screen, CHATTING)
        await ask(pilot, screen, EDITING)
        assert app.engine_state.kind == "edit"
        await ask(pilot, screen, CODING)
        assert [method for method, _ in engine.generated] == ["ngram", "suffix", "off"]
        # The same kind again changes nothing.
        num_configured = len(configured(engine))
        await ask(pilot, screen, CODING)
        assert len(configured(engine)) == num_configured
        app.workbench = replace(app.workbench, speculation=EDIT)
        await ask(pilot, screen, CHATTING)
        assert engine.generated[-1][0] == "suffix" and app.engine_state.kind == ""


@pytest.mark.slow
async def test_a_setting_that_cannot_be_used_is_said_and_the_usual_one_is_used(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    engine.scripts = {"ngram": ArmScript(num_tokens=5), "suffix": ArmScript(off_reason="[/] it has no index")}
    app = open_chat(tmp_path / "big.gguf", engine)
    async with app.run_test(size=(100, 30)) as pilot:
        screen = app.screen
        assert isinstance(screen, ChatScreen)
        await ask(pilot, screen, EDITING)
        assert engine.generated[-1][0] == "ngram" and app.engine_state.kind == ""
        said = "\n".join(notice.message for notice in app._notifications)
        assert "setting for edit cannot be used: [/] it has no index" in said
