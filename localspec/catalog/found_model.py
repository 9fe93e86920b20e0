"""A model on this machine, as far as names and sizes of files tell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from localspec.catalog.places import PlaceKind


@dataclass(frozen=True, slots=True)
class FoundModel:
    """One model, however many files it is split into. Texts are foreign: neither markup nor for a terminal as is."""

    name: str
    """What the user calls it by; unique among all that were found together."""
    path: Path
    """The file that llama.cpp is given: the first, or the first that is there."""
    shards: tuple[Path, ...]
    """All files that are there, in order."""
    place: PlaceKind
    repo: str = ""
    """`owner/name` on the Hub; empty where unknown."""
    quantisation: str = ""
    """As the file's name states it, in capitals; empty for none."""
    file_bytes: int = 0
    """All files together."""
    missing: tuple[str, ...] = ()
    """Names of files that should be there."""
    commit: str = ""
    """Of the repository; empty outside the Hugging Face cache."""
    file_name: str = ""
    """What the first file was published as, with its folders inside the repository."""
