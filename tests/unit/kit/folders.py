"""Two made-up models, and what lies in the folders that they are written to."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, BinaryIO

TARGET, DRAFT = os.urandom(300_000), os.urandom(5_000)


NAMES = ["big-Q4_K_M.gguf", "small-Q8_0.gguf"]


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit(kit: Path, change: dict[str, Any], at: int = 0) -> None:
    """Change what kit.json says of a file."""
    manifest = json.loads((kit / "kit.json").read_text("utf-8"))
    manifest["files"][at] |= change
    (kit / "kit.json").write_text(json.dumps(manifest), "utf-8")


def slow_write(file: BinaryIO, block: bytes) -> None:
    """Write so slowly that an event loop can cancel in between."""
    file.write(block)
    time.sleep(0.001)
