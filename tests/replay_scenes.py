"""The app on the recorded session, brought to the moments that pictures show. No model and no network are needed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from textual.pilot import Pilot

from localspec.engine.interface import Engine
from localspec.engine.recorded_session import RecordedSession
from localspec.engine.recording import read_recording
from localspec.settings import AppGroup, Settings
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.replaying import replayed_session
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.compare import CompareScreen
from localspec.tui.screens.fit import FitScreen
from localspec.tui.screens.models import ModelsScreen
from localspec.tui.screens.runs import RunsScreen
from localspec.tui.widgets.runs_details import RunsDetails
from tests.pictures import still, svg_of
from tests.steady import Held, WallClock, steady

RECORDING = Path(__file__).parent / "recordings" / "smollm2_session.jsonl"
THEMES = {"dark": "textual-dark", "light": "textual-light"}


@dataclass(frozen=True, slots=True)
class Look:
    """How big the screen is, and of which colours."""

    width: int
    height: int
    theme: str = "dark"

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self.width, self.height

    @property
    def settings(self) -> Settings:
        """Settings with its theme, and all else as it is by default."""
        return Settings(app=AppGroup(theme=THEMES[self.theme]))

    def __str__(self) -> str:
        return f"{self.width}x{self.height}-{self.theme}"


@dataclass
class Stage:
    """An app under a pilot, and the engine that can stop in mid-answer."""

    app: LocalspecApp
    pilot: Pilot[int]
    clock: WallClock
    held: Held | None = None

    async def picture(self, title: str = "") -> str:
        """Return the screen as it is when it stands still."""
        await still(self.pilot)
        return svg_of(self.app, title)

    async def press(self, *keys: str) -> None:
        """Press keys, and wait until nothing moves."""
        await self.pilot.press(*keys)
        await still(self.pilot)

    async def chat(self, num_questions: int) -> ChatScreen:
        """Ask so many of the recorded questions; of the last only a part is answered if the engine is to stop in it."""
        await self.press("f4")
        chat = self.app.screen
        assert isinstance(chat, ChatScreen)
        for _ in range(num_questions):
            assert chat.prompt.text
            await self.pilot.press("enter")
            await still(self.pilot, lambda: not chat.is_working or (self.held is not None and self.held.is_held))
        return chat

    async def probe(self, chat: ChatScreen) -> None:
        """Measure the baseline of the last answer, and have its notice gone."""
        await self.pilot.press("ctrl+b")
        await still(self.pilot, lambda: not chat.is_working and chat.baseline is not None)
        self.app.clear_notifications()

    async def race(self, **choice: object) -> CompareScreen:
        """Compare, to the end or to where the engine stops."""
        await self.press("f5")
        compare = self.app.screen
        assert isinstance(compare, CompareScreen)
        given = {"num_pairs": 3, "percent": 0.0, **choice}
        compare.choice = replace(compare.choice, **given)  # type: ignore[arg-type]
        if self.held is not None:
            compare._clock = self.held.clock
        await self.pilot.press("r")
        await still(self.pilot, lambda: not compare.is_at_work or (self.held is not None and self.held.is_held))
        return compare

    async def runs(self) -> RunsScreen:
        """Look at what was kept."""
        await self.pilot.press("f6")
        runs = self.app.screen
        assert isinstance(runs, RunsScreen)
        await still(self.pilot, lambda: bool(runs.query_one(RunsDetails).children))
        return runs

    async def fit(self) -> FitScreen:
        """Look at the plan of what is chosen."""
        await self.pilot.press("f3")
        fit = self.app.screen
        assert isinstance(fit, FitScreen)
        await still(self.pilot, lambda: not fit.is_measuring and fit.snapshot.drafts is not None)
        return fit

    async def models(self) -> ModelsScreen:
        """Look at the models and what may draft for the first."""
        await self.pilot.press("f2")
        models = self.app.screen
        assert isinstance(models, ModelsScreen)
        await still(self.pilot, lambda: not models.library.activity and bool(models.drafts.candidates))
        return models


@asynccontextmanager
async def replayed(
    look: Look, hold: tuple[int, int] | None = None, folder: Path | None = None, is_colourless: bool = False
) -> AsyncIterator[Stage]:
    """Open the app on the recorded session.

    Args:
        look: of the screen.
        hold: number of a generation, from 1, and the rounds of it after which the engine stops; None for never.
        folder: where the models seem to lie; None for one of no fixed name.
        is_colourless: as if NO_COLOR were set.
    """
    exchanges = read_recording(RECORDING)
    held: list[Held] = []

    def make_engine() -> Engine:
        engine: Engine = RecordedSession(exchanges, None)
        if hold is not None:
            held.append(Held(engine, *hold))
            engine = held[-1]
        return engine

    with (
        steady(is_colourless),
        replayed_session(RECORDING, look.settings, speed=None, folder=folder) as (services, launch),
    ):
        place = launch.workbench.target.path.parent if launch.workbench and launch.workbench.target else Path()
        clock = WallClock()
        own = replace(
            services, make_engine=make_engine, open_database=lambda: Database(place / "kept.sqlite3", now=clock)
        )
        app = LocalspecApp(own, replace(launch, replay=None))
        async with app.run_test(size=look.size) as pilot:
            # The engine that answers is the one that is made first.
            stage = Stage(app, pilot, clock)
            if hold is not None:
                _ = app.room.engine
                stage.held = held[0]
            await still(pilot)
            yield stage
