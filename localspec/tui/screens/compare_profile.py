"""The dialog that keeps an arm of a run as a profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Checkbox, Input, Label, RadioButton, RadioSet

from localspec.store.profiles import MAX_NAME, check_name
from localspec.tui.plain import plain_line
from localspec.tui.screens.compare_dialog import CompareDialog, field


@dataclass(frozen=True, slots=True)
class ProfileWish:
    """What is to be kept under which name."""

    name: str
    arm: str
    replaces: bool


class CompareProfile(CompareDialog[ProfileWish]):
    """Name and arm."""

    HEADING = "Keep as a profile"

    def __init__(self, arms: Sequence[str], best: str, name: str = "") -> None:
        """Take the arms that have run, the one that is advised, and a name that is proposed."""
        super().__init__()
        self._arms = tuple(arms)
        self._best = best
        self._proposed = name[:MAX_NAME]

    def compose_fields(self) -> ComposeResult:
        """Yield name, arm and leave to replace."""
        yield field("name", "name", self._proposed)
        with Horizontal(classes="field", id="profile-arms"):
            yield Label("arm", markup=False)
            with RadioSet(compact=True):
                for arm in self._arms:
                    label = plain_line(f"{arm} (advised)" if arm == self._best else arm)
                    yield RadioButton(label, value=arm == self._best, compact=True)
        yield Checkbox("replace a profile of that name", id="profile-replaces", compact=True)

    def read(self) -> ProfileWish:
        """Return the wish."""
        name = check_name(self.query_one("#field-name", Input).value.strip())
        arm = self._arms[max(0, self.query_one(RadioSet).pressed_index)]
        return ProfileWish(name, arm, self.query_one(Checkbox).value)
