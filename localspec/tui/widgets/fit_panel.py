"""The knobs of the fit screen, in rows: one value, or the target's beside the draft's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widgets import Static

from localspec.tui.fit_knobs import NO_DRAFT, FitKnobs
from localspec.tui.fit_turns import Around, Question, doubled_context, question, stepped
from localspec.tui.fit_words import draft_context_words, experts_words, kv_words, layers_words, reserve_words
from localspec.tui.widgets.fit_context import ContextScale, FitContext
from localspec.tui.widgets.fit_knob import FitKnob

if TYPE_CHECKING:
    from localspec.tui.fit_planner import FitAnswer
    from localspec.tui.state import ChosenModel

_ROWS = (
    ("Draft", ("draft",)),
    ("KV type", ("kv", "draft-kv")),
    ("GPU layers", ("layers", "draft-layers")),
    ("Draft n_ctx", ("draft-context",)),
    ("Experts", ("experts",)),
    ("Reserve", ("reserve",)),
    ("Machine", ("machine",)),
)
_SEARCHING = "Others that may draft are still being looked for."
_OF_DRAFT = ("draft-kv", "draft-layers", "draft-context")


class FitPanel(VerticalScroll, can_focus=False):
    """Shows where the knobs stand, and says where they are to stand when one is turned."""

    DEFAULT_CSS = """
    FitPanel {
        & Horizontal { height: 1; }
        & .name { width: 12; color: $text-muted; }
        & .column { width: 1fr; padding: 0 2; color: $text-muted; }
    }
    """

    def compose(self) -> ComposeResult:
        """Yield the rows."""
        with Horizontal():
            yield Static("Context", classes="name", markup=False)
            yield FitContext(id="context")
        for name, knobs in _ROWS:
            if name == "KV type":
                with Horizontal(classes="head"):
                    yield Static("", classes="name", markup=False)
                    yield Static("target", classes="column", markup=False)
                    yield Static("draft", classes="column", markup=False)
            with Horizontal():
                yield Static(name, classes="name", markup=False)
                for knob in knobs:
                    yield FitKnob(id=knob)

    @dataclass
    class Turned(Message):
        """The knobs are to stand like this."""

        knob: str
        knobs: FitKnobs
        is_entered: bool = False
        """Typed or chosen, and not turned step by step."""

    def __init__(self, **kwargs: Any) -> None:
        """Take what every widget takes."""
        super().__init__(**kwargs)
        self.border_title = "Knobs"
        self._knobs: FitKnobs | None = None
        self._around = Around(None, (), 0)
        self._is_searching = False
        self._answer: FitAnswer | None = None

    def show(
        self, knobs: FitKnobs, answer: FitAnswer | None, drafts: Sequence[ChosenModel], is_searching: bool
    ) -> None:
        """Show the knobs.

        Args:
            knobs: where they stand.
            answer: the last plan, which may be for other knobs; None for none.
            drafts: models that may draft for the target.
            is_searching: more of them may be found.
        """
        same_target = answer if answer is not None and answer.knobs.target == knobs.target else None
        self.query_one(FitContext).scale = ContextScale(
            n_ctx=knobs.placement.n_ctx,
            planned=0 if same_target is None else same_target.plan.n_ctx,
            largest=0 if same_target is None else same_target.plan.max_n_ctx,
            trained=0 if same_target is None else same_target.n_ctx_train,
        )
        shown = self.query_one(FitContext).scale.shown
        self._knobs, self._around, self._is_searching = knobs, Around(same_target, tuple(drafts), shown), is_searching
        self._answer = answer
        words = {
            "draft": NO_DRAFT if knobs.draft is None else knobs.draft.name,
            "kv": kv_words(knobs, "target"),
            "draft-kv": kv_words(knobs, "draft"),
            "layers": layers_words(knobs, "target", same_target),
            "draft-layers": layers_words(knobs, "draft", same_target),
            "draft-context": draft_context_words(knobs),
            "experts": experts_words(knobs, same_target),
            "reserve": reserve_words(knobs, same_target),
            "machine": knobs.machine.title,
        }
        has_gpu = same_target is None or same_target.has_gpu
        has_experts = same_target is None or same_target.num_experts > 0
        for name, text in words.items():
            knob = self.query_one(f"#{name}", FitKnob)
            knob.value = text
            is_useless = (name in _OF_DRAFT and knobs.draft is None) or ("layers" in name and not has_gpu)
            knob.disabled = is_useless or (name == "experts" and not (has_experts and has_gpu))

    @on(FitContext.Stepped)
    def _step_context(self, message: FitContext.Stepped) -> None:
        self._turn("context", message.steps)

    @on(FitKnob.Stepped)
    def _step(self, message: FitKnob.Stepped) -> None:
        self._turn(str(message.knob.id), message.steps)

    @on(FitContext.Doubled)
    def _double_context(self, message: FitContext.Doubled) -> None:
        if self._knobs is not None:
            self._put("context", doubled_context(message.direction, self._knobs, self._around))

    @on(FitContext.Chosen)
    def _choose_context(self, message: FitContext.Chosen) -> None:
        if self._knobs is not None:
            self._put("context", self._knobs.with_context(message.n_ctx), True)

    @on(FitContext.Opened)
    def _ask_context(self) -> None:
        self._ask_for("context")

    @on(FitKnob.Opened)
    def _ask_knob(self, message: FitKnob.Opened) -> None:
        self._ask_for(str(message.knob.id))

    def _turn(self, knob: str, steps: int) -> None:
        if self._knobs is not None:
            self._put(knob, stepped(knob, steps, self._knobs, self._around))

    def _put(self, knob: str, knobs: FitKnobs, is_entered: bool = False) -> None:
        """Show a turn at once, so that the next one goes on from there, and say it."""
        self.show(knobs, self._answer, self._around.drafts, self._is_searching)
        self.post_message(self.Turned(knob, knobs, is_entered))

    def _ask_for(self, knob: str) -> None:
        if self._knobs is None:
            return
        asked = question(knob, self._knobs, self._around, _SEARCHING if self._is_searching else "")
        if asked is None:
            self._turn(knob, 1)
        else:
            self._ask(knob, asked)

    def _ask(self, knob: str, asked: Question) -> None:
        def answered(answer: str | int | None) -> None:
            if answer is None or self._knobs is None:
                return
            taken = asked.take(answer)
            if isinstance(taken, Question):
                self._ask(knob, taken)
            else:
                self._put(knob, taken(self._knobs), True)

        self.app.push_screen(asked.dialog, answered)
