"""What the speculative loop and the drafters need of a language model; llama/ has the real one, tests a toy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from localspec.engine.distribution import Distribution

Progress = Callable[[int, int], None]
"""Called with (tokens done, tokens in all)."""


class SequenceModel(Protocol):
    """One sequence in one context: a KV cache that grows at its end and can be cut back."""

    @property
    def n_ctx(self) -> int:
        """Positions that the context holds."""

    @property
    def n_vocab(self) -> int:
        """Number of token ids; valid ids are 0 to n_vocab - 1."""

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens whose KV is cached, in order. Its length is the next position."""

    def decode(self, tokens: Sequence[int], num_logits: int) -> None:
        """Append tokens in one step and compute logits for the last `num_logits` of them.

        Rows are numbered from 0 for the first row computed. On any error the cache is as before.

        Raises:
            Cancelled: an abort was asked for.
            DecodeError: llama.cpp refused the step.
        """

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> None:
        """Append any number of tokens in batches, with logits for the last one. Batches done before a cancel stay.

        Raises:
            Cancelled: an abort was asked for.
            DecodeError: llama.cpp refused the step.
        """

    def truncate(self, length: int) -> None:
        """Keep the first `length` tokens of the cache.

        Raises:
            DecodeError: this memory cannot roll back.
        """

    def keep_prefix(self, tokens: Sequence[int]) -> int:
        """Cut the cache to what it shares with the beginning of `tokens`, at least one token short of all of them,
        and return how many that are."""

    def clear(self) -> None:
        """Forget everything."""

    def argmax(self, row: int) -> int:
        """Return the most probable token of a row of the last step."""

    def argmax_with_probability(self, row: int) -> tuple[int, float]:
        """Return the most probable token of a row and its probability in the full softmax."""


class TokenSampler(Protocol):
    """The user's sampler chain over a model's rows."""

    def sample(self, row: int) -> int:
        """Draw from a row of the model's last step, and add the token to the chain's state."""

    def distribution(self, row: int, prefix: Sequence[int]) -> Distribution:
        """Return what a row's token is drawn from at a temperature above 0; the chain's state stays as it is.

        Args:
            row: of the model's last step.
            prefix: tokens to read as if they were emitted already, after all that really were. Each must have had
                a probability above 0 when it was its turn: a grammar cannot read on after one that it forbids.
        """

    def accept(self, token: int) -> None:
        """Add an emitted token that `sample` did not draw to the chain's state."""


class Cancelled(Exception):
    """An abort was asked for while a model was computing."""
