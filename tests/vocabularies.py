"""The vocabulary-only GGUFs of llama-cpp-python's source distribution, which are no part of this repository.

`python -m tests.vocabularies FOLDER` fetches the distribution with pip and unpacks just those files.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from importlib import metadata
from pathlib import Path

NUM_VOCABULARIES = 19

_GIVEN = os.environ.get("LOCALSPEC_VOCAB_DIR", "")
"""From the environment as it was at import."""
_MEMBER = re.compile(r"[^/]+/vendor/llama\.cpp/models/(ggml-vocab-[a-z0-9-]+\.gguf)")


def folder() -> Path:
    """Return where the files are looked for: LOCALSPEC_VOCAB_DIR, else beside the interpreter's environment."""
    return Path(_GIVEN) if _GIVEN else Path(sys.prefix) / "vocabularies"


def find() -> tuple[Path, ...]:
    """Return the files that are there, by name."""
    return tuple(sorted(folder().glob("ggml-vocab-*.gguf")))


def fetch(destination: Path) -> None:
    """Fetch the files of the installed version. Ones that are there are kept.

    Raises:
        subprocess.CalledProcessError: pip could not fetch the distribution.
        ValueError: the distribution does not hold the files that it should.
    """
    destination.mkdir(parents=True, exist_ok=True)
    if len(list(destination.glob("ggml-vocab-*.gguf"))) == NUM_VOCABULARIES:
        return
    wanted = f"llama-cpp-python=={metadata.version('llama-cpp-python')}"
    with tempfile.TemporaryDirectory() as scratch:
        # pip asks the distribution for its metadata too, which compiles nothing.
        arguments = ["download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-python", "--dest", scratch, wanted]
        subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments], check=True)
        (archive,) = Path(scratch).glob("*.tar.gz")
        count = _unpack(archive, destination)
    if count != NUM_VOCABULARIES:
        raise ValueError(f"{wanted} holds {count} vocabularies, not {NUM_VOCABULARIES}")


def _unpack(archive: Path, destination: Path) -> int:
    count = 0
    with tarfile.open(archive) as files:
        for member in files:
            match = _MEMBER.fullmatch(member.name)
            source = files.extractfile(member) if match is not None and member.isfile() else None
            if match is None or source is None:
                continue
            partial = destination / f"{match[1]}.partial"
            partial.write_bytes(source.read())
            partial.replace(destination / match[1])
            count += 1
    return count


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
