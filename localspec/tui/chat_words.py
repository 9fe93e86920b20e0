"""What the chat screen says of what is going on, and what it makes of a kept chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localspec.session.answer_line import kept_figures
from localspec.session.drafting_text import resting_phrase
from localspec.session.figures import speed_text
from localspec.session.plain_text import one_line
from localspec.tui.chat_fold import ChatTurn
from localspec.tui.keyed import keyed
from localspec.tui.state import EngineState, Workbench
from localspec.tui.widgets.chat_activity import Activity

if TYPE_CHECKING:
    from localspec.engine.events import LoadProgress
    from localspec.metrics.live import LiveFigures
    from localspec.store.values import StoredChat


def stoppable(text: str, fraction: float | None = None) -> Activity:
    """Return what is going on, with the key that stops it."""
    return Activity(text, "work", fraction, keyed("{chat.stop} stops"))


def idle_activity(bench: Workbench, state: EngineState, is_editing: bool) -> Activity:
    """Return what to say while nothing goes on here: a failure before all."""
    if state.failure and state.loaded is None:
        return Activity(one_line(state.failure), "failure", key=keyed("{chat.load} loads again"))
    if state.busy:
        return Activity(f"the engine is {state.busy} for another screen", "work")
    if is_editing:
        return Activity("editing the last question", key=keyed("{chat.stop} leaves it as it was"))
    if bench.target is not None and state.loaded is None:
        return Activity("loaded with the first question", key=keyed("{chat.load} loads now"))
    return Activity()


def loading_activity(event: LoadProgress) -> Activity:
    """Return how far loading is."""
    return stoppable(f"loading the {event.model}", event.fraction)


def preparing_activity() -> Activity:
    """Return what is said from the end of loading until the prompt is read: it is rendered, and split into tokens."""
    return stoppable("preparing the prompt")


def work_activity(live: LiveFigures) -> Activity:
    """Return how far an answer is: first its prompt, then its text."""
    stats = live.stats
    if stats.num_tokens:
        text = f"answering, {stats.num_tokens} tokens"
        if live.now_tps is not None:
            text += f", {speed_text(live.now_tps)} now"
        if resting := resting_phrase(stats.pacing):
            text += f"; {resting}"
        return stoppable(text)
    if live.num_prompt:
        fraction = live.num_read / live.num_prompt
        return stoppable(f"reading the prompt, {live.num_prompt} tokens", fraction)
    return preparing_activity()


def welcome_text(bench: Workbench, state: EngineState) -> str:
    """Return what an empty chat says."""
    if bench.target is None:
        return keyed("No model is chosen yet.\n\n{mode.models} chooses one, {chat.list} goes on with an earlier chat.")
    name = one_line(bench.target.name)
    draft = "" if bench.draft is None else f"\nwith {one_line(bench.draft.name)} as draft"
    later = keyed("It is loaded with your first question; {chat.load} loads it now.")
    line = "Ask something." if state.loaded is not None else later
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
