"""What is to be compared, as a strip of buttons: each opens the dialog that changes it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Button, Static

from localspec.session.plain_text import one_line
from localspec.tui.compare_choice import CompareChoice, arm_words, arms_of, extent_words, text_words
from localspec.tui.keyed import keyed
from localspec.tui.state import Workbench


class ComparePlan(Vertical):
    """Two lines. What stands before each part is its key."""

    DEFAULT_CSS = """
    ComparePlan {
        height: 2;
        padding: 0 1;
        & Horizontal { height: 1; }
        & Button {
            width: auto;
            min-width: 0;
            margin: 0 1 0 0;
            text-wrap: nowrap;
            text-overflow: ellipsis;
            content-align: left middle;
            text-align: left;
        }
        & .wide { width: 1fr; }
        & .between { width: auto; margin: 0 1 0 0; color: $text-muted; }
        & #compare-run { width: 14; margin: 0; content-align: center middle; text-align: center; }
    }
    """

    choice: reactive[CompareChoice] = reactive(CompareChoice)
    """What the user chose."""
    workbench: reactive[Workbench] = reactive(Workbench)
    """The models and the settings of the bench."""
    is_racing: reactive[bool] = reactive(False)
    """Whether a comparison is under way."""

    def compose(self) -> ComposeResult:
        """Yield the buttons."""
        with Horizontal():
            yield Button("", id="compare-text", classes="wide", compact=True, action="screen.edit_text")
            yield Button("", id="compare-extent", compact=True, action="screen.edit_extent")
        with Horizontal():
            yield Button("", id="compare-left", classes="wide", compact=True, action="screen.edit_arm('left')")
            yield Static("against", classes="between", markup=False)
            yield Button("", id="compare-right", classes="wide", compact=True, action="screen.edit_arm('right')")
            yield Button("", id="compare-run", compact=True, variant="primary", action="screen.run_or_stop")

    def watch_choice(self) -> None:
        """Show another choice."""
        self._show()

    def watch_workbench(self) -> None:
        """Show another bench."""
        self._show()

    def watch_is_racing(self) -> None:
        """Offer to stop what runs, and change nothing meanwhile."""
        self._show()

    def _show(self) -> None:
        if not self.children:
            return
        left, right = arms_of(self.choice, self.workbench)
        has_prompt = bool(self.choice.prompt.strip())
        self._label("text", "{compare.text}", "Prompt:" if has_prompt else "Text:", text_words(self.choice))
        self._label("extent", "{compare.extent}", "", extent_words(self.choice))
        self._label("left", "{compare.left}", "A:", arm_words(left))
        self._label("right", "{compare.right}", "B:", arm_words(right))
        self._label("run", *(("{compare.stop}", "", "■ Stop") if self.is_racing else ("{compare.run}", "", "▶ Run")))
        for name in ("text", "extent", "left", "right"):
            self.query_one(f"#compare-{name}", Button).disabled = self.is_racing

    def on_mount(self) -> None:
        """Fill the buttons, now and when other keys are in force."""
        self.watch(self.app, "key_map", self._show)

    def _label(self, name: str, key: str, head: str, words: str) -> None:
        parts: list[tuple[str, str]] = [(f" {one_line(keyed(key))} ", "dim")]
        if head:
            parts.append((f"{head} ", "bold"))
        parts.append((f"{one_line(words)} ", ""))
        self.query_one(f"#compare-{name}", Button).label = Content.assemble(*parts)
