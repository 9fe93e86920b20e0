"""What a memory is taken by, and a bar of letters for it, which needs no colours to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localspec.planning.devices import PlanDevice
    from localspec.planning.plan import PlanRow

LEGEND = (
    ("T", "target weights"),
    ("d", "draft weights"),
    ("K", "target KV and state"),
    ("k", "draft KV and state"),
    ("c", "compute and output"),
    ("x", "used by others"),
    ("=", "kept free"),
    (".", "free"),
)
"""What the characters of a bar stand for, in their order."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a bar."""

    character: str
    size_bytes: int


def parts_of(device: PlanDevice, rows: Sequence[PlanRow], sharing: Sequence[str] = ()) -> tuple[Part, ...]:
    """Return what a device's memory is taken by, in the legend's order.

    Args:
        device: whose memory it is.
        rows: of the whole plan.
        sharing: devices whose memory is this one's, and counts here too.
    """
    here = [row for row in rows if row.device == device.name or row.device in sharing]
    sizes = dict.fromkeys((character for character, _ in LEGEND), 0)
    for row in here:
        weights, cache = ("T", "K") if row.model == "target" else ("d", "k")
        sizes[weights] += row.weights_bytes
        sizes[cache] += row.kv_bytes + row.recurrent_bytes
        sizes["c"] += row.compute_bytes + row.output_bytes
    taken = sum(sizes.values())
    sizes["x"] = max(0, device.total_bytes - device.free_bytes)
    sizes["="] = min(device.reserve_bytes, device.free_bytes)
    sizes["."] = max(0, device.free_bytes - sizes["="] - taken)
    return tuple(Part(character, size) for character, size in sizes.items())


def bar(parts: Sequence[Part], width: int) -> str:
    """Return a bar of exactly `width` characters. Every part that is not empty has at least one, while there is room.

    Where the parts are more than the device has, the bar shows their shares of one another.
    """
    filled = [part for part in parts if part.size_bytes > 0]
    total = sum(part.size_bytes for part in filled)
    if not total:
        return "." * width
    lengths = [max(1, part.size_bytes * width // total) for part in filled]
    # What rounding has left over, or taken too much, goes to the largest part.
    while (spare := width - sum(lengths)) != 0:
        largest = max(range(len(lengths)), key=lengths.__getitem__)
        change = spare if spare > 0 or lengths[largest] + spare >= 1 else 1 - lengths[largest]
        if change == 0:
            break
        lengths[largest] += change
    return "".join(part.character * length for part, length in zip(filled, lengths, strict=True))[:width]


def limit_mark(limit_bytes: int, total_bytes: int, words: str, width: int) -> str:
    """Return the line below a bar that marks a limit inside it, with words beside the mark."""
    place = min(width, round(width * limit_bytes / total_bytes)) if total_bytes else 0
    behind = f"{' ' * place}^ {words}"
    return behind if len(behind) <= width + 2 else f"{words} ^".rjust(place + 1)


def legend(characters: str) -> str:
    """Return what the characters of some bars mean; those that are in none are left out."""
    return "  ".join(f"{character} {words}" for character, words in LEGEND if character in characters)
