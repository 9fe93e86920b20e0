"""What the app gets from outside, so that tests can put something else in its place."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.settings import Settings

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.engine.interface import Engine
    from localspec.session.pacing_memory import PacingMemory
    from localspec.store.database import Database


def import_engine() -> None:
    """Import what every engine needs. Blocks for a part of a second, so that it belongs into a thread."""
    importlib.import_module("localspec.engine.client")


def start_engine() -> Engine:
    """Return the real engine. Its process starts with the first request."""
    from localspec.engine.client import EngineClient
    from localspec.errors import LocalspecError

    try:
        return EngineClient()
    except LocalspecError:
        return EngineClient(has_log=False)


def open_hub() -> Hub:
    """Return the Hub that the environment names. Nothing is sent before it is asked something."""
    from localspec.catalog.hub.client import Hub

    return Hub()


def open_database() -> Database:
    """Return the database in the data folder, opened anew."""
    from localspec.store.database import Database

    return Database()


def memory_file() -> Path:
    """Return the file of remembered choices; its folder exists."""
    from localspec.paths import data_dir

    return data_dir() / "app.json"


def open_learnt() -> PacingMemory:
    """Return the files in which lies what adaptive drafting has learnt."""
    from localspec.session.pacing_memory import PacingMemory

    return PacingMemory()


@dataclass(frozen=True, slots=True)
class AppServices:
    """Makers of everything that is not a value, and the settings in force."""

    settings: Settings = field(default_factory=Settings)
    make_engine: Callable[[], Engine] = start_engine
    """Called twice: for the engine that holds models, and for the one that reads headers and measures memory."""
    open_hub: Callable[[], Hub] = open_hub
    open_database: Callable[[], Database] = open_database
    memory_file: Callable[[], Path] | None = None
    """Gives the file of remembered choices, or raises LocalspecError; None remembers nothing."""
    open_learnt: Callable[[], PacingMemory] | None = None
    """Gives what adaptive drafting has learnt in earlier starts; None begins anew, and keeps nothing."""
