"""An app that begins with the Runs screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.tui.app import LocalspecApp


@pytest.fixture(autouse=True)
def begins_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the app begin with the screen that is tested: the others need not be made."""
    monkeypatch.setattr(LocalspecApp, "DEFAULT_MODE", "runs")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target.gguf"
    path.write_bytes(b"GGUF target")
    return path
