"""Every place of a text, sorted by the tokens before it: the occurrences of any suffix lie side by side.

The order is that of the contexts read backwards, as in the Burrows-Wheeler transform of the reversed text and in PPM*
(Cleary and Teahan 1997). What a suffix tree over the reversed text would have as a subtree is one range here, so
occurrences need no counters that every new token would have to bring up to date: they are counted where they lie,
exactly, at any moment.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

SEPARATOR = 0xFFFFFFFF
"""Stands between texts that are indexed together; no token id is as large."""

DEPTH = 32
"""Longest match, in tokens."""

_TOKEN_BYTES = 4
_FULL_BLOCK = 512
_NEW_BLOCK = 256
_BULK_SHARE = 24
"""Sorting a text of n tokens anew costs about as much as putting n / 24 single ones in their places."""


class SuffixIndex:
    """Positions of a growing text in the order of their contexts.

    Position p has text[p] as its follower and the tokens before it, at most `depth` of them, as its context. A
    context is compared as bytes: the text is kept a second time, backwards and big-endian, and grows towards the
    front. The order is kept in blocks of up to 512 positions, so that a new one moves at most a block.

    A new token costs two searches by bisection, O(log n) comparisons of bytes. In memory it takes 4 bytes in each
    of the two copies and 4 for its place in the order, 14 to 17 with spare room.
    """

    def __init__(self, depth: int = DEPTH) -> None:
        """Start with an empty text; `depth` is a power of two."""
        self._width = depth * _TOKEN_BYTES
        self.clear()

    def clear(self) -> None:
        """Forget the text."""
        self._text = array("I")
        self._backwards = bytearray(256)
        self._blocks: list[array[int]] = [array("I")]
        self._firsts: list[bytes] = [b""]
        # Where the next position belongs, if that was just searched for: (position, block, place in it).
        self._searched = (-1, 0, 0)

    @property
    def text(self) -> Sequence[int]:
        """The tokens, not to be changed."""
        return self._text

    @property
    def num_bytes(self) -> int:
        """Memory that the text, its copy and its order take, spare room included."""
        blocks = sum(map(sys.getsizeof, self._blocks)) + sum(map(sys.getsizeof, self._firsts))
        return sys.getsizeof(self._text) + sys.getsizeof(self._backwards) + blocks

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens, each of which becomes the follower of what stands before it."""
        start = len(self._text)
        self._text.extend(tokens)
        end = len(self._text)
        self._write_backwards(start)
        if (end - start) * _BULK_SHARE > end and end > _FULL_BLOCK:
            self._sort()
            return
        for position in range(start, end):
            self._insert(position)

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens."""
        if length >= len(self._text):
            return
        del self._text[length:]
        self._set_order(array("I", (position for block in self._blocks for position in block if position < length)))

    def context(self) -> bytes:
        """Return what stands at the end of the text, last token first, to search for here or in another index."""
        return bytes(self._key(len(self._text)))

    def nearest(self, context: bytes) -> Iterator[tuple[int, int]]:
        """Find what followed a context, longest match first.

        Yields:
            (position, tokens that agree), the second never growing and at least 1. Among positions that agree
            equally, the two sides of the place where the context belongs take no turns: first one, then the other,
            and on the side of the earlier ones the latest comes first.
        """
        key = bytearray(context)
        block_index, index = self._place(key)
        if key == self._key(len(self._text)):
            self._searched = (len(self._text), block_index, index)
        left, right = self._backward_from(block_index, index), self._forward_from(block_index, index)
        left_position, right_position = next(left, -1), next(right, -1)
        number = int.from_bytes(context)
        left_length = self._num_common(context, number, left_position)
        right_length = self._num_common(context, number, right_position)
        while left_length or right_length:
            if left_length >= right_length:
                yield left_position, left_length
                left_position = next(left, -1)
                if not self._agrees(context, left_length, left_position):
                    left_length = self._num_common(context, number, left_position)
            else:
                yield right_position, right_length
                right_position = next(right, -1)
                if not self._agrees(context, right_length, right_position):
                    right_length = self._num_common(context, number, right_position)

    def _place(self, key: bytearray) -> tuple[int, int]:
        """Return the block and the place in it behind everything that is not greater."""
        block_index = max(bisect_right(self._firsts, key) - 1, 0)
        return block_index, bisect_right(self._blocks[block_index], key, key=self._key)

    def _backward_from(self, block_index: int, index: int) -> Iterator[int]:
        yield from reversed(self._blocks[block_index][:index])
        for earlier in range(block_index - 1, -1, -1):
            yield from reversed(self._blocks[earlier])

    def _forward_from(self, block_index: int, index: int) -> Iterator[int]:
        yield from self._blocks[block_index][index:]
        for later in range(block_index + 1, len(self._blocks)):
            yield from self._blocks[later]

    def _agrees(self, context: bytes, length: int, position: int) -> bool:
        if position < length:
            return False
        start = len(self._backwards) - _TOKEN_BYTES * position
        return self._backwards.startswith(context[: length * _TOKEN_BYTES], start)

    def _num_common(self, context: bytes, number: int, position: int) -> int:
        """Return how many tokens before a position agree with a context."""
        if position <= 0:
            return 0
        key = self._key(position)
        size = min(len(key), len(context))
        difference = int.from_bytes(key[:size]) ^ (number >> 8 * (len(context) - size))
        return size // _TOKEN_BYTES if not difference else (8 * size - difference.bit_length()) // (8 * _TOKEN_BYTES)

    def _key(self, position: int) -> bytearray:
        start = len(self._backwards) - _TOKEN_BYTES * position
        return self._backwards[start : start + self._width]

    def _write_backwards(self, start: int) -> None:
        needed = _TOKEN_BYTES * len(self._text)
        if needed > len(self._backwards):
            # Half as much again: growing is rare, and the front stays empty for what comes.
            larger = bytearray(needed + needed // 2)
            kept = _TOKEN_BYTES * start
            if kept:
                larger[-kept:] = self._backwards[-kept:]
            self._backwards = larger
        new = self._text[start:]
        new.reverse()
        if sys.byteorder == "little":
            new.byteswap()
        size = len(self._backwards)
        self._backwards[size - needed : size - _TOKEN_BYTES * start] = new.tobytes()

    def _insert(self, position: int) -> None:
        searched, block_index, index = self._searched
        if searched != position:
            block_index, index = self._place(self._key(position))
        self._searched = (-1, 0, 0)
        block = self._blocks[block_index]
        block.insert(index, position)
        if index == 0:
            self._firsts[block_index] = bytes(self._key(position))
        if len(block) >= _FULL_BLOCK:
            half = block[_NEW_BLOCK:]
            del block[_NEW_BLOCK:]
            self._blocks.insert(block_index + 1, half)
            self._firsts.insert(block_index + 1, bytes(self._key(half[0])))

    def _sort(self) -> None:
        """Put all positions in order at once."""
        order = _sorted_by_context(np.frombuffer(self._text, np.uint32), self._width // _TOKEN_BYTES)
        self._set_order(array("I", order.astype(np.uint32).tobytes()))

    def _set_order(self, order: array[int]) -> None:
        starts = range(0, max(len(order), 1), _NEW_BLOCK)
        self._blocks = [order[start : start + _NEW_BLOCK] for start in starts]
        self._firsts = [bytes(self._key(block[0])) if block else b"" for block in self._blocks]
        self._searched = (-1, 0, 0)


def _sorted_by_context(text: npt.NDArray[np.uint32], depth: int) -> npt.NDArray[np.int64]:
    """Return all positions of a text, shape [tokens], in the order of their contexts; equal ones as they stand.

    By doubling: ranks of contexts of 2k tokens follow from ranks of k (Manber and Myers 1993). What has a rank of its
    own by then is left alone (Larsson and Sadakane 2007). No deeper than contexts are compared.
    """
    count = len(text)
    values, top = _small(text)
    keys: npt.NDArray[np.uint64] = np.zeros(count, np.uint64)
    keys[1:] = values[:-1]
    if depth > 1:
        keys *= np.uint64(top)
        keys[2:] += values[:-2]
        top *= top
    order = _argsort(keys, top)
    is_first = _differs(keys[order])
    # The rank of a context is the place where those that are equal to it begin.
    ranks: npt.NDArray[np.int64] = np.empty(count, np.int64)
    ranks[order] = _begins(is_first, np.arange(count))
    for length in (length for length in _doubled(depth) if length > 1):
        places = _shared(is_first)
        if not len(places):
            break
        positions = order[places]
        groups = np.cumsum(is_first[places])
        earlier = positions - length
        keys = (groups * (count + 1) + np.where(earlier >= 0, ranks[earlier] + 1, 0)).astype(np.uint64)
        by_key = _argsort(keys, (int(groups[-1]) + 1) * (count + 1))
        positions = order[places] = positions[by_key]
        is_first[places] = own = _differs(keys[by_key])
        ranks[positions] = _begins(own, places)
    return order


def _small(text: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint64], int]:
    """Return tokens as numbers from 1 on that keep their order, the separator's too, and a number that is above all."""
    regular = text[text != SEPARATOR]
    beyond = int(regular.max()) + 1 if len(regular) else 0
    if beyond > SEPARATOR - 1:
        values = np.unique(text, return_inverse=True)[1].astype(np.uint64) + np.uint64(1)
        return values, len(text) + 1
    return np.where(text == SEPARATOR, np.uint32(beyond), text).astype(np.uint64) + np.uint64(1), beyond + 2


