"""Drafting with a second model as llama.cpp's `draft-simple` does it, to be measured against."""

from __future__ import annotations

from collections.abc import Sequence

from localspec.engine.drafting.drafter import Draft, GoOn
from localspec.engine.model import Progress, SequenceModel
from localspec.engine.values import DraftStop


class RedecodingDrafter:
    """After each verification the draft decodes the whole verified batch again.

    As in `common/speculative.cpp`: what the draft's cache got while drafting is removed, the batch (pending token and
    all drafted ones) is decoded with one row of logits that nobody reads, and the rejected rest is removed.
    """

    def __init__(self, model: SequenceModel) -> None:
        """Take a model that can roll back, with a context no smaller than the target's; the caller closes it."""
        self._model = model
        self._text: list[int] = []
        self._drafted: tuple[int, ...] = ()
        self._has_begun = False

    @property
    def name(self) -> str:
        """What screens and reports call it."""
        return "re-decoding draft"

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        """Read a prompt; what the cache shares with it is kept."""
        self._text, self._drafted, self._has_begun = list(prompt), (), False
        kept = self._model.keep_prefix(prompt)
        self._model.prefill(prompt[kept:], progress)

    def forget(self) -> None:
        """Empty the draft's cache."""
        self._model.clear()

    @property
    def num_unseen(self) -> int:
        """Not counted here."""
        return 0

    @property
    def is_free(self) -> bool:
        """Whether a draft costs no model's steps."""
        return False

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        """Propose at most `limit` tokens."""
        tokens: list[int] = []
        pending = self._text[-1]
        while len(tokens) < limit and len(self._model.tokens) < self._model.n_ctx:
            self._model.decode((pending,), 1)
            pending = self._model.argmax(0)
            tokens.append(pending)
        self._drafted = tuple(tokens)
        stop: DraftStop = "n_max" if len(tokens) == limit else "room"
        return Draft(self._drafted, stop)

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        """Decode the verified batch again, and append what the target emitted."""
        if self._has_begun:
            length = len(self._text)
            self._model.truncate(length - 1)
            self._model.decode((self._text[-1], *self._drafted), 1)
            self._model.truncate(length + num_accepted)
        self._has_begun = True
        self._drafted = ()
        self._text.extend(tokens)

    def close(self) -> None:
        """Free nothing: the model belongs to the caller."""
