"""The engine's log file, and what exit codes are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.engine.exit_status import describe_exit
from localspec.engine.logfile import RotatingLog


def test_files_rotate_by_size_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "engine.log"
    log = RotatingLog(path, max_bytes=100, num_old=2)
    for number in range(20):
        log.write(f"line {number:02} {'x' * 21}\n".encode())
    log.close()
    files = sorted(file.name for file in path.parent.iterdir())
    assert files == ["engine.log", "engine.log.1", "engine.log.2"]
    assert all(file.stat().st_size <= 100 for file in path.parent.iterdir())
    kept = "".join((path.parent / name).read_text() for name in ("engine.log.2", "engine.log.1", "engine.log"))
    assert [line[:7] for line in kept.splitlines()] == [f"line {number:02}" for number in range(12, 20)]


def test_a_log_goes_on_where_an_earlier_run_ended(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    for text in (b"first run\n", b"second run\n"):
        log = RotatingLog(path)
        log.write(text)
        log.close()
    assert path.read_text() == "first run\nsecond run\n"


def test_the_tail_is_of_the_newest_process_and_free_of_escape_codes(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "engine.log")
    log.write(b"of the first process\n")
    log.begin("engine process 2 started")
    log.write(b"\x1b[31mred\x1b[0m\x07\n\n\xff\xfe broken\r\n" + b"y" * 9000 + b"\nno end of li")
    log.close()
    first, second, third, fourth = log.tail()
    assert first == "red"
    assert second.endswith("broken") and second.isprintable()
    assert third == "y" * 400
    assert fourth == "no end of li"
    assert log.tail(1) == ("no end of li",)
    assert "--- engine process 2 started" in (tmp_path / "engine.log").read_text(errors="replace")


def test_a_log_that_cannot_be_written_keeps_the_tail(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    log = RotatingLog(tmp_path / "file" / "engine.log")
    log.write(b"still here\n")
    assert log.tail() == ("still here",)


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [
        (-9, "killed (signal 9): often the system ran out of memory"),
        (-6, "aborted (signal 6)"),
        (-11, "crashed in native code (signal 11"),
        (-4, "instruction that this CPU does not have"),
        (-12, "ended by signal 12"),
        (-99, "ended by signal 99."),
        (3, "exit code 3"),
        (0, "before it had answered"),
        (0xC0000005, "code 0xc0000005"),
        (None, "ended"),
    ],
)
def test_an_exit_is_put_into_words(exit_code: int | None, words: str) -> None:
    message, hint = describe_exit(exit_code)
    assert words in message
    assert message.startswith("The engine process ") and message.endswith(".")
    assert "{" not in message
    assert hint.endswith(".")


def test_without_a_path_the_tail_is_all_that_is_kept() -> None:
    log = RotatingLog(None, max_bytes=10)
    log.begin("start")
    log.write(b"one\ntwo, over the limit of a file\n")
    assert log.tail() == ("one", "two, over the limit of a file")
    log.close()
