"""Answers of earlier conversations, to copy from: only where the user has asked for it, and easily cleared.

One file for each vocabulary, in the data folder. It holds the token ids of answers and nothing else: no question, no
time, no model name. A file is a line of text that names the format, then records of three parts, all unsigned 32-bit
little-endian: number of tokens, CRC-32 of their bytes, tokens.
"""

from __future__ import annotations

import logging
import os
import re
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TypeVar

from localspec.engine.drafting.suffix_index import SEPARATOR, SuffixIndex
from localspec.errors import StoreError

WHAT_IS_KEPT = (
    "The token ids of answers are kept, nothing of questions: at most 2 million tokens (8 MB) for each vocabulary, "
    "the oldest answers go first."
)
"""For those who decide whether to switch it on."""

MOST_TOKENS = 2_000_000
AT_ONCE = 250_000
"""Tokens whose index is made in a moment."""
SHORTEST_ANSWER = 8
"""Shorter answers are not kept; there is nothing to copy from them."""

_MAGIC = b"localspec answers 1\n"
_HEAD = struct.Struct("<II")
_SUFFIX = ".answers"
_SLACK = 1.25
_LOCK_S = 2.0
_LOGGER = logging.getLogger("localspec.engine")
_Answer = TypeVar("_Answer", bound=Sequence[int])


class RememberedAnswers:
    """The answers of one vocabulary: a file, and an index of what it held at the start and what came since.

    The file is written under a lock, so that several processes may share it; what others add is seen at the next start.
    A failure to read or write never ends an answer: it is logged, and drafting goes on with what there is.
    """

    def __init__(self, path: Path, most_tokens: int = MOST_TOKENS, at_once: int | None = None) -> None:
        """Read a file; one that is missing is empty, a damaged one is set aside under another name.

        Args:
            path: the file.
            most_tokens: kept of it.
            at_once: tokens of the newest answers that are indexed now, all of them where they are no more; the others
                follow beside what goes on, and nobody waits for them. None for all.
        """
        self._path = path
        self._most_tokens = most_tokens
        self._index = SuffixIndex()
        self._since: list[array[int]] = []
        self._whole: Future[SuffixIndex] | None = None
        answers: list[array[int]] = []
        try:
            if path.exists():
                with _lock(path):
                    answers = _newest(_read(path), most_tokens)
        except OSError as error:
            _LOGGER.warning("earlier answers cannot be read: %s", error)
        if at_once is None or sum(map(len, answers)) <= at_once:
            self._index = _indexed(answers)
            return
        self._index = _indexed(_newest(answers, at_once))
        self._whole = Future()
        # Where the process ends before it, nothing is lost.
        Thread(target=_fulfil, args=(self._whole, answers), name="earlier answers", daemon=True).start()

    @property
    def index(self) -> SuffixIndex:
        """Answers in order, each followed by SEPARATOR; only the newest ones until all are indexed."""
        self._catch_up()
        return self._index

    @property
    def is_whole(self) -> bool:
        """Whether everything that is kept is in the index."""
        self._catch_up()
        return self._whole is None

    @property
    def num_tokens(self) -> int:
        """Tokens in the index, separators included."""
        return len(self.index.text)

    def wait(self, seconds: float) -> bool:
        """Wait for the index to be whole, no longer than that, and return whether it is."""
        if self._whole is not None:
            with suppress(Exception):
                self._whole.result(seconds)
        return self.is_whole

    def add(self, answer: Sequence[int]) -> None:
        """Keep an answer, in the index and on disk."""
        if len(answer) < SHORTEST_ANSWER:
            return
        kept = array("I", answer[-self._most_tokens :])
        index = self.index
        index.extend([*kept, SEPARATOR])
        if self._whole is not None:
            self._since.append(kept)
        if len(index.text) > _SLACK * self._most_tokens:
            self._index = _indexed(_newest(_split(index.text), self._most_tokens))
        try:
            with _lock(self._path):
                self._write(kept)
        except OSError as error:
            _LOGGER.warning("an answer cannot be kept: %s", error)

    def _catch_up(self) -> None:
        whole = self._whole
        if whole is None or not whole.done():
            return
        self._whole, since = None, self._since
        self._since = []
        if (failure := whole.exception()) is not None:
            _LOGGER.warning("only the newest earlier answers are searched: %s", failure)
            return
        self._index = whole.result()
        for answer in since:
            self._index.extend([*answer, SEPARATOR])

    def _write(self, answer: array[int]) -> None:
        """Append a record; a file that has grown too large, or that ends within a record, is written anew."""
        record = _record(answer)
        size = self._path.stat().st_size if self._path.exists() else 0
        if size and size + len(record) <= _SLACK * 4 * self._most_tokens and _ends_whole(self._path):
            with self._path.open("ab") as file:
                file.write(record)
            return
        answers = _newest([*_read(self._path), answer], self._most_tokens)
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(_MAGIC + b"".join(map(_record, answers)))
            os.replace(temporary, self._path)
        finally:
            temporary.unlink(missing_ok=True)


