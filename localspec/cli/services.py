"""What the commands get from outside, so that tests can put something else in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.engine.interface import Engine
    from localspec.store.database import Database


def start_engine() -> Engine:
    """Return the real engine. Its process starts with the first request.

    Where no log can be written, it works without one, and a notice says so.
    """
    from localspec.cli.failures import say_notice
    from localspec.engine.client import EngineClient
    from localspec.errors import LocalspecError

    try:
        return EngineClient()
    except LocalspecError as error:
        say_notice(f"note: No log is kept: {error.message.removesuffix('.')}. {error.hint}")
        return EngineClient(has_log=False)


def open_hub() -> Hub:
    """Return the Hub that the environment names. Nothing is sent before it is asked something."""
    from localspec.catalog.hub.client import Hub

    return Hub()


def open_database() -> Database:
    """Return the database in the data folder, opened anew.

    Raises:
        LocalspecError: it cannot be opened.
    """
    from localspec.store.database import Database

    return Database()


@dataclass(frozen=True, slots=True)
class Services:
    """Makers of everything that is not a value."""

    make_engine: Callable[[], Engine] = start_engine
    open_hub: Callable[[], Hub] = open_hub
    open_database: Callable[[], Database] = open_database
    open_app: Callable[[bool, Path | None], int] | None = None
    """Opens the terminal app, on the demo or a recorded session if asked; None where there is none."""
