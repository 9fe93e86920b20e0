from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell"),
    pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full"),
]

PROGRAM = """
import sys
from localspec.cli import main
from tests.scripted_engine import EchoEngine
main.Services.__init__.__defaults__ = (EchoEngine, *main.Services.__init__.__defaults__[1:])
main.main()
"""


def shell(tmp_path: Path, redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = shlex.join([sys.executable, "-c", PROGRAM, *arguments])
    return subprocess.run(
        ["sh", "-c", f"{program} {redirection}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={**os.environ, "LOCALSPEC_LOG": str(tmp_path)},
        cwd=Path(__file__).parents[3],
    )


@pytest.mark.parametrize("arguments", [("doctor",), ("doctor", "--json"), ("--help",)])
def test_a_full_disk_is_named(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = shell(tmp_path, "> /dev/full", *arguments)
    assert result.returncode == 1
    assert "No space left on device" in result.stderr
    assert "should not have happened" not in result.stderr and "Exception ignored" not in result.stderr


def test_closed_output_is_named_before_any_work(tmp_path: Path) -> None:
    result = shell(tmp_path, ">&-", "doctor")
    assert result.returncode == 1
    assert result.stderr.startswith("error: Standard output is closed.")


def test_closed_input_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    result = shell(tmp_path, "<&-", "chat", "model.gguf")
    assert result.returncode == 1
    assert result.stderr.startswith("error: Standard input is closed.")


@pytest.mark.parametrize("redirection", ["2>&-", "2> /dev/full"])
def test_without_error_output_the_rest_goes_on(redirection: str, tmp_path: Path) -> None:
    fine = shell(tmp_path, redirection, "doctor", "--json")
    assert fine.returncode == 0
    assert fine.stdout.startswith("{") and fine.stdout.count("\n") == 1
    failed = shell(tmp_path, redirection, "bench", "no-such-file.gguf", "--json")
    assert (failed.returncode, failed.stdout) == (1, "")


@pytest.mark.parametrize("arguments", [("doctor",), ("bench", "--help"), ("bench", "no-such-file.gguf")])
def test_a_reader_who_leaves_ends_it_like_sigpipe(arguments: tuple[str, ...], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=write,
        stderr=write,
        check=False,
        timeout=30,
        env={**os.environ, "LOCALSPEC_LOG": str(tmp_path)},
        cwd=Path(__file__).parents[3],
    )
    os.close(write)
    assert process.returncode == 141


def test_a_name_of_5000_characters_is_a_missing_model(tmp_path: Path) -> None:
    result = shell(tmp_path, "", "bench", "a" * 5000)
    assert result.returncode == 2
    assert "No model is called aaa" in result.stderr
    assert len(result.stderr) < 600
