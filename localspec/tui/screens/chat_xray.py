"""The X-ray of an answer: where each token came from, and what the draft had guessed instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from localspec.engine.events import RoundFinished
from localspec.tui.round_words import round_words
from localspec.tui.token_marks import LETTERS, MEANINGS, OF_DRAFTERS, Mark, mark_of
from localspec.tui.widgets.chat_tokens import ChatTokens
from localspec.tui.widgets.key_line import KeyLine

_LEGEND: dict[Mark, str] = {
    "draft": "$text-success underline",
    "suffix": "$text-accent italic",
    "n-gram": "$text-primary underline italic",
    "correction": "$text-error bold",
    "bonus": "dim",
    "plain": "",
}


class ChatXray(ModalScreen[None]):
    """Looks at the rounds of one answer."""

    CSS_PATH = "chat_xray.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+t", "leave", "Leave", id="xray.leave", tooltip="Back to the chat", priority=True),
    ]

    def __init__(self, rounds: Sequence[RoundFinished]) -> None:
        """Take the rounds; there is at least one."""
        super().__init__()
        self._rounds = tuple(rounds)

    def compose(self) -> ComposeResult:
        """Yield legend, tokens, and the chosen round."""
        with Vertical(id="xray", classes="panel"):
            yield Static(self._legend(), markup=False, id="legend")
            yield ChatTokens(self._rounds)
            yield Static("", markup=False, id="round")
        yield KeyLine()

    def on_mount(self) -> None:
        """Begin with the first round."""
        self.query_one("#xray").border_title = "Token X-ray"
        self._show(0)
        self.query_one(ChatTokens).focus()

    def action_leave(self) -> None:
        """Back to the chat."""
        self.dismiss(None)

    @on(ChatTokens.Chosen)
    def _chosen(self, event: ChatTokens.Chosen) -> None:
        self._show(event.index)

    def _show(self, index: int) -> None:
        round_ = self._rounds[index]
        letters = "".join(LETTERS[mark_of(round_, place)] for place in range(len(round_.emitted)))
        words = round_words(round_, len(self._rounds))
        self.query_one("#round", Static).update(Content.assemble((f"{letters}  ", "bold"), words))

    def _legend(self) -> Content:
        counts: dict[Mark, int] = dict.fromkeys(LETTERS, 0)
        for round_ in self._rounds:
            for place in range(len(round_.emitted)):
                counts[mark_of(round_, place)] += 1
        # Of the drafters those that said something; where none did, the draft model as the usual one.
        silent = {mark for mark in OF_DRAFTERS if not counts[mark]}
        silent -= {"draft"} if len(silent) == len(OF_DRAFTERS) else set()
        return Content("   ").join(
            Content.assemble((LETTERS[mark], "bold"), " ", (MEANINGS[mark], style), f" {counts[mark]}")
            for mark, style in _LEGEND.items()
            if mark not in silent
        )
