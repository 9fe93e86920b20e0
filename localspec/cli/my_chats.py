"""The option --my-chats: the user's own prompts as what is measured."""

from __future__ import annotations

from rich.console import Console

from localspec.catalog.workloads import Workload
from localspec.cli.failures import say_notice
from localspec.cli.profile import opened
from localspec.cli.screen import say
from localspec.cli.services import Services
from localspec.engine.values import ContextSettings
from localspec.session.kind_outcome import outcome_line, outcome_record, outcomes_of
from localspec.session.my_chats import find_prompts, found_lines, own_workloads
from localspec.session.plain_text import one_line
from localspec.store.chats import Chats
from localspec.store.values import Record


def own_texts(services: Services, context: ContextSettings, max_tokens: int) -> tuple[Workload, ...]:
    """Return the kept chats' prompts as workloads, after saying on stderr how many of each kind there are.

    Raises:
        UsageError: there are too few.
        StoreError: the chats cannot be read.
    """
    with opened(services) as database:
        found = find_prompts(Chats(database), context, max_tokens)
    workloads = own_workloads(found)
    for line in found_lines(found, workloads):
        say_notice(line)
    return workloads


def show_by_kind(document: Record, console: Console) -> Record:
    """Print what drafting does for each kind of own text in a run, and return what the JSON holds of that."""
    outcomes = outcomes_of(document)
    if not outcomes:
        return {}
    console.print()
    say(console, one_line(outcome_line(outcomes)))
    return {"by_kind": outcome_record(outcomes)}


def conclude_by_kind(document: Record, console: Console) -> Record:
    """Do as show_by_kind, and print what to do with it."""
    more = show_by_kind(document, console)
    if document.get("run_id") is not None and any(item["pays"] for item in more.get("by_kind", {}).values()):
        say(console, "To chat with the best setting for each kind: localspec profile save NAME, then --profile NAME.")
    return more
