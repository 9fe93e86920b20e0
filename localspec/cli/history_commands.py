"""The commands on chats that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from localspec.cli import drafting_options, options
from localspec.cli.chat_command import CHAT_OPTIONS, chat, chat_choice, chat_flags, check_keeping
from localspec.cli.completion import complete_model
from localspec.cli.services import Services

LAST = "last"
"""Word for the chat that was last used."""

_LIMIT = click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Most chats listed."
)


class _Chat(click.ParamType):  # type: ignore[type-arg]
    """A chat's number, or `last`."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return the number, or LAST."""
        if isinstance(value, int) or value.casefold() == LAST:
            return LAST if isinstance(value, str) else value
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r:.80} is no chat: give a number that `localspec history` shows, or last.", param, ctx)


_NUMBER = click.argument("chat_id", type=_Chat(), metavar="N")
_EPILOG = "N is a number that `localspec history` shows, or `last` for the chat last used."


@click.group(invoke_without_command=True)
@_LIMIT
@options.as_json
@click.pass_context
def history(context: click.Context, limit: int, is_json: bool) -> int | None:
    """List, search, show, continue, export and delete chats.

    Without a command the chats are listed, the last one first.
    """
    if context.invoked_subcommand is not None:
        return None
    from localspec.cli.history import run_list

    return run_list(context.obj, limit, is_json)


@history.command("list")
@_LIMIT
@options.as_json
@click.pass_obj
def history_list(services: Services, limit: int, is_json: bool) -> int:
    """List the chats, the last one first."""
    from localspec.cli.history import run_list

    return run_list(services, limit, is_json)


@history.command("search", short_help="Find chats by words.")
@click.argument("words", nargs=-1, required=True, metavar="WORDS...")
@_LIMIT
@options.as_json
@click.pass_obj
def history_search(services: Services, words: tuple[str, ...], limit: int, is_json: bool) -> int:
    """Find the chats with a message that holds all WORDS, or words that begin so."""
    from localspec.cli.history import run_search

    return run_search(services, " ".join(words), limit, is_json)


@history.command("show", epilog=_EPILOG)
@_NUMBER
@options.as_json
@click.pass_obj
def history_show(services: Services, chat_id: int | str, is_json: bool) -> int:
    """Show chat N with the figures of its answers."""
    from localspec.cli.history import run_show

    return run_show(services, chat_id, is_json)


@history.command(
    "continue",
    epilog=f"{drafting_options.METHODS_EPILOG}\n\n{_EPILOG} Options that are not given are as it was last used with.",
)
@_NUMBER
@click.option(
    "--target",
    metavar="MODEL",
    shell_complete=complete_model,
    help="Go on with another model. Likewise --draft; `--draft none` goes on without one.",
)
@CHAT_OPTIONS
@click.pass_obj
def history_continue(services: Services, /, chat_id: int | str, **given: Any) -> int:
    """Go on with chat N, with the same models."""
    check_keeping(given)
    from localspec.cli.continuation import run_continue

    return run_continue(services, None if isinstance(chat_id, str) else chat_id, chat_choice(given), chat_flags(given))


@history.command("export", epilog=_EPILOG)
@_NUMBER
@click.option(
    "--markdown/--json",
    "is_markdown",
    default=None,
    help="Which form. Default: JSON for a FILE that ends in .json, otherwise Markdown. JSON carries all figures.",
)
@click.option(
    "-o", "--output", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE, not to stdout."
)
@click.option("--force", "is_forced", is_flag=True, help="Write over a FILE that is there already.")
@click.pass_obj
def history_export(
    services: Services, chat_id: int | str, is_markdown: bool | None, file: Path | None, is_forced: bool
) -> int:
    """Write chat N as Markdown or JSON."""
    from localspec.cli.history import run_export

    return run_export(services, chat_id, is_markdown, file, is_forced)


@history.command("delete", epilog=_EPILOG)
@click.argument("chat_ids", nargs=-1, required=True, type=_Chat(), metavar="N...")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.pass_obj
def history_delete(services: Services, chat_ids: tuple[int | str, ...], is_sure: bool) -> int:
    """Delete chats for good."""
    from localspec.cli.history import run_delete

    return run_delete(services, chat_ids, is_sure)


@history.command("rename", epilog=_EPILOG)
@_NUMBER
@click.argument("words", nargs=-1, required=True, metavar="TITLE")
@click.pass_obj
def history_rename(services: Services, chat_id: int | str, words: tuple[str, ...]) -> int:
    """Give chat N another TITLE."""
    from localspec.cli.history import run_rename

    return run_rename(services, chat_id, " ".join(words))


COMMANDS: tuple[click.Command, ...] = (chat, history)
