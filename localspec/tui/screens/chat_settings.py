"""The settings drawer of the chat. Nothing is changed before it is accepted whole."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Select, Static

from localspec.errors import SettingsError
from localspec.tui.bench_text import FIELDS, Group, bench_from, bench_texts
from localspec.tui.plain import plain
from localspec.tui.state import Workbench

_TITLES: dict[Group, str] = {
    "draft": "Drafting",
    "sampling": "Sampler",
    "answer": "Answer",
    "context": "Context",
}

METHODS = (("off", "off"), ("draft model", "draft"), ("n-gram", "ngram"))


class ChatSettings(ModalScreen[Workbench | None]):
    """Gives the workbench with what was changed, or None."""

    CSS_PATH = "chat_settings.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="drawer.leave", tooltip="Change nothing", priority=True),
        Binding("ctrl+s", "accept", "Accept", id="drawer.accept", tooltip="From the next answer on", priority=True),
    ]

    def __init__(self, bench: Workbench) -> None:
        """Take what is in force."""
        super().__init__()
        self._bench = bench

    def compose(self) -> ComposeResult:
        """Yield a row for each setting."""
        texts = bench_texts(self._bench)
        with Vertical(id="drawer", classes="panel"):
            with VerticalScroll(can_focus=False):
                yield Label("Drafting", classes="group", markup=False)
                with Horizontal(classes="row"):
                    yield Label("method", markup=False)
                    yield Select(METHODS, value=texts["method"], allow_blank=False, compact=True, id="method")
                group: Group = "draft"
                for field in FIELDS:
                    if field.group != group:
                        group = field.group
                        yield Label(_TITLES[group], classes="group", markup=False)
                    with Horizontal(classes="row"):
                        yield Label(field.name, markup=False)
                        yield Input(texts[field.name], id=field.name, compact=True)
                        yield Label(field.words, classes="muted", markup=False)
            yield Static("", id="refusal", markup=False)
            with Horizontal(id="buttons"):
                yield Button(Content("Accept"), id="accept", variant="primary", compact=True)
                yield Button(Content("Leave"), id="leave", compact=True)

    def on_mount(self) -> None:
        """Name the drawer."""
        self.query_one("#drawer").border_title = "Settings"

    @on(Input.Submitted)
    @on(Button.Pressed, "#accept")
    def action_accept(self) -> None:
        """Give what is written, if it can be."""
        texts = {field.name: self.query_one(f"#{field.name}", Input).value for field in FIELDS}
        texts["method"] = str(self.query_one("#method", Select).value)
        try:
            bench = bench_from(texts, self._bench)
        except SettingsError as error:
            refusal = self.query_one("#refusal", Static)
            refusal.update(plain(f"! {error.message} {error.hint}"))
            refusal.add_class("-shown")
            return
        self.dismiss(bench)

    @on(Button.Pressed, "#leave")
    def action_leave(self) -> None:
        """Change nothing."""
        self.dismiss(None)
