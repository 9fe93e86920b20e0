from __future__ import annotations

from pathlib import Path

from localspec.catalog.workloads import Prompt, Workload
from localspec.engine.values import SpeculationSettings
from localspec.session.tuning.kinds import with_kinds
from localspec.session.tuning.values import TuningTrial, WarmSetting

FIRST, SECOND, CODE, CHAT, OTHER = (
    WarmSetting(SpeculationSettings(method="ngram", n_max=n_max)) for n_max in (1, 2, 3, 4, 6)
)


def own(kind: str) -> Workload:
    return Workload(f"my_{kind}", "", "", False, None, (Prompt("p", "", "?", source=(1, 1)),))


def trial(setting: WarmSetting, code: float, chat: float, pairs: int = 4, reason: str = "") -> TuningTrial:
    return TuningTrial(setting, (("my_code", (code,) * pairs), ("my_chat", (chat,) * pairs)), reason)


WORKLOADS = (own("code"), own("chat"))


def test_the_best_of_the_kind_that_gains_most_takes_the_second_place() -> None:
    trials = [trial(FIRST, 1.2, 1.2), trial(SECOND, 1.19, 1.19), trial(CODE, 1.9, 0.5), trial(CHAT, 0.5, 1.3)]
    assert with_kinds((FIRST, SECOND), trials, WORKLOADS, 0.05, 2) == (FIRST, CODE)
    assert with_kinds((FIRST, SECOND), trials, WORKLOADS, 0.05, 4) == (FIRST, CODE, CHAT, SECOND)


def test_where_the_best_over_all_serves_every_kind_nothing_changes() -> None:
    trials = [trial(FIRST, 1.5, 1.5), trial(SECOND, 1.4, 1.4)]
    assert with_kinds((FIRST, SECOND), trials, WORKLOADS, 0.05, 2) == (FIRST, SECOND)


def test_what_loses_over_all_may_pay_for_a_kind() -> None:
    assert with_kinds((), [trial(CODE, 1.5, 0.4)], WORKLOADS, 0.05, 2) == (CODE,)
    assert with_kinds((), [trial(CODE, 0.9, 0.8)], WORKLOADS, 0.05, 2) == ()


def test_luck_and_refusals_do_not_count() -> None:
    assert with_kinds((), [trial(CODE, 1.03, 0.4, pairs=1)], WORKLOADS, 0.05, 2) == ()
    assert with_kinds((), [trial(CODE, 1.5, 0.4, reason="no")], WORKLOADS, 0.05, 2) == ()


def test_texts_that_are_not_own_change_nothing() -> None:
    workload = Workload("my_code", "", "", False, None, (Prompt("p", "", "?"),))
    assert with_kinds((FIRST, SECOND), [trial(CODE, 9.0, 9.0)], (workload,), 0.05, 2) == (FIRST, SECOND)


def test_one_confirmation_holds_one_draft_model() -> None:
    one, two = (
        WarmSetting(SpeculationSettings(method="draft", n_max=3), Path(name)) for name in ("one.gguf", "two.gguf")
    )
    trials = [trial(one, 1.2, 1.2), trial(two, 1.9, 0.5), trial(OTHER, 1.4, 0.9)]
    assert with_kinds((one,), trials, WORKLOADS, 0.05, 2) == (one, OTHER)
