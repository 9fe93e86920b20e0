"""What importing a part of localspec loads, and how its files are kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "localspec"

LOADS = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name.removesuffix(".*"))
    if name.endswith(".*"):
        for found in pkgutil.walk_packages(module.__path__, module.__name__ + "."):
            importlib.import_module(found.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize(
    ("modules", "forbidden"),
    [
        (["localspec.cli.*", "localspec.session.*"], {"llama_cpp", "textual"}),
        (["localspec.cli.main"], {"llama_cpp", "textual"}),
        (["localspec.metrics.*"], {"llama_cpp", "textual", "rich", "click"}),
        (["localspec.store.*"], {"llama_cpp", "textual", "rich", "click", "huggingface_hub", "pydantic", "numpy"}),
        (["localspec.engine.client", "localspec.engine.replay"], {"llama_cpp", "textual"}),
        (["localspec.engine.worker"], {"textual", "rich", "click"}),
        (
            ["localspec.hardware.*", "localspec.catalog.*", "localspec.planning.*", "localspec.settings"],
            {"llama_cpp", "textual", "rich", "click", "huggingface_hub"},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_importing_a_part_loads_nothing_that_it_may_not_know(
    modules: list[str], forbidden: set[str], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", LOADS, *modules]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "localspec" in loaded
    assert not loaded & forbidden


def _sources() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts]


def test_no_file_is_longer_than_450_lines() -> None:
    assert {path.name: n for path in _sources() if (n := len(path.read_text("utf-8").splitlines())) > 450} == {}


def test_no_file_has_a_name_that_says_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}
    assert [path for path in PACKAGE.rglob("*") if path.stem in vague] == []


def test_packages_load_nothing_by_themselves() -> None:
    code = {path for path in _sources() if path.name == "__init__.py" and "import" in path.read_text("utf-8")}
    assert code == set()
