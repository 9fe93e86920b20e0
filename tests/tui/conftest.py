"""What tests of the terminal app share: an app on scripted engines, and no Hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.errors import OfflineError
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.services import AppServices
from tests.scripted_engine import EchoEngine


def no_hub() -> object:
    """Stand in for the Hub of a machine without network."""
    raise OfflineError("There is no network.", "Everything local works without it.")


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    return tmp_path / "localspec.sqlite3"


@pytest.fixture
def services(database_path: Path) -> AppServices:
    return AppServices(
        make_engine=EchoEngine,
        open_hub=no_hub,  # type: ignore[arg-type]
        open_database=lambda: Database(database_path),
    )


@pytest.fixture
def app(services: AppServices) -> LocalspecApp:
    return LocalspecApp(services)
