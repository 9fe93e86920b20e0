"""What the Hub says, as values. All texts are foreign: neither markup nor paths."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from localspec.errors import UsageError

OfferKind = Literal["model", "eagle3", "dflash", "dspark", "mtp"]
"""What a GGUF of a repository is, as far as its name tells."""

_REFERENCE = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?::(?P<quantisation>[\w.-]+))?(?:@(?P<revision>[\w./-]+))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class RepoReference:
    """`OWNER/NAME[:QUANT][@REVISION]` as a person types it."""

    repo: str
    quantisation: str = ""
    """Empty: not stated."""
    revision: str = "main"

    def __str__(self) -> str:
        quantisation = f":{self.quantisation}" if self.quantisation else ""
        return f"{self.repo}{quantisation}" + ("" if self.revision == "main" else f"@{self.revision}")


def parse_reference(text: str) -> RepoReference:
    """Return what a REPO[:QUANT] means.

    Raises:
        UsageError: it is not of that form.
    """
    match = _REFERENCE.fullmatch(text)
    if match is None or ".." in text or "--" in match["repo"]:
        raise UsageError(
            f"{text!r} is no repository on the Hub.",
            "Write OWNER/NAME or OWNER/NAME:QUANT, as in bartowski/SmolLM2-135M-Instruct-GGUF:Q4_K_M.",
        )
    return RepoReference(match["repo"], match["quantisation"] or "", match["revision"] or "main")


@dataclass(frozen=True, slots=True)
class RepoFile:
    """A file of a repository."""

    path: str
    """Inside the repository, with forward slashes; checked to stay inside."""
    size_bytes: int
    """0: empty, or the Hub does not say."""
    sha256: str
    """In hexadecimal; empty where the Hub gives none (small files that are not in large-file storage)."""


@dataclass(frozen=True, slots=True)
class RepoListing:
    """A repository at one commit."""

    repo: str
    revision: str
    """What was asked for, such as `main`."""
    commit: str
    """40 hexadecimal digits."""
    files: tuple[RepoFile, ...]
    base_models: tuple[str, ...]
    """`owner/name` of each model that it was made from, by the repository's tags or card."""
    licence: str
    is_gated: bool
    downloads: int
    tags: tuple[str, ...] = ()
    num_unsafe: int = 0
    """Files that are left out because their names might lead out of a folder, or cannot be written everywhere."""
    num_surplus: int = 0
    """Files that are left out because there are too many."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing to download from a repository: a quantisation, whole, or a draft-only file."""

    quantisation: str
    """As the file names say it, such as `Q4_K_M`; where they say none, the name without `.gguf`."""
    kind: OfferKind
    files: tuple[RepoFile, ...]
    """In order; several if it is split."""

    @property
    def size_bytes(self) -> int:
        """All files together."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class RepoHit:
    """One answer of a search."""

    repo: str
    downloads: int
    likes: int
    is_gated: bool
    base_models: tuple[str, ...]
    architecture: str
    num_params: int
    """0: the Hub does not say."""
    last_modified: str
    """A date, or empty."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """Where a file's bytes are to be had. Made by the Hub's answer; the address may hold a signature: never shown."""

    repo: str
    commit: str
    path: str
    url: str = field(repr=False)
    etag: str
    """Names the content: 64 hexadecimal digits of SHA-256 or 40 of a git blob. Checked, so safe as a file name."""
    size_bytes: int
    sends_token: bool
    """Whether the address is the Hub's own, so that the user's token may go there."""
