"""An app that begins with the Fit screen, on engines that measure made-up models."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localspec.tui.app import LocalspecApp
from localspec.tui.services import AppServices
from tests.tui.fit_kit import (
    MeasuringEngine,
)


@pytest.fixture
def engines() -> list[MeasuringEngine]:
    """All that were made, in order."""
    return []


@pytest.fixture
def make(engines: list[MeasuringEngine]) -> Callable[[], MeasuringEngine]:
    def make() -> MeasuringEngine:
        engines.append(MeasuringEngine())
        return engines[-1]

    return make


@pytest.fixture
def app(make: Callable[[], MeasuringEngine], services: AppServices, monkeypatch: pytest.MonkeyPatch) -> LocalspecApp:
    # Begins with the screen under test, and so without what the others do.
    monkeypatch.setattr(LocalspecApp, "DEFAULT_MODE", "fit")
    own = AppServices(
        make_engine=make,
        open_hub=services.open_hub,
        open_database=services.open_database,
    )
    return LocalspecApp(own)
