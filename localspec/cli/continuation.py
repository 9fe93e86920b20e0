"""`localspec history continue` and `localspec chat --continue`: a kept chat goes on."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from localspec.catalog.found_model import FoundModel
from localspec.cli.chat import run_chat
from localspec.cli.chat_store import open_database
from localspec.cli.failures import say_notice
from localspec.cli.options import ChatChoice
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.errors import ModelFileError, SettingsError, UsageError
from localspec.methods import METHODS, needs_draft
from localspec.session.arguments import named_model
from localspec.session.chat_continuation import Continued, find_draft, find_target, hash_checks
from localspec.session.chat_record import kept_flags, merged_flags, turns_of
from localspec.session.plain_text import one_line
from localspec.settings import Flags, Settings, load_settings
from localspec.store.chats import Chats
from localspec.store.values import Record, StoredChat

NO_DRAFT = "none"

_MAX_SHOWN = 160
"""Characters of the last question and answer that are shown again."""


def run_continue(services: Services, chat_id: int | None, choice: ChatChoice, flags: Flags) -> int:
    """Go on with a chat, and return the exit code.

    Args:
        services: makes the engine, and opens the store.
        chat_id: which chat; None for the last one.
        choice: what is to be different; what is not given stays as it was.
        flags: likewise.
    """
    with ExitStack() as stack:
        chat = _kept_chat(Chats(open_database(stack, services)), chat_id)
    wanted = _flags(chat, flags)
    settings = settings_in_force(wanted)
    target = _target(chat, choice, settings)
    draft = _draft(chat, choice, settings)
    turns = turns_of(chat.messages)
    say_notice(one_line(f"chat {chat.summary.id}: {chat.summary.title} ({len(turns)} messages)"))
    for turn in turns[-2:]:
        say_notice(f"  {'you' if turn.role == 'user' else 'answer'}: {_shortened(turn.content)}")
    if chat.messages and chat.messages[-1].role == "user":
        say_notice(f"note: This question has no answer, so ask again: {_shortened(chat.messages[-1].content)}")
    elif chat.messages and chat.messages[-1].finish_reason == "incomplete":
        say_notice("note: The last answer is incomplete.")
    # A file that was named just now may well be another one.
    checks = hash_checks(chat, target if choice.target is None else None, draft if choice.draft is None else None)
    continued = Continued(chat.summary.id, target, draft, turns, checks)
    return run_chat(services, _choice(chat.models, choice, draft), wanted, continued)


def _kept_chat(chats: Chats, chat_id: int | None) -> StoredChat:
    if chat_id is None:
        last = chats.summaries(1)
        if not last:
            raise UsageError("There is no chat to go on with.", "`localspec chat TARGET` begins one.")
        chat_id = last[0].id
    return chats.get(chat_id)


def _flags(chat: StoredChat, given: Flags) -> Flags:
    wanted = merged_flags(given, kept_flags(chat.models))
    try:
        load_settings(wanted)
    except SettingsError as error:
        # If those of the command line are wrong by themselves, that is to be said, and not this.
        load_settings(given)
        say_notice(f"note: The chat's settings cannot be used any more; the usual ones are. {error.message}")
        return given
    return wanted


def _target(chat: StoredChat, choice: ChatChoice, settings: Settings) -> FoundModel:
    if choice.target is not None:
        return named_model(choice.target, settings)
    model, notes = find_target(chat, settings)
    _say_notes(notes)
    return model


def _draft(chat: StoredChat, choice: ChatChoice, settings: Settings) -> FoundModel | None:
    if choice.draft == NO_DRAFT:
        return None
    if choice.draft is not None:
        return named_model(choice.draft, settings)
    try:
        model, notes = find_draft(chat, settings)
    except ModelFileError as error:
        model, notes = None, (f"The draft of this chat cannot be used: {error.message}",)
    _say_notes(notes)
    return model


def _choice(models: Record, choice: ChatChoice, draft: FoundModel | None) -> ChatChoice:
    """Return the choice with what the chat had in place of what was not given."""
    method = choice.method
    if method is None and choice.draft in (None, NO_DRAFT):
        kept = models.get("method")
        method = kept if kept in METHODS and (draft is not None or not needs_draft((kept,))) else None
    return replace(
        choice,
        draft=None if draft is None else str(draft.path),
        method=method,
        system=_kept(choice.system, models, "system", str),
        max_tokens=_kept(choice.max_tokens, models, "max_tokens", int),
    )


def _kept(given: Any, models: Mapping[str, Any], name: str, kind: type) -> Any:
    value = models.get(name)
    return given if given is not None else value if isinstance(value, kind) else None


def _say_notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        say_notice(one_line(f"note: {note}"))


def _shortened(text: str) -> str:
    line = one_line(text[: 4 * _MAX_SHOWN])
    return line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…"
