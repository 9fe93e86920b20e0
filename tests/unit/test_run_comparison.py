"""Two runs beside each other: what differs, and figures with intervals that claim no more than they may."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from localspec.cli.run_compare import show_comparison
from localspec.session.records import encode_record
from localspec.session.run_comparison import compare_runs, comparison_record
from localspec.session.run_differences import differences, surroundings_differences
from localspec.session.run_figures import file_name, find_arm, trial_speedups
from tests.kept_runs import changed, made_up_run

SLOW = {"off": (80.0, 81.0, 79.0), "draft": (150.0, 151.0, 149.5)}


def test_equal_runs_differ_in_nothing() -> None:
    comparison = compare_runs(made_up_run(), made_up_run())
    assert comparison.differences == () and comparison.unmatched == ()
    (workload,) = comparison.workloads
    assert [arm.name for arm in workload.arms] == ["off", "draft"]
    assert all(arm.decode_tps.verdict == "no_clear_difference" for arm in workload.arms)
    assert workload.arms[0].speedup.ratio is None


def test_a_slower_baseline_raises_the_speedup() -> None:
    off, draft = compare_runs(made_up_run(), made_up_run(SLOW)).workloads[0].arms
    assert off.decode_tps.verdict == "slower"
    assert off.decode_tps.ratio is not None
    assert off.decode_tps.ratio.median == pytest.approx(0.8)
    assert draft.decode_tps.verdict == "no_clear_difference"
    assert draft.speedup.verdict == "faster"


def test_many_arms_stand_in_several_tables_in_which_no_word_is_broken() -> None:
    comparison = compare_runs(made_up_run(), made_up_run(SLOW))
    (workload,) = comparison.workloads
    arms = tuple(replace(workload.arms[1], name=f"ngram n_max {place}") for place in range(8))
    out = io.StringIO()
    wide = replace(comparison, workloads=(replace(workload, arms=arms),))
    show_comparison(wide, "run 1", "run 2", Console(file=out, width=80))
    text = out.getvalue()
    assert all(text.count(arm.name) == 1 for arm in arms)
    assert text.count("decode_tps, run 1") == text.count("speedup, run 2") > 1
    assert max(map(len, text.splitlines())) <= 80


def test_without_trials_there_is_no_ratio() -> None:
    bare = made_up_run()
    bare["workloads"][0]["trials"] = []
    arm = compare_runs(bare, made_up_run()).workloads[0].arms[1]
    assert arm.decode_tps.before is not None and arm.decode_tps.ratio is None and arm.decode_tps.verdict is None


def test_what_only_one_run_has_is_said() -> None:
    more = made_up_run({"off": (1.0, 1.0, 1.0), "draft": (1.0, 1.0, 1.0), "ngram": (1.0, 1.0, 1.0)})
    comparison = compare_runs(made_up_run(), more)
    assert comparison.unmatched == ("Only the second run has the arm ngram on chat.",)
    comparison = compare_runs(made_up_run(workload="code"), made_up_run())
    assert comparison.workloads == ()
    assert [text.split()[1:4] for text in comparison.unmatched] == [["the", "first", "run"], ["the", "second", "run"]]


def test_arms_are_matched_by_what_they_do() -> None:
    named = made_up_run(
        {"off": (1.0,), "draft n_max 8": (1.0,), "draft n_max 4": (1.0,)},
        methods={"draft n_max 8": "draft", "draft n_max 4": "draft"},
    )
    named["workloads"][0]["arms"][1]["n_max"] = 8
    plain = made_up_run()["workloads"][0]["arms"][1]
    found = find_arm(named["workloads"][0], plain)
    assert found is not None and found["name"] == "draft n_max 4"


def test_a_closing_run_stands_in_for_the_last_baseline() -> None:
    workload = made_up_run({"off": (100.0, 100.0, 100.0), "draft": (150.0, 150.0, 150.0)})["workloads"][0]
    last = workload["trials"][2]
    workload["trials"].append({**last, "place": last["place"] + 2, "decode_tps": 81.0, "is_closing": True})
    # Half way between 100 and 81, geometrically, the baseline had 90.
    assert trial_speedups(workload, "draft") == pytest.approx([1.5, 1.5, 150 / 90])


@pytest.mark.parametrize(
    ("path", "value", "group", "text"),
    [
        ("build__llama_cpp", "b2", "build", "llama.cpp: b1 -> b2"),
        ("build__system_info", "CPU : AVX2 = 1 |", "build", "features of llama.cpp: FMA = 1 -> without them"),
        ("device__drivers", {"NVIDIA": "580.2"}, "driver", "driver NVIDIA: 570.1 -> 580.2"),
        ("device__name", "CUDA0", "device", None),
        ("device__power_source", "battery", "power", "power: mains -> battery"),
        ("device__host__os", "Linux 6.9", "machine", "system: Linux 6.8 -> Linux 6.9"),
        ("device__host__memory_total_bytes", 16 << 30, "machine", "memory: 8.0 GiB -> 16.0 GiB"),
        ("target__sha256", "cc" * 32, "file", "SHA-256 of the target: aaaaaaaaaaaa -> cccccccccccc"),
        ("draft", None, "file", "draft: draft.gguf -> none"),
        ("settings__n_threads", 4, "settings", "n_threads: 2 -> 4"),
        ("settings__flash_attn", False, "settings", "flash_attn: on -> off"),
        ("settings__draft_context__n_ctx", 512, "settings", "the draft's n_ctx: 256 -> 512"),
    ],
)
def test_each_difference_is_named(path: str, value: object, group: str, text: str | None) -> None:
    before = made_up_run()
    (found,) = differences(before, changed(before, **{path: value}))
    assert found.group == group
    assert text is None or str(found) == text


def test_what_is_not_known_is_no_difference() -> None:
    before = made_up_run()
    bare = changed(
        before, device__power_source=None, device__host={}, device__drivers={}, build={}, target__sha256=None
    )
    assert differences(before, bare) == () == differences(bare, before)
    assert differences(before, changed(before, device__host__memory_total_bytes=(8 << 30) - 1000)) == ()


def test_settings_of_arms_and_prompts_are_compared() -> None:
    before, after = made_up_run(), made_up_run()
    after["workloads"][0]["arms"][1]["n_max"] = 8
    for trial in after["workloads"][0]["trials"]:
        trial["num_prompt_tokens"] = 12
    texts = [str(difference) for difference in differences(before, after)]
    assert texts == ["chat: tokens of the prompts: 10 -> 12", "draft: n_max: 4 -> 8"]
    assert surroundings_differences(before, after) == ()


def test_the_same_sum_under_another_name_is_the_same_file() -> None:
    before = made_up_run()
    assert differences(before, changed(before, target__path="D:\\models\\other.gguf")) == ()
    assert file_name({"path": "D:\\models\\other.gguf"}) == "other.gguf"


def test_a_comparison_is_json() -> None:
    record = json.loads(encode_record(comparison_record(compare_runs(made_up_run(), made_up_run(SLOW)))))
    off = record["workloads"][0]["arms"][0]
    assert off["decode_tps"]["verdict"] == "slower" and off["speedup"] is None
