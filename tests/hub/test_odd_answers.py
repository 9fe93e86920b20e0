"""Commands against a Hub whose answers are odd, and caches in which something was damaged or planted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.hub.commanding import TARGET, TARGET_FILE, CommandLine, Files, add_models
from tests.hub.downloading import blobs_of
from tests.hub.server import TestHub

HUGE = 10**400


def answer(hub: TestHub, path: str, document: object) -> None:
    hub.fault(path, body=json.dumps(document).encode())


def siblings(*names: str, size: int = 5) -> list[dict[str, Any]]:
    return [{"rfilename": name, "size": size} for name in names]


def test_names_that_are_not_used_are_counted(hub: TestHub, files: Files, command: CommandLine) -> None:
    hub.add_repo(TARGET, {TARGET_FILE: files.target, "a\x1b[31m-Q4_0.gguf": b"x", "../b-Q8_0.gguf": b"x"})
    assert "2 files have names that are not used here" in command("show", TARGET).out
    assert command("show", TARGET, "--json").document["num_unsafe_files"] == 2
    hub.add_repo("maker/Foul", {"a\n-Q4_0.gguf": b"x"})
    assert "1 file has a name that is not used here" in command("show", "maker/Foul").fails().err


def test_numbers_beyond_all_bounds_do_no_harm(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    listing = {"sha": "a" * 40, "siblings": siblings("m-Q8_0.gguf", size=HUGE), "downloads": HUGE}
    answer(hub, "api/models", [{"id": TARGET, "downloads": HUGE, "likes": HUGE, "gguf": {"total": HUGE}}])
    answer(hub, TARGET, listing)
    found = command("search", "x")
    assert found.code == 0 and TARGET in found.out
    for arguments in (("show", TARGET), ("pull", TARGET, "--yes"), ("pair", TARGET)):
        command(*arguments).fails(1)


def test_of_thousands_of_offers_the_first_are_shown(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    hub.repositories[TARGET].put({})
    names = [f"x-{index}-Q8_0.gguf" for index in range(500)]
    content = files.target.stat().st_size
    document = {"sha": hub.repositories[TARGET].commit, "siblings": siblings(*names, TARGET_FILE, size=content)}
    answer(hub, f"api/models/{TARGET}/revision/main", document)
    shown = command("show", f"{TARGET}:F32")
    assert shown.code == 0, shown.text
    assert "301 more, larger ones are not shown" in shown.out


def test_a_damaged_header_heals(hub: TestHub, files: Files, command: CommandLine, tmp_path: Path) -> None:
    add_models(hub, files)
    first = command("show", TARGET)
    (header,) = (tmp_path / "cache" / "headers").rglob("*.gguf")
    size = header.stat().st_size
    header.write_bytes(bytes(size))
    second = command("show", TARGET)
    assert second.code == 0 and second.out == first.out


def test_a_pipe_among_the_notes_of_downloads_is_not_waited_for(hub: TestHub, command: CommandLine) -> None:
    blobs = blobs_of(hub)
    blobs.mkdir(parents=True)
    (blobs / f"{'d' * 64}.localspec.partial").write_bytes(b"x")
    os.mkfifo(blobs / f"{'d' * 64}.localspec.json")
    assert command("models").code == 0
    assert command("remove", "--partial", "--yes").code == 0
    assert not blobs.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [("HF_ENDPOINT", "http://[::1"), ("HF_HUB_DOWNLOAD_TIMEOUT", "abc"), ("HTTP_PROXY", "foo://bar")],
)
def test_a_wrong_variable_is_named(
    hub: TestHub, command: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    for arguments in (("search", "x"), ("show", TARGET), ("pull", TARGET), ("pair", TARGET)):
        assert f"error: {name} " in command(*arguments).fails().err
    assert command("models").code == 0
    assert not hub.requests
