"""The list of a kit, and the names in it: only plain files, however they are spelt."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localspec.catalog.kit import KitManifest, import_kit, read_manifest
from localspec.catalog.kit_manifest import name_fault
from localspec.errors import ModelFileError
from tests.unit.kit.folders import NAMES, edit


@pytest.mark.parametrize(
    "name",
    [
        "../up.gguf",
        "/etc/up.gguf",
        "a/b.gguf",
        "a\\b.gguf",
        "C:x.gguf",
        "nul.gguf",
        "COM1 .x.gguf",
        "a\0.gguf",
        "a\n.gguf",
        "a\x1b[31m.gguf",
        "a\u202efgug.gguf",
        ".hidden.gguf",
        "-rf.gguf",
        "a.sh",
        "a\u00a0.gguf",
        "a.gguf ",
        "..",
        "",
        "é" * 126 + ".gguf",
    ],
)
async def test_hostile_names_are_refused_before_anything_is_touched(kit: Path, models: Path, name: str) -> None:
    edit(kit, {"name": name})
    with pytest.raises(ModelFileError, match="no name for a file") as caught:
        await import_kit(kit, models)
    assert caught.value.message.isprintable()
    assert not models.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"size": -1},
        {"size": 2**60},
        {"sha256": "0" * 63},
        {"sha256": "G" * 64},
        {"role": "helper"},
        {"repo": "../../etc"},
        {"commit": "main"},
        {"name": NAMES[1].upper()},
        {"role": "draft"},
        {"licence": "x" * 1000},
    ],
    ids=str,
)
def test_a_list_with_nonsense_is_refused(kit: Path, change: dict[str, Any]) -> None:
    edit(kit, change)
    with pytest.raises(ModelFileError, match="is damaged"):
        read_manifest(kit)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b'{"version": 1, "files": [{"name": "\\ud800.gguf"}]}', "is damaged"),
        (b'{"version": 2, "parts": []}', "is of version 2"),
        (b" " * 2**20 + b"{}", "far too long"),
    ],
    ids=["empty", "deep", "half a character", "of the future", "long"],
)
def test_a_list_that_is_none_is_refused(kit: Path, text: bytes, message: str) -> None:
    (kit / "kit.json").write_bytes(text)
    with pytest.raises(ModelFileError, match=message):
        read_manifest(kit)


@given(st.text(max_size=40).map(lambda text: f"{text}.gguf"))
@example("a/../../b.gguf")
@example("aux.x.gguf")
def test_every_accepted_name_is_one_plain_file(name: str) -> None:
    if name_fault(name):
        with pytest.raises(ValueError, match="no name"):
            manifest(name)
        return
    assert Path(name).name == name == os.path.basename(name)
    assert "\\" not in name and ":" not in name and name.isprintable() and not name.startswith(".")
    assert manifest(name).files[0].name == name


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}-(Q[2-8]_[0K]|F16)(-0000[1-3]-of-00003)?\.gguf", fullmatch=True))
def test_published_names_are_accepted(name: str) -> None:
    if name.partition(".")[0].lower() not in {"con", "aux", "nul", "prn"}:
        assert name_fault(name) == ""


def manifest(name: str) -> KitManifest:
    """Return a list of one file."""
    file = {"name": name, "size": 1, "sha256": "0" * 64, "role": "target"}
    return KitManifest.model_validate({"localspec": "0", "files": [file]})
