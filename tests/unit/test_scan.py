"""Finding models by the names and sizes of files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.catalog.file_names import group_names, is_model, quantisation_in, shard_names, stem_of
from localspec.catalog.places import Place, PlaceKind
from localspec.catalog.scan import FoundModel, scan

MODEL = "application/vnd.ollama.image.model"


def _put(path: Path, num_bytes: int = 4) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * num_bytes)
    return path


def _found(folder: Path, kind: PlaceKind = "folder") -> dict[str, FoundModel]:
    models = scan([Place(kind, folder)]).models
    assert len({model.name for model in models}) == len(models)
    return {model.name: model for model in models}


def _cached(cache: Path, repo: str, commit: str, path: str, blob: str, num_bytes: int = 4) -> Path:
    """Put a file into a Hugging Face cache; without bytes, a link that leads nowhere."""
    folder = cache / ("models--" + repo.replace("/", "--"))
    if num_bytes:
        _put(folder / "blobs" / blob, num_bytes)
    link = folder / "snapshots" / commit / path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(folder / "blobs" / blob, link.parent))
    return link


def _main(cache: Path, repo: str, commit: str) -> None:
    ref = cache / ("models--" + repo.replace("/", "--")) / "refs" / "main"
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text(commit)


def _manifest(store: Path, name: str, *layers: tuple[str, str]) -> None:
    file = store / "manifests" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"layers": [{"mediaType": kind, "digest": digest} for kind, digest in layers]}))


@pytest.mark.parametrize(
    ("name", "quantisation"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1"),
        ("ggml-model-q4_0.gguf", "Q4_0"),
        ("qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf", "Q4_K_M"),
        ("Qwen3-30B-A3B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("x-IQ2_XXS.gguf", "IQ2_XXS"),
        ("x-IQ4_NL.gguf", "IQ4_NL"),
        ("x-Q4_0_4_8.gguf", "Q4_0_4_8"),
        ("x-TQ1_0.gguf", "TQ1_0"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("x-MXFP4_MOE.gguf", "MXFP4_MOE"),
        ("x.f16.gguf", "F16"),
        ("x-BF16.gguf", "BF16"),
        ("llama.f16.Q6_K.gguf", "Q6_K"),
        ("Q8-team-model-Q5_K_S.gguf", "Q5_K_S"),
        ("x-Q4_K_M-imat.gguf", "Q4_K_M"),
        ("model.gguf", ""),
        ("FAQ4U.gguf", ""),
        ("Qwen3-0.6B.gguf", ""),
    ],
)
def test_the_quantisation_is_read_from_the_name(name: str, quantisation: str) -> None:
    assert quantisation_in(stem_of(name)) == quantisation


@pytest.mark.parametrize(
    "name",
    [
        "mmproj-F16.gguf",
        "x-mmproj-f16.gguf",
        "imatrix.gguf",
        "imatrix_unsloth.gguf",
        "Qwen_Qwen3-8B-imatrix.gguf",
        "x.gguf.part",
        "x.gguf.localspec.partial",
        "._x.gguf",
        "x.gguf_file",
        "x.bin",
        "",
    ],
)
def test_what_is_no_model_is_left_out(name: str) -> None:
    assert not is_model(name)


@given(st.text(), st.integers(0, 99_999), st.integers(0, 99_999))
def test_any_name_belongs_to_a_model_that_has_it(stem: str, index: int, count: int) -> None:
    for name in (f"{stem}.gguf", f"{stem}-{index:05}-of-{count:05}.gguf"):
        assert name in shard_names(name)
        assert group_names([name, name]) == [shard_names(name)]


def test_a_split_model_is_one_and_its_missing_files_are_named(tmp_path: Path) -> None:
    for index in (1, 2, 3):
        _put(tmp_path / f"whole-Q8_0-0000{index}-of-00003.gguf", index)
    for index in (2, 4):
        _put(tmp_path / "sub" / f"part-0000{index}-of-00004.gguf")
    found = _found(tmp_path)
    assert set(found) == {"whole-Q8_0", "part"}
    whole, part = found["whole-Q8_0"], found["part"]
    assert whole.path == tmp_path / "whole-Q8_0-00001-of-00003.gguf"
    assert (whole.file_bytes, len(whole.shards), whole.missing, whole.quantisation) == (6, 3, (), "Q8_0")
    assert part.missing == ("part-00001-of-00004.gguf", "part-00003-of-00004.gguf")
    assert part.path == tmp_path / "sub" / "part-00002-of-00004.gguf"


def test_folders_are_walked_with_bounds(tmp_path: Path) -> None:
    _put(tmp_path / "1/2/3/4/5/6/deep.gguf")
    _put(tmp_path / "1/2/3/4/5/6/7/deeper.gguf")
    _put(tmp_path / ".hidden" / "x.gguf")
    (tmp_path / "1" / "loop").symlink_to(tmp_path)
    (tmp_path / "again").symlink_to(tmp_path / "1")
    os.mkfifo(tmp_path / "pipe.gguf")
    (tmp_path / "folder.gguf").mkdir()
    assert set(_found(tmp_path)) == {"deep"}


def test_a_folder_with_too_many_entries_is_noted(tmp_path: Path) -> None:
    for index in range(20):
        _put(tmp_path / f"{index}.gguf")
    result = scan([Place("folder", tmp_path), Place("folder", _put(tmp_path / "b" / "x.gguf").parent)], max_entries=10)
    assert 5 < len(result.models) <= 11
    assert result.notes == (f"{tmp_path} has more than 10 entries; the rest was not looked at.",)


def test_a_model_that_two_ways_lead_to_is_found_once(tmp_path: Path) -> None:
    _put(tmp_path / "a" / "x.gguf")
    found = scan([Place("demo", tmp_path / "a"), Place("folder", tmp_path), Place("folder", tmp_path / "a")]).models
    assert [(model.name, model.place) for model in found] == [("x", "demo")]


def test_equal_names_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for name in ("a/x.gguf", "b/x.gguf", "b/c/x.gguf", "d/c/x.gguf", "y.gguf"):
        _put(tmp_path / name)
    assert set(_found(tmp_path)) == {"a/x", "b/x", "b/c/x", "d/c/x", "y"}


def test_lm_studios_models_keep_the_hubs_repository(tmp_path: Path) -> None:
    _put(tmp_path / "bartowski" / "Some-GGUF" / "Some-Q4_K_M.gguf")
    _put(tmp_path / "bartowski" / "Some-GGUF" / "mmproj-Some-f16.gguf")
    found = _found(tmp_path, "lm studio")
    assert [(model.name, model.repo, model.quantisation) for model in found.values()] == [
        ("Some-Q4_K_M", "bartowski/Some-GGUF", "Q4_K_M")
    ]


def test_the_hubs_cache_gives_each_file_once_the_main_commit_first(tmp_path: Path) -> None:
    old, new = "a" * 40, "b" * 40
    _cached(tmp_path, "o/n", old, "n-Q4_K_M.gguf", "blob1", 10)
    _cached(tmp_path, "o/n", old, "n-Q8_0.gguf", "blob2", 20)
    _cached(tmp_path, "o/n", new, "n-Q4_K_M.gguf", "blob3", 30)
    _cached(tmp_path, "o/n", new, "n-Q8_0.gguf", "blob2", 20)
    _cached(tmp_path, "o/n", new, "mmproj.gguf", "blob4")
    _main(tmp_path, "o/n", new)
    (tmp_path / "datasets--o--d" / "snapshots" / new).mkdir(parents=True)
    found = _found(tmp_path, "hugging face")
    assert {name: (model.commit, model.file_bytes) for name, model in found.items()} == {
        "o/n:Q4_K_M": (new, 30),
        "o/n:Q8_0": (new, 20),
        "o/n:Q4_K_M@aaaaaaaa": (old, 10),
    }
    assert found["o/n:Q4_K_M"].path == tmp_path / "models--o--n" / "snapshots" / new / "n-Q4_K_M.gguf"


def test_files_of_one_quantisation_are_told_apart_by_name(tmp_path: Path) -> None:
    commit = "c" * 40
    models = ["big-Q8_0.gguf", "small-Q8_0.gguf", "big-Q4_0.gguf", "Q2_K/big-00001-of-00001.gguf", "m.gguf"]
    for index, path in enumerate([*models, "mtp-big-Q4_0.gguf"]):
        _cached(tmp_path, "o/n", commit, path, f"blob{index}")
    found = _found(tmp_path, "hugging face")
    assert {name.removeprefix("o/n:"): model.file_name for name, model in found.items()} == {
        "big-Q8_0": "big-Q8_0.gguf",
        "small-Q8_0": "small-Q8_0.gguf",
        "mtp-big-Q4_0": "mtp-big-Q4_0.gguf",
        "Q4_0": "big-Q4_0.gguf",
        "Q2_K": "Q2_K/big-00001-of-00001.gguf",
        "m": "m.gguf",
    }
    assert found["o/n:mtp-big-Q4_0"].quantisation == "Q4_0"


def test_a_blob_that_was_removed_is_missing(tmp_path: Path) -> None:
    commit = "d" * 40
    _cached(tmp_path, "o/n", commit, "n-Q8_0.gguf", "gone", num_bytes=0)
    _cached(tmp_path, "o/n", commit, "s-Q4_0-00001-of-00002.gguf", "here")
    found = _found(tmp_path, "hugging face")
    assert found["o/n:Q8_0"].missing == ("n-Q8_0.gguf",)
    assert found["o/n:Q8_0"].shards == ()
    assert found["o/n:Q4_0"].missing == ("s-Q4_0-00002-of-00002.gguf",)


def test_ollamas_manifests_lead_to_its_files(tmp_path: Path) -> None:
    digest, other, gone = "1" * 64, "2" * 64, "3" * 64
    _put(tmp_path / "blobs" / f"sha256-{digest}", 7)
    _put(tmp_path / "blobs" / f"sha256:{other}", 9)
    projector = ("application/vnd.ollama.image.projector", f"sha256:{other}")
    library = "registry.ollama.ai/library"
    _manifest(tmp_path, f"{library}/qwen3/latest", projector, (MODEL, f"sha256:{digest}"))
    _manifest(tmp_path, f"{library}/qwen3/8b-q4_K_M", (MODEL, f"sha256:{digest}"))
    _manifest(tmp_path, "registry.ollama.ai/somebody/own/1b", (MODEL, f"sha256:{other}"))
    _manifest(tmp_path, "hf.co/o/n/Q8_0", (MODEL, f"sha256:{gone}"))
    _manifest(tmp_path, f"{library}/only/projector", projector)
    _manifest(tmp_path, f"{library}/evil/path", (MODEL, "sha256:../../../etc/passwd"))
    (tmp_path / "manifests" / library / "qwen3" / "broken").write_text("[" * 100_000)
    (tmp_path / "manifests" / library / "qwen3" / "foreign").write_text('{"layers": {"mediaType": 3}}')
    found = _found(tmp_path, "ollama")
    assert {name: (model.quantisation, model.file_bytes, model.missing) for name, model in found.items()} == {
        "qwen3:latest": ("", 7, ()),
        "qwen3:8b-q4_K_M": ("Q4_K_M", 7, ()),
        "somebody/own:1b": ("", 9, ()),
        "hf.co/o/n:Q8_0": ("Q8_0", 0, (f"sha256-{gone}",)),
    }


def test_a_split_model_of_ollama_is_one(tmp_path: Path) -> None:
    digests = ["4" * 64, "5" * 64]
    for digest in digests:
        _put(tmp_path / "blobs" / f"sha256-{digest}", 5)
    _manifest(tmp_path, "registry.ollama.ai/library/m/t", *((MODEL, f"sha256:{digest}") for digest in digests))
    (model,) = _found(tmp_path, "ollama").values()
    assert (model.name, model.file_bytes, len(model.shards)) == ("m:t", 10, 2)


def test_hostile_names_are_kept_as_they_are(tmp_path: Path) -> None:
    names = ["\x1b[31mred\n.gguf", "[bold]x.gguf", os.fsdecode(b"caf\xe9.gguf"), "$(rm -rf).gguf"]
    for name in names:
        _put(tmp_path / name)
    assert set(_found(tmp_path)) == {name[:-5] for name in names}


@pytest.mark.parametrize("kind", ["folder", "lm studio", "hugging face", "ollama", "demo"])
def test_places_that_cannot_be_looked_at_raise_nothing(kind: PlaceKind, tmp_path: Path) -> None:
    file = _put(tmp_path / "file")
    for folder in (file, tmp_path / "gone", Path("nul\0inside"), tmp_path):
        assert scan([Place(kind, folder)]).models == ()


def test_a_folder_without_rights_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permission bits do not bind root, so the system's answer is replaced.
    locked = _put(tmp_path / "locked" / "x.gguf").parent
    _put(tmp_path / "y.gguf")
    real = os.scandir

    def scandir(path: str) -> object:
        if path == str(locked):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    result = scan([Place("folder", tmp_path)])
    assert [model.name for model in result.models] == ["y"]
    assert result.notes == (f"{locked} cannot be read: Permission denied.",)


def test_the_order_does_not_depend_on_the_file_system(tmp_path: Path) -> None:
    names = [f"{letter}/{letter}{index}.gguf" for letter in "cab" for index in (2, 1)]
    for name in names:
        _put(tmp_path / name)
    assert list(_found(tmp_path)) == ["a1", "a2", "b1", "b2", "c1", "c2"]


def test_a_snapshot_is_looked_through_to_its_bottom(tmp_path: Path) -> None:
    deep = "/".join(f"f{number}" for number in range(20))
    _cached(tmp_path, "o/n", "c" * 40, f"{deep}/m-Q4_0.gguf", "1" * 64)
    _cached(tmp_path, "o/n", "c" * 40, ".hidden/m-Q8_0.gguf", "2" * 64)
    _cached(tmp_path, "o/n", "c" * 40, ".m-Q5_0.gguf", "3" * 64)
    found = _found(tmp_path, "hugging face")
    assert set(found) == {"o/n:Q4_0", "o/n:Q8_0"}
    assert found["o/n:Q4_0"].file_name == f"{deep}/m-Q4_0.gguf"


def test_a_snapshot_without_bottom_ends_at_so_many_entries(tmp_path: Path) -> None:
    deep = "/".join(["f"] * 60)
    _cached(tmp_path, "o/n", "c" * 40, f"{deep}/m-Q4_0.gguf", "1" * 64)
    result = scan([Place("hugging face", tmp_path)], max_entries=50)
    assert result.models == ()
    assert "more than 50 entries" in result.notes[0]
