"""An alarm for what has become slower, and none for noise or for what was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from localspec.session.alarm import EarlierRun, alarm_record, alarm_sentences, find_alarms
from localspec.session.records import encode_record
from tests.kept_runs import Document, changed, made_up_run

SLOW = {"off": (100.0, 101.0, 99.0), "draft": (120.0, 121.0, 119.0)}


def earlier(*documents: Document) -> list[EarlierRun]:
    return [EarlierRun(number, document) for number, document in enumerate(documents, 1)]


def test_a_slower_arm_raises_an_alarm_that_names_what_changed() -> None:
    after = changed(made_up_run(SLOW), build__llama_cpp="b2", device__drivers={"NVIDIA": "580.2"})
    (alarm,) = find_alarms(after, earlier(made_up_run(), made_up_run()))
    assert (alarm.workload, alarm.arm, alarm.run_ids) == ("chat", "draft", (2, 1))
    assert alarm.ratio.median == pytest.approx(0.8)
    head, arm, changes = alarm_sentences([alarm])
    assert head == "This configuration is slower than before:"
    assert arm.startswith("chat, draft: 120 tokens/s where runs 2 and 1 had 150: 0.80x (")
    assert changes == "Changed since run 2: llama.cpp: b1 -> b2; driver NVIDIA: 570.1 -> 580.2."
    assert alarm_sentences([alarm], "fast")[0] == "The profile fast is slower than before:"
    json.loads(encode_record(alarm_record(alarm)))


def test_without_a_known_change_that_is_said() -> None:
    alarms = find_alarms(made_up_run(SLOW), earlier(made_up_run()))
    assert alarm_sentences(alarms)[-1].startswith("Nothing that is recorded has changed since run 1")
    assert alarm_sentences([]) == ()


def test_the_alarm_stays_while_most_runs_were_faster() -> None:
    runs = earlier(made_up_run(), made_up_run(), made_up_run(SLOW))
    (alarm,) = find_alarms(made_up_run(SLOW), runs)
    # Run 3 was slow already, so what changed is looked for since run 2.
    assert alarm.run_ids == (2, 1)
    assert alarm.earlier_tps == 150.0


@pytest.mark.parametrize(
    "rates",
    [
        {"off": (100.0, 101.0, 99.0), "draft": (150.0, 151.0, 149.0)},
        {"off": (100.0, 101.0, 99.0), "draft": (144.0, 145.0, 143.5)},
        {"off": (100.0, 101.0, 99.0), "draft": (180.0, 181.0, 182.0)},
        {"off": (100.0, 101.0, 99.0), "draft": (110.0, 111.0)},
        {"off": (100.0, 101.0, 99.0), "draft": ()},
    ],
    ids=["same", "under 5 %", "faster", "too few", "not run"],
)
def test_no_alarm(rates: dict[str, tuple[float, ...]]) -> None:
    assert find_alarms(made_up_run(rates), earlier(made_up_run(), made_up_run())) == ()


def test_noise_raises_no_alarm() -> None:
    draw = np.random.default_rng(5)
    num_alarms = 0

    def noisy() -> Document:
        # Trials of one run share what the machine was like then.
        day = draw.normal(1.0, 0.02)
        return made_up_run({name: tuple(draw.normal(day, 0.02, 3) * 100.0) for name in ("off", "draft")})

    runs: list[Document] = []
    for _ in range(60):
        document = noisy()
        num_alarms += len(find_alarms(document, earlier(*runs[-8:])))
        runs.append(document)
    # Of 120 arms; each would be one in forty by the interval alone.
    assert num_alarms <= 3


def test_runs_that_differ_much_among_themselves_alarm_nobody() -> None:
    runs = [made_up_run({"off": (rate, rate * 1.001, rate * 0.999)}) for rate in (100.0, 80.0, 115.0, 90.0, 105.0)]
    assert find_alarms(made_up_run({"off": (75.0, 75.1, 74.9)}), earlier(*runs)) == ()


@pytest.mark.parametrize(
    "path",
    ["settings__n_ctx", "settings__max_tokens", "settings__n_threads", "settings__draft_context__n_ctx"],
)
def test_other_settings_are_another_configuration(path: str) -> None:
    assert find_alarms(changed(made_up_run(SLOW), **{path: 1024}), earlier(made_up_run())) == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda run: changed(run, target__path="/x/other.gguf", target__sha256="cc" * 32),
        lambda run: changed(run, draft=None),
        lambda run: changed(run, workloads=[{**run["workloads"][0], "name": "code"}]),
        lambda run: changed(run, workloads=[{**run["workloads"][0], "temperature": 0.8}]),
    ],
    ids=["target", "draft", "workload", "temperature"],
)
def test_other_models_and_texts_are_another_configuration(change: Callable[[Document], Document]) -> None:
    assert find_alarms(change(made_up_run(SLOW)), earlier(made_up_run())) == ()


def test_a_file_that_took_the_place_of_another_is_named() -> None:
    (alarm,) = find_alarms(changed(made_up_run(SLOW), target__sha256="cc" * 32), earlier(made_up_run()))
    assert [change.what for change in alarm.changes] == ["SHA-256 of the target"]


def test_a_gpu_that_has_gone_is_a_cause_and_no_other_configuration() -> None:
    on_gpu = changed(made_up_run(), device__name="CUDA0", device__type="gpu", settings__n_gpu_layers=99)
    on_gpu["settings"]["draft_context"]["n_gpu_layers"] = 99
    (alarm,) = find_alarms(made_up_run(SLOW), earlier(on_gpu))
    assert [change.group for change in alarm.changes] == ["device"]


def test_unusable_runs_neither_raise_an_alarm_nor_are_compared_with() -> None:
    unusable = {"off": (100.0, 60.0, 30.0), "draft": (75.0, 76.0, 74.0)}
    assert find_alarms(made_up_run(unusable), earlier(made_up_run(), made_up_run())) == ()
    fast = {"off": (900.0, 500.0, 200.0), "draft": (750.0, 760.0, 740.0)}
    assert find_alarms(made_up_run(), earlier(made_up_run(fast), made_up_run(fast))) == ()
