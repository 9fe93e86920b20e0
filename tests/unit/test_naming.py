"""From what a user types to a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.catalog.naming import complete, existing_file, resolve
from localspec.catalog.places import PlaceKind
from localspec.catalog.scan import FoundModel
from localspec.catalog.unique_names import with_unique_names
from localspec.errors import LocalspecError, ModelFileError, UsageError
from localspec.session.arguments import choose_local, find_local, is_repository
from localspec.settings import Settings


def _model(
    name: str,
    place: PlaceKind = "folder",
    repo: str = "",
    file_name: str = "",
    commit: str = "",
    quantisation: str = "",
) -> FoundModel:
    path = Path("/models", place, commit, file_name or f"{name}.gguf")
    return FoundModel(
        name, path, (path,), place, repo, quantisation, commit=commit, file_name=file_name or f"{name}.gguf"
    )


def _cached(repo: str, file_name: str, quantisation: str, name: str = "", commit: str = "a" * 40) -> FoundModel:
    return _model(name or f"{repo}:{quantisation}", "hugging face", repo, file_name, commit, quantisation)


SMOL = "bartowski/SmolLM2-135M-Instruct-GGUF"
QWEN = "Qwen/Qwen3-8B-GGUF"
FOUND = (
    _model("smollm2-135m-f16", "demo", quantisation="F16"),
    _model("smollm2-135m-q4_0", "demo", quantisation="Q4_0"),
    _cached(SMOL, "SmolLM2-135M-Instruct-Q4_K_M.gguf", "Q4_K_M"),
    _cached(QWEN, "Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"),
    _cached(QWEN, "Qwen3-8B-Q8_0.gguf", "Q8_0"),
    _cached(QWEN, "Q5/Qwen3-8B-Q5_K_M-00001-of-00002.gguf", "Q5_K_M"),
    _cached(QWEN, "mtp-Qwen3-8B-Q8_0.gguf", "Q8_0", f"{QWEN}:mtp-Qwen3-8B-Q8_0"),
    _cached(QWEN, "Qwen3-8B-Q8_0.gguf", "Q8_0", f"{QWEN}:Q8_0@bbbbbbbb", "b" * 40),
    _model("llama3.2:latest", "ollama", file_name="llama3.2:latest"),
    _model("llama3.2:3b", "ollama", file_name="llama3.2:3b"),
    _model("Gemma-3-270M", quantisation=""),
)


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("smollm2-135m-f16", "smollm2-135m-f16"),
        ("SMOLLM2-135M-F16", "smollm2-135m-f16"),
        (f"{SMOL}:Q4_K_M", f"{SMOL}:Q4_K_M"),
        (SMOL, f"{SMOL}:Q4_K_M"),
        (SMOL.lower(), f"{SMOL}:Q4_K_M"),
        ("SmolLM2-135M-Instruct-GGUF:Q4_K_M", f"{SMOL}:Q4_K_M"),
        ("smollm2-135m-instruct-q4_k_m", f"{SMOL}:Q4_K_M"),
        (f"{QWEN}:q4_k_m", f"{QWEN}:Q4_K_M"),
        (f"{QWEN}:Q5", f"{QWEN}:Q5_K_M"),
        (f"{QWEN}:Q8_0", f"{QWEN}:Q8_0"),
        (f"{QWEN}:Q8_0@bbbb", f"{QWEN}:Q8_0@bbbbbbbb"),
        (f"{QWEN}:Qwen3-8B-Q5_K_M", f"{QWEN}:Q5_K_M"),
        (f"{QWEN}:mtp-qwen3-8b-q8_0", f"{QWEN}:mtp-Qwen3-8B-Q8_0"),
        ("llama3.2", "llama3.2:latest"),
        ("llama3.2:3b", "llama3.2:3b"),
        ("gemma", "Gemma-3-270M"),
        ("270m", "Gemma-3-270M"),
        ("135m-f16", "smollm2-135m-f16"),
    ],
)
def test_a_name_means_a_model(argument: str, name: str) -> None:
    assert resolve(argument, FOUND).name == name


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        (QWEN, [f"{QWEN}:Q4_K_M", f"{QWEN}:Q8_0", f"{QWEN}:Q5_K_M"]),
        ("smollm2-135m", ["smollm2-135m-f16", "smollm2-135m-q4_0"]),
        ("llama3", ["llama3.2:latest", "llama3.2:3b"]),
    ],
)
def test_what_may_mean_several_is_refused_with_their_names(argument: str, named: list[str]) -> None:
    with pytest.raises(UsageError, match="may mean several") as caught:
        resolve(argument, FOUND)
    for name in named:
        assert name in caught.value.hint
    assert "@bbbb" not in caught.value.hint


def test_a_quantisation_that_is_not_here_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="not on this machine") as caught:
        resolve(f"{QWEN}:Q6_K", FOUND)
    assert f"{QWEN}:Q8_0" in caught.value.hint
    assert caught.value.hint.endswith(f"localspec pull {QWEN}:Q6_K")


def test_a_repository_that_is_not_here_comes_with_the_command_that_fetches_it() -> None:
    with pytest.raises(UsageError, match="not on this machine") as caught:
        resolve("bartowski/SmolLM2-360M-Instruct-GGUF:Q4_K_M", FOUND)
    assert "localspec pull bartowski/SmolLM2-360M-Instruct-GGUF:Q4_K_M" in caught.value.hint
    assert f"{SMOL}:Q4_K_M" in caught.value.hint


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="No model is called smolm2-135m-f16") as caught:
        resolve("smolm2-135m-f16", FOUND)
    assert caught.value.hint.startswith("Nearest here: smollm2-135m-f16")
    assert "pull" not in caught.value.hint


def test_without_models_the_hint_is_another() -> None:
    with pytest.raises(UsageError) as caught:
        resolve("x", ())
    assert "localspec models" in caught.value.hint
    with pytest.raises(UsageError, match="empty"):
        resolve(" ", FOUND)


@pytest.mark.parametrize("sample", ["m-270m", "ollm2", "35m-f16"])
def test_the_middle_of_a_word_means_nothing(sample: str) -> None:
    with pytest.raises(UsageError, match="No model is called"):
        resolve(sample, FOUND)


def test_an_existing_file_wins_over_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("smollm2-135m-f16").write_bytes(b"GGUF!")
    model = resolve("smollm2-135m-f16", FOUND)
    assert (model.path, model.file_bytes, model.place) == (Path("smollm2-135m-f16"), 5, "folder")


def test_a_folder_of_that_name_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("smollm2-135m-f16").mkdir()
    assert resolve("smollm2-135m-f16", FOUND) == FOUND[0]


@pytest.mark.parametrize("argument", ["o/n", "o/n:Q4_0", "o/n@refs/pr/1"])
def test_a_repository_is_one_whatever_folders_are_here(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("o/n").mkdir(parents=True)
    with pytest.raises(UsageError) as failure:
        resolve(argument, FOUND)
    assert failure.value.hint.endswith(f"localspec pull {argument}")
    # The whole way to what a command says of a model on the Hub.
    assert find_local(argument, Settings()) is None
    for path in ("./o/n", "o/n.gguf", "o\\n", f"{tmp_path}/o/n"):
        with pytest.raises(ModelFileError):
            resolve(path, FOUND)
    Path("o/n").rmdir()
    Path("o/n").write_bytes(b"GGUF")
    assert resolve("o/n", FOUND).path == Path("o/n")


def test_any_shard_leads_to_the_first(tmp_path: Path) -> None:
    for index in (1, 2):
        (tmp_path / f"m-Q4_0-0000{index}-of-00003.gguf").write_bytes(b"1234")
    model = existing_file(str(tmp_path / "m-Q4_0-00002-of-00003.gguf"))
    assert model is not None
    assert (model.path.name, model.file_bytes, model.quantisation) == ("m-Q4_0-00001-of-00003.gguf", 8, "Q4_0")
    assert (model.name, model.missing) == ("m-Q4_0", ("m-Q4_0-00003-of-00003.gguf",))


def test_the_path_of_a_model_that_was_found_is_that_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"1234")
    known = FoundModel("o/n:Q4_0", file, (file,), "hugging face", "o/n")
    monkeypatch.chdir(tmp_path)
    assert resolve("./m.gguf", (known,)) is known
    assert resolve(str(file), (known,)) is known


@pytest.mark.parametrize("argument", ["{}/smol.gguf", "{}/deep/er/smol", "./smol.gguf", "smol.gguf", "~/no-such.gguf"])
def test_a_path_to_nothing_is_no_name(argument: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="There is no file"):
        resolve(argument.format(tmp_path), FOUND)


def test_the_nearest_files_of_the_folder_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    for name in ("SmolLM2-Q4_1.gguf", "mmproj-SmolLM2.gguf", "other.gguf"):
        (tmp_path / "models" / name).write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelFileError, match="There is no file models/smollm2-q4_0") as caught:
        resolve("models/smollm2-q4_0.gguf", ())
    assert caught.value.hint == "Nearest in that folder: SmolLM2-Q4_1.gguf."
    with pytest.raises(ModelFileError, match="models is a folder") as caught:
        resolve("models", ())
    assert caught.value.hint == "Models in it: SmolLM2-Q4_1.gguf, other.gguf."


def test_a_name_too_long_for_the_system_says_so_briefly(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot be opened") as caught:
        resolve(str(tmp_path / ("x" * 5_000 + ".gguf")), ())
    assert len(caught.value.message) < 400


@given(st.text(max_size=30), st.lists(st.text(max_size=20), max_size=4))
def test_any_text_gives_a_model_or_a_refusal(argument: str, names: list[str]) -> None:
    found = tuple(_model(name, file_name=f"{name}.gguf") for name in dict.fromkeys(names) if "\0" not in name)
    try:
        assert resolve(argument, found) in (*found, existing_file(argument))
    except LocalspecError as error:
        assert error.message and error.hint


def test_names_with_a_place_stay_valid_when_the_clash_is_gone() -> None:
    own = FoundModel("m", Path("/data/models/m.gguf"), (), "localspec", file_name="m.gguf")
    demo = FoundModel("m", Path("/cache/demo/m.gguf"), (), "demo", file_name="m.gguf")
    both = with_unique_names([own, demo])
    assert [model.name for model in both] == ["models/m", "demo/m"]
    for found in (both, [own], [own, _model("other")]):
        assert resolve("models/m", found).path == own.path
    assert resolve("demo/M", [demo]).path == demo.path
    assert not is_repository("demo/m", [demo])


@pytest.mark.parametrize("argument", ["demo/nothing", "models/nothing:Q4_0"])
def test_nothing_of_a_place_is_ever_pulled(argument: str) -> None:
    with pytest.raises(UsageError, match="No model is called") as caught:
        resolve(argument, FOUND)
    assert "pull" not in caught.value.hint and "localspec search" in caught.value.hint
    with pytest.raises(UsageError):
        find_local(argument, Settings())


def test_only_what_is_really_near_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        resolve("mistral-7b", FOUND)
    assert caught.value.hint == "`localspec models` lists what is here. `localspec search WORDS` looks on the Hub."
    with pytest.raises(UsageError) as caught:
        resolve("qwen3-1.7b", FOUND)
    for name in ("smollm2", "Gemma", "@bbbb", "mtp"):
        assert name not in caught.value.hint.replace(f"{QWEN}:mtp", "")
    assert f"{QWEN}:Q8_0" in caught.value.hint


def test_a_repository_alone_is_one_whatever_of_it_is_here() -> None:
    assert is_repository(QWEN, FOUND)
    for argument in (f"{QWEN}:Q8_0", f"{QWEN}@bbbb", "smollm2", "./x/y", "x.gguf"):
        assert not is_repository(argument, FOUND)


def test_offline_the_usual_quantisation_of_what_is_here_is_taken() -> None:
    chosen, names = choose_local(QWEN.lower(), FOUND)
    assert chosen is not None and chosen.name == f"{QWEN}:Q4_K_M"
    assert f"{QWEN}:Q8_0" in names and f"{QWEN}:mtp-Qwen3-8B-Q8_0" not in names
    chosen, names = choose_local(f"{QWEN}:q8_0", FOUND)
    assert chosen is not None and chosen.quantisation == "Q8_0"
    assert choose_local(f"{QWEN}:Q2_K", FOUND) == (None, ())
    assert choose_local("o/n", FOUND) == (None, ())


def test_a_model_is_offered_once_and_not_if_it_is_broken() -> None:
    broken = replace(_model("smollm2-broken"), missing=("x",))
    assert "smollm2-broken" not in complete("smoll", (*FOUND, broken))
    assert complete("llama", FOUND) == ["llama3.2", "llama3.2:3b"]
    assert complete("smoll", FOUND, lambda model: model.place != "demo") == ["SmolLM2-135M-Instruct-GGUF:Q4_K_M"]


def test_completion_begins_with_what_is_typed() -> None:
    hostile = (_model("smollm2 $(reboot)"), _model("smollm2\x1b[31m"), _model("smollm2-\udcff"))
    found = (*FOUND, *hostile)
    assert complete("smoll", found) == [
        "SmolLM2-135M-Instruct-GGUF:Q4_K_M",
        "smollm2-135m-f16",
        "smollm2-135m-q4_0",
    ]
    assert complete("bart", found) == [f"{SMOL}:Q4_K_M"]
    assert complete(f"{QWEN}:Q8", found) == [f"{QWEN}:Q8_0", f"{QWEN}:Q8_0@bbbbbbbb"]
    assert complete("nothing", found) == []
    assert complete("", [_model(f"x{mark}y") for mark in "*?[]{}!~#^$;&|<>()'\"\\` \n"]) == []
    assert complete("", [_model("-x"), _model("x-y"), _model("x.y_z=1,2+3%")]) == ["x-y", "x.y_z=1,2+3%"]
    assert len(complete("", found)) >= len(FOUND)
