"""The queue of downloads, and what earlier ones left behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from localspec.session.figures import DASH, bytes_text, duration_text
from localspec.session.plain_text import one_line
from localspec.tui.download_queue import Transfer, TransferStatus

if TYPE_CHECKING:
    from localspec.catalog.hub.partials import Partial

_WORDS: dict[TransferStatus, tuple[str, str]] = {
    "queued": ("· waiting", "dim"),
    "running": ("▶ fetching", "$text-accent"),
    "paused": ("‖ paused", "$text-warning"),
    "done": ("✓ here", "$text-success"),
    "failed": ("! failed", "$text-error"),
}
_BAR_WIDTH = 14


class ModelsDownloads(OptionList):
    """Two lines for each download: what it is, and how far it is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p,space", "act('toggle')", "Pause", id="downloads.pause", tooltip="Pause it, or go on with it"),
        Binding("x,delete", "act('cancel')", "Cancel", id="downloads.cancel", tooltip="Take it out of the queue"),
        Binding("c", "act('clear')", "Clear", id="downloads.clear", tooltip="Forget those that are done"),
    ]

    class Asked(Message):
        """Something is to be done with an item: `toggle`, `cancel` or `clear`."""

        def __init__(self, what: str, item: Transfer | Partial) -> None:
            """Take the wish and the item."""
            super().__init__()
            self.what = what
            self.item = item

    def __init__(self, id: str) -> None:  # noqa: A002
        """Make an empty list."""
        super().__init__(id=id)
        self._items: tuple[Transfer | Partial, ...] = ()

    @property
    def current(self) -> Transfer | Partial | None:
        """The item under the cursor."""
        place = self.highlighted
        return self._items[place] if place is not None and place < len(self._items) else None

    def show(self, transfers: Sequence[Transfer], partials: Sequence[Partial]) -> None:
        """Show the queue, then what is left of other downloads."""
        items: tuple[Transfer | Partial, ...] = (*transfers, *partials)
        prompts = [_transfer(item) if isinstance(item, Transfer) else _partial(item) for item in items]
        is_same = [_key(item) for item in items] == [_key(item) for item in self._items]
        if is_same:
            for index, (old, new) in enumerate(zip(self._items, items, strict=True)):
                if old != new:
                    self.replace_option_prompt_at_index(index, prompts[index])
        else:
            place = self.highlighted
            self.set_options(Option(prompt) for prompt in prompts)
            if items:
                self.highlighted = min(place or 0, len(items) - 1)
        self._items = items

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter pauses, or goes on."""
        event.stop()
        self.action_act("toggle")

    def action_act(self, what: str) -> None:
        """Say what is to be done with the item under the cursor."""
        if (item := self.current) is not None:
            self.post_message(self.Asked(what, item))


def _key(item: Transfer | Partial) -> object:
    return item.key if isinstance(item, Transfer) else item.file


def _transfer(item: Transfer) -> Content:
    word, colour = _WORDS[item.status]
    progress = item.progress
    if item.status == "running" and progress is not None and progress.state in ("waiting", "checking"):
        word = {"waiting": "… waiting for the Hub", "checking": "… checking what is here"}[progress.state]
    head = Content.assemble((word, colour), "  ", (one_line(item.label), "bold"))
    if item.failure:
        hint = f" {item.hint}" if item.hint else ""
        return Content("\n").join([head, Content.styled(one_line(f"{item.failure}{hint}"), "dim")])
    done = 0 if progress is None else progress.all_done_bytes
    total = item.offer.size_bytes if progress is None else progress.all_total_bytes
    if item.status == "done":
        return Content("\n").join([head, Content.styled(bytes_text(total or None), "dim")])
    parts = [_bar(done, total), f"{bytes_text(done)} of {bytes_text(total or None)}"]
    if item.status == "running" and progress is not None:
        parts.append(f"{bytes_text(int(progress.speed))}/s" if progress.speed is not None else f"{DASH} /s")
        parts.append(f"{duration_text(progress.eta_s)} left")
        if progress.num_files > 1:
            parts.append(f"file {progress.index + 1} of {progress.num_files}")
    return Content("\n").join([head, Content("  ".join(parts))])


def _partial(item: Partial) -> Content:
    head = Content.assemble(
        ("‖ broken off", "$text-warning"), "  ", (one_line(f"{item.repo} {item.path or item.file.name}"), "bold")
    )
    if not item.is_ours:
        text = f"{bytes_text(item.have_bytes)}, left by another program: of no more use"
    elif item.size_bytes is None:
        text = f"{bytes_text(item.have_bytes)}; of what is not known"
    else:
        text = f"{_bar(item.have_bytes, item.size_bytes)}  {bytes_text(item.have_bytes)} of "
        text += f"{bytes_text(item.size_bytes)}  p goes on with it"
    return Content("\n").join([head, Content(text)])


def _bar(done: int, total: int) -> str:
    fraction = min(1.0, done / total) if total else 0.0
    filled = round(fraction * _BAR_WIDTH)
    return f"{'━' * filled}{'╌' * (_BAR_WIDTH - filled)} {fraction:4.0%}"
