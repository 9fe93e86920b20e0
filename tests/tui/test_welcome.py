"""The first start: who is welcomed, what can be chosen, and what each choice leads to."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import OptionList

from localspec.errors import HubError, LocalspecError, ModelFileError, OfflineError
from localspec.session.demo import DemoModels
from localspec.settings import Settings
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.first_start import Beginnings, has_history, look_around, shortened
from localspec.tui.model_library import Library
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.compare import CompareScreen
from localspec.tui.screens.hub import HubScreen
from localspec.tui.screens.welcome import WelcomeScreen, choice_rows
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch
from tests.candidate_kit import entry
from tests.tui.looking import notices
from tests.tui.waiting import until

HOSTILE = ("[/]", "[/path]", "[bold", "[type=x, v={'a[0]'}]", "\x1b[31mred", "\u202eflipped", "x" * 10_000)


@pytest.fixture
def new(services: AppServices, tmp_path: Path) -> AppServices:
    """Return services of somebody who starts for the first time."""
    return replace(services, memory_file=lambda: tmp_path / "app.json")


# What there is.


def test_a_new_database_is_no_history(services: AppServices, database_path: Path) -> None:
    assert not has_history(services)
    with Database(database_path) as database:
        Chats(database).start("", {})
    assert has_history(services)


def test_a_database_that_cannot_be_opened_is_no_newcomers(services: AppServices) -> None:
    def refuse() -> Database:
        raise LocalspecError("Damaged.")

    assert has_history(replace(services, open_database=refuse))


def test_what_is_here_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "one.gguf").write_bytes(b"GGUF")
    settings = Settings.model_validate({"models": {"folders": [str(tmp_path)]}})
    monkeypatch.setattr("localspec.catalog.embedded.find_smollm2", lambda: tmp_path)
    found = look_around(settings)
    assert found.num_models >= 1
    assert shortened(tmp_path) in found.folders
    assert found.demo_refusal == ""

    def missing() -> Path:
        raise ModelFileError("The demo's model is not installed.", "Run `make demo`.")

    monkeypatch.setattr("localspec.catalog.embedded.find_smollm2", missing)
    assert "make demo" in look_around(settings).demo_refusal


def test_choices_say_what_they_lead_to() -> None:
    here = choice_rows(Beginnings("", 3, ("~/a", "~/b", "~/c")), "")
    rows = {name: (words, is_open) for name, _, words, is_open in here}
    assert rows["models"] == ("3 found in ~/a and 2 more folders.", True)
    assert rows["demo"][1]
    rows = {name: (words, is_open) for name, _, words, is_open in choice_rows(Beginnings("No demo. Get it."), "")}
    assert rows["demo"] == ("No demo. Get it.", False)
    assert rows["models"][0].startswith("None found yet")


def test_the_home_folder_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert shortened(tmp_path / "models") == "~/models"
    assert shortened(Path("/elsewhere")) == "/elsewhere"


# On the screen.


def words_of(app: LocalspecApp) -> str:
    if not app.screen.is_mounted:
        return "looking"
    choices = app.screen.query_one(OptionList)
    if not choices.option_count:
        return "looking"
    return "\n".join(str(choices.get_option_at_index(index).prompt) for index in range(choices.option_count))


@pytest.mark.slow
async def test_a_newcomer_is_welcomed_once(new: AppServices, tmp_path: Path) -> None:
    app = LocalspecApp(new)
    async with app.run_test(size=(60, 20)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.press("escape")
        await pilot.pause()
        assert app.current_mode == "models"
    assert (tmp_path / "app.json").exists()
    again = LocalspecApp(new)
    async with again.run_test(size=(60, 20)) as pilot:
        await pilot.pause(0.3)
        assert not isinstance(again.screen, WelcomeScreen)
        again.action_welcome()
        await until(pilot, lambda: isinstance(again.screen, WelcomeScreen))


@pytest.mark.slow
async def test_who_has_chats_is_not_welcomed(new: AppServices, database_path: Path) -> None:
    with Database(database_path) as database:
        Chats(database).start("", {})
    app = LocalspecApp(new)
    async with app.run_test() as pilot:
        await app.workers.wait_for_complete([worker for worker in app.workers if worker.group == "welcome"])
        await pilot.pause(0.2)
        assert not isinstance(app.screen, WelcomeScreen)


@pytest.mark.slow
@pytest.mark.parametrize("launch", [Launch(is_demo=True), Launch(screen="chat")])
async def test_nobody_is_welcomed_who_asked_for_something(
    new: AppServices, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prepare(*_: object) -> DemoModels:
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr("localspec.session.demo.prepare_demo_models", prepare)
    services = new if launch.is_demo else replace(new, memory_file=None)
    app = LocalspecApp(services, launch)
    async with app.run_test() as pilot:
        await pilot.pause(0.3)
        assert not isinstance(app.screen, WelcomeScreen)


@pytest.mark.slow
async def test_from_nothing_to_the_first_comparison(
    new: AppServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("target.gguf", "draft.gguf"):
        (tmp_path / name).touch()

    async def prepare(*_: object) -> DemoModels:
        return DemoModels(tmp_path / "target.gguf", tmp_path / "draft.gguf", None)

    monkeypatch.setattr("localspec.session.demo.prepare_demo_models", prepare)
    monkeypatch.setattr("localspec.catalog.embedded.find_smollm2", lambda: tmp_path)
    reads = []

    async def load_library(*_: object) -> Library:
        reads.append(app.workbench.target)
        return Library()

    monkeypatch.setattr("localspec.tui.screens.models.load_library", load_library)
    app = LocalspecApp(new)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await until(pilot, lambda: "looking" not in words_of(app))
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        # What the demo has made is listed, too.
        await until(pilot, lambda: reads == [None, app.workbench.target])
        await until(pilot, lambda: "first comparison" in notices(app))
        assert app.workbench.target == ChosenModel("target", tmp_path / "target.gguf")
        await pilot.press("ctrl+g")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        await until(pilot, lambda: screen.is_at_work or screen.card is not None)
        await pilot.press("escape")
        await until(pilot, lambda: not screen.is_at_work)


@pytest.mark.slow
async def test_without_the_demos_model_it_is_said_how_to_get_it(
    new: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Path:
        raise ModelFileError("The demo's model is not installed.", "Run `make demo`.")

    monkeypatch.setattr("localspec.catalog.embedded.find_smollm2", missing)
    app = LocalspecApp(new)
    async with app.run_test(size=(60, 20)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await until(pilot, lambda: "looking" not in words_of(app))
        assert "make demo" in " ".join(words_of(app).split())
        await pilot.press("d")
        await pilot.pause()
        assert isinstance(app.screen, WelcomeScreen)
        await pilot.press("enter")
        await pilot.pause()
        assert app.current_mode == "models"
        assert not isinstance(app.screen, WelcomeScreen)


class HubInReach:
    """Answers everything with one failure, or with nothing found."""

    def __init__(self, failure: LocalspecError | None = None) -> None:
        self.failure = failure
        self.is_closed = False

    async def search(self, words: str, limit: int) -> tuple[()]:
        if self.failure is not None:
            raise self.failure
        return ()

    async def close(self) -> None:
        self.is_closed = True


@pytest.mark.slow
@pytest.mark.parametrize("failure", [None, HubError("Too many questions.")])
async def test_the_hub_is_opened_when_it_is_in_reach(new: AppServices, failure: LocalspecError | None) -> None:
    hub = HubInReach(failure)
    asked: list[object] = []

    def open_hub() -> HubInReach:
        asked.append(None)
        return hub

    app = LocalspecApp(replace(new, open_hub=open_hub))  # type: ignore[arg-type]
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.pause(0.2)
        assert not asked
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, HubScreen))
        assert hub.is_closed


@pytest.mark.slow
@pytest.mark.parametrize("words", HOSTILE)
async def test_without_a_network_the_rest_can_still_be_chosen(new: AppServices, words: str) -> None:
    app = LocalspecApp(replace(new, open_hub=lambda: HubInReach(OfflineError(words))))  # type: ignore[arg-type,return-value]
    async with app.run_test(size=(60, 20)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.press("h")
        await until(pilot, lambda: "!" in words_of(app))
        assert "\x1b" not in words_of(app)
        await pilot.resize_terminal(140, 40)
        await pilot.press("m")
        await pilot.pause()
        assert app.current_mode == "models"


@pytest.mark.slow
async def test_a_screen_may_be_gone_to_instead(new: AppServices) -> None:
    app = LocalspecApp(new)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.press("f6")
        await until(pilot, lambda: app.current_mode == "runs")


@pytest.mark.slow
async def test_a_click_chooses(new: AppServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.session.library.local_models", lambda settings: (entry("[/]", None).found,))
    app = LocalspecApp(new)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await until(pilot, lambda: "1 found" in words_of(app))
        await pilot.click("#welcome-choices", offset=(8, 3))
        await pilot.pause()
        assert not isinstance(app.screen, WelcomeScreen)
        assert app.current_mode == "models"
