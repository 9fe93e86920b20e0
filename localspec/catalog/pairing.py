"""Whether one model can draft for another: llama.cpp's own rule, made explicit and put into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from localspec.catalog.header import GgufHeader

PairStatus = Literal["PAIR", "PAIR_WITH_NOTE", "NO_PAIR", "UNKNOWN"]

PairMethod = Literal["draft", "eagle3", "dflash", "dspark", "mtp"]
"""How the second file drafts: as a model of its own, or as a head that reads the target's hidden states."""


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """Whether a draft goes with a target, and why."""

    status: PairStatus
    reason: str
    """NO_PAIR: the first difference in words. UNKNOWN: why it cannot be said. Otherwise empty."""
    notes: tuple[str, ...] = ()
    """Differences that do not matter to the pairing but that a person should know of; warnings in numbers."""
    method: PairMethod = "draft"


class VocabularyView(Protocol):
    """A vocabulary as llama.cpp has it after loading."""

    n_tokens: int
    type: int
    """llama.cpp's enum llama_vocab_type."""
    bos: int
    eos: int
    adds_bos: bool
    adds_eos: bool

    def token_text(self, token: int) -> bytes:
        """Return a token as the file spells it."""


@dataclass(frozen=True, slots=True)
class PairSide:
    """One of the two models."""

    header: GgufHeader
    vocabulary: VocabularyView | None
    """None where llama.cpp could not load it."""
    failure: str = ""
    """Why there is no vocabulary."""


def check_pair(target: PairSide, draft: PairSide) -> PairVerdict:
    """Say whether the draft can draft for the target."""
    raise NotImplementedError
