"""Places on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from localspec import paths
from localspec.errors import LocalspecError

FOLDERS: list[tuple[str, Callable[[Mapping[str, str]], Path]]] = [
    ("LOCALSPEC_CONFIG", paths.config_dir),
    ("LOCALSPEC_DATA", paths.data_dir),
    ("LOCALSPEC_CACHE", paths.cache_dir),
    ("LOCALSPEC_LOG", paths.log_dir),
]


@pytest.mark.parametrize(("variable", "folder"), FOLDERS)
def test_a_variable_moves_a_folder_and_it_is_made(
    variable: str, folder: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    wanted = tmp_path / "a" / "ü b"
    assert folder({variable: str(wanted)}) == wanted
    assert wanted.is_dir()


@pytest.mark.parametrize(("variable", "folder"), FOLDERS)
def test_each_folder_heeds_only_its_own_variable(
    variable: str, folder: Callable[[Mapping[str, str]], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_dirs", lambda: _Fixed(tmp_path))
    others = {name: str(tmp_path / "other") for name, _ in FOLDERS if name != variable}
    assert folder(others) == tmp_path / "default"
    assert folder({variable: ""}) == tmp_path / "default"


class _Fixed:
    def __init__(self, base: Path) -> None:
        self.user_config_path = self.user_data_path = self.user_cache_path = self.user_log_path = base / "default"


def test_a_relative_folder_does_not_move_with_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert paths.data_dir({"LOCALSPEC_DATA": "here"}) == tmp_path / "here"
    assert paths.data_dir({"LOCALSPEC_DATA": "here"}).is_absolute()


@pytest.mark.parametrize(("variable", "folder"), FOLDERS)
def test_a_file_in_the_way_is_a_clear_error(
    variable: str, folder: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for wanted in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(LocalspecError) as caught:
            folder({variable: str(wanted)})
        assert str(wanted) in caught.value.message
        assert variable in caught.value.hint


def test_an_unwritable_folder_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permission bits do not bind root, so the system's answer is replaced.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(LocalspecError, match="Cannot write"):
        paths.cache_dir({"LOCALSPEC_CACHE": str(tmp_path)})


def test_an_impossible_name_is_a_clear_error() -> None:
    with pytest.raises(LocalspecError, match="LOCALSPEC_DATA"):
        paths.data_dir({"LOCALSPEC_DATA": "~no-such-user-here/x"})
    with pytest.raises(LocalspecError):
        paths.data_dir({"LOCALSPEC_DATA": "nul\0inside"})


def test_looking_for_settings_makes_no_folder(tmp_path: Path) -> None:
    assert paths.settings_file({"LOCALSPEC_CONFIG": str(tmp_path / "new")}) == tmp_path / "new" / "settings.toml"
    assert not (tmp_path / "new").exists()


def test_the_engine_log_lies_in_the_log_folder(tmp_path: Path) -> None:
    file = paths.engine_log_file({"LOCALSPEC_LOG": str(tmp_path / "log")})
    assert file.parent == tmp_path / "log"
    assert file.parent.is_dir()


def test_data_of_this_installation_is_found() -> None:
    assert list(paths.prompts_dir().glob("*.toml"))
    assert paths.curated_models_dir().is_dir()


def test_the_wheels_data_wins_over_a_repository_beside_it(tmp_path: Path) -> None:
    package = tmp_path / "localspec"
    (tmp_path / "assets" / "prompts").mkdir(parents=True)
    package.mkdir()
    assert paths.prompts_dir(package) == tmp_path / "assets" / "prompts"
    (package / "_data" / "prompts").mkdir(parents=True)
    assert paths.prompts_dir(package) == package / "_data" / "prompts"
    with pytest.raises(LocalspecError, match="models"):
        paths.curated_models_dir(package)
