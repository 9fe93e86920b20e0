from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.cli.main import run
from localspec.cli.memory_bars import LEGEND, Part, bar, legend, parts_of
from localspec.cli.services import Services
from localspec.planning.devices import PlanDevice
from localspec.planning.plan import PlanRow
from tests.fit_kit import FitEngine, card, write_models
from tests.plan_kit import MIB

Fit = Callable[..., tuple[int, str, str]]

CARD = ("--device", "RTX 4070:500MiB", "--reserve", "100MiB")


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    for name in ("DATA", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    folder = tmp_path / "my models"
    folder.mkdir()
    return write_models(folder)


@pytest.fixture
def fit(capsys: pytest.CaptureFixture[str]) -> Fit:
    def fit(*words: str | Path, **more: Any) -> tuple[int, str, str]:
        made: list[FitEngine] = []

        def make() -> FitEngine:
            made.append(FitEngine(**more))
            return made[-1]

        code = run(["fit", *map(str, words)], Services(make_engine=make))
        assert all(engine.is_closed for engine in made)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return fit


def test_the_document_has_every_promised_key(fit: Fit, paths: dict[str, Path]) -> None:
    code, out, err = fit(paths["big"], "--draft", paths["small"], *CARD, "--json")
    document = json.loads(out)
    assert code == 0
    promised = "devices rows verdict n_ctx max_n_ctx n_gpu_layers offers"
    assert set(document) >= set(promised.split())
    gpu, host = document["devices"]
    assert (gpu["name"], gpu["total_bytes"], gpu["reserve_bytes"]) == ("HYPO0", 500 * MIB, 100 * MIB)
    assert gpu["is_hypothetical"] and host["name"] == "CPU" and host["free_bytes"] > 0
    keys = "device model weights_bytes kv_bytes recurrent_bytes compute_bytes output_bytes"
    assert all(set(row) == set(keys.split()) for row in document["rows"])
    assert {(row["device"], row["model"]) for row in document["rows"]} == {
        (device, model) for device in ("HYPO0", "CPU") for model in ("target", "draft")
    }
    assert document["verdict"] == "FITS" and document["n_ctx"] == 4096 < document["max_n_ctx"]
    assert document["n_gpu_layers"] == {"target": -1, "draft": -1}
    assert "Fits:" in err


def test_what_fits_here_needs_no_second_process(fit: Fit, paths: dict[str, Path]) -> None:
    code, out, _ = fit(paths["big"], gpus=(card(500),))
    assert code == 0
    assert "GeForce [bold] (CUDA0):" in out and "hypothetical" not in out


def test_less_context_is_a_fit_and_its_offers_keep_their_word(fit: Fit, paths: dict[str, Path]) -> None:
    asked = (paths["big"], "--draft", paths["small"], "--n-ctx", "16384", *CARD)
    code, out, _ = fit(*asked, "--json")
    document = json.loads(out)
    assert (code, document["verdict"]) == (0, "FITS_WITH_LESS_CONTEXT")
    assert 4096 <= document["n_ctx"] < 16384
    codes = [offer["code"] for offer in document["offers"]]
    assert {"less_context", "kv_q8_0", "without_draft", "target_layers"} <= set(codes)
    for offer in document["offers"]:
        words = shlex.split(offer["command"])
        assert words[:3] == ["localspec", "fit", str(paths["big"])]
        code, out, _ = fit(*words[2:], "--json")
        taken = json.loads(out)
        assert (code, taken["verdict"], taken["n_ctx"]) == (0, "FITS", offer["n_ctx"]), offer["code"]


def test_offers_are_numbered_and_their_commands_unbroken(fit: Fit, paths: dict[str, Path]) -> None:
    _, out, _ = fit(paths["big"], "--draft", paths["small"], "--n-ctx", "16384", *CARD)
    lines = out.splitlines()
    first = lines.index("What could be given up:") + 1
    assert lines[first].startswith("1. Context ")
    command = lines[first + 1]
    assert command.startswith(f"   localspec fit '{paths['big']}' --draft '{paths['small']}' --n-ctx ")
    assert command.endswith("--reserve 100MiB --device 'RTX 4070:500MiB'")


def test_bars_and_table_hold_80_columns_and_say_what_is_not_here(
    fit: Fit, paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = fit(paths["big"], "--draft", paths["small"], *CARD)
    lines = out.splitlines()
    bars = [line for line in lines if line.startswith("|")]
    assert len(bars) == 2 and all(len(line) == 66 for line in bars)
    assert set("TdKkc=.") <= set(bars[0])
    title = next(line for line in lines if line.startswith("RTX 4070, hypothetical: "))
    # One figure for one fact.
    assert title.endswith(" of 0.4 GiB; 0.1 of 0.5 GiB kept free")
    assert title.removeprefix("RTX 4070, hypothetical: ").partition(";")[0] in next(
        line for line in lines if line.startswith("Fits: ")
    )
    assert "HYPO0" not in out
    table = lines[next(index for index, line in enumerate(lines) if line.startswith("Device")) :]
    assert all(len(line) <= 80 for line in table[:6])
    assert "T target weights" in out and "\x1b" not in out


def test_unified_memory_is_one_bar_with_the_limit_marked(fit: Fit, paths: dict[str, Path]) -> None:
    _, out, _ = fit(paths["big"], "--device", "M3:2GiB,unified,limit=1GiB", "--reserve", "100MiB")
    lines = out.splitlines()
    [bar] = [index for index, line in enumerate(lines) if line.startswith("|")]
    assert lines[bar - 1].startswith("M3, hypothetical, one memory with two budgets: on the GPU ")
    assert ", and in all " in lines[bar - 1]
    assert lines[bar + 1].index("^") == 1 + 32 and "the GPU's limit, 1.0 GiB" in lines[bar + 1]


def test_positions_are_counted_in_thousands_too_and_reported_as_asked(fit: Fit, paths: dict[str, Path]) -> None:
    _, out, _ = fit(paths["big"], "--n-ctx", "8k", *CARD, "--json")
    assert json.loads(out)["n_ctx"] == 8192
    _, out, _ = fit(paths["big"], "--n-ctx", "5000", *CARD, "--json")
    assert json.loads(out)["n_ctx"] == 5000
    _, out, _ = fit(paths["big"], "--n-ctx", "30000", *CARD)
    assert "positions instead of 30000:" in out and "instead of 30000" in out.partition("given up")[2]
    code, _, err = fit(paths["big"], "--draft-n-ctx", "many")
    assert code == 2 and "as in 4096 or 32k" in err


def test_a_draft_may_be_named_behind_the_target(fit: Fit, paths: dict[str, Path]) -> None:
    _, out, _ = fit(paths["big"], paths["small"], *CARD, "--json")
    assert json.loads(out)["draft"] == "small"
    code, _, err = fit(paths["big"], paths["small"], "--draft", "another")
    assert code == 2 and "Two drafts are named" in err


def test_described_cards_of_one_name_are_told_apart(fit: Fit, paths: dict[str, Path]) -> None:
    _, out, _ = fit(paths["big"], *("--device", "RTX:500MiB") * 2)
    assert "RTX no. 1, hypothetical: " in out and "on RTX no. 2" in out


def test_what_fits_nowhere_is_exit_code_1(fit: Fit, paths: dict[str, Path]) -> None:
    code, out, _ = fit(paths["huge"], *CARD)
    assert code == 1
    assert "Does not fit" in out
    assert "too much" in next(line for line in out.splitlines() if line.startswith("RTX 4070"))


def test_max_asks_for_all_that_fits(fit: Fit, paths: dict[str, Path]) -> None:
    _, out, _ = fit(paths["big"], "--n-ctx", "max", *CARD, "--json")
    document = json.loads(out)
    assert document["n_ctx"] == document["max_n_ctx"] > 4096
    _, out, _ = fit(paths["big"], "--n-ctx", str(document["n_ctx"] + 256), *CARD, "--json")
    assert json.loads(out)["verdict"] != "FITS"


@pytest.mark.parametrize("options", [("--n-ctx", "none"), ("--kv", "q9_0"), ("--draft-kv", "f16/x")])
def test_wrong_values_are_wrong_usage(options: tuple[str, str], fit: Fit, paths: dict[str, Path]) -> None:
    code, _, err = fit(paths["big"], *options)
    assert code == 2
    assert options[0] in err


@pytest.mark.parametrize("device", ["RTX", "RTX:many", "RTX:12GiB,fast"])
def test_a_device_that_makes_no_sense_starts_nothing(device: str, fit: Fit, paths: dict[str, Path]) -> None:
    code, out, err = fit(paths["big"], "--device", device)
    assert (code, out) == (2, "")
    assert "hint:" in err


def test_options_make_up_the_wishes(fit: Fit, paths: dict[str, Path]) -> None:
    words = "--kv q8_0/f16 --draft-kv q4_0 --draft-n-ctx 2048 --n-gpu-layers 3 --draft-n-gpu-layers -1"
    _, out, _ = fit(paths["big"], "--draft", paths["small"], *words.split(), *CARD, "--json")
    placement = json.loads(out)["placement"]
    assert (placement["target"]["type_k"], placement["target"]["type_v"]) == ("q8_0", "f16")
    assert placement["target"]["n_gpu_layers"] == 3
    draft = placement["draft"]
    assert (draft["type_k"], draft["n_ctx"], draft["n_gpu_layers"]) == ("q4_0", 2048, -1)


def test_a_dead_process_is_started_again_with_its_devices(fit: Fit, paths: dict[str, Path]) -> None:
    code, out, _ = fit(paths["big"], *CARD, "--json", num_deaths=1)
    assert code == 0
    assert json.loads(out)["devices"][0]["name"] == "HYPO0"


def test_what_kills_the_process_twice_is_said(fit: Fit, paths: dict[str, Path]) -> None:
    code, out, err = fit(paths["big"], "--draft", paths["small"], *CARD, num_deaths=2)
    assert (code, out) == (1, "")
    assert "big.gguf takes in memory with n_ctx 4096, all layers on GPUs, KV f16, and small.gguf with" in err
    assert "It was killed." in err


def test_auto_without_a_draft_is_a_note(fit: Fit, paths: dict[str, Path]) -> None:
    code, out, err = fit(paths["big"], "--draft", "auto", *CARD, "--json")
    assert code == 0
    assert json.loads(out)["draft"] is None
    assert "No draft model for it was found" in err


def test_the_matrix(fit: Fit, paths: dict[str, Path]) -> None:
    code, out, _ = fit(paths["big"], "--matrix", *CARD, "--json")
    document = json.loads(out)
    assert (code, document["contexts"]) == (0, [4096, 8192, 16384, 32768])
    # 16384 positions take 372 MiB of 400, 32768 take 516.
    [row] = document["matrix"]
    assert row["cells"] == ["fits", "fits", "fits", "partial"]
    _, out, _ = fit(paths["big"], "--matrix", *CARD)
    assert out.splitlines()[-2].split()[-4:] == ["fits", "fits", "fits", "partial"]


def test_a_matrix_in_which_nothing_fits(fit: Fit, paths: dict[str, Path]) -> None:
    code, out, _ = fit(paths["huge"], "--matrix", *CARD, "--json")
    assert code == 1
    assert set(json.loads(out)["matrix"][0]["cells"]) == {"-"}


@given(st.lists(st.integers(0, 1 << 45), min_size=1, max_size=8), st.integers(8, 100))
def test_a_bar_has_its_width_and_a_character_for_everything(sizes: list[int], width: int) -> None:
    parts = [Part(character, size) for (character, _), size in zip(LEGEND, sizes, strict=False)]
    text = bar(parts, width)
    assert len(text) == width
    shown = [part.character for part in parts if part.size_bytes]
    assert set(text) == set(shown or ".")
    assert text == "".join(sorted(text, key="".join(shown).index)) if shown else True


def test_parts_of_shared_memory_count_on_the_host_too() -> None:
    gpu = PlanDevice("MTL0", "", "gpu", 20 * MIB, 16 * MIB, 2 * MIB, shares_host_memory=True)
    host = PlanDevice("CPU", "", "host", 30 * MIB, 30 * MIB, 4 * MIB)
    rows = (PlanRow("MTL0", "target", 8 * MIB, MIB, 0, 0, 0), PlanRow("CPU", "draft", MIB, 0, 0, 0, MIB))
    on_gpu = {part.character: part.size_bytes // MIB for part in parts_of(gpu, rows)}
    assert on_gpu == {"T": 8, "d": 0, "K": 1, "k": 0, "c": 0, "x": 4, "=": 2, ".": 5}
    on_host = {part.character: part.size_bytes // MIB for part in parts_of(host, rows, ["MTL0"])}
    assert on_host == {"T": 8, "d": 1, "K": 1, "k": 0, "c": 1, "x": 0, "=": 4, ".": 15}
    assert legend("T.") == "T target weights  . free"


def test_the_least_contexts_are_answered_with_llama_cpps_own_least(fit: Fit, paths: dict[str, Path]) -> None:
    for words in ((), ("--draft", paths["small"])):
        code, out, err = fit(paths["big"], *words, "--n-ctx", "1", "--json")
        assert (code, json.loads(out)["n_ctx"]) == (0, 256)
        assert "fewer than 256 positions" in err and "n_max" not in err


def test_nothing_need_be_kept_free(fit: Fit, paths: dict[str, Path]) -> None:
    _, out, _ = fit(paths["big"], "--device", "RTX 4070:500MiB", "--reserve", "0", "--json")
    assert [device["reserve_bytes"] for device in json.loads(out)["devices"]] == [0, 0]


def test_more_devices_than_llama_cpp_takes_are_refused_in_words(fit: Fit, paths: dict[str, Path]) -> None:
    code, _, err = fit(paths["big"], *["--device", "4GiB"] * 16)
    assert code and "at most 15" in err
