"""An app on one scripted engine, with a target and a draft to choose."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

from localspec.engine.values import SpeculationSettings
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Workbench
from tests.scripted_engine import ScriptedEngine

AnyEngine = TypeVar("AnyEngine", bound=ScriptedEngine)


class TwoModels(Generic[AnyEngine]):
    """The app, its store, and a workbench of both models that a test lays when it likes."""

    def __init__(
        self,
        folder: Path,
        engine: AnyEngine,
        target: str = "big",
        speculation: SpeculationSettings = SpeculationSettings("draft", n_max=4),  # noqa: B008 (frozen)
    ) -> None:
        self.engine = engine
        self.database = folder / "kept.sqlite3"
        for name in ("big.gguf", "small.gguf"):
            (folder / name).write_bytes(b"GGUF")
        self.app = LocalspecApp(AppServices(make_engine=ScriptedEngine, open_database=lambda: Database(self.database)))
        # The other engine, which reads headers, must not take it.
        self.app.room._engine = engine
        self.target, self.draft = ChosenModel(target, folder / "big.gguf"), ChosenModel("small", folder / "small.gguf")
        self.models = Workbench(self.target, self.draft, speculation)
