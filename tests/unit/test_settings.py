"""Settings: order of sources, refusals, and what each refusal says."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.engine import values
from localspec.errors import SettingsError
from localspec.settings import (
    MAX_DRAFT_TOKENS,
    BenchGroup,
    ContextGroup,
    DraftGroup,
    SamplingGroup,
    Settings,
    check_draft,
    load_settings,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings.toml"


def _refusal(file: Path, text: str = "", flags: dict[str, dict[str, object]] | None = None) -> SettingsError:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings(flags, file)
    return caught.value


def test_without_a_file_the_defaults_hold(file: Path) -> None:
    settings = load_settings(file=file)
    assert settings.draft == DraftGroup(method="off", n_max=4, n_min=0, p_min=0.0, ngram_max=6, ngram_min=4)
    assert settings.bench == BenchGroup(pairs=3, max_tokens=128, warmup=16)


@pytest.mark.parametrize(
    ("group", "value"),
    [
        (DraftGroup(), values.SpeculationSettings()),
        (SamplingGroup(), values.SamplingSettings()),
        (ContextGroup(), values.ContextSettings()),
    ],
)
def test_defaults_are_those_of_the_engines_values(group: Any, value: Any) -> None:
    fields = dataclasses.asdict(value)
    # The draft group also holds what is the draft model's own context.
    assert {name: value for name, value in group.model_dump().items() if name in fields} == fields


def test_the_longest_draft_is_the_engines() -> None:
    assert MAX_DRAFT_TOKENS == values.MAX_DRAFT_TOKENS


def test_flags_win_over_environment_and_environment_over_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("[draft]\nn_max = 5\nn_min = 1\np_min = 0.5\n[bench]\npairs = 9\n", encoding="utf-8")
    monkeypatch.setenv("LOCALSPEC_DRAFT__N_MAX", "6")
    monkeypatch.setenv("localspec_draft__p_min", "0.25")
    settings = load_settings({"draft": {"n_max": 7, "n_min": None}, "bench": {"pairs": None}}, file)
    assert settings.draft == DraftGroup(n_max=7, n_min=1, p_min=0.25)
    assert settings.bench.pairs == 9


def test_the_file_of_the_configuration_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSPEC_CONFIG", str(tmp_path))
    (tmp_path / "settings.toml").write_text('[context]\ntype_k = "q8_0"\nflash_attn = true\n', encoding="utf-8")
    assert load_settings().context.type_k == "q8_0"


def test_a_file_called_env_in_the_working_folder_is_not_read(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("LOCALSPEC_DRAFT__N_MAX=9\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_settings(file=file).draft.n_max == 4


def test_settings_cannot_be_changed_in_place(file: Path) -> None:
    settings = load_settings(file=file)
    with pytest.raises(ValueError, match="frozen"):
        setattr(settings.draft, "n_max", 9)  # noqa: B010 - the plain form does not pass the type check


def test_broken_toml_names_file_and_line(file: Path) -> None:
    error = _refusal(file, "[draft]\nn_max = 4\nn_min =\n")
    assert str(file) in error.message
    assert "line 3" in error.message
    assert error.hint


def test_a_file_that_is_not_text_is_refused(file: Path) -> None:
    file.write_bytes(b'[sampling]\ngrammar = "\xff"\n')
    with pytest.raises(SettingsError, match="UTF-8"):
        load_settings(file=file)


@pytest.mark.parametrize(
    ("text", "name", "hint"),
    [
        ("[draft]\nnmax = 4\n", "draft.nmax", "Did you mean n_max?"),
        ("[drafts]\nn_max = 4\n", "drafts", "Did you mean draft?"),
        ("[sampling]\ntemprature = 1\n", "sampling.temprature", "Did you mean temperature?"),
        ("[bench]\nzzzzzz = 1\n", "bench.zzzzzz", "Known names: pairs, max_tokens, warmup."),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known(file: Path, text: str, name: str, hint: str) -> None:
    error = _refusal(file, text)
    assert f"{file}: {name}: there is no such setting" in error.message
    assert error.hint == hint


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("LOCALSPEC_DRAFT__N_MAX", "many", "draft.n_max"),
        ("LOCALSPEC_DRAFT__NMAX", "4", "no such setting"),
        ("LOCALSPEC_DRAF__N_MAX", "4", "LOCALSPEC_DRAF__N_MAX"),
        ("LOCALSPEC_SAMPLING__TEMPERATURE", "nan", "finite"),
        ("LOCALSPEC_DRAFT", "not json", "draft"),
    ],
)
def test_a_wrong_variable_is_named(
    file: Path, variable: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    error = _refusal(file)
    assert "nvironment variable" in error.message
    assert words in error.message


def test_the_source_of_a_wrong_value_is_the_one_that_won(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSPEC_DRAFT__N_MAX", "8")
    assert _refusal(file, flags={"draft": {"n_max": "x"}}).message.startswith("Command line: draft.n_max")
    assert "Command line" not in _refusal(file, '[draft]\np_min = "x"\n').message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[draft]\nn_max = true\n", "not True"),
        ("[draft]\nn_max = 1.5\n", "not 1.5"),
        ('[draft]\nmethod = "magic"\n', "'off', 'draft', 'ngram', 'suffix', 'cascade' or 'auto'"),
        ("[sampling]\ntop_p = 1.5\n", "less than or equal to 1"),
        ("[sampling]\ntemperature = nan\n", "finite"),
        ("[sampling]\nseed = 4294967295\n", "less than 4294967295"),
        ('[context]\ntype_k = "q3"\n', "not 'q3'"),
        ("draft = 3\n", "a group of settings"),
    ],
)
def test_a_wrong_value_is_shown(file: Path, text: str, words: str) -> None:
    assert words in _refusal(file, text).message


def test_several_mistakes_are_counted(file: Path) -> None:
    assert "1 more" in _refusal(file, '[draft]\nn_max = "x"\nn_min = "y"\n').message


@pytest.mark.parametrize(
    ("name", "value"), [("suffix_factor", 99.0), ("suffix_p_min", 2.0), ("draft_temperature", 101.0), ("n_max", 33)]
)
def test_a_number_that_is_not_possible_says_where_it_was_written(
    file: Path, name: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _refusal(file, f"[draft]\n{name} = {value}\n").message.startswith(f"{file}: {name} is ")
    variable = f"LOCALSPEC_DRAFT__{name.upper()}"
    monkeypatch.setenv(variable, f"{value}")
    assert _refusal(file).message.startswith(f"Environment variable {variable}: {name} is ")


def test_two_numbers_that_clash_say_where_both_were_written(file: Path) -> None:
    message = _refusal(file, "[draft]\nn_min = 6\n", {"draft": {"n_max": 5}}).message
    assert message.startswith(f"Command line and {file}: n_min 6 is over n_max 5")


@pytest.mark.parametrize(
    ("fields", "n_ctx", "n_batch", "both"),
    [
        ({"n_min": 5, "n_max": 4}, 4096, 512, ("n_min 5", "n_max 4")),
        ({"n_max": 0}, 4096, 512, ("n_max is 0", "32")),
        ({"n_max": 33}, 4096, 512, ("n_max is 33", "32")),
        ({"n_min": -1}, 4096, 512, ("n_min is -1", "0")),
        ({"p_min": 1.01}, 4096, 512, ("p_min is 1.01", "1")),
        ({"p_min": -0.1}, 4096, 512, ("p_min is -0.1", "0")),
        ({"ngram_min": 0}, 4096, 512, ("ngram_min is 0", "1")),
        ({"ngram_min": 7, "ngram_max": 6}, 4096, 512, ("ngram_min 7", "ngram_max 6")),
        ({"draft_temperature": -0.5}, 4096, 512, ("draft_temperature is -0.5", "below 0")),
        ({"n_max": 16}, 16, 512, ("n_max 16", "n_ctx 16")),
        ({"n_max": 16}, 4096, 16, ("n_max 16", "n_batch 16")),
    ],
)
def test_impossible_drafts_are_refused_with_both_values(
    fields: dict[str, Any], n_ctx: int, n_batch: int, both: tuple[str, str]
) -> None:
    with pytest.raises(SettingsError) as caught:
        check_draft(DraftGroup(**fields), n_ctx=n_ctx, n_batch=n_batch)
    assert all(part in caught.value.message for part in both)
    assert caught.value.hint


@given(
    n_max=st.integers(-2, 40),
    n_min=st.integers(-2, 40),
    n_ctx=st.integers(1, 60),
    n_batch=st.integers(1, 60),
)
def test_what_is_accepted_is_possible_and_nothing_possible_is_refused(
    n_max: int, n_min: int, n_ctx: int, n_batch: int
) -> None:
    is_possible = 1 <= n_max <= 32 and 0 <= n_min <= n_max and n_max < n_ctx and n_max + 1 <= n_batch
    try:
        check_draft(DraftGroup(n_max=n_max, n_min=n_min), n_ctx=n_ctx, n_batch=n_batch)
    except SettingsError:
        assert not is_possible
    else:
        assert is_possible


def test_an_unknown_context_size_refuses_nothing() -> None:
    check_draft(DraftGroup(n_max=32), n_ctx=0, n_batch=512)


@pytest.mark.parametrize(
    ("context", "both"),
    [
        ({"n_batch": 64, "n_ubatch": 128}, ("n_ubatch 128", "n_batch 64")),
        ({"type_v": "q8_0", "flash_attn": False}, ("type_v q8_0", "flash_attn off")),
    ],
)
def test_impossible_contexts_are_refused_with_both_values(
    file: Path, context: dict[str, object], both: tuple[str, str]
) -> None:
    message = _refusal(file, flags={"context": context}).message
    assert all(part in message for part in both)


def test_loading_checks_the_draft_against_the_context(file: Path) -> None:
    error = _refusal(file, "[draft]\nn_max = 32\n", {"context": {"n_ctx": 20}})
    assert "n_max 32" in error.message and "n_ctx 20" in error.message


def test_the_drafts_own_context_is_checked_too(file: Path) -> None:
    error = _refusal(file, "[draft]\nn_max = 32\nn_ctx = 20\n")
    assert "n_max 32" in error.message and "n_ctx 20" in error.message
    error = _refusal(file, '[draft]\ntype_v = "q8_0"\n[context]\nflash_attn = false\n')
    assert "type_v q8_0" in error.message and "flash_attn off" in error.message


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("context", "n_ctx", 99999999999999999999),
        ("context", "n_threads", 100_000_000),
        ("context", "n_gpu_layers", 99999999999),
        ("context", "n_batch", 16),
        ("sampling", "top_k", 4294967297),
        ("sampling", "temperature", 101),
        ("bench", "pairs", 99999999999999),
        ("bench", "max_tokens", 1),
        ("draft", "ngram_max", 100),
    ],
)
def test_numbers_that_llama_cpp_would_cut_or_choke_on_are_refused(
    file: Path, group: str, name: str, value: int
) -> None:
    error = _refusal(file, "", {group: {name: value}})
    assert name in error.message and str(value) in error.message


def test_the_readme_shows_the_defaults_that_hold(file: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    file.write_text(readme.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    loaded = load_settings(file=file)
    assert loaded.model_dump() == Settings().model_dump()
