"""`localspec chat`: a plain line-mode chat. Answers go to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import cast

from localspec.catalog.found_model import FoundModel
from localspec.cli.chat_store import open_chats
from localspec.cli.failures import EXIT_DONE, say_notice
from localspec.cli.interruption import Interruptions
from localspec.cli.options import ChatChoice
from localspec.cli.screen import notices_console, progress
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.cli.talk import Talk
from localspec.cli.talk_drafting import paced_remark
from localspec.engine.values import Method
from localspec.errors import LocalspecError, UsageError
from localspec.session.arguments import named_model
from localspec.session.arms import check_methods
from localspec.session.chat_continuation import Continued, changed_files
from localspec.settings import Flags, Settings


def run_chat(services: Services, choice: ChatChoice, flags: Flags, continued: Continued | None = None) -> int:
    """Chat until /quit or the end of the input, and return the exit code.

    Args:
        services: makes the engine, and opens the store.
        choice: whom to chat with; without a target only if a chat is continued.
        flags: settings of the command line.
        continued: an earlier chat to go on with, and its models; None for a new one.
    """
    settings = settings_in_force(flags)
    method = _first_method(choice, settings)
    if choice.is_fixed_asked and (note := paced_remark((method,), "fixed")):
        say_notice(f"note: {note}")
    if sys.stdin is None:
        raise LocalspecError("Standard input is closed.", "Chat in a terminal, or send the questions through a pipe.")
    models = _models(choice, settings, continued)
    # Each answer is one run, so that Ctrl-C cancels the answer in it and nothing else.
    with ExitStack() as stack:
        chats = open_chats(stack, services) if choice.is_kept else None
        interruptions = stack.enter_context(Interruptions(say_notice))
        if continued is not None:
            _say_changed_files(interruptions, continued)
        engine = services.make_engine()
        try:
            chat = Talk(interruptions, engine, models, choice, settings, method, chats, continued)
            chat.load()
            chat.talk()
            chat.say_kept()
        finally:
            interruptions.run(engine.close(), is_stoppable=False)
    return EXIT_DONE


def _first_method(choice: ChatChoice, settings: Settings) -> Method:
    method = cast("Method | None", choice.method)
    if method is None and "method" in settings.draft.model_fields_set:
        method = settings.draft.method
    method = method or "auto"
    check_methods((method,), choice.draft)
    return method


def _models(
    choice: ChatChoice, settings: Settings, continued: Continued | None
) -> tuple[FoundModel, FoundModel | None]:
    if continued is not None:
        return continued.target, continued.draft
    if choice.target is None:
        raise UsageError(
            "It is not said whom to chat with.", "Name a TARGET, or go on with the last chat with --continue."
        )
    draft = None if choice.draft is None else named_model(choice.draft, settings)
    return named_model(choice.target, settings), draft


def _say_changed_files(interruptions: Interruptions, continued: Continued) -> None:
    with progress(notices_console(), "comparing the files") as report:

        def on_progress(role: str, num_done: int, num_total: int) -> None:
            report(f"comparing the {role}", num_done / max(1, num_total), "")

        notes = interruptions.run(changed_files(continued.checks, on_progress))
    for note in notes:
        say_notice(f"note: {note}")
