"""How likely the target is to keep a drafted token.

A drafter's tokens fall into a few cells by what is known before the target has judged them: the draft model's
confidence, or the length of the match that a free drafter copies from. Each cell remembers its share of kept
tokens for long (what this pair is like); one level on top of all cells follows the text at hand within a few rounds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from localspec.engine.drafting.drafter import Draft

_STRENGTH = 6.0
_LEVEL_STRENGTH = 1.0
_LEVEL_DOUBT = 0.4
_DOUBT = 2.0
_CELL_KEEPS = 0.997
_LEVEL_KEEPS = 0.96
_TOKEN_KEEPS = 0.99
_MOST = 0.995

CONFIDENCE_EDGES = (0.2, 0.4, 0.6, 0.75, 0.87, 0.95, 0.985)
"""Bounds of the cells of a draft model's confidence."""
_CONFIDENCE_MIDDLES = (0.12, 0.3, 0.5, 0.68, 0.81, 0.91, 0.97, 0.995)

MODEL_PRIORS = tuple(0.15 + 0.75 * middle for middle in _CONFIDENCE_MIDDLES)
"""Expected acceptance by confidence of a draft model that nobody has seen yet."""

_MATCH_EDGES = (1, 3, 5, 9, 17, 33)
_MATCH_PRIORS = (0.3, 0.35, 0.5, 0.6, 0.75, 0.85, 0.92)
_SHARE_EDGES = (0.5, 0.9)
_SHARE_FACTORS = (0.6, 0.85, 1.0)
_NUM_SHARES = len(_SHARE_FACTORS)
_MATCH_CELLS = tuple(bisect_right(_MATCH_EDGES, length) * _NUM_SHARES for length in range(_MATCH_EDGES[-1] + 1))

FREE_PRIORS = tuple(match * share for match in _MATCH_PRIORS for share in _SHARE_FACTORS)
"""Expected acceptance of a copied token by the match before it and the share of earlier continuations it stands for."""


def confidence_cell(probability: float) -> int:
    """Return the cell of a draft model's token."""
    return bisect_right(CONFIDENCE_EDGES, probability)


def cells_of(draft: Draft, is_free: bool) -> list[int]:
    """Return the cell of each token of a draft.

    A copied token's match is the draft's match and the copied tokens before it: if those are right, it is that long.
    """
    probabilities = draft.probabilities
    if not is_free:
        if probabilities is None:
            return [len(CONFIDENCE_EDGES)] * len(draft.tokens)
        return [bisect_right(CONFIDENCE_EDGES, probability) for probability in probabilities]
    length, longest = draft.match_length, _MATCH_EDGES[-1]
    if probabilities is None:
        certain = _NUM_SHARES - 1
        return [_MATCH_CELLS[min(length + index, longest)] + certain for index in range(len(draft.tokens))]
    return [
        _MATCH_CELLS[min(length + index, longest)] + bisect_right(_SHARE_EDGES, share)
        for index, share in enumerate(probabilities)
    ]


class AcceptanceModel:
    """Probability by cell that a token is kept, given that all before it were.

    A cell's estimate is the mean of a Beta distribution: (kept + 6 prior) / (judged + 6), the older the less
    counted. The level compares what was kept lately with what the cells expected: with fewer kept, every estimate is
    scaled by kept / expected, with more, every chance of a miss by missed / expected missed.
    """

    def __init__(self, priors: Sequence[float], cells: Sequence[tuple[float, float]] = ()) -> None:
        """Start from prior means by cell, and perhaps (kept, judged) by cell from earlier."""
        self._priors = tuple(priors)
        self._kept = [0.0] * len(priors)
        self._judged = [0.0] * len(priors)
        if len(cells) == len(priors):
            self._kept = [kept for kept, _ in cells]
            self._judged = [judged for _, judged in cells]
        self._base = [self._mean(cell) for cell in range(len(priors))]
        self._level_kept = self._level_judged = self._level_expected = self._level_variance = 0.0
        self._scale, self._is_scaling_misses = 1.0, False

    @property
    def cells(self) -> tuple[tuple[float, float], ...]:
        """(kept, judged) by cell, old observations counting less."""
        return tuple(zip(self._kept, self._judged, strict=True))

    @property
    def num_judged(self) -> float:
        """Tokens judged lately, old ones counting less."""
        return self._level_judged

    def _mean(self, cell: int) -> float:
        return (self._kept[cell] + _STRENGTH * self._priors[cell]) / (self._judged[cell] + _STRENGTH)

    def expected(self, cell: int) -> float:
        """Return the probability that a token of this cell is kept in the text at hand."""
        base = self._base[cell]
        value = 1.0 - (1.0 - base) * self._scale if self._is_scaling_misses else base * self._scale
        return value if value < _MOST else _MOST

    def doubted(self, cell: int) -> float:
        """Return what is certain of it: as if two more had been missed and nothing expected beforehand."""
        value = self._kept[cell] / (self._judged[cell] + _DOUBT)
        return value if self._is_scaling_misses else value * self._scale

    @property
    def level_doubted(self) -> float:
        """The same over all cells, of the text at hand."""
        return self._level_kept / (self._level_judged + _DOUBT)

    def judge(self, cell: int, is_kept: bool) -> None:
        """Hear what became of a token that was reached."""
        expected, hit = self._base[cell], float(is_kept)
        self._level_kept = self._level_kept * _LEVEL_KEEPS + hit
        self._level_judged = self._level_judged * _LEVEL_KEEPS + 1.0
        self._level_expected = self._level_expected * _LEVEL_KEEPS + expected
        self._level_variance = self._level_variance * _LEVEL_KEEPS + expected * (1.0 - expected)
        self._kept[cell] = self._kept[cell] * _CELL_KEEPS + hit
        self._judged[cell] = self._judged[cell] * _CELL_KEEPS + 1.0
        self._base[cell] = self._mean(cell)
        self._rescale()

    def age(self, num_tokens: int) -> None:
        """Let the level fade with the text that went by."""
        keeps = _TOKEN_KEEPS**num_tokens
        self._level_kept *= keeps
        self._level_judged *= keeps
        self._level_expected *= keeps
        self._level_variance *= keeps
        self._rescale()

    def _rescale(self) -> None:
        kept, expected, judged = self._level_kept, self._level_expected, self._level_judged
        difference = kept - expected
        # James and Stein's positive part: only what exceeds chance is believed, so that a steady text looks steady.
        square = difference * difference
        believed = max(0.0, 1.0 - (self._level_variance + _LEVEL_DOUBT) / square) if square > 0.0 else 0.0
        kept = expected + believed * difference
        self._is_scaling_misses = difference > 0.0
        if self._is_scaling_misses:
            self._scale = (judged - kept + _LEVEL_STRENGTH) / (judged - expected + _LEVEL_STRENGTH)
        else:
            self._scale = (kept + _LEVEL_STRENGTH) / (expected + _LEVEL_STRENGTH)
