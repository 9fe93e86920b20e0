"""Checking pairs of files: headers and vocabularies are read by llama.cpp itself, weights are not."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import llama_cpp.llama_cpp as C

from localspec.catalog.facts import draft_kind
from localspec.catalog.header import GgufHeader
from localspec.catalog.pairing import PairSide, PairVerdict, check_pair
from localspec.engine.llama import log
from localspec.engine.llama.header import read_header
from localspec.engine.llama.library import start_library
from localspec.engine.llama.token_texts import repeated_text
from localspec.engine.llama.vocabulary import Vocabulary
from localspec.engine.model import Cancelled
from localspec.errors import ModelFileError, ModelLoadError

_NO_VOCABULARY = 0
"""LLAMA_VOCAB_TYPE_NONE."""


class VocabularyFile:
    """The vocabulary of a GGUF, loaded without weights. A sparse file that holds only the header will do."""

    def __init__(self, header: GgufHeader) -> None:
        """Load it.

        Raises:
            ModelLoadError: the file has no vocabulary, or llama.cpp could not load it.
        """
        self._model: Any = None
        if reason := repeated_text(header):
            raise ModelLoadError(reason, "Look for another conversion of the model.")
        start_library()
        params = C.llama_model_default_params()
        params.vocab_only = True
        mark = log.position()
        self._model = _load([_encoded(path) for path in header.shards or (header.path,)], params)
        if not self._model:
            reason = log.last_error(mark) or "it gave no reason"
            raise ModelLoadError(f"llama.cpp could not load it: {reason}", "The file may need a newer llama.cpp.")
        self.vocabulary = Vocabulary(self._model)
        if self.vocabulary.type == _NO_VOCABULARY:
            self.close()
            raise ModelLoadError("the file holds none", "Look for another conversion of the model.")

    def close(self) -> None:
        """Free it; the vocabulary must not be used any more. Safe to call twice."""
        if self._model:
            C.llama_model_free(self._model)
            self._model = None


def check_pairs(
    target_path: str, draft_paths: Sequence[str], is_cancelled: Callable[[], bool] = lambda: False
) -> tuple[PairVerdict, ...]:
    """Say of each draft file whether it can draft for the target. What cannot be read is UNKNOWN, with the reason.

    Args:
        target_path: a GGUF, or any file of a split one; only headers are read, so that sparse files will do.
        draft_paths: likewise.
        is_cancelled: asked before each file.

    Raises:
        Cancelled: is_cancelled said so.
    """
    try:
        target_header = read_header(target_path)
    except ModelFileError as error:
        return tuple(PairVerdict("UNKNOWN", _without_stop(error.message)) for _ in draft_paths)
    verdicts = []
    # Read when the first draft needs it.
    target: VocabularyFile | None = None
    failure = ""
    try:
        for path in draft_paths:
            if is_cancelled():
                raise Cancelled
            try:
                draft_header = read_header(path)
            except ModelFileError as error:
                verdicts.append(PairVerdict("UNKNOWN", _without_stop(error.message)))
                continue
            if draft_kind(target_header) is not None or draft_kind(draft_header) is not None:
                verdicts.append(check_pair(PairSide(target_header, None), PairSide(draft_header, None)))
                continue
            if target is None and not failure:
                try:
                    target = VocabularyFile(target_header)
                except ModelLoadError as error:
                    failure = _without_stop(error.message)
            ours = PairSide(target_header, target.vocabulary if target is not None else None, failure)
            with _side(draft_header) as theirs:
                verdicts.append(check_pair(ours, theirs))
    finally:
        if target is not None:
            target.close()
    return tuple(verdicts)


@contextmanager
def _side(header: GgufHeader) -> Iterator[PairSide]:
    try:
        file = VocabularyFile(header)
    except ModelLoadError as error:
        yield PairSide(header, None, _without_stop(error.message))
        return
    try:
        yield PairSide(header, file.vocabulary)
    finally:
        file.close()


def _load(paths: list[bytes], params: Any) -> Any:
    if len(paths) == 1:
        return C.llama_model_load_from_file(paths[0], params)
    return C.llama_model_load_from_splits((ctypes.c_char_p * len(paths))(*paths), len(paths), params)


def _encoded(path: str) -> bytes:
    return path.encode("utf-8") if sys.platform == "win32" else os.fsencode(path)


def _without_stop(message: str) -> str:
    return message.removesuffix(".")
