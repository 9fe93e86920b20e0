"""What tests of commands share: model files, and folders of their own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A model whose name looks like markup."""
    path = tmp_path / "model [bold].gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    return path


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing kept beyond the test."""
    for name in ("DATA", "CACHE", "CONFIG", "LOG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name))
