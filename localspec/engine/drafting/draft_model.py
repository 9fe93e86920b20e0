"""Drafting with a second, smaller model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localspec.engine.dice import Dice
from localspec.engine.distribution import Distribution
from localspec.engine.drafting.drafter import Draft, GoOn
from localspec.engine.model import Progress, SequenceModel, TokenSampler
from localspec.engine.values import DraftStop


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a draft is drawn at random."""

    sampler: TokenSampler
    """Over the draft model's rows; accepts what is emitted."""
    dice: Dice
    """Shares nothing with those of the verification."""


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A token, its probability, the largest of any token there, and what it was drawn from if it was."""

    token: int
    probability: float
    largest: float
    drawn_from: Distribution | None = None


class DraftModelDrafter:
    """Continuation by the draft model, which decodes each token of the text only once.

    It proposes the most probable tokens, or draws them from their distribution and hands that on, for a verification
    that can use it.

    After m of k drafted tokens are accepted its cache already holds the accepted ones (all but the k-th), so
    the next round feeds it only what it has not seen: the correction, or after a full acceptance the k-th
    token and the bonus. llama.cpp's own loop decodes the whole verification batch again.
    """

    def __init__(self, model: SequenceModel, name: str, p_min: float) -> None:
        """Take a model.

        Args:
            model: must be able to roll back; the caller closes it.
            name: what screens call it.
            p_min: stop before the first token whose probability, in the draft's full softmax, is lower. While tokens
                are drawn: before the first place where none has as much in what is drawn from. (To look at the drawn
                token itself would leave the improbable ones out of drafts only, and so change what is emitted.)
        """
        self._model = model
        self._name = name
        self._p_min = p_min
        self._text: list[int] = []
        self._has_foreign_token = False
        self._drawing: Drawing | None = None

    @property
    def name(self) -> str:
        """What screens and reports call it."""
        return self._name

    def draw(self, drawing: Drawing | None) -> None:
        """Draw drafts from now on, or propose the most probable tokens again if there is None."""
        self._drawing = drawing

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        """Read a prompt; what the cache shares with it is kept."""
        self._text = list(prompt)
        self._has_foreign_token = self._is_foreign(prompt)
        if self._has_foreign_token or len(prompt) > self._model.n_ctx:
            return
        kept = self._model.keep_prefix(prompt)
        self._model.prefill(prompt[kept:], progress)

    def forget(self) -> None:
        """Empty the draft's cache."""
        self._model.clear()
        self._text = []

    @property
    def num_unseen(self) -> int:
        """Tokens of the text that the cache lacks."""
        return max(len(self._text) - len(self._model.tokens), 1)

    @property
    def is_free(self) -> bool:
        """No: each token is a step of the model."""
        return False

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        """Propose at most `limit` tokens, fewer where the draft's context, its confidence or `go_on` ends it."""
        if self._has_foreign_token:
            return Draft((), "silent")
        room = self._model.n_ctx - len(self._text)
        if room < 0:
            return Draft((), "room")
        # The last proposal needs no cell: it is never decoded here before the target has accepted it.
        most = min(limit, room + 1)
        proposals: list[_Proposal] = []
        stop: DraftStop = "n_max" if most == limit else "room"
        is_complete = False
        needs_probability = self._p_min > 0.0 or go_on is not None or self._drawing is not None
        try:
            self._catch_up()
            while True:
                proposal = self._propose(proposals, needs_probability)
                if proposal.largest < self._p_min:
                    stop = "p_min"
                    break
                proposals.append(proposal)
                if len(proposals) == most:
                    break
                if go_on is not None and not go_on(len(proposals), proposal.probability):
                    stop = "not_worth"
                    break
                self._model.decode((proposal.token,), 1)
            is_complete = True
        finally:
            if not is_complete:
                self._model.truncate(len(self._text) - 1)
        return Draft(
            tuple(proposal.token for proposal in proposals),
            stop,
            tuple(proposal.probability for proposal in proposals) if needs_probability else None,
            distributions=tuple(proposal.drawn_from for proposal in proposals if proposal.drawn_from) or None,
        )

    def _propose(self, before: Sequence[_Proposal], needs_probability: bool) -> _Proposal:
        """Propose what follows the text and the proposals before."""
        if self._drawing is not None:
            found = self._drawing.sampler.distribution(0, [proposal.token for proposal in before])
            place = self._drawing.dice.choose(found.probabilities)
            probability = float(found.probabilities[place])
            return _Proposal(int(found.ids[place]), probability, float(found.probabilities.max()), found)
        if needs_probability:
            token, probability = self._model.argmax_with_probability(0)
            return _Proposal(token, probability, probability)
        return _Proposal(self._model.argmax(0), 1.0, 1.0)

    def _catch_up(self) -> None:
        """Decode what the cache lacks of the text, so that logits after its last token are there."""
        if len(self._model.tokens) >= len(self._text):
            self._model.truncate(len(self._text) - 1)
        unseen = self._text[len(self._model.tokens) :]
        if len(unseen) > 2:
            self._model.prefill(unseen)
        else:
            self._model.decode(unseen, 1)

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        """Append what the target emitted, and cut from the cache what it did not."""
        length = len(self._text)
        num_drafted_in_cache = max(len(self._model.tokens) - length, 0)
        self._model.truncate(length + min(num_accepted, num_drafted_in_cache))
        self._text.extend(tokens)
        if self._drawing is not None:
            for token in tokens:
                self._drawing.sampler.accept(token)
        self._has_foreign_token = self._has_foreign_token or self._is_foreign(tokens)

    def _is_foreign(self, tokens: Sequence[int]) -> bool:
        """Whether the target used an id that a draft of a smaller padded vocabulary lacks."""
        return any(token >= self._model.n_vocab for token in tokens)

    def close(self) -> None:
        """Free nothing: the model belongs to the engine."""
