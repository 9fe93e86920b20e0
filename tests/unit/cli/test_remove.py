from __future__ import annotations

import sys
from pathlib import Path

import pytest

from localspec.catalog.found_model import FoundModel
from localspec.catalog.places import PlaceKind
from localspec.cli.main import run
from localspec.engine.pacing_state import PacingState, to_text
from localspec.errors import UsageError
from localspec.session.pacing_memory import PacingMemory
from localspec.session.removing import check_removable, remove_model
from tests.made_up_machine import model_info

COMMIT = "c" * 40


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DATA", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    folder = tmp_path / "data" / "models"
    folder.mkdir(parents=True)
    return folder


def put(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.gguf"
    path.write_bytes(b"GGUF" + name.encode())
    return path


def add_folder(tmp_path: Path, *folders: Path) -> None:
    """Name folders in the settings."""
    (tmp_path / "config").mkdir()
    text = ", ".join(f"'{folder}'" for folder in folders)
    (tmp_path / "config" / "settings.toml").write_text(f"[models]\nfolders = [{text}]\n", "utf-8")


def test_a_model_of_our_own_goes(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone, kept = put(data, "gone"), put(data, "kept")
    assert run(["remove", "gone", "--yes"]) == 0
    out = capsys.readouterr().out
    assert out == f"gone: 8 bytes in {data}\nRemoved; 8 bytes freed.\n"
    assert kept.exists() and not gone.exists()


def test_nobody_to_ask_is_no_yes(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(data, "model")
    monkeypatch.setattr(sys, "stdin", None)
    assert run(["remove", "model"]) == 2
    assert "hint: Add --yes." in capsys.readouterr().err
    assert path.exists()


@pytest.mark.parametrize(
    ("place", "words"), [("lm studio", "LM Studio"), ("ollama", "ollama rm m"), ("folder", "/x/m.gguf")]
)
def test_what_others_keep_is_theirs(place: PlaceKind, words: str) -> None:
    model = FoundModel("m", Path("/x/m.gguf"), (Path("/x/m.gguf"),), place)
    with pytest.raises(UsageError) as failure:
        check_removable(model)
    assert words in f"{failure.value.message} {failure.value.hint}"
    with pytest.raises(UsageError):
        remove_model(model)


def test_files_elsewhere_are_refused_before_anything_goes(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, foreign = put(data, "own"), put(tmp_path / "mine", "foreign")
    studio = put(tmp_path / "studio" / "publisher" / "repo", "studio-Q4_0")
    cached = put(tmp_path / "old-hf" / "hub" / "models--o--m" / "snapshots" / COMMIT, "m-Q4_0")
    add_folder(tmp_path, foreign.parent, tmp_path / "studio", tmp_path / "old-hf")
    for name in ("foreign", "studio-Q4_0", "o/m:Q4_0", str(foreign)):
        assert run(["remove", "own", name, "--yes"]) == 2, name
        err = capsys.readouterr().err
        assert "localspec does not remove it" in err and "hint: " in err
    assert all(path.exists() for path in (own, foreign, studio, cached))


def test_a_cached_model_goes_with_its_empty_folders(data: Path, tmp_path: Path) -> None:
    cached = put(tmp_path / "hf" / "hub" / "models--o--m" / "snapshots" / COMMIT, "m-Q4_0")
    assert run(["remove", "o/m", "--yes"]) == 0
    assert not cached.exists()
    assert list((tmp_path / "hf" / "hub").iterdir()) == []


def test_all_shards_go_and_those_that_another_model_has_stay(data: Path) -> None:
    first, second = put(data, "m-00001-of-00002"), put(data, "m-00002-of-00002")
    model = FoundModel("m", first, (first, second), "localspec")
    other = FoundModel("n", second, (second,), "localspec")
    assert remove_model(model, [other]) == len("GGUFm-00001-of-00002")
    assert second.exists() and not first.exists()


def test_unknown_and_unclear_names(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(data, "tiny-Q4_0")
    put(data, "tiny-Q8_0")
    assert run(["remove", "tiny", "--yes"]) == 2
    assert "tiny-Q4_0, tiny-Q8_0" in capsys.readouterr().err
    assert run(["remove", "tini-Q4_0", "--yes"]) == 2
    assert "Nearest here: tiny-Q4_0" in capsys.readouterr().err
    assert run(["remove"]) == 2
    assert "--partial" in capsys.readouterr().err
    assert len(list(data.iterdir())) == 2


def test_one_name_twice_is_removed_once(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(data, "model")
    assert run(["remove", "model", str(path), "--yes"]) == 0
    assert "Removed; 9 bytes freed." in capsys.readouterr().out


def test_the_rest_goes_on_after_a_failure(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stuck, loose = put(data, "stuck"), put(data, "loose")
    unlink = Path.unlink

    def refusing(path: Path, missing_ok: bool = False) -> None:
        if path == stuck:
            raise PermissionError(13, "Permission denied")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refusing)
    assert run(["remove", "stuck", "loose", "--yes"]) == 1
    captured = capsys.readouterr()
    assert "stuck.gguf cannot be removed: Permission denied." in captured.err and "hint: " in captured.err
    assert "Removed; 9 bytes freed." in captured.out
    assert stuck.exists() and not loose.exists()


def test_nothing_goes_behind_a_linked_folder(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    precious, cached = put(tmp_path / "mine", "precious"), put(tmp_path / "ours", "m-Q4_0")
    (data / "link").symlink_to(precious.parent)
    repo = tmp_path / "hf" / "hub" / "models--o--m"
    (repo / "snapshots" / COMMIT).mkdir(parents=True)
    (repo / "snapshots" / COMMIT / "folder").symlink_to(cached.parent)
    for name in ("precious", "o/m"):
        assert run(["remove", name, "--yes"]) == 2, name
        captured = capsys.readouterr()
        assert "removes nothing there" in captured.err and "hint: Delete " in captured.err
        assert "Removed" not in captured.out
    assert precious.exists() and cached.exists()


@pytest.mark.parametrize("place", ["demo", "localspec"])
def test_a_folder_of_ours_that_is_a_link_is_not_ours(place: str, data: Path, tmp_path: Path) -> None:
    precious = put(tmp_path / "mine", "precious")
    home = data if place == "localspec" else tmp_path / "cache" / "demo"
    home.parent.mkdir(exist_ok=True)
    if place == "localspec":
        data.rmdir()
    home.symlink_to(precious.parent)
    assert run(["remove", "precious", "--yes"]) == 2
    assert precious.exists()


def test_of_a_link_only_the_link_goes(data: Path, tmp_path: Path) -> None:
    target = put(tmp_path / "mine", "target")
    (data / "name.gguf").symlink_to(target)
    assert run(["remove", "name", "--yes"]) == 0
    assert target.exists() and not (data / "name.gguf").is_symlink()


def test_a_folder_that_becomes_a_link_meanwhile(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = put(data / "sub", "m-00001-of-00002"), put(data / "sub", "m-00002-of-00002")
    precious = put(tmp_path / "mine", "m-00002-of-00002")
    unlink = Path.unlink

    def swapping(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok)
        first.parent.rename(data / "moved")
        first.parent.symlink_to(precious.parent)

    monkeypatch.setattr(Path, "unlink", swapping)
    with pytest.raises(UsageError):
        remove_model(FoundModel("m", first, (first, second), "localspec"))
    assert precious.exists()


def test_cached_bytes_that_lie_elsewhere_stay(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blob = tmp_path / "elsewhere" / ("b" * 64)
    blob.parent.mkdir()
    blob.write_bytes(b"GGUF")
    repo = tmp_path / "hf" / "hub" / "models--o--m"
    (repo / "snapshots" / COMMIT).mkdir(parents=True)
    (repo / "blobs").symlink_to(blob.parent)
    (repo / "snapshots" / COMMIT / "m-Q4_0.gguf").symlink_to(f"../../blobs/{blob.name}")
    run(["remove", "o/m", "--yes"])
    assert blob.exists()


def test_a_refused_removal_claims_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stuck = put(data, "stuck")

    def refusing(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refusing)
    assert run(["remove", "stuck", "--yes"]) == 1
    assert "Removed" not in capsys.readouterr().out
    assert stuck.exists()


def test_what_is_kept_for_drafting_goes_when_told(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["remove", "--answers", "--learnt", "--yes"]) == 0
    assert capsys.readouterr().out == "There is nothing to remove.\n"
    answers, learnt = data.parent / "answers", data.parent / "pacing"
    answers.mkdir()
    (answers / f"{'ab' * 16}.answers").write_bytes(b"x" * 400)
    PacingMemory().keep(model_info("/m.gguf"), None, to_text(PacingState({1: 0.01}, {})))
    kept = put(data, "kept")
    assert run(["remove", "--learnt", "--yes"]) == 0
    out = capsys.readouterr().out
    assert "what adaptive drafting has learnt of 1 pair of models" in out and "freed" in out
    assert not list(learnt.iterdir()) and len(list(answers.iterdir())) == 1
    assert run(["remove", "--answers", "--yes"]) == 0
    out = capsys.readouterr().out
    assert out == f"answers to copy from: about 100 tokens in {answers}\nRemoved; 400 bytes freed.\n"
    assert not [path for path in answers.iterdir() if path.suffix != ".lock"] and kept.exists()


def test_answers_go_only_after_a_yes(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (data.parent / "answers").mkdir()
    path = data.parent / "answers" / f"{'ab' * 16}.answers"
    path.write_bytes(b"x")
    monkeypatch.setattr(sys, "stdin", None)
    assert run(["remove", "--answers"]) == 2
    assert "Add --yes" in capsys.readouterr().err and path.exists()
