"""The JSON document: the names that scripts rely on, null for what is not known, and no NaN."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from localspec.engine.values import ContextSettings, Method, SamplingSettings, SpeculationSettings
from localspec.session.arms import PromptCase, build_arms
from localspec.session.comparison import run_comparison
from localspec.session.outcome import ComparisonResult
from localspec.session.records import (
    bench_record,
    device_record,
    encode_record,
    model_record,
    settings_record,
    workload_record,
)
from tests.made_up_machine import BUILD, DEVICE, model_info
from tests.scripted_engine import ArmScript, ScriptedEngine

ARM_KEYS = frozenset(
    (
        *("name", "method", "n_max", "p_min", "speculation", "reason", "decode_tps", "ttft_s", "tpot_s", "num_tokens"),
        *("num_rounds", "num_target_passes", "num_draft_tokens", "num_accepted_tokens", "acceptance_rate"),
        *("mean_accepted_length", "acceptance_by_position", "draft_s", "verify_s", "sample_s", "own_s"),
        *("peak_rss_bytes", "finish_reason"),
    )
)
SETTING_KEYS = frozenset(
    (
        *("n_ctx", "n_batch", "n_ubatch", "n_threads", "n_threads_batch", "n_gpu_layers", "flash_attn", "type_k"),
        *("type_v", "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed", "max_tokens", "num_pairs"),
        "ignore_eog",
    )
)


async def compare(draft: ArmScript | None = None, *methods: Method) -> ComparisonResult:
    return await run_comparison(
        ScriptedEngine(scripts={"draft": draft or ArmScript()}),
        "chat",
        (PromptCase("one", text="One."),),
        build_arms(methods or ("off", "draft", "ngram"), SpeculationSettings(n_max=4)),
        SamplingSettings(),
        41,
        lambda progress: None,
    )


def document(*results: ComparisonResult) -> dict[str, Any]:
    target = model_info("/models/target.gguf")
    sampling = SamplingSettings()
    record = bench_record(
        build=BUILD,
        device=device_record((DEVICE,), 0, "battery"),
        target=model_record(target, "ab" * 32),
        draft=None,
        settings=settings_record(target, ContextSettings(n_ctx=0), sampling, max_tokens=41, num_pairs=3),
        results=results,
    )
    decoded: dict[str, Any] = json.loads(encode_record(record))
    return decoded


async def test_names_that_scripts_rely_on() -> None:
    result = document(await compare())
    assert result["schema"] == 1
    assert {"build", "device", "target", "draft", "settings", "workloads"} <= set(result)
    assert {"path", "sha256", "architecture", "quantisation"} <= set(result["target"])
    assert set(result["settings"]) >= SETTING_KEYS
    (workload,) = result["workloads"]
    assert workload["name"] == "chat"
    assert [arm["name"] for arm in workload["arms"]] == ["off", "draft", "ngram"]
    for arm in workload["arms"]:
        assert set(arm) >= ARM_KEYS
        assert {"median", "low", "high"} <= set(arm["decode_tps"])
        assert set(arm["tpot_s"]) == {"p50", "p95", "p99"}
    assert set(workload["speedup"]) == {"median", "low", "high", "pairs"}
    assert workload["verdict"] in ("faster", "slower", "no_clear_difference")
    assert {"identical", "first_difference", "top2_gap", "noise", "kind"} <= set(workload["same_text"])


async def test_settings_are_those_in_force() -> None:
    settings = document(await compare())["settings"]
    # 0 was asked for, and the model said what it became.
    assert settings["n_ctx"] == 256
    assert settings["n_threads"] == 2


async def test_counts_are_sums_and_rates_medians() -> None:
    result = await compare()
    off, draft, _ = document(result)["workloads"][0]["arms"]
    assert (off["speculation"], draft["speculation"]) == ("off", "on")
    assert off["acceptance_rate"] is None
    assert off["mean_accepted_length"] is None
    assert off["num_target_passes"] == off["num_tokens"] == 3 * 41
    assert draft["num_tokens"] == draft["num_target_passes"] + draft["num_accepted_tokens"] - draft["num_cut"]
    assert draft["acceptance_rate"] == pytest.approx(draft["num_accepted_tokens"] / draft["num_draft_tokens"])
    assert off["decode_tps"]["median"] == pytest.approx(100.0)
    assert off["tpot_s"]["p50"] == pytest.approx(0.01)
    assert off["ttft_s"] == pytest.approx(0.02)
    assert (off["finish_reason"], off["peak_rss_bytes"]) == ("length", 100_000_000)
    assert draft["speedup"]["pairs"] == 3


async def test_trials_tell_of_every_round() -> None:
    workload = document(await compare())["workloads"][0]
    trials = workload["trials"]
    assert [trial["arm"] for trial in trials[:6]] == ["off", "draft", "ngram", "ngram", "draft", "off"]
    assert [trial["is_closing"] for trial in trials] == [False] * 9 + [True]
    draft = trials[1]
    assert len(draft["rounds"]["drafted"]) == draft["num_target_passes"]
    assert sum(draft["rounds"]["drafted"]) == draft["num_draft_tokens"]
    assert sum(draft["rounds"]["accepted"]) == draft["num_accepted_tokens"]
    assert sum(draft["rounds"]["emitted"]) == draft["num_tokens"]
    assert {len(column) for column in draft["rounds"].values()} == {draft["num_target_passes"]}
    assert draft["rounds"]["at_s"] == sorted(draft["rounds"]["at_s"])
    assert draft["rounds"]["n_past"][-1] == draft["num_prompt_tokens"] + draft["num_tokens"] - 1
    for name in ("draft_s", "verify_s", "sample_s"):
        assert sum(draft["rounds"][name]) == pytest.approx(draft[name])


async def test_an_arm_that_has_not_run_has_no_numbers() -> None:
    workload = document(await compare(ArmScript(off_reason="damaged")))["workloads"][0]
    draft, ngram = workload["arms"][1:]
    assert (draft["speculation"], draft["has_run"], draft["reason"]) == ("off", False, "damaged")
    assert set(draft) >= ARM_KEYS
    for name in ("decode_tps", "num_tokens", "acceptance_rate", "ttft_s", "speedup", "verdict", "same_text", "draft_s"):
        assert draft[name] is None
    # The workload's own figures are those of the first arm that has run.
    assert workload["speedup"] == ngram["speedup"]


async def test_without_any_arm_that_ran_there_is_no_verdict() -> None:
    workload = document(await compare(ArmScript(off_reason="damaged"), "off", "draft"))["workloads"][0]
    assert [workload[name] for name in ("speedup", "verdict", "same_text")] == [None, None, None]


async def test_workload_record_is_json_without_help() -> None:
    json.dumps(workload_record(await compare()), allow_nan=False)


def test_numbers_that_json_lacks_become_null() -> None:
    text = encode_record({"a": math.nan, "b": [math.inf, 1.5], "c": {"d": (-math.inf,)}, "e": SamplingSettings()})
    assert "\n" not in text
    decoded = json.loads(text)
    assert decoded["a"] is None
    assert decoded["b"] == [None, 1.5]
    assert decoded["c"] == {"d": [None]}
    assert decoded["e"]["temperature"] == 0.0


def test_device_in_use_follows_the_layers() -> None:
    gpu = DEVICE.__class__("CUDA0", "A card", "gpu", "CUDA", 1, 2)
    assert device_record((gpu, DEVICE), 99)["name"] == "CUDA0"
    assert device_record((gpu, DEVICE), 0)["name"] == "CPU"
    assert device_record((), 0)["name"] is None
