"""How every failure ends: a short text on stderr, an exit code, and never a traceback on the screen."""

from __future__ import annotations

import errno
import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import click

from localspec.cli.signals import ignore_interrupts
from localspec.cli.streams import abandon_output
from localspec.errors import LocalspecError, SettingsError, UsageError
from localspec.session.plain_text import printable

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141
"""As of a program that SIGPIPE ends."""

MAX_LOG_BYTES = 1_000_000


class Interrupted(Exception):
    """The user pressed Ctrl-C, and what could be shown has been shown."""


def exit_code_of(command: Callable[[], object], log_file: Callable[[], Path]) -> int:
    """Run a command and return its exit code, having said on stderr what went wrong.

    Args:
        command: returns its exit code, or anything else for 0.
        log_file: gives the file that unexpected errors are written to.
    """
    try:
        return _exit_code_of(command, log_file)
    except BrokenPipeError:
        # Nobody hears of the failure either.
        abandon_output()
        return EXIT_PIPE_CLOSED


def _exit_code_of(command: Callable[[], object], log_file: Callable[[], Path]) -> int:
    try:
        code = command()
        sys.stdout.flush()
        return code if isinstance(code, int) else EXIT_DONE
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code
    except LocalspecError as error:
        say_failure(error)
        return EXIT_USAGE if isinstance(error, UsageError | SettingsError) else EXIT_FAILED
    except (KeyboardInterrupt, click.Abort, Interrupted):
        # Impatience must not break off what is left to say.
        ignore_interrupts()
        print("Interrupted.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Click and rich turn a broken pipe into SystemExit; nothing else here raises it.
        abandon_output()
        return EXIT_PIPE_CLOSED
    except OSError as error:
        abandon_output()
        say_failure(_system_failure(error))
        return EXIT_FAILED
    except Exception as error:
        _say_unexpected(error, log_file)
        return EXIT_FAILED


def say_notice(text: str) -> None:
    """Write a line to stderr."""
    print(printable(text), file=sys.stderr)


def say_failure(error: LocalspecError) -> None:
    """Write a failure and its hint to stderr."""
    print(_wrapped(f"error: {printable(error.message)}"), file=sys.stderr)
    if error.hint:
        print(_wrapped(f"hint: {printable(error.hint)}"), file=sys.stderr)


def _wrapped(text: str) -> str:
    """Return a text broken at words on a terminal; elsewhere it stays as it is, for other programs to search."""
    if sys.stderr is None or not sys.stderr.isatty():
        return text
    width = max(20, shutil.get_terminal_size().columns)
    lines = (textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) for line in text.split("\n"))
    return "\n".join("\n".join(parts) for parts in lines)


def _system_failure(error: OSError) -> LocalspecError:
    reason = error.strerror or str(error) or type(error).__name__
    name = "" if error.filename is None else f" ({str(error.filename)[:200]})"
    hint = "Make room there, or write to another place." if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return LocalspecError(f"The system refused: {reason}{name}.", hint)


def _say_unexpected(error: Exception, log_file: Callable[[], Path]) -> None:
    try:
        path = log_file()
        mode = "w" if path.exists() and path.stat().st_size > MAX_LOG_BYTES else "a"
        with path.open(mode, encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')}\n")
            log.write("".join(traceback.format_exception(error)))
        where = f"The details are in {path}"
    except Exception:
        # Whatever else fails here, the user still gets the one line.
        where = "The details could not be written to the log file"
    print(f"error: This should not have happened ({type(error).__name__}). {printable(where)}.", file=sys.stderr)
