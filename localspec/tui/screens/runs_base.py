"""What the parts of the Runs screen share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from localspec.tui.plain import plain
from localspec.tui.runs.archive import RunArchive
from localspec.tui.runs.details import RunDetails
from localspec.tui.screens.base import ModeScreen
from localspec.tui.widgets.runs_list import RunsList
from localspec.tui.widgets.runs_progress import RunsProgress

Given = ParamSpec("Given")
Found = TypeVar("Found")


class RunsBase(ModeScreen):
    """The archive, and what is shown of it."""

    def __init__(self) -> None:
        """Prepare; nothing is read yet."""
        super().__init__()
        self._notices: list[str] = []
        self._archive: RunArchive | None = None
        self.details: RunDetails | None = None
        """The run that is shown."""
        self.report: Path | None = None
        """The page that was written last."""

    @property
    def archive(self) -> RunArchive:
        """The kept runs and profiles."""
        if self._archive is None:
            self._archive = RunArchive(self.host.services.open_database, self._notices.append)
        return self._archive

    @property
    def run_list(self) -> RunsList:
        """The table of runs."""
        return self.query_one(RunsList)

    def reload(self) -> object:
        """Read the lists anew."""
        raise NotImplementedError

    async def in_thread(self, work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found:
        """Do something with the archive without holding the app up, and say what was set aside by it."""
        try:
            return await asyncio.to_thread(work, *given, **named)
        finally:
            while self._notices:
                self.say(self._notices.pop(0), is_warning=True)

    def say(self, text: str, is_warning: bool = False) -> None:
        """Show a notice."""
        self.notify(str(plain(text)), severity="warning" if is_warning else "information", timeout=8, markup=False)

    def show_progress(self, text: str, fraction: float | None = None, is_stoppable: bool = False) -> None:
        """Show what goes on; an empty text for nothing."""
        line = self.query_one(RunsProgress)
        line.text, line.fraction, line.is_stoppable = text, fraction, is_stoppable
