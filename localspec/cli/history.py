"""`localspec history`: the chats that are kept."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from localspec.cli.chat_file import check_output, put_out
from localspec.cli.chat_lines import kept_line, moment_text
from localspec.cli.chat_markdown import SCHEMA, chat_markdown, chat_record, model_names
from localspec.cli.chat_store import open_database
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, say_notice
from localspec.cli.screen import DASH, fits, print_table, results_console, say, table
from localspec.cli.services import Services
from localspec.errors import UsageError
from localspec.session.chat_record import tidy_title
from localspec.session.plain_text import one_line, printable
from localspec.session.records import encode_record
from localspec.store.chats import Chats
from localspec.store.values import ChatSummary, StoredChat


def run_list(services: Services, limit: int, is_json: bool) -> int:
    """List the chats, and return the exit code. So for all commands here."""
    with ExitStack() as stack:
        chats = Chats(open_database(stack, services))
        summaries, num_chats = chats.summaries(limit), chats.count()
    console = results_console(is_json)
    if summaries:
        print_table(console, _fitting_grid(console, summaries))
    else:
        say(console, "No chats are kept yet. `localspec chat TARGET` begins one.")
    if num_chats > len(summaries):
        say(console, f"{num_chats - len(summaries)} older; --limit {num_chats} shows all.", style="dim")
    if is_json:
        chats_record = [asdict(summary) for summary in summaries]
        print(encode_record({"schema": SCHEMA, "num_chats": num_chats, "chats": chats_record}))
    return EXIT_DONE


def run_search(services: Services, words: str, limit: int, is_json: bool) -> int:
    """Find chats by words."""
    if not words.strip():
        raise UsageError("There are no words to look for.", "Type some: localspec history search WORDS")
    with ExitStack() as stack:
        hits = Chats(open_database(stack, services)).search(words, limit)
    console = results_console(is_json)
    for hit in hits:
        say(console, _summary_line(hit.summary), style="bold")
        if hit.snippet:
            more = f" ({hit.num_found} messages)" if hit.num_found > 1 else ""
            say(console, one_line(hit.snippet) + more, indent=4)
    if not hits:
        say(console, one_line(f"No chat holds {words:.200}."))
    if is_json:
        record = [
            {"chat": asdict(hit.summary), "num_found": hit.num_found, "snippet": hit.snippet or None} for hit in hits
        ]
        print(encode_record({"schema": SCHEMA, "words": words, "hits": record}))
    return EXIT_DONE if hits else EXIT_FAILED


def run_show(services: Services, chat_id: int | str, is_json: bool) -> int:
    """Show a chat."""
    with ExitStack() as stack:
        chat = _chosen(Chats(open_database(stack, services)), chat_id)
    console = results_console(is_json)
    target, draft = model_names(chat)
    say(console, f"chat {chat.summary.id}: {_title(chat.summary)}", style="bold")
    say(console, f"target {target or DASH}" + (f", draft {draft}" if draft else ""), style="dim")
    say(console, f"from {moment_text(chat.summary.created_at)} to {moment_text(chat.summary.updated_at)}", style="dim")
    system = chat.models.get("system")
    if isinstance(system, str) and system:
        _say_message(console, "system", system, "")
    for message in chat.messages:
        speaker = {"user": "question", "assistant": "answer"}.get(message.role, "system")
        _say_message(console, speaker, message.content, kept_line(message) if speaker == "answer" else "")
    if is_json:
        print(encode_record(chat_record(chat)))
    return EXIT_DONE


def run_export(
    services: Services, chat_id: int | str, is_markdown: bool | None, file: Path | None, is_forced: bool
) -> int:
    """Write a chat to a file or to stdout."""
    check_output(file, is_forced)
    with ExitStack() as stack:
        chat = _chosen(Chats(open_database(stack, services)), chat_id)
    if is_markdown is None:
        is_markdown = file is None or file.suffix.lower() != ".json"
    text = chat_markdown(chat) if is_markdown else encode_record(chat_record(chat)) + "\n"
    put_out(file, text, is_forced)
    return EXIT_DONE


def run_delete(services: Services, chat_ids: Sequence[int | str], is_sure: bool) -> int:
    """Say what goes, ask, and delete it."""
    with ExitStack() as stack:
        chats = Chats(open_database(stack, services))
        wanted = [chats.get(chat_id).summary for chat_id in dict.fromkeys(_number(chats, one) for one in chat_ids)]
        console = results_console()
        for summary in wanted:
            say(console, _summary_line(summary))
        if not is_sure and not _is_confirmed():
            say_notice("Nothing was deleted.")
            return EXIT_FAILED
        for summary in wanted:
            chats.delete(summary.id)
    say(results_console(), "1 chat deleted." if len(wanted) == 1 else f"{len(wanted)} chats deleted.")
    return EXIT_DONE


def run_rename(services: Services, chat_id: int | str, title: str) -> int:
    """Give a chat another title."""
    tidy = tidy_title(title)
    if not tidy:
        raise UsageError("A title needs a word.", "Type one: localspec history rename N TITLE")
    with ExitStack() as stack:
        chats = Chats(open_database(stack, services))
        number = _number(chats, chat_id)
        chats.rename(number, tidy)
    say(results_console(), f"Chat {number} is called {one_line(tidy)}.")
    return EXIT_DONE


def _chosen(chats: Chats, chat_id: int | str) -> StoredChat:
    return chats.get(_number(chats, chat_id))


def _number(chats: Chats, chat_id: int | str) -> int:
    """Return a chat's number: a text stands for the chat that was last used."""
    if isinstance(chat_id, int):
        return chat_id
    newest = chats.summaries(1)
    if not newest:
        raise UsageError("No chats are kept yet.", "`localspec chat TARGET` begins one.")
    return newest[0].id


def _is_confirmed() -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("There is nobody to ask whether that may go.", "Add --yes.")
    return click.confirm("Delete?", default=False, err=True)


def _say_message(console: Console, speaker: str, content: str, figures: str) -> None:
    console.print()
    say(console, speaker, style="bold")
    say(console, printable(content).rstrip(), indent=2)
    if figures:
        say(console, figures, style="dim", indent=2)


def _title(summary: ChatSummary) -> str:
    return one_line(summary.title) or DASH


def _summary_line(summary: ChatSummary) -> str:
    num = summary.num_messages
    messages = "1 message" if num == 1 else f"{num} messages"
    return f"chat {summary.id}: {_title(summary)} ({messages}, {moment_text(summary.updated_at)})"


def _fitting_grid(console: Console, summaries: Sequence[ChatSummary]) -> Table:
    """Return the table without the target where it would not fit."""
    whole = _grid(summaries, has_target=True)
    return whole if fits(console, whole) else _grid(summaries, has_target=False)


def _grid(summaries: Sequence[ChatSummary], has_target: bool) -> Table:
    grid = table("Chat", "Title", "Messages", "Last used", *(["Target"] if has_target else []))
    for index, column in enumerate(grid.columns):
        column.justify = "right" if index in (0, 2) else "left"
        column.no_wrap = index in (0, 2, 3)
    for summary in summaries:
        cells = [str(summary.id), _title(summary), str(summary.num_messages), moment_text(summary.updated_at)]
        grid.add_row(*cells, *([one_line(summary.target_name) or DASH] if has_target else []))
    return grid
