"""The dialog for how one arm drafts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Label, RadioSet

from localspec.engine.values import MAX_DRAFT_TOKENS, Method, PacingKind, SpeculationSettings, Verification
from localspec.methods import METHODS, PACINGS, VERIFICATIONS, WORDS, settings_read_by
from localspec.tui.compare_choice import check_arm
from localspec.tui.screens.compare_dialog import CompareDialog, decimal, field, whole_number
from localspec.tui.state import Workbench
from localspec.tui.widgets.choice_marks import MarkedRadio

_MAX_NGRAM = 64
_WHOLE: dict[str, tuple[str, int, int]] = {
    "n_max": ("n_max, longest draft", 1, MAX_DRAFT_TOKENS),
    "n_min": ("n_min, shortest kept", 0, MAX_DRAFT_TOKENS),
    "ngram_min": ("ngram_min, shortest match", 1, _MAX_NGRAM),
    "ngram_max": ("ngram_max, longest match", 1, _MAX_NGRAM),
}
"""Label, least and greatest."""
_DECIMAL: dict[str, tuple[str, float, float]] = {
    "p_min": ("p_min, least probability", 0.0, 1.0),
    "suffix_factor": ("suffix_factor, per match", 0.1, float(MAX_DRAFT_TOKENS)),
    "suffix_p_min": ("suffix_p_min, least share", 0.0, 1.0),
    "draft_temperature": ("draft_temperature", -1.0, 100.0),
}


class CompareArm(CompareDialog[SpeculationSettings]):
    """Shows the settings that the method reads, and no others."""

    def __init__(self, letter: str, settings: SpeculationSettings, bench: Workbench) -> None:
        """Take an arm as it is now, and the bench that it is to run on."""
        super().__init__()
        self.HEADING = f"Arm {letter}"
        self._settings = settings
        self._bench = bench

    def compose_fields(self) -> ComposeResult:
        """Yield the method and its settings."""
        given = self._settings
        yield from _radio("method", METHODS, given.method)
        yield Label("", id="about-method", classes="hint", markup=False)
        yield from _radio("pacing", PACINGS, given.pacing)
        yield from _radio("verification", VERIFICATIONS, given.verification)
        labels = {name: label for name, (label, _, _) in (*_WHOLE.items(), *_DECIMAL.items())}
        for name in ("n_max", "n_min", "p_min", *(name for name in labels if name.startswith(("ngram", "suffix")))):
            yield field(labels[name], name, f"{getattr(given, name):g}")
        yield field(labels["draft_temperature"], "draft_temperature", f"{given.draft_temperature:g}")

    def on_mount(self) -> None:
        """Show what the method reads, and begin at the method."""
        self._follow_method()
        for radio in self.query(RadioSet):
            for _ in range(radio.pressed_index):
                radio.action_next_button()

    @on(RadioSet.Changed)
    def _follow_method(self) -> None:
        read = settings_read_by(self._method, self._verification)
        for name in (*_WHOLE, *_DECIMAL, "pacing", "verification"):
            self.query_one(f"#row-{name}").display = name in read
        self.query_one("#about-method", Label).update(f"{self._method}: {WORDS[self._method]}")

    @property
    def _method(self) -> Method:
        return METHODS[self._index("method")]

    @property
    def _pacing(self) -> PacingKind:
        return PACINGS[self._index("pacing")]

    @property
    def _verification(self) -> Verification:
        return VERIFICATIONS[self._index("verification")]

    def _index(self, name: str) -> int:
        return max(0, self.query_one(f"#row-{name} RadioSet", RadioSet).pressed_index)

    def read(self) -> SpeculationSettings:
        """Return the arm's settings; what its method does not read stays as it was."""
        settings = replace(self._settings, method=self._method)
        if self._method == "off":
            return settings
        read = settings_read_by(self._method, self._verification)
        values: dict[str, Any] = {
            name: whole_number(self._text(name), name, low, high)
            for name, (_, low, high) in _WHOLE.items()
            if name in read
        }
        values |= {
            name: decimal(self._text(name), name, low, high)
            for name, (_, low, high) in _DECIMAL.items()
            if name in read
        }
        settings = replace(settings, **values, verification=self._verification)
        if "pacing" in read:
            settings = replace(settings, pacing=self._pacing)
        check_arm(settings, self._bench)
        return settings

    def _text(self, name: str) -> str:
        return self.query_one(f"#field-{name}", Input).value


def _radio(name: str, options: Sequence[str], value: str) -> ComposeResult:
    with Horizontal(classes="field choices", id=f"row-{name}"):
        yield Label(name, markup=False)
        with RadioSet(compact=True):
            for option in options:
                yield MarkedRadio(option, value=option == value, id=f"{name}-{option}", compact=True)
