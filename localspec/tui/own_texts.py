"""The user's own chats as what is measured, beside the workloads that come with localspec."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localspec.catalog.workloads import Workload
    from localspec.engine.values import ContextSettings
    from localspec.tui.services import AppServices


def texts_words(workloads: tuple[str, ...], is_own: bool) -> str:
    """Return what is generated from, in a few words."""
    return ", ".join((*workloads, *(("my chats",) if is_own else ())))


def read_own_texts(services: AppServices, context: ContextSettings, max_tokens: int) -> tuple[Workload, ...]:
    """Return a workload for each kind of text of which the kept chats hold enough. Blocks.

    Args:
        services: open the database.
        context: that the prompts are to fit into.
        max_tokens: of an answer.

    Raises:
        UsageError: there are too few.
        StoreError: the chats cannot be read.
    """
    from localspec.session.my_chats import find_prompts, own_workloads
    from localspec.store.chats import Chats

    with services.open_database() as database:
        return own_workloads(find_prompts(Chats(database), context, max_tokens))
