"""A Hub of each test's own, which huggingface_hub in this process takes for the real one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.asking import DATA, REPO
from tests.hub.commanding import CommandLine, Files, own_folders, write_files
from tests.hub.downloading import add_files
from tests.hub.server import TestHub, is_hub_variable


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestHub]:
    """A started Hub without repositories; huggingface_hub has no token, and an empty cache in `hub.home`."""
    from huggingface_hub import constants, hf_api
    from huggingface_hub.utils import _http

    home = tmp_path / "hf-home"
    home.mkdir()
    hub = TestHub(home)
    for name in [name for name in os.environ if is_hub_variable(name)]:
        monkeypatch.delenv(name)
    for name, value in hub.environment().items():
        if is_hub_variable(name):
            monkeypatch.setenv(name, value)
    # These were read from the environment when huggingface_hub was first imported.
    for name, value in {
        "ENDPOINT": hub.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HOME": str(home),
        "HF_HUB_CACHE": str(home / "hub"),
        "HUGGINGFACE_HUB_CACHE": str(home / "hub"),
        "HF_ASSETS_CACHE": str(home / "assets"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_STORED_TOKENS_PATH": str(home / "stored_tokens"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setattr(constants, "HF_URL_HOSTS", constants.HF_URL_HOSTS | {"127.0.0.1"})
    monkeypatch.setattr(_http, "_HUB_ORIGINS", _http._HUB_ORIGINS | {_http._url_origin(hub.url)})
    monkeypatch.setattr(hf_api.api, "endpoint", hub.url)
    _http.close_session()
    yield hub
    _http.close_session()
    hub.close()


@pytest.fixture
def tiny(hub: TestHub) -> TestHub:
    """A Hub with one repository of 2.3 MB."""
    hub.add_repo(REPO, {"a.gguf": DATA, "README.md": b"# Tiny"}, base_models=["maker/Tiny"], downloads=7)
    return hub


@pytest.fixture
def downloadable(hub: TestHub) -> None:
    """Have the Hub offer a model, and another in two shards."""
    add_files(hub)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Models to be published, not to be changed."""
    return write_files(tmp_path_factory.mktemp("published"))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of models, of the test's own."""
    return own_folders(tmp_path, monkeypatch)


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, data: Path, quick_engines: None
) -> CommandLine:
    """A command line in folders of the test's own."""
    return CommandLine(capsys, monkeypatch)
