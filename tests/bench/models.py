"""The pair that is measured: the demo's F16 target and Q4_0 draft."""

from __future__ import annotations

import os
from pathlib import Path

from localspec.catalog.embedded import DEMO_DRAFT, DEMO_TARGET, DerivedModel, find_smollm2
from localspec.engine.llama.quantize import quantize
from localspec.session.demo import DemoModels

TEST_CACHE = os.environ.get("LOCALSPEC_TEST_CACHE", "")
"""Folder for the tests' copies, from the environment as it was at import; empty for pytest's own cache."""


def copy_models(folder: Path) -> DemoModels:
    """Return the pair, and write the copies that the folder lacks, in this process.

    Raises:
        ModelFileError: the embedded model is not installed.
        LocalspecError: a copy could not be made.
    """
    source = find_smollm2()
    folder.mkdir(parents=True, exist_ok=True)
    return DemoModels(_copy(source, folder, DEMO_TARGET), _copy(source, folder, DEMO_DRAFT), None)


def _copy(source: Path, folder: Path, model: DerivedModel) -> Path:
    path = folder / model.file_name
    # Written under another name and renamed when complete, so one that is there is whole.
    if not path.is_file():
        quantize(str(source), str(path), model.quantisation, model.prune_layers)
    return path