def _indexed(answers: Sequence[Sequence[int]]) -> SuffixIndex:
    tokens = array("I")
    for answer in answers:
        tokens.extend(answer)
        tokens.append(SEPARATOR)
    index = SuffixIndex()
    index.extend(tokens)
    return index


def _fulfil(whole: Future[SuffixIndex], answers: Sequence[Sequence[int]]) -> None:
    try:
        whole.set_result(_indexed(answers))
    except Exception as error:
        # Whoever waits for it hears of it; nobody hears of a thread.
        whole.set_exception(error)


def answers_file(folder: Path, vocabulary_fingerprint: str) -> Path | None:
    """Return the file of a vocabulary, or None for one without a fingerprint."""
    if not re.fullmatch(r"[0-9a-f]{8,64}", vocabulary_fingerprint):
        return None
    return folder / f"{vocabulary_fingerprint}{_SUFFIX}"


@dataclass(frozen=True, slots=True)
class Kept:
    """What lies on disk."""

    num_files: int
    num_bytes: int


def kept_answers(folder: Path) -> Kept:
    """Return how much is kept, of all vocabularies, damaged files included."""
    sizes = []
    for path in _files(folder):
        with suppress(OSError):
            sizes.append(path.stat().st_size)
    return Kept(len(sizes), sum(sizes))


def clear_answers(folder: Path) -> Kept:
    """Delete all kept answers of all vocabularies and return what there was.

    A process that runs keeps those that it has read until it ends.

    Raises:
        StoreError: a file cannot be deleted.
    """
    kept = kept_answers(folder)
    for path in _files(folder):
        try:
            with _lock(path):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"Earlier answers cannot be deleted: {error}", f"Delete the folder {folder} yourself."
            ) from None
        with suppress(OSError):
            _lock_path(path).unlink(missing_ok=True)
    return kept


def _files(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(path for path in folder.iterdir() if _SUFFIX in path.suffixes and path.suffix != ".lock")
    return []


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file; raises TimeoutError (an OSError) where another process does not give it up."""
    # Imported here: it brings asyncio along, which an engine that remembers nothing does without.
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_lock_path(path), timeout=_LOCK_S):
        yield


def _record(answer: Sequence[int]) -> bytes:
    data = _little_endian(array("I", answer)).tobytes()
    return _HEAD.pack(len(answer), zlib.crc32(data)) + data


def _little_endian(tokens: array[int]) -> array[int]:
    if sys.byteorder == "big":
        tokens.byteswap()
    return tokens


def _ends_whole(path: Path) -> bool:
    """Whether the heads of the records lead exactly to the end of the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return False
        while head := file.read(_HEAD.size):
            if len(head) < _HEAD.size or file.seek(4 * _HEAD.unpack(head)[0], os.SEEK_CUR) > size:
                return False
    return True


def _read(path: Path) -> list[array[int]]:
    """Return the answers of a file, oldest first.

    A record that was cut off at the end, by a kill or a full disk, is left out. Any other damage sets the file aside.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    answers: list[array[int]] = []
    place = len(_MAGIC)
    is_sound = data.startswith(_MAGIC) or _MAGIC.startswith(data)
    while is_sound and place + _HEAD.size <= len(data):
        count, checksum = _HEAD.unpack_from(data, place)
        end = place + _HEAD.size + 4 * count
        if end > len(data):
            break
        body = data[place + _HEAD.size : end]
        is_sound = zlib.crc32(body) == checksum
        answers.append(_little_endian(array("I", body)))
        place = end
    if is_sound:
        return answers
    aside = path.with_name(path.name + ".damaged")
    _LOGGER.warning("earlier answers in %s are damaged and set aside as %s", path.name, aside.name)
    os.replace(path, aside)
    return []


def _split(text: Sequence[int]) -> list[list[int]]:
    answers: list[list[int]] = [[]]
    for token in text:
        if token == SEPARATOR:
            answers.append([])
        else:
            answers[-1].append(token)
    return [answer for answer in answers if answer]


def _newest(answers: Sequence[_Answer], most_tokens: int) -> list[_Answer]:
    """Return the latest answers that together have no more than so many tokens."""
    kept: list[_Answer] = []
    room = most_tokens
    for answer in reversed(answers):
        room -= len(answer)
        if room < 0:
            break
        kept.append(answer)
    kept.reverse()
    return kept
