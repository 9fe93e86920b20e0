"""Random decisions of drafting and verification, so that tests can walk through all of their outcomes instead."""

from __future__ import annotations

from typing import Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.float64]
Purpose = Literal["draft", "verification"]


class Dice(Protocol):
    """Makes independent decisions."""

    def happens(self, probability: float) -> bool:
        """Say yes with this probability; 1 and more always, 0 and less never."""

    def choose(self, weights: Weights) -> int:
        """Return an index with a probability in proportion to its weight.

        Args:
            weights: shape [n], none negative, their sum positive.
        """


class SeededDice:
    """A seeded generator for one purpose in one answer. The two purposes share no random number."""

    def __init__(self, seed: int, purpose: Purpose) -> None:
        # Lossless verification assumes that its decisions know nothing of the draft's, equal seeds or not.
        key = (seed, get_args(Purpose).index(purpose))
        self._random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))

    def happens(self, probability: float) -> bool:
        """See Dice: a uniform number of [0, 1) lies below a probability exactly that often."""
        return self._random.random() < probability

    def choose(self, weights: Weights) -> int:
        """See Dice: inversion of the cumulative weights. An index without weight is never returned."""
        cumulative = weights.cumsum()
        place = int(cumulative.searchsorted(self._random.random() * cumulative[-1], side="right"))
        # The product can round up to the whole sum.
        return place if place < weights.size else int(weights.nonzero()[0][-1])
