"""Where `localspec` begins: a command line, or the terminal app where there is none.

The only module that knows both front ends, so that neither has to know the other.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn


def open_app(is_demo: bool, replay: Path | None) -> int:
    """Run the terminal app and return its exit code.

    Raises:
        LocalspecError: a setting or the recording is wrong; the screen is not taken then.
    """
    # Nothing made until the first screen stands is garbage; the app collects again from there on.
    gc.disable()
    try:
        return _open_app(is_demo, replay)
    finally:
        gc.enable()


def _open_app(is_demo: bool, replay: Path | None) -> int:
    from localspec.settings import load_settings
    from localspec.tui.app import run_app
    from localspec.tui.services import AppServices, memory_file, open_learnt
    from localspec.tui.state import Launch

    settings = load_settings()
    if replay is not None:
        from localspec.tui.replaying import replayed_session

        with replayed_session(replay, settings) as (services, launch):
            return run_app(services, launch)
    return run_app(AppServices(settings, memory_file=memory_file, open_learnt=open_learnt), Launch(is_demo))


def main() -> NoReturn:
    """Carry out this process's command line, and exit."""
    opener: Callable[[bool, Path | None], int] = open_app
    if _is_bare():
        from localspec.cli.streams import accept_any_text

        accept_any_text()
        try:
            sys.exit(open_app(False, None))
        except (Exception, KeyboardInterrupt) as error:
            # The command line knows how to tell of it.
            opener = _raising(error)
    from localspec.cli import main as command_line
    from localspec.cli.services import Services

    command_line.main(Services(open_app=opener))


def _raising(error: BaseException) -> Callable[[bool, Path | None], int]:
    def fail(is_demo: bool, replay: Path | None) -> int:
        raise error

    return fail


def _is_bare() -> bool:
    """Say whether this is `localspec` alone on a terminal: then the app opens without the time of a command line."""
    if sys.argv[1:] or "_LOCALSPEC_COMPLETE" in os.environ:
        return False
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
