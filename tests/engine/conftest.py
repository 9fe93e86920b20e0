"""Tiny models that several engine tests share, written and loaded once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from localspec.engine.client import EngineClient
from localspec.engine.llama.loading import LoadedModel
from localspec.errors import ModelFileError
from localspec.hardware.cores import read_cores
from localspec.session.demo import DemoModels
from tests.bench.in_process import InProcessPair
from tests.bench.models import TEST_CACHE, copy_models
from tests.engine_kit import PAIR_N_CTX, load_model
from tests.tiny_gguf import CHATML, write_llama, write_mamba
from tests.worker_streams import COMMAND, assert_nothing_is_left


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[EngineClient]:
    """A client of an engine process that only plays one, and that leaves nothing."""
    client = EngineClient(tmp_path / "engine.log", command=COMMAND)
    yield client
    await client.close()
    await assert_nothing_is_left()


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


@pytest.fixture(scope="session")
def models(request: pytest.FixtureRequest) -> DemoModels:
    """The F16 target and its Q4_0 draft, copied once and kept for later runs."""
    folder = Path(TEST_CACHE) if TEST_CACHE else request.config.cache.mkdir("localspec-models")
    try:
        return copy_models(folder)
    except ModelFileError as error:
        pytest.skip(error.message)


@pytest.fixture(scope="session")
def pair(models: DemoModels) -> Iterator[InProcessPair]:
    """Both loaded in this process."""
    loaded = InProcessPair(models.target, models.draft, PAIR_N_CTX, read_cores().physical)
    yield loaded
    loaded.close()
