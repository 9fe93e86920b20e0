from __future__ import annotations

import json
from pathlib import Path

import pytest

from localspec.catalog.found_model import FoundModel
from localspec.cli.advice import command_line
from localspec.cli.kit import kit_parts
from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.errors import ModelFileError
from tests.candidate_kit import engine


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DATA", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    folder = tmp_path / "data" / "models"
    folder.mkdir(parents=True)
    return folder


def test_parts_keep_published_names() -> None:
    shards = (Path("/hf/m-00001-of-00002.gguf"), Path("/hf/m-00002-of-00002.gguf"))
    found = FoundModel("o/m:Q4_0", shards[0], shards, "hugging face", "o/m", "Q4_0", commit="c" * 40)
    parts = kit_parts("target", found, "mit")
    assert [part.file_name for part in parts] == [path.name for path in shards]
    assert {(part.role, part.repo, part.commit, part.licence) for part in parts} == {("target", "o/m", "c" * 40, "mit")}


def test_a_file_of_ollama_gets_a_name() -> None:
    blob = Path("/ollama/blobs/sha256-abc")
    [part] = kit_parts("draft", FoundModel("hf.co/o/m:../Q4 [x]", blob, (blob,), "ollama"), "")
    assert part.file_name == "hf.co-o-m-..-Q4-x-.gguf"


def test_a_model_that_is_not_whole_is_refused() -> None:
    found = FoundModel("m", Path("/m-1.gguf"), (Path("/m-1.gguf"),), "folder", missing=("m-2.gguf",))
    with pytest.raises(ModelFileError, match=r"m-2\.gguf is missing"):
        kit_parts("target", found, "")


@pytest.mark.parametrize("names", [("a-target", "z-draft"), ("z-target", "a-draft")])
def test_the_advice_after_an_import_keeps_the_roles(
    names: tuple[str, str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for name in names:
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(b"GGUF" + name.encode())
        paths.append(str(path))
    kit = tmp_path / "kit"
    services = Services(make_engine=engine)
    assert run(["kit", "export", str(kit), paths[0], "--draft", paths[1]], services) == 0
    out = capsys.readouterr().out
    assert f"2 files, 23 bytes, in {kit}." in out
    assert "On the other machine: localspec kit import kit" in out
    assert run(["kit", "import", str(kit)], services) == 0
    assert f"  localspec bench {names[0]} --draft {names[1]}\n" in capsys.readouterr().out
    assert run(["kit", "import", str(kit), "--json"], services) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["names"] == list(names)
    assert [Path(file).parent for file in document["files"]] == [data, data]


def test_a_target_alone(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "alone.gguf"
    model.write_bytes(b"GGUF alone")
    services = Services(make_engine=engine)
    assert run(["kit", "export", str(tmp_path / "kit"), str(model)], services) == 0
    assert "1 file, 10 bytes, in " in capsys.readouterr().out
    assert run(["kit", "import", str(tmp_path / "kit")], services) == 0
    out = capsys.readouterr().out
    assert "Verified and copied: alone." in out and "  localspec bench alone --method ngram\n" in out
    assert run(["kit", "import", str(tmp_path / "kit")], services) == 0
    assert "All of it is here already, and is what it should be: alone." in capsys.readouterr().out


def test_commands_can_be_copied_into_a_shell() -> None:
    assert command_line("localspec", "pair", "o/m:Q4_0@c0ffee") == "localspec pair o/m:Q4_0@c0ffee"
    assert command_line("localspec", "pair", "$(rm -rf ~)'s") == """localspec pair '$(rm -rf ~)'"'"'s'"""
    assert "cannot be shown" in command_line("x", "a\x1b[31m\nb")
