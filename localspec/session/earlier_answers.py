"""Answers that are kept to copy drafts from: what a person should know of them, and how they go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from localspec.paths import answers_dir
from localspec.session.figures import bytes_text

CLEARING = "localspec remove --answers"
"""Command that deletes them all."""

_TOKEN_BYTES = 4


@dataclass(frozen=True, slots=True)
class KeptAnswers:
    """What lies on disk, of all vocabularies."""

    folder: Path
    num_files: int
    num_bytes: int

    @property
    def num_tokens(self) -> int:
        """About how many tokens; each takes four bytes."""
        return self.num_bytes // _TOKEN_BYTES


def kept_answers(folder: Path | None = None) -> KeptAnswers:
    """Return how much is kept; `folder` is the data folder's own by default."""
    from localspec.engine.drafting import remembered

    folder = folder or answers_dir()
    kept = remembered.kept_answers(folder)
    return KeptAnswers(folder, kept.num_files, kept.num_bytes)


def clear_answers(folder: Path | None = None) -> KeptAnswers:
    """Delete all kept answers, and return what there was.

    Raises:
        StoreError: a file cannot be deleted.
    """
    from localspec.engine.drafting import remembered

    folder = folder or answers_dir()
    kept = remembered.clear_answers(folder)
    return KeptAnswers(folder, kept.num_files, kept.num_bytes)


def remembering_notice(folder: Path | None = None) -> str:
    """Return what is kept, where, how much it is now, and how to delete it."""
    from localspec.engine.drafting.remembered import WHAT_IS_KEPT

    kept = kept_answers(folder)
    now = f"{kept.num_tokens} tokens ({bytes_text(kept.num_bytes)})" if kept.num_bytes else "nothing"
    return (
        f"Answers are kept on this machine, to copy drafts from. {WHAT_IS_KEPT} {now[0].upper()}{now[1:]} so far, in "
        f"{kept.folder}; `{CLEARING}` deletes it."
    )
