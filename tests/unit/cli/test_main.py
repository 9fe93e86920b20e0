from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from localspec import __version__
from localspec.catalog.workloads import load_workloads
from localspec.cli.failures import Interrupted, exit_code_of
from localspec.cli.main import cli, run
from localspec.cli.options import WORKLOADS, flags_of
from localspec.errors import LocalspecError, SettingsError, UsageError
from localspec.settings import Settings


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


def test_a_bare_call_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    out = capsys.readouterr().out
    assert "Usage: localspec" in out
    for command in ("bench", "chat", "demo", "doctor"):
        assert command in out


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert f"Usage: localspec {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["bench"],
        ["bench", "x.gguf", "--method", "magic"],
        ["bench", "x.gguf", "--n-max", "many"],
        ["bench", "x.gguf", "--type-k", "q9_0"],
        ["chat", "x.gguf", "--max-tokens", "0"],
        ["bench", "x.gguf", "--max-tokens", "1"],
        ["bench", "x.gguf", "--top-p", "1.5"],
    ],
)
def test_wrong_usage_is_2_and_goes_to_stderr(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Error" in captured.err


@pytest.mark.parametrize("command", ["bench", "chat", "demo"])
def test_help_gives_the_defaults_that_settings_have(command: str) -> None:
    settings = Settings()
    num_checked = 0
    for option in cli.commands[command].params:
        for group in ("draft", "sampling", "context", "bench"):
            if group == "draft" and option.name in flags_of({})["context"]:
                # The draft's own is an option of another name.
                continue
            default = getattr(getattr(settings, group), option.name or "", None)
            if (
                default is None
                or default is False
                or option.name in ("method",)
                or (command, option.name) == ("chat", "max_tokens")
            ):
                continue
            shown = "on" if default is True else f"{default:g}" if isinstance(default, float) else str(default)
            assert isinstance(option, click.Option)
            assert re.search(rf"Default: {re.escape(shown)}[.,;]", option.help or ""), option.name
            num_checked += 1
    assert num_checked >= 2


def test_help_of_bench_lists_the_workloads(capsys: pytest.CaptureFixture[str]) -> None:
    assert {workload.name: workload.title for workload in load_workloads()} == WORKLOADS
    assert run(["bench", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out and title in out for name, title in WORKLOADS.items())


def failing(error: BaseException) -> Callable[[], object]:
    def command() -> object:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LocalspecError("broken [/] \x1b[31m", "do this"), 1),
        (UsageError("no", "do this"), 2),
        (SettingsError("no", "do this"), 2),
        (click.UsageError("no"), 2),
        (KeyboardInterrupt(), 130),
        (Interrupted(), 130),
        (click.Abort(), 130),
    ],
)
def test_exit_codes(error: BaseException, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(failing(error), lambda: tmp_path / "log") == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err
    assert "\x1b" not in captured.err
    assert "Traceback" not in captured.err


def test_a_failure_shows_message_and_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code_of(failing(LocalspecError("It broke [/x].", "Mend it.")), lambda: tmp_path / "log")
    assert capsys.readouterr().err == "error: It broke [/x].\nhint: Mend it.\n"


def test_an_unexpected_error_goes_to_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    assert exit_code_of(failing(ZeroDivisionError("secret detail")), lambda: log) == 1
    err = capsys.readouterr().err
    assert "secret detail" not in err and "Traceback" not in err
    assert str(log) in err
    assert err.count("\n") == 1
    assert "secret detail" in log.read_text(encoding="utf-8")
    assert "Traceback" in log.read_text(encoding="utf-8")


def test_a_log_that_cannot_be_written_is_no_second_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(failing(ZeroDivisionError()), lambda: tmp_path / "none" / "log") == 1
    assert "could not be written" in capsys.readouterr().err


def test_a_number_is_the_exit_code_and_anything_else_is_0(tmp_path: Path) -> None:
    assert exit_code_of(lambda: 7, lambda: tmp_path / "log") == 7
    assert exit_code_of(lambda: None, lambda: tmp_path / "log") == 0


def test_a_closed_pipe_ends_quietly() -> None:
    code = "import sys; from localspec.cli.main import run; sys.exit(run(['bench', '--help']))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=20)
    assert "Traceback" not in error and "Exception ignored" not in error


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from localspec.cli.main import run; run(['bench', '--help']);"
        "heavy = {'rich', 'pydantic', 'numpy', 'textual', 'llama_cpp', 'asyncio'} & set(sys.modules); "
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
