"""What all tests share: folders of their own, and an environment without the user's settings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from localspec.engine.client import EngineClient
from tests.forked_worker import waiting_process

# Enough to catch a slip at every run; HYPOTHESIS_PROFILE=thorough looks for the rare ones.
hypothesis.settings.register_profile("quick", max_examples=25)
hypothesis.settings.register_profile("thorough", max_examples=500, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# matplotlib looks for its folder when it is imported, and that is before any fixture.
os.environ.setdefault("MPLCONFIGDIR", str(Path(tempfile.gettempdir()) / "localspec-tests-matplotlib"))

_FOLDERS = ("LOCALSPEC_CONFIG", "LOCALSPEC_DATA", "LOCALSPEC_CACHE", "LOCALSPEC_LOG")


@pytest.fixture(scope="session")
def worker_command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """What starts an engine process quickly; nothing where processes cannot be forked."""
    if not hasattr(os, "fork"):
        yield ()
        return
    # The path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="ls") as folder, waiting_process(Path(folder) / "s") as command:
        yield command


@pytest.fixture
def quick_engines(worker_command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have engines start in a few milliseconds, for tests that start many and are about something else."""
    if worker_command:
        defaults = EngineClient.__init__.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "command", worker_command)


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep every test out of the user's folders and settings; one set for all, so that model copies are shared."""
    base = tmp_path_factory.mktemp("localspec")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.upper().startswith("LOCALSPEC_")]:
            patch.delenv(name)
        for name in _FOLDERS:
            patch.setenv(name, str(base / name.removeprefix("LOCALSPEC_").lower()))
        # Tables are compared as text: no colours, and the same width wherever the tests run.
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "120")
        patch.delenv("FORCE_COLOR", raising=False)
        yield
