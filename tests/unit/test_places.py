"""Where models may lie."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localspec.catalog.places import Place, folder_notes, hugging_face_folder, places, recognise, suggest_places
from localspec.errors import SettingsError
from localspec.settings import ModelsGroup, load_settings


def _touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF")
    return path


HUB_ENVIRONMENTS: list[dict[str, str]] = [
    {},
    {"XDG_CACHE_HOME": "/xdg"},
    {"XDG_CACHE_HOME": "/xdg", "HF_HOME": "~/hf"},
    {"HF_HOME": "$OTHER/hf"},
    {"HUGGINGFACE_HUB_CACHE": "~/old"},
    {"HUGGINGFACE_HUB_CACHE": "/old", "HF_HUB_CACHE": "$OTHER/new", "HF_HOME": "/home"},
    {"HF_HUB_CACHE": "~nobody-of-this-name/x"},
]

ASK_BOTH = """
import json, os, sys
from localspec.catalog.places import hugging_face_folder
ours, theirs = [], []
base = dict(os.environ)
for environment in json.loads(sys.argv[1]):
    os.environ.clear()
    os.environ.update({**base, **environment})
    ours.append(str(hugging_face_folder()))
    assert "huggingface_hub" not in sys.modules
    from huggingface_hub import constants
    theirs.append(constants.HF_HUB_CACHE)
    for name in [name for name in sys.modules if name.startswith("huggingface_hub")]:
        del sys.modules[name]
print(json.dumps([ours, theirs]))
"""


def test_the_hubs_cache_is_where_huggingface_hub_has_it() -> None:
    import json

    environ = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-c", ASK_BOTH, json.dumps(HUB_ENVIRONMENTS)],
        env={**environ, "HOME": "/home/somebody", "OTHER": "/other", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = json.loads(done.stdout)
    assert ours == [str(Path(place)) for place in theirs]
    assert len(set(ours)) > 4


@pytest.mark.parametrize("name", ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"])
def test_an_empty_variable_does_not_mean_the_current_folder(name: str) -> None:
    assert hugging_face_folder({name: ""}) == hugging_face_folder({})
    assert hugging_face_folder({"HF_HOME": "/hf", "HF_HUB_CACHE": ""}) == Path("/hf/hub")


def test_places_come_in_order_of_precedence_and_only_if_they_exist(tmp_path: Path) -> None:
    environ = {
        "LOCALSPEC_DATA": str(tmp_path / "data"),
        "LOCALSPEC_CACHE": str(tmp_path / "cache"),
        "HF_HUB_CACHE": str(tmp_path / "hub"),
    }
    assert places(ModelsGroup(folders=(tmp_path / "gone",)), environ) == ()
    assert not (tmp_path / "data").exists()
    for name in ("data/models", "cache/demo", "hub", "mine"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "same").symlink_to(tmp_path / "mine")
    models = ModelsGroup(folders=(tmp_path / "mine", tmp_path / "same", tmp_path / "hub", tmp_path / "gone"))
    assert places(models, environ) == (
        Place("localspec", tmp_path / "data" / "models"),
        Place("demo", tmp_path / "cache" / "demo"),
        Place("hugging face", tmp_path / "hub"),
        Place("folder", tmp_path / "mine"),
    )


def test_a_folder_that_is_not_there_is_a_note(tmp_path: Path) -> None:
    _touch(tmp_path / "file.gguf")
    notes = folder_notes(ModelsGroup(folders=(tmp_path, tmp_path / "gone", tmp_path / "file.gguf")))
    assert notes == (
        f"The folder {tmp_path / 'gone'} of the settings is not there.",
        f"The folder {tmp_path / 'file.gguf'} of the settings is no folder.",
    )


@pytest.mark.parametrize(
    ("files", "kind", "below"),
    [
        (["a.gguf"], "folder", ""),
        (["publisher/repo/a.gguf", "publisher/repo/mmproj.gguf", "other/r/config.json"], "lm studio", ""),
        (["publisher/repo/a.gguf", "b.gguf"], "folder", ""),
        (["publisher/repo/a.gguf", "publisher/b.gguf"], "folder", ""),
        (["a/b/c/d.gguf"], "folder", ""),
        (["manifests/registry.ollama.ai/library/m/t", "blobs/sha256-0"], "ollama", ""),
        (["models/manifests/x", "models/blobs/x"], "ollama", "models"),
        (["models--o--n/snapshots/c/x.gguf"], "hugging face", ""),
        (["hub/models--o--n/snapshots/c/x.gguf"], "hugging face", "hub"),
    ],
)
def test_a_folder_is_known_by_its_shape(files: list[str], kind: str, below: str, tmp_path: Path) -> None:
    for name in files:
        _touch(tmp_path / name)
    place = recognise(tmp_path)
    assert (place.kind, place.folder) == (kind, tmp_path / below)


def test_lm_studios_own_folder_is_known_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / ".lmstudio" / "models"
    folder.mkdir(parents=True)
    assert recognise(folder).kind == "lm studio"


def test_usual_folders_are_suggested_unless_the_settings_have_them(tmp_path: Path) -> None:
    studio = tmp_path / ".lmstudio" / "models"
    studio.mkdir(parents=True)
    for store in (tmp_path / ".ollama" / "models", tmp_path / "moved"):
        (store / "manifests").mkdir(parents=True)
        (store / "blobs").mkdir()
    (tmp_path / "var").mkdir()
    environ = {"OLLAMA_MODELS": str(tmp_path / "moved")}
    shared = (str(tmp_path / "var"),)
    assert suggest_places(ModelsGroup(), environ, tmp_path, shared) == (
        Place("lm studio", studio),
        Place("ollama", tmp_path / "moved"),
        Place("ollama", tmp_path / ".ollama" / "models"),
    )
    known = ModelsGroup(folders=(studio, tmp_path / ".ollama"))
    assert suggest_places(known, environ, tmp_path, shared) == (Place("ollama", tmp_path / "moved"),)


@pytest.mark.parametrize("form", ["{a}{sep}{b}", '["{a}", "{b}"]', "{a}{sep}{sep}{b}"])
def test_folders_come_from_a_variable_as_in_path_or_as_json(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = form.format(a="/a b", b="~/models", sep=os.pathsep)
    monkeypatch.setenv("LOCALSPEC_MODELS__FOLDERS", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_settings(file=tmp_path / "none").models.folders == (Path("/a b"), tmp_path / "models")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('["here"]', "whole path"),
        ('["~nobody-of-this-name/x"]', "no user of that name"),
        ('"[broken"', "JSON list"),
        ('["/a\\u0000"]', "whole path"),
        ("[true]", r"a list of folders, each of them a text, not \[True\]"),
        ("[1]", "a list of folders"),
        ("'[1]'", "a list of folders"),
        ("3", "a list of folders"),
        ("{a = 1}", "a list of folders"),
    ],
)
def test_folders_that_cannot_be_meant_are_refused(text: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f"[models]\nfolders = {text}\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=complaint) as caught:
        load_settings(file=file)
    assert "models.folders: " in caught.value.message
    assert "tuple" not in caught.value.message and "class" not in caught.value.message


def test_an_environment_without_variables_gives_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hugging_face_folder({}) == tmp_path / ".cache" / "huggingface" / "hub"
