"""The dialog for how one arm drafts."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Label, RadioButton, RadioSet

from localspec.engine.values import MAX_DRAFT_TOKENS, Method, SpeculationSettings
from localspec.tui.compare_choice import check_arm
from localspec.tui.screens.compare_dialog import CompareDialog, decimal, field, whole_number
from localspec.tui.state import Workbench

_METHODS: tuple[Method, ...] = get_args(Method)
_MAX_NGRAM = 64
_FIELDS: dict[str, tuple[str, tuple[Method, ...]]] = {
    "n_max": ("n_max, longest draft", ("draft", "ngram")),
    "n_min": ("n_min, shortest kept", ("draft", "ngram")),
    "p_min": ("p_min, least probability", ("draft",)),
    "ngram_min": ("ngram_min, shortest match", ("ngram",)),
    "ngram_max": ("ngram_max, longest match", ("ngram",)),
}


class CompareArm(CompareDialog[SpeculationSettings]):
    """Shows the settings that the method has, and no others."""

    def __init__(self, letter: str, settings: SpeculationSettings, bench: Workbench) -> None:
        """Take an arm as it is now, and the bench that it is to run on."""
        super().__init__()
        self.HEADING = f"Arm {letter}"
        self._settings = settings
        self._bench = bench

    def compose_fields(self) -> ComposeResult:
        """Yield the method and its settings."""
        with Horizontal(classes="field choices"):
            yield Label("method", markup=False)
            with RadioSet(compact=True):
                for method in _METHODS:
                    yield RadioButton(
                        method, value=method == self._settings.method, id=f"method-{method}", compact=True
                    )
        for name, (label, _) in _FIELDS.items():
            yield field(label, name, f"{getattr(self._settings, name):g}")

    def on_mount(self) -> None:
        """Show what the method has, and begin at the method."""
        self._follow_method()
        methods = self.query_one(RadioSet)
        for _ in range(methods.pressed_index):
            methods.action_next_button()

    @on(RadioSet.Changed)
    def _follow_method(self) -> None:
        for name, (_, methods) in _FIELDS.items():
            self.query_one(f"#row-{name}").display = self._method in methods

    @property
    def _method(self) -> Method:
        return _METHODS[max(0, self.query_one(RadioSet).pressed_index)]

    def read(self) -> SpeculationSettings:
        """Return the arm's settings; what its method does not have stays as it was."""
        settings = replace(self._settings, method=self._method)
        if self._method == "off":
            return settings
        settings = replace(
            settings,
            n_max=whole_number(self._text("n_max"), "n_max", 1, MAX_DRAFT_TOKENS),
            n_min=whole_number(self._text("n_min"), "n_min", 0, MAX_DRAFT_TOKENS),
        )
        if self._method == "draft":
            settings = replace(settings, p_min=decimal(self._text("p_min"), "p_min", 0.0, 1.0))
        else:
            settings = replace(
                settings,
                ngram_min=whole_number(self._text("ngram_min"), "ngram_min", 1, _MAX_NGRAM),
                ngram_max=whole_number(self._text("ngram_max"), "ngram_max", 1, _MAX_NGRAM),
            )
        check_arm(settings, self._bench)
        return settings

    def _text(self, name: str) -> str:
        return self.query_one(f"#field-{name}", Input).value
