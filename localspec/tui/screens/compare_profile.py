"""The dialog that keeps an arm of a run as a profile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Checkbox, Input, Label, RadioSet, Static

from localspec.errors import LocalspecError
from localspec.session.plain_text import one_line
from localspec.store.profiles import MAX_NAME, check_name
from localspec.tui.plain import plain, plain_line
from localspec.tui.screens.compare_dialog import CompareDialog, field
from localspec.tui.widgets.choice_marks import MarkedCheckbox, MarkedRadio

if TYPE_CHECKING:
    from localspec.tui.app import LocalspecApp


@dataclass(frozen=True, slots=True)
class ProfileWish:
    """What is to be kept under which name."""

    name: str
    arm: str
    replaces: bool


class CompareProfile(CompareDialog[ProfileWish]):
    """Name and arm."""

    HEADING = "Keep as a profile"

    def __init__(self, arms: Sequence[str], best: str, name: str = "", is_usable: bool = True) -> None:
        """Take the arms that have run, the advised one, a name that is proposed, and whether it was measured well."""
        super().__init__()
        self._arms = tuple(arms)
        self._best = best
        self._proposed = name[:MAX_NAME]
        self._is_usable = is_usable

    def compose_fields(self) -> ComposeResult:
        """Yield name, arm and leave to replace."""
        if not self._is_usable:
            words = "This measurement is unusable: the profile keeps settings of which no gain is known."
            yield Static(f"! {words}", classes="hint", markup=False)
        yield field("name", "name", self._proposed)
        with Horizontal(classes="field", id="profile-arms"):
            yield Label("arm", markup=False)
            with RadioSet(compact=True):
                for arm in self._arms:
                    label = plain_line(f"{arm} (advised)" if arm == self._best else arm)
                    yield MarkedRadio(label, value=arm == self._best, compact=True)
        yield MarkedCheckbox("replace a profile of that name", id="profile-replaces", compact=True)

    def read(self) -> ProfileWish:
        """Return the wish."""
        name = check_name(self.query_one("#field-name", Input).value.strip())
        arm = self._arms[max(0, self.query_one(RadioSet).pressed_index)]
        return ProfileWish(name, arm, self.query_one(Checkbox).value)


async def keep_as_profile(host: LocalspecApp, run_id: int, dialog: CompareProfile, with_kinds: bool = False) -> None:
    """Ask by the dialog for a name, and keep an arm of a run under it; tell how that went. Call it in a worker.

    Args:
        host: the app.
        run_id: of the run.
        dialog: not yet shown.
        with_kinds: keep the best for each kind of own text, too.
    """
    from localspec.tui.compare_run import keep_profile

    wish = await host.push_screen_wait(dialog)
    if wish is None:
        return
    try:
        await asyncio.to_thread(keep_profile, host.services, run_id, wish.name, wish.arm, wish.replaces, with_kinds)
    except LocalspecError as error:
        host.show_failure(error)
    else:
        host.notify(str(plain(f"The profile {one_line(wish.name)} is kept.")), markup=False)
