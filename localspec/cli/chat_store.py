"""The store as chats use it."""

from __future__ import annotations

from contextlib import ExitStack

from localspec.cli.failures import say_notice
from localspec.cli.services import Services
from localspec.errors import LocalspecError
from localspec.store.chats import Chats
from localspec.store.database import Database


def open_chats(stack: ExitStack, services: Services) -> Chats | None:
    """Return the kept chats until the stack is left; if they cannot be opened, say so and return None."""
    try:
        return Chats(open_database(stack, services))
    except LocalspecError as error:
        say_notice(f"note: This chat is not kept: {error.message} {error.hint}")
        return None


def open_database(stack: ExitStack, services: Services) -> Database:
    """Return the store until the stack is left, having said what was set aside.

    Raises:
        LocalspecError: it cannot be opened.
    """
    database = stack.enter_context(services.open_database())
    stack.callback(say_loss, database)
    for notice in database.notices:
        say_notice(f"note: {notice}")
    return database


def say_loss(database: Database) -> None:
    """Say it if the file of an open database is no longer where it was."""
    if not database.is_in_place:
        say_notice(
            f"warning: {database.path} was removed or replaced meanwhile. What was written to it since is not in what "
            "lies there now."
        )
