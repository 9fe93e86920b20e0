"""What became of a drafter's proposals, by length of the match: the ground on which a cascade lets it speak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localspec.engine.drafting.drafter import Draft

_KEEPS = 0.97
"""Weight of what is known after one more proposal, so that about the last thirty count."""
_PRIOR_STRENGTH = 4.0
_PRIOR_PROBABILITY = 0.5
"""For drafters that tell no probability of their own."""
_NUM_MATCH_BUCKETS = 8
_NUM_POSITION_BUCKETS = 4


@dataclass(frozen=True, slots=True)
class ProposalCounts:
    """A drafter's proposals, used and unused."""

    name: str
    num_rounds: int = 0
    """Rounds in which it proposed something."""
    num_drafted: int = 0
    """Proposed tokens of which it is known whether the target would have kept them."""
    num_accepted: int = 0
    """Of these, what the target really emitted there."""


class AcceptanceRecord:
    """Chances of acceptance of one drafter, with exponential forgetting.

    For each pair of buckets, of match length and of position in the draft, it counts how often a token there was
    reached, all before it being right, and how often it was right. Tokens behind the first wrong one are in no count:
    nobody knows whether they would have been kept.
    """

    def __init__(self) -> None:
        self._reached = [[0.0] * _NUM_POSITION_BUCKETS for _ in range(_NUM_MATCH_BUCKETS)]
        self._right = [[0.0] * _NUM_POSITION_BUCKETS for _ in range(_NUM_MATCH_BUCKETS)]

    def learn(self, draft: Draft, emitted: Sequence[int]) -> tuple[int, int]:
        """Compare a proposal with what the target emitted instead or because of it.

        Returns:
            How many of its tokens were reached, and how many of them were right.
        """
        num_right = num_common(draft.tokens, emitted)
        num_reached = min(num_right + 1, len(draft.tokens), len(emitted))
        reached, right = (
            self._reached[_match_bucket(draft.match_length)],
            self._right[_match_bucket(draft.match_length)],
        )
        for bucket in range(_NUM_POSITION_BUCKETS):
            reached[bucket] *= _KEEPS
            right[bucket] *= _KEEPS
        for position in range(num_reached):
            reached[_position_bucket(position)] += 1.0
            right[_position_bucket(position)] += position < num_right
        return num_reached, num_right

    def expected_accepted(self, draft: Draft) -> float:
        """Return how many tokens of a proposal will be accepted, by what became of those with a match of that length.

        The drafter's own probabilities are the prior, worth four tokens.
        """
        reached, right = (
            self._reached[_match_bucket(draft.match_length)],
            self._right[_match_bucket(draft.match_length)],
        )
        probabilities = draft.probabilities or (_PRIOR_PROBABILITY,) * len(draft.tokens)
        product, total = 1.0, 0.0
        for position, probability in enumerate(probabilities):
            bucket = _position_bucket(position)
            product *= (right[bucket] + _PRIOR_STRENGTH * probability) / (reached[bucket] + _PRIOR_STRENGTH)
            total += product
        return total


class CostRecord:
    """What rounds with the draft model's tokens gave and cost, with exponential forgetting."""

    def __init__(self) -> None:
        self._weight = self._accepted = 0.0
        self._drafting_s = self._waiting_s = 0.0

    def learn(self, num_accepted: int, drafting_s: float, waiting_s: float) -> None:
        """Hear of a round: accepted tokens, time of the draft, and from its end to the target's answer."""
        self._weight = self._weight * _KEEPS + 1.0
        self._accepted = self._accepted * _KEEPS + num_accepted
        self._drafting_s = self._drafting_s * _KEEPS + drafting_s
        self._waiting_s = self._waiting_s * _KEEPS + waiting_s

    @property
    def mean_accepted(self) -> float:
        """Accepted tokens of a round; one token until more is known."""
        return (self._accepted + _PRIOR_STRENGTH) / (self._weight + _PRIOR_STRENGTH)

    @property
    def relative_s(self) -> float:
        """Time of such a round in times of one whose draft costs nothing; 1 until it is known."""
        return 1.0 + self._drafting_s / self._waiting_s if self._waiting_s > 0.0 else 1.0


def num_common(left: Sequence[int], right: Sequence[int]) -> int:
    """Return how many tokens two texts have in common at their beginning."""
    for position, (ours, theirs) in enumerate(zip(left, right, strict=False)):
        if ours != theirs:
            return position
    return min(len(left), len(right))


def _match_bucket(length: int) -> int:
    """0, 1, 2 to 3, 4 to 7, and so on: what one more token of a match means shrinks with its length."""
    return min(length.bit_length(), _NUM_MATCH_BUCKETS - 1)


def _position_bucket(position: int) -> int:
    return min((position + 1).bit_length() - 1, _NUM_POSITION_BUCKETS - 1)
