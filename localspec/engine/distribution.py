"""Probabilities of the next token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Distribution:
    """Probabilities of the next token. Ids that are not listed have none."""

    ids: npt.NDArray[np.int32]
    """Token ids, ascending, each once."""
    probabilities: npt.NDArray[np.float64]
    """Their probabilities, in the same order; they sum to 1."""


def probability_of(distribution: Distribution, token: int) -> float:
    """Return a token's probability."""
    place = int(distribution.ids.searchsorted(token))
    if place < distribution.ids.size and distribution.ids[place] == token:
        return float(distribution.probabilities[place])
    return 0.0


def excess(p: Distribution, q: Distribution, scale: float) -> npt.NDArray[np.float64]:
    """Return max(scale p - q, 0) for each of p's ids."""
    weights = p.probabilities * scale
    places = p.ids.searchsorted(q.ids)
    places[places == p.ids.size] = 0
    is_shared = p.ids[places] == q.ids
    weights[places[is_shared]] -= q.probabilities[is_shared]
    return np.maximum(weights, 0.0, out=weights)
