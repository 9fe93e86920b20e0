"""Where `localspec` begins: a command line, or the terminal app where there is none.

The only module that knows both front ends, so that neither has to know the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from localspec.cli import main as command_line
from localspec.cli.services import Services


def open_app(is_demo: bool, replay: Path | None) -> int:
    """Run the terminal app and return its exit code.

    Raises:
        LocalspecError: a setting or the recording is wrong; the screen is not taken then.
    """
    from localspec.settings import load_settings
    from localspec.tui.app import run_app
    from localspec.tui.services import AppServices, memory_file
    from localspec.tui.state import Launch

    settings = load_settings()
    if replay is not None:
        from localspec.tui.replaying import replayed_session

        with replayed_session(replay, settings) as (services, launch):
            return run_app(services, launch)
    return run_app(AppServices(settings, memory_file=memory_file), Launch(is_demo))


def main() -> NoReturn:
    """Carry out this process's command line, and exit."""
    command_line.main(Services(open_app=open_app))