def _argsort(keys: npt.NDArray[np.uint64], top: int) -> npt.NDArray[np.int64]:
    """Return the places of keys, all below `top`, in their order; equal ones as they stand.

    Numbers are sorted several times as fast as places by them, so both go into one number where there is room.
    """
    count = len(keys)
    if (top - 1).bit_length() + count.bit_length() > 64:
        return np.argsort(keys, kind="stable")
    shift = np.uint64(count.bit_length())
    packed = keys << shift
    packed |= np.arange(count, dtype=np.uint64)
    packed.sort()
    packed &= (np.uint64(1) << shift) - np.uint64(1)
    return packed.astype(np.int64)


def _differs(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return of each sorted key whether it differs from the one before."""
    found: npt.NDArray[np.bool_] = np.ones(len(keys), np.bool_)
    found[1:] = keys[1:] != keys[:-1]
    return found


def _begins(is_first: npt.NDArray[np.bool_], places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return of each place the one where its group begins."""
    begun: npt.NDArray[np.int64] = np.maximum.accumulate(np.where(is_first, places, 0))
    return begun


def _shared(is_first: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the places of groups of more than one."""
    is_last = np.append(is_first[1:], True)
    return np.flatnonzero(~(is_first & is_last))


def _doubled(depth: int) -> Iterator[int]:
    """Yield 1, 2, 4 and so on, as long as twice of it is within the depth."""
    length = 1
    while 2 * length <= depth:
        yield length
        length *= 2
