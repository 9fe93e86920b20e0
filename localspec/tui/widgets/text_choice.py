"""The list of what can be generated from: workloads, and the user's own chats."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from textual.widgets.selection_list import Selection

from localspec.catalog.workloads import Workload
from localspec.tui.plain import plain_line
from localspec.tui.widgets.choice_marks import MarkedList

_OWN = "own"


class TextChoice(MarkedList[str]):
    """Any of them."""

    def __init__(self, workloads: Sequence[Workload], chosen: Collection[str], is_own: bool) -> None:
        """Take all workloads, the names of the chosen ones, and whether the user's chats are chosen."""
        super().__init__(
            *(
                Selection(plain_line(f"{workload.title} ({workload.name})"), workload.name, workload.name in chosen)
                for workload in workloads
            ),
            Selection("my own chats, by kind", _OWN, is_own),
            id="texts",
        )
        self._names = tuple(workload.name for workload in workloads)

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of the chosen ones, in the order of the list."""
        return tuple(name for name in self._names if name in self.selected)

    @property
    def is_own(self) -> bool:
        """Whether the user's chats are chosen."""
        return _OWN in self.selected
