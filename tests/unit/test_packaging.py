"""The wheel: what is in it, and that it works in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import localspec

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def _run(unpacked: Path, empty: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The unpacked wheel comes before whatever is installed.
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=empty, env=environment, timeout=60, stdin=subprocess.DEVNULL
    )


def test_the_wheel_carries_code_and_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    prompts = {Path(name).name for name in names if name.startswith("localspec/_data/prompts/")}
    assert prompts == {path.name for path in (ROOT / "assets" / "prompts").iterdir()}
    models = {Path(name).name for name in names if name.startswith("localspec/_data/models/")}
    assert models == {path.name for path in (ROOT / "models").iterdir() if path.suffix != ".gguf"}
    assert {f"localspec/session/reporting/report.{ending}" for ending in ("html.jinja", "css")} <= set(names)
    assert {name.partition("/")[0] for name in names} == {"localspec", f"localspec-{localspec.__version__}.dist-info"}
    assert not [name for name in names if name.endswith((".gguf", ".pyc"))]


def test_the_wheel_has_the_command_and_the_licence(unpacked: Path) -> None:
    (info,) = unpacked.glob("*.dist-info")
    assert "localspec = localspec.entry:main" in (info / "entry_points.txt").read_text("utf-8")
    assert "Apache License" in (info / "licenses" / "LICENSE").read_text("utf-8")


def test_data_of_the_unpacked_wheel_is_found_inside_it(unpacked: Path, tmp_path: Path) -> None:
    program = "from localspec.paths import *; print(prompts_dir(), curated_models_dir(), sep='\\n')"
    done = _run(unpacked, tmp_path, "-c", program)
    assert done.stdout.splitlines() == [str(unpacked / "localspec" / "_data" / n) for n in ("prompts", "models")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--version"], localspec.__version__),
        (["bench", "--help"], "--n-max"),
        (["doctor"], ""),
    ],
)
def test_commands_run_from_the_wheel_in_an_empty_folder(
    unpacked: Path, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    done = _run(unpacked, tmp_path, "-m", "localspec", *arguments)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    assert done.stdout.strip()
    assert list(tmp_path.iterdir()) == []


def test_the_readme_tells_of_every_option_of_bench(unpacked: Path, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition("| option |")[2].partition("\n\n")[0]
    told = set(re.findall(r"--[a-z][a-z-]+", table))
    known = set(
        re.findall(r"(?<![\w-])--[a-z][a-z-]+", _run(unpacked, tmp_path, "-m", "localspec", "bench", "--help").stdout)
    )
    assert known - told <= {"--help"}
    assert told <= known


def test_every_runtime_dependency_is_bounded_and_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    dependencies = tomllib.loads(text)["project"]["dependencies"]
    assert all("==" in dependency or "<" in dependency for dependency in dependencies)
    lines = [line.strip() for line in text.splitlines()]
    assert all(lines[lines.index(f'"{dependency}",') - 1].startswith("# ") for dependency in dependencies)
