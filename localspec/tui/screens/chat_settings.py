"""The settings drawer of the chat. Nothing is changed before it is accepted whole."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Checkbox, Input, Label, Select, Static

from localspec.errors import LocalspecError, SettingsError
from localspec.methods import DRAFTING_SETTINGS, METHODS, WORDS, settings_read_by
from localspec.tui.bench_text import CHOICES, FIELDS, Choice, Group, bench_from, bench_texts
from localspec.tui.plain import plain
from localspec.tui.state import Workbench
from localspec.tui.widgets.choice_marks import MarkedCheckbox

_TITLES: dict[Group, str] = {
    "draft": "Drafting",
    "sampling": "Sampler",
    "answer": "Answer",
    "context": "Context",
}

VERIFICATION_WORDS = {
    "exact": "same seed, same text",
    "rejection": "by token, min(1, p/q)",
    "block": "all of a draft jointly",
}
PACING_WORDS = {
    "fixed": "n_max each round",
    "adaptive": "what pays, none included",
}


class ChatSettings(ModalScreen[Workbench | None]):
    """Gives the workbench with what was changed, or None. Of drafting it shows what the chosen method reads."""

    CSS_PATH = "chat_settings.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="drawer.leave", tooltip="Change nothing"),
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
                for choice in CHOICES:
                    yield from self._choice_row(choice, texts[choice.name])
                group: Group = "draft"
                for field in FIELDS:
                    if field.group != group:
                        if group == "draft":
                            yield from self._remembering(texts["remembers"] == "on")
                        group = field.group
                        yield Label(_TITLES[group], classes="group", markup=False)
                    with Horizontal(classes="row", id=f"row-{field.name}"):
                        yield Label(field.name, markup=False)
                        yield Input(texts[field.name], id=field.name, compact=True)
                        yield Label(field.words, classes="muted", markup=False)
            yield Static("", id="refusal", markup=False)
            with Horizontal(id="buttons"):
                yield Button(Content("Accept"), id="accept", variant="primary", compact=True)
                yield Button(Content("Leave"), id="leave", compact=True)

    def _choice_row(self, choice: Choice, value: str) -> ComposeResult:
        with Horizontal(classes="row", id=f"row-{choice.name}"):
            yield Label(choice.name, markup=False)
            options = [(option, option) for option in choice.options]
            yield Select(options, value=value, allow_blank=False, compact=True, id=choice.name)
            if choice.name != "method":
                yield Label("", classes="muted", id=f"about-{choice.name}", markup=False)
        if choice.name == "method":
            # Its words need the whole width.
            yield Label("", classes="muted about", id="about-method", markup=False)

    def _remembering(self, is_on: bool) -> ComposeResult:
        with Horizontal(classes="row", id="row-remembers"):
            yield Label("remembers", markup=False)
            yield MarkedCheckbox("earlier answers, too", is_on, compact=True, id="remembers")
        yield Static("", id="remembering", classes="muted", markup=False)

    def on_mount(self) -> None:
        """Name the drawer, and show what the method reads."""
        self.query_one("#drawer").border_title = "Settings"
        self._follow_choices()

    @on(Select.Changed)
    def _follow_choices(self) -> None:
        method, verification, pacing = (self._chosen(name) for name in ("method", "verification", "pacing"))
        read = settings_read_by(method, verification)
        for name in DRAFTING_SETTINGS:
            self.query_one(f"#row-{name}").display = name in read
        about = {
            "method": next((WORDS[known] for known in METHODS if known == method), ""),
            "verification": VERIFICATION_WORDS.get(verification, ""),
            "pacing": PACING_WORDS.get(pacing, ""),
        }
        for name, words in about.items():
            self.query_one(f"#about-{name}", Label).update(words)
        self._follow_remembering()

    @on(Checkbox.Changed, "#remembers")
    def _follow_remembering(self) -> None:
        is_on = self.query_one("#row-remembers").display and self.query_one("#remembers", Checkbox).value
        self.query_one("#remembering").display = is_on
        if is_on:
            self._tell_what_is_kept()

    @work(exclusive=True, group="remembering", exit_on_error=False)
    async def _tell_what_is_kept(self) -> None:
        text = await asyncio.to_thread(_what_is_kept)
        self.query_one("#remembering", Static).update(plain(text))

    def _chosen(self, name: str) -> str:
        return str(self.query_one(f"#{name}", Select).value)

    @on(Input.Submitted)
    @on(Button.Pressed, "#accept")
    def action_accept(self) -> None:
        """Give what is written, if it can be."""
        texts = {field.name: self.query_one(f"#{field.name}", Input).value for field in FIELDS}
        texts |= {choice.name: self._chosen(choice.name) for choice in CHOICES}
        texts["remembers"] = "on" if self.query_one("#remembers", Checkbox).value else "off"
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


def _what_is_kept() -> str:
    from localspec.session.earlier_answers import remembering_notice

    try:
        return remembering_notice()
    except LocalspecError as error:
        return error.message
