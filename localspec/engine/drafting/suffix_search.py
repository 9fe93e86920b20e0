"""The continuation that an index promises most accepted tokens of: SuffixDecoding's score (Oliaro et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localspec.engine.drafting.suffix_index import SEPARATOR, SuffixIndex

MOST_OCCURRENCES = 32
"""Places that are looked at for one draft. They are those whose contexts agree longest, so that longer matches are
always counted whole, and only a short one that is more frequent is judged by some of its occurrences."""

_NOVELTY = 2.0
_NOVELTY_EXPONENT = 1.5


@dataclass(frozen=True, slots=True)
class Continuation:
    """What may follow, with what is known of it."""

    tokens: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
    """Share of each token among what followed the tokens before it."""
    score: float = 0.0
    """Expected accepted tokens: the sum over positions of the product of the shares up to there."""
    match_length: int = 0
    is_found: bool = False
    """Whether the last token of the context occurs earlier at all."""
    is_unsure: bool = False
    """Whether it ended where the product of the shares fell below the limit."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a continuation may be."""

    limit: int
    """In tokens."""
    factor: float
    """In tokens per token of the match; one token is always allowed."""
    p_min: float
    """Least product of the shares."""

    def most_tokens(self, match_length: int) -> int:
        """Return the longest continuation of a match."""
        return min(self.limit, max(int(self.factor * match_length), 1))


def novelty(match_length: int) -> float:
    """Return how many occurrences the chance counts for that something follows which never did: 2 / m^1.5.

    Without it a single earlier occurrence of one token would promise as much as twenty of a long passage. The two
    constants fit what was seen on the prompts that come with localspec: after one occurrence the same token
    followed in 0.31, 0.51, 0.66, 0.79, 0.92 and 0.96 of the cases at match lengths 1, 2, 3, 4, 8 to 15 and from 16.
    """
    return float(_NOVELTY / match_length**_NOVELTY_EXPONENT)


def best_continuation(index: SuffixIndex, context: bytes, bounds: Bounds, most: int = MOST_OCCURRENCES) -> Continuation:
    """Return the continuation of the highest score over all suffixes of a context that occur in an index.

    For a suffix of m tokens the most frequent next token is followed again and again. Its share is (count of it) /
    (count of what came before + novelty(m)); SuffixDecoding itself has no novelty. Of equal counts the latest
    occurrence speaks, of equal scores the longer suffix. Where an occurrence reaches the end of the text, the
    continuation itself is read on, so that a loop goes on to any length.

    Args:
        index: earlier text.
        context: what stands before the continuation, from SuffixIndex.context.
        bounds: how long it may be.
        most: occurrences that are looked at.
    """
    best = Continuation()
    followers: list[int] = []
    level = 0
    for position, length in index.nearest(context):
        if length != level:
            if followers:
                best = _better(best, index.text, followers, level, bounds)
                if best.score >= bounds.most_tokens(length):
                    return best
            level = length
        followers.append(position)
        if len(followers) == most:
            break
    return _better(best, index.text, followers, level, bounds) if followers else best


def _better(
    best: Continuation, text: Sequence[int], followers: Sequence[int], match_length: int, bounds: Bounds
) -> Continuation:
    """Return the better of a continuation and the one from these places."""
    most_tokens = bounds.most_tokens(match_length)
    unseen = novelty(match_length)
    tokens: list[int] = []
    shares: list[float] = []
    score, product, is_unsure = 0.0, 1.0, False
    end = len(text)
    places = followers
    while len(tokens) < most_tokens:
        token, chosen = _most_frequent(text, end, tokens, places)
        share = len(chosen) / (len(places) + unseen)
        product *= share
        # What is left cannot give more than the product for each token.
        if token == SEPARATOR or score + product * (most_tokens - len(tokens)) <= best.score:
            break
        if product < bounds.p_min:
            is_unsure = True
            break
        tokens.append(token)
        shares.append(share)
        score += product
        places = [place + 1 for place in chosen]
    if score > best.score or not best.is_found:
        return Continuation(tuple(tokens), tuple(shares), score, match_length, True, is_unsure)
    return best


def _most_frequent(
    text: Sequence[int], end: int, tokens: Sequence[int], places: Sequence[int]
) -> tuple[int, Sequence[int]]:
    """Return the token that stands at most of the places, and those places."""
    if len(places) == 1:
        place = places[0]
        return (text[place] if place < end else tokens[place - end]), places
    found: dict[int, list[int]] = {}
    for place in places:
        token = text[place] if place < end else tokens[place - end]
        found.setdefault(token, []).append(place)
    if len(found) == 1:
        return token, places
    return max(found.items(), key=lambda item: (len(item[1]), max(item[1])))
