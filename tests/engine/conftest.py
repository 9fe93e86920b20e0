"""Tiny models that several engine tests share, written and loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.engine.llama.loading import LoadedModel
from tests.engine_kit import load_model
from tests.tiny_gguf import CHATML, write_llama, write_mamba


@pytest.fixture(scope="session")
def tiny_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Paths by name: target, draft (agrees often), padded, mamba, endless (never ends by itself)."""
    folder = tmp_path_factory.mktemp("tiny")
    return {
        "target": write_llama(folder / "target.gguf", template=CHATML, can_end=False, name="tiny target"),
        "draft": write_llama(folder / "draft.gguf", noise=0.05, can_end=False, name="tiny draft"),
        "padded": write_llama(folder / "padded.gguf", pad_vocab=64, noise=0.05, can_end=False, name="tiny padded"),
        "other": write_llama(folder / "other.gguf", n_vocab=600, can_end=False, name="tiny other"),
        "ending": write_llama(folder / "ending.gguf", template=CHATML, name="tiny ending"),
        "mamba": write_mamba(folder / "mamba.gguf"),
    }


@pytest.fixture(scope="session")
def tiny_target(tiny_files: dict[str, Path]) -> Iterator[LoadedModel]:
    loaded = load_model(tiny_files["target"])
    yield loaded
    loaded.close()


@pytest.fixture(scope="session")
def tiny_draft(tiny_files: dict[str, Path]) -> Iterator[LoadedModel]:
    loaded = load_model(tiny_files["draft"])
    yield loaded
    loaded.close()
