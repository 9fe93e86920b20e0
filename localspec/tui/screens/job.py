"""A screen whose job holds the engine: a key begins it, it is shown as it goes on, Esc ends it, a notice tells how."""

from __future__ import annotations

import asyncio
import importlib
from typing import ClassVar, Generic, TypeVar, cast

from textual import on, work
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer
from textual.worker import Worker

from localspec.errors import LocalspecError, UsageError
from localspec.tui.plain import plain
from localspec.tui.screens.base import ModeScreen, cancel_soon
from localspec.tui.state import Workbench

Shown = TypeVar("Shown")


class JobScreen(ModeScreen, Generic[Shown]):
    """Has one job at a time, in its one worker. Subclasses say what the job is and show what comes of it.

    Cancelling ends a job early and not at once: what it knows by then is kept, so that its last step is its own.
    """

    FRAME_S: ClassVar[float] = 0.5
    """Between two drawings: what drawing takes is missing where the engine is timed."""
    JOB_MODULE: ClassVar[str] = ""
    """What the job is made of. It is most of localspec, and is imported when the first one begins."""
    NOTHING_KNOWN: ClassVar[str] = "Ended before anything was known."
    """Said when a job was stopped too early to leave anything."""

    # The screen itself draws nothing: a reactive would have it drawn anew, whole, with each change.
    is_at_work: var[bool] = var(False, init=False)
    """Whether the job is under way."""
    is_stopping: var[bool] = var(False, init=False)
    """Whether it was told to stop."""

    class Moved(Message):
        """There is something new to show of the job; only the newest counts."""

        def __init__(self, shown: object) -> None:
            """Take what is to be shown."""
            super().__init__()
            self.shown = shown

        def can_replace(self, message: Message) -> bool:
            """Take the place of an older one."""
            return isinstance(message, JobScreen.Moved)

    def __init__(self) -> None:
        """Prepare; nothing runs yet."""
        super().__init__()
        self._worker: Worker[None] | None = None
        self._frames: Timer | None = None

    # What subclasses say.

    def obstacle(self) -> UsageError | None:
        """Return why the job cannot begin; None if it can."""
        return None

    def hindrance(self) -> str:
        """Return in words why the job cannot begin now; empty if it can."""
        refusal, busy = self.obstacle(), self.engine_state.busy
        if refusal is not None:
            return f"{refusal.message} {refusal.hint}"
        return f"The engine is busy: {busy}." if busy else ""

    def prepare(self) -> None:
        """Make the screen ready, now that the job is about to begin."""

    async def carry_out(self, bench: Workbench) -> None:
        """Do the job. It may be cancelled.

        Args:
            bench: as it was when the job was asked for.

        Raises:
            LocalspecError: what hindered it, to be shown.
        """
        raise NotImplementedError

    def look(self) -> Shown | None:
        """Return what is to be shown of the job now; None if nothing is."""
        return None

    def show(self, shown: Shown) -> None:
        """Show what `look` returned."""

    def show_standing(self) -> None:
        """Say what goes on, or what can be done."""

    def clear(self) -> None:
        """Take back what is shown of a job that came to nothing."""

    # What they share.

    def on_mount(self) -> None:
        """Be ready to draw."""
        self._frames = self.set_interval(self.FRAME_S, self._tick, pause=not self.is_at_work)

    def watch_is_at_work(self, is_at_work: bool) -> None:
        """Draw while something changes."""
        if self._frames is not None:
            (self._frames.resume if is_at_work else self._frames.pause)()
        self.refresh_bindings()
        self._stand()

    def watch_is_stopping(self) -> None:
        """Say that it was heard."""
        self._stand()

    def watch_workbench(self) -> None:
        """Say what the bench changes."""
        self._stand()

    def watch_engine_state(self) -> None:
        """Say that the engine has become free or busy."""
        self._stand()

    def show_keys(self) -> None:
        """Name the keys that are in force."""
        self._stand()

    def _stand(self) -> None:
        if self.children:
            self.show_standing()

    def action_run_or_stop(self) -> None:
        """Do what the button says."""
        if self.is_at_work:
            self.action_stop()
        else:
            self.action_run()

    def action_run(self) -> None:
        """Begin, or say why not."""
        if self.is_at_work:
            return
        refusal = self.obstacle()
        if refusal is None and not self.host.room.is_free:
            refusal = UsageError(f"The engine is busy: {self.host.engine_state.busy}.", "Stop that first, or wait.")
        if refusal is not None:
            self.host.show_failure(refusal)
            return
        self.is_stopping, self.is_at_work = False, True
        self.prepare()
        self._worker = self._carry_out(self.host.workbench)

    def action_stop(self) -> None:
        """End the job; what is known stays."""
        # A second cancelling would cut off the job's own end.
        if self.is_at_work and not self.is_stopping and self._worker is not None:
            self.is_stopping = True
            cancel_soon(self._worker)

    @work(exclusive=True, group="job", exit_on_error=False)
    async def _carry_out(self, bench: Workbench) -> None:
        try:
            # In a thread, so that the screen does not stand still for it.
            await asyncio.to_thread(importlib.import_module, self.JOB_MODULE)
            await self.carry_out(bench)
        except LocalspecError as error:
            self.clear()
            self.host.show_failure(error)
        except asyncio.CancelledError:
            self.clear()
            self.say(self.NOTHING_KNOWN)
        finally:
            self.is_at_work = self.is_stopping = False

    def _tick(self) -> None:
        if (shown := self.look()) is not None:
            self.post_message(self.Moved(shown))

    @on(Moved)
    def _show_progress(self, message: Moved) -> None:
        message.stop()
        if self.is_at_work:
            self.show(cast("Shown", message.shown))

    def say(self, text: str) -> None:
        """Tell something; texts from elsewhere may be in it."""
        self.notify(str(plain(text)), markup=False)
