"""A finished kit of a target and a draft, and what it was made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localspec.catalog.kit import KitPart, export_kit
from tests.unit.kit.folders import DRAFT, NAMES, TARGET


@pytest.fixture
def parts(tmp_path: Path) -> list[KitPart]:
    """A target and a draft; the target is a link, as in the Hub's cache."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "blob").write_bytes(TARGET)
    (source / NAMES[0]).symlink_to("blob")
    (source / NAMES[1]).write_bytes(DRAFT)
    facts: dict[str, Any] = {"repo": "maker/Big-GGUF", "commit": "0" * 40, "quantisation": "Q4_K_M", "licence": "mit"}
    return [KitPart(source / NAMES[0], "target", **facts), KitPart(source / NAMES[1], "draft")]


@pytest.fixture
async def kit(tmp_path: Path, parts: list[KitPart]) -> Path:
    """A finished kit of both."""
    await export_kit(tmp_path / "my kit", parts)
    return tmp_path / "my kit"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Where kits are imported to; not there yet."""
    return tmp_path / "data" / "models"
