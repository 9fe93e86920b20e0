"""Work that a command does with an engine or the Hub, cancelled by Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from localspec.cli.failures import say_notice
from localspec.cli.interruption import Interruptions
from localspec.cli.screen import Report, notices_console, progress
from localspec.cli.services import Services
from localspec.engine.interface import Engine

T = TypeVar("T")


def run_errand(services: Services, first: str, work: Callable[[Engine, Report], Coroutine[Any, Any, T]]) -> T:
    """Carry out a command's work with an engine of its own, and return the result. The engine starts when it is asked.

    Args:
        services: makes the engine.
        first: what is going on until the work says more.
        work: gets the engine and what shows progress.

    Raises:
        KeyboardInterrupt: Ctrl-C ended it.
    """
    with Interruptions(say_notice) as interruptions:
        engine = services.make_engine()
        try:
            with progress(notices_console(), first) as report:
                return interruptions.run(work(engine, report))
        finally:
            interruptions.run(engine.close(), is_stoppable=False)


def stepper(report: Report) -> Callable[[str, float], None]:
    """Return what shows a step and the fraction that is done."""
    return lambda text, fraction: report(text, fraction, "")
