"""Environment variables by which the Hub is reached: each mistake is named, and nothing else is said of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localspec.catalog.hub.environment import check_environment
from localspec.errors import SettingsError

SECRET = "PASSWORD"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_ENDPOINT", "http://[::1"),
        ("HF_ENDPOINT", f"ftp://me:{SECRET}@hub"),
        ("HF_ENDPOINT", "https://hub:port"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "abc"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "-1"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "9" * 30),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "9" * 9000),
        ("HF_HUB_ETAG_TIMEOUT", "x"),
        ("HF_TOKEN", f"hf_ä{SECRET}"),
        ("HF_TOKEN", f"hf_\x1b{SECRET}"),
        ("HUGGING_FACE_HUB_TOKEN", f"„{SECRET}“"),
        ("HF_HUB_USER_AGENT_ORIGIN", "ö"),
        ("HF_HOME", __file__),
        ("HTTP_PROXY", f"foo://me:{SECRET}@bar"),
        ("https_proxy", "http://"),
        ("https_proxy", "http://host:port"),
        ("ALL_PROXY", "http://[::1"),
        ("SSL_CERT_FILE", "/no/such/file"),
        ("SSL_CERT_FILE", "/"),
        ("SSL_CERT_FILE", __file__),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_environment({name: value})
    assert caught.value.message.startswith(name) and caught.value.hint
    assert SECRET not in caught.value.message + caught.value.hint


def test_a_socks_proxy_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"ALL_PROXY": "socks5://127.0.0.1:9"}
    monkeypatch.setattr("localspec.catalog.hub.environment.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="ALL_PROXY names a SOCKS proxy"):
        check_environment(environ)
    monkeypatch.setattr("localspec.catalog.hub.environment.find_spec", lambda name: object())
    check_environment(environ)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        dict.fromkeys(("HF_ENDPOINT", "HF_HUB_DOWNLOAD_TIMEOUT", "HF_TOKEN", "HF_HOME", "HTTP_PROXY"), ""),
        {"HF_ENDPOINT": "http://127.0.0.1:8080/", "HF_HUB_ETAG_TIMEOUT": "30", "HF_TOKEN": "hf_token\n"},
        {"HTTP_PROXY": "proxy.example:3128", "https_proxy": "http://me:word@proxy", "NO_PROXY": "localhost"},
        {"HF_HOME": "/no/such/folder"},
    ],
)
def test_what_is_right_or_empty_passes(environ: dict[str, str]) -> None:
    check_environment(environ)


ASK = """
import os
from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.cache_layout import hub_cache
Hub()
from huggingface_hub import constants
print(constants.ENDPOINT, constants.HF_TOKEN_PATH, constants.HF_HUB_DOWNLOAD_TIMEOUT, hub_cache(), sep="\\n")
print(os.environ["HF_HOME"] == "")
"""


def test_empty_variables_count_as_not_set(tmp_path: Path) -> None:
    names = ("HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_DOWNLOAD_TIMEOUT", "HF_TOKEN_PATH", "XDG_CACHE_HOME")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    environ = kept | dict.fromkeys(names, "") | {"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    home = tmp_path / ".cache" / "huggingface"
    assert done.stdout.splitlines() == [
        "https://huggingface.co",
        str(home / "token"),
        "10",
        str(home / "hub"),
        "True",
    ]
