"""Headers without a vocabulary, which open in milliseconds and take a few KiB on disk.

A model's memory depends on the number of its tokens and not on what they are. The copy says `no_vocab` and that number,
keeps everything else, and is as long as the model with a hole for the weights, since llama.cpp checks that every
tensor lies within the file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from localspec.catalog.gguf_walk import printable
from localspec.catalog.header import ArrayValue, GgufHeader
from localspec.catalog.hub.sparse import extend_sparse
from localspec.engine.llama import ggml, log
from localspec.engine.llama.header import SHARD_NAME, read_header
from localspec.errors import LocalspecError
from localspec.paths import cache_dir

FORMAT = 1
"""Of the copies: one more whenever they are made in another way."""

MAX_STUBS = 128
"""Models whose copies are kept; the oldest go first."""

_TOKENIZER = "tokenizer."
_MAX_SHARDS = 1000
_TRIAL_BYTES = 4 << 20
_TEMPORARY = ".part-"


class Stubs:
    """The copies of one folder, one folder a model within it.

    Args:
        folder: where they lie; None for localspec's cache.
        max_stubs: how many are kept.
    """

    def __init__(self, folder: Path | None = None, max_stubs: int = MAX_STUBS) -> None:
        self._folder = folder
        self._max_stubs = max_stubs

    def header_of(self, path: str) -> GgufHeader:
        """Return the header of a model's copy, made now if need be; where that cannot be done, the model's own.

        A copy stands for its model until name, size or time of modification of one of its files changes.

        Args:
            path: a GGUF, or any file of a split one.

        Raises:
            ModelFileError: the model is missing, damaged or not supported.
        """
        try:
            place = (self._folder or cache_dir() / "stubs") / name_of_content(path)
            if place.is_dir():
                return read_header(str(min(place.iterdir())))
        except (LocalspecError, OSError, ValueError):
            place = None
        header = read_header(path)
        if place is None:
            return header
        try:
            self._make(header, place)
            return read_header(str(min(place.iterdir())))
        except (LocalspecError, OSError, ValueError) as error:
            log.logger.info("no copy of the header of %s: %s", printable(path), error)
            return header

    def _make(self, header: GgufHeader, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        self._drop_oldest(place.parent)
        work = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=place.parent))
        try:
            _check_holes(work)
            for shard in header.shards:
                _write(shard, work / os.path.basename(shard), header)
            # Another process may have been faster; its copy is as good.
            with suppress(OSError):
                work.rename(place)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _drop_oldest(self, folder: Path) -> None:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime, reverse=True)
        for old in entries[self._max_stubs - 1 :]:
            shutil.rmtree(old, ignore_errors=True)


def name_of_content(path: str) -> str:
    """Return a name that stands for a model's present content: another as soon as one of its files is another.

    Raises:
        OSError: there is no such file.
    """
    parts = [str(FORMAT)]
    for file in _files(path):
        status = os.stat(file)
        parts += [os.path.abspath(file), str(status.st_size), str(status.st_mtime_ns)]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _files(path: str) -> list[str]:
    """Return a model's files as far as its name tells; that they belong together is seen when they are read."""
    match = SHARD_NAME.fullmatch(os.path.basename(path))
    count = int(match["count"]) if match is not None else 1
    if match is None or not 1 < count <= _MAX_SHARDS:
        return [path]
    stem = os.path.join(os.path.dirname(path), match["stem"])
    files = [f"{stem}-{index:05d}-of-{count:05d}.gguf" for index in range(1, count + 1)]
    return files if all(os.path.exists(file) for file in files) else [path]


def _check_holes(folder: Path) -> None:
    """Try whether files in a folder may have holes; elsewhere a copy would take as much room as the model.

    Raises:
        OSError: they may not.
    """
    path = folder / "trial"
    try:
        with path.open("wb") as file:
            extend_sparse(file, 0, _TRIAL_BYTES)
        # Windows does not say; there, setting the whole size aside costs no time, and room only while there is some.
        blocks: int = getattr(path.stat(), "st_blocks", 0)
        if blocks * 512 >= _TRIAL_BYTES:
            raise OSError(f"{folder} has no sparse files")
    finally:
        path.unlink(missing_ok=True)


def _write(source: str, destination: Path, header: GgufHeader) -> None:
    """Write the copy of one file.

    Raises:
        OSError, ValueError, MissingSymbolError: it cannot be done.
    """
    with ggml.GgufContext(source) as context:
        size_bytes = max(
            (context.tensor_offset(index) + context.tensor_bytes(index) for index in range(context.num_tensors)),
            default=0,
        )
        keys = [context.key(index) for index in range(context.num_keys)]
        tokenizer = [key for key in keys if key.startswith(_TOKENIZER)]
        for key in tokenizer:
            context.remove_key(key)
        if tokenizer:
            context.set_text("tokenizer.ggml.model", "no_vocab")
            tokens = header.metadata.get("tokenizer.ggml.tokens")
            if isinstance(tokens, ArrayValue):
                context.set_number(f"{header.architecture}.vocab_size", tokens.length)
        context.write_header(str(destination))
    with destination.open("r+b") as file:
        header_bytes = file.seek(0, os.SEEK_END)
        extend_sparse(file, header_bytes, header_bytes + size_bytes)
