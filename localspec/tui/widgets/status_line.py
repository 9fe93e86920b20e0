"""The line that is always visible and always true: what is loaded, and whether speculation is on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.figures import DASH
from localspec.session.plain_text import one_line
from localspec.tui.state import ChosenModel, EngineState, Workbench
from localspec.tui.widgets.speculation_badge import phrase_of

if TYPE_CHECKING:
    from localspec.engine.values import ModelInfo


class StatusLine(Widget):
    """Reads the engine's own state; of the workbench only what is chosen and not loaded yet."""

    DEFAULT_CSS = """
    StatusLine { height: 1; padding: 0 1; background: $surface; color: $text; }
    """

    workbench: reactive[Workbench] = reactive(Workbench)
    """What is chosen."""
    engine_state: reactive[EngineState] = reactive(EngineState)
    """What the engine has."""

    def render(self) -> Content:
        """Return the line, cut to what the width can show."""
        width = max(1, self.content_size.width)
        parts = status_parts(self.workbench, self.engine_state, width)
        return Content.assemble(*parts).truncate(width, ellipsis=True)


def status_parts(bench: Workbench, state: EngineState, width: int) -> list[tuple[str, str]]:
    """Return the pieces of the line with their styles: speculation first, since it must never be cut off.

    Args:
        bench: what is chosen.
        state: what the engine has.
        width: of the line in cells; a longer drafter's name is cut, so that n_max is seen.
    """
    parts: list[tuple[str, str]] = [_speculation(state, width)]
    if state.failure:
        parts += [("  ", ""), (f"engine: {one_line(state.failure)}", "$text-error")]
    loaded = state.loaded
    if loaded is not None:
        before = state.loaded_for or bench
        pairs = ((loaded.target, before.target), (loaded.draft, before.draft))
        parts += [("  ", ""), (" + ".join(_name(info, chosen) for info, chosen in pairs if info is not None), "")]
        waiting = [
            one_line(chosen.name)
            for chosen, old in ((bench.target, before.target), (bench.draft, before.draft))
            if chosen is not None and chosen != old
        ]
        if waiting:
            parts += [("  ", ""), (f"{' + '.join(waiting)} chosen, not loaded", "dim")]
    elif bench.target is not None:
        parts += [("  ", ""), (f"{one_line(bench.target.name)} chosen, not loaded", "dim")]
    else:
        parts += [("  ", ""), ("no model chosen", "dim")]
    if state.busy:
        parts += [("  ", ""), (f"{state.busy} …", "$text-accent")]
    return parts


def _name(info: ModelInfo, chosen: ChosenModel | None) -> str:
    """Return what the app calls a loaded model; its file's name where it was not chosen here."""
    return one_line(Path(info.path).stem if chosen is None else chosen.name)


def _speculation(state: EngineState, width: int) -> tuple[str, str]:
    speculation = state.speculation
    if speculation is None:
        return f"speculation {DASH}", "dim"
    if speculation.is_on:
        phrase, drafter = phrase_of(speculation), one_line(speculation.drafter)
        head, _, ending = phrase.rpartition(drafter) if drafter else ("", "", phrase)
        words = Content(f"speculation ON{_for(state)} ({head}{drafter}")
        shown = words.truncate(max(20, width - len(ending) - 1), ellipsis=True).plain
        return f"{shown}{ending})", "$text-success"
    return f"speculation OFF{_for(state)} ({one_line(speculation.reason) or 'switched off'})", "$text-warning"


def _for(state: EngineState) -> str:
    """Return for which kind of text tokens are drafted as they are, where a profile has a setting for each."""
    return f" for {one_line(state.kind)}" if state.kind else ""
