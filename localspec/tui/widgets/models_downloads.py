"""The queue of downloads, and what earlier ones left behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from localspec.session.figures import DASH, bytes_text, duration_text, percent_text
from localspec.session.plain_text import one_line
from localspec.tui.download_queue import Transfer, TransferStatus
from localspec.tui.keyed import keyed

if TYPE_CHECKING:
    from localspec.catalog.hub.partials import Partial
    from localspec.catalog.progress import TransferProgress

_WORDS: dict[TransferStatus, tuple[str, str]] = {
    "queued": ("· waiting", "dim"),
    "running": ("▶ fetching", "$text-accent"),
    "paused": ("‖ paused", "$text-warning"),
    "done": ("✓ here", "$text-success"),
    "failed": ("! failed", "$text-error"),
}
_BAR_WIDTH = 10
_MAX_FILES = 4
"""With more of them in one download there is a bar only for the one that comes."""

_SHARD = re.compile(r"-(\d{1,9})-of-(\d{1,9})\.gguf$")


class ModelsDownloads(OptionList):
    """For each download what it is and how far it is, and so for each of its files."""

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
        running = next((i for i, item in enumerate(transfers) if item.status == "running"), None)
        if running is not None and not self.has_focus:
            # Where there is room for one it is the one that moves.
            self.highlighted = running

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
    total = item.offer.size_bytes if progress is None else progress.all_total_bytes
    if item.status == "done" or progress is None:
        return head + Content.styled(f"  {bytes_text(total or None)}", "dim")
    done = progress.all_done_bytes
    parts = [_bar(done, total), _share(done, total)]
    if item.status == "running":
        parts.append(f"{bytes_text(int(progress.speed))}/s" if progress.speed is not None else f"{DASH} /s")
        parts.append(f"{duration_text(progress.eta_s)} left")
    if progress.num_files > 1:
        parts.append(f"file {progress.index + 1} of {progress.num_files}")
    return Content("\n").join([head, Content("  ".join(parts)), *_files(progress)])


def _files(progress: TransferProgress) -> list[Content]:
    """Return a bar for each file, or for the one whose turn it is where there are many."""
    files = progress.files
    if len(files) < 2:
        return []
    if len(files) > _MAX_FILES:
        files = files[progress.index : progress.index + 1]
    return [
        Content.styled(
            f"  {_bar(file.done_bytes, file.total_bytes)}  {bytes_text(file.total_bytes or None)}  "
            + one_line(file_title(file.name)),
            "dim" if file.done_bytes in (0, file.total_bytes) else "",
        )
        for file in files
    ]


def file_title(path: str) -> str:
    """Return what tells a file from the others of its model: of a shard its number."""
    shard = _SHARD.search(path)
    return f"part {int(shard[1])} of {int(shard[2])}" if shard else path.rpartition("/")[2]


def _partial(item: Partial) -> Content:
    head = Content.assemble(
        ("‖ broken off", "$text-warning"), "  ", (one_line(f"{item.repo} {item.path or item.file.name}"), "bold")
    )
    if not item.is_ours:
        text = f"{bytes_text(item.have_bytes)}, left by another program: of no more use"
    elif item.size_bytes is None:
        text = f"{bytes_text(item.have_bytes)}; of what is not known"
    else:
        text = f"{_bar(item.have_bytes, item.size_bytes)}  {_share(item.have_bytes, item.size_bytes)}  "
        text += keyed("{downloads.pause} goes on with it")
    return Content("\n").join([head, Content(text)])


def _share(done: int, total: int) -> str:
    """Return how much of how much, with the unit once where it is the same."""
    one, other = bytes_text(done), bytes_text(total or None)
    number, _, unit = one.rpartition(" ")
    return f"{number if other.endswith(f' {unit}') else one} of {other}"


def _bar(done: int, total: int) -> str:
    fraction = min(1.0, done / total) if total else 0.0
    filled = round(fraction * _BAR_WIDTH)
    return f"{'━' * filled}{'╌' * (_BAR_WIDTH - filled)} {percent_text(fraction):>5}"
