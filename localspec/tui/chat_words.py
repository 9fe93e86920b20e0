"""What the chat screen says of what is going on, and what it makes of a kept chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localspec.session.answer_line import kept_figures
from localspec.session.drafting_text import resting_phrase
from localspec.session.figures import speed_text
from localspec.session.plain_text import one_line
from localspec.tui.chat_fold import ChatTurn
from localspec.tui.state import EngineState, Workbench
from localspec.tui.widgets.chat_activity import Activity

if TYPE_CHECKING:
    from localspec.engine.events import LoadProgress
    from localspec.metrics.live import LiveFigures
    from localspec.store.values import StoredChat

STOP_KEY = "esc stops"

PREPARING = Activity("preparing the prompt", "work", key=STOP_KEY)
"""From the end of loading until the prompt is read: its template is rendered, and split into tokens."""


def idle_activity(bench: Workbench, state: EngineState, is_editing: bool) -> Activity:
    """Return what to say while nothing goes on here: a failure before all."""
    if state.failure and state.loaded is None:
        return Activity(one_line(state.failure), "failure", key="ctrl+k loads again")
    if state.busy:
        return Activity(f"the engine is {state.busy} for another screen", "work")
    if is_editing:
        return Activity("editing the last question", key="esc leaves it as it was")
    if bench.target is not None and state.loaded is None:
        return Activity("loaded with the first question", key="ctrl+k loads now")
    return Activity()


def loading_activity(event: LoadProgress) -> Activity:
    """Return how far loading is."""
    return Activity(f"loading the {event.model}", "work", event.fraction, STOP_KEY)


def work_activity(live: LiveFigures) -> Activity:
    """Return how far an answer is: first its prompt, then its text."""
    stats = live.stats
    if stats.num_tokens:
        text = f"answering, {stats.num_tokens} tokens"
        if live.now_tps is not None:
            text += f", {speed_text(live.now_tps)}"
        if resting := resting_phrase(stats.pacing):
            text += f"; {resting}"
        return Activity(text, "work", key=STOP_KEY)
    if live.num_prompt:
        fraction = live.num_read / live.num_prompt
        return Activity(f"reading the prompt, {live.num_prompt} tokens", "work", fraction, STOP_KEY)
    return PREPARING


def welcome_text(bench: Workbench, state: EngineState) -> str:
    """Return what an empty chat says."""
    if bench.target is None:
        return "No model is chosen yet.\n\nF2 chooses one, ctrl+o goes on with an earlier chat."
    name = one_line(bench.target.name)
    draft = "" if bench.draft is None else f"\nwith {one_line(bench.draft.name)} as draft"
    line = (
        "Ask something." if state.loaded is not None else "It is loaded with your first question; ctrl+k loads it now."
    )
    return f"{name}{draft}\n\n{line}"


def turns_from(chat: StoredChat) -> tuple[ChatTurn, ...]:
    """Return the questions of a kept chat that were answered, with their answers."""
    turns: list[ChatTurn] = []
    question: str | None = None
    for message in chat.messages:
        if message.role == "user":
            question = message.content
        elif message.role == "assistant" and question is not None and message.content:
            turns.append(ChatTurn(question, message.content, kept_figures(message)))
            question = None
    return tuple(turns)
