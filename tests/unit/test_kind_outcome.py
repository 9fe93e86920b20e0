from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from localspec.errors import LocalspecError, UsageError
from localspec.session.exporting.exports import profile_record
from localspec.session.kind_outcome import arms_by_kind, kind_outcomes, outcome_line, outcome_record, outcomes_of
from localspec.session.profiles import NamedProfile, make_profile, read_profile
from localspec.session.run_document import RunWorkload
from localspec.store.values import Record
from tests.profile_kit import arm, drafting, named_profile, profile_of, run_of, workload

CODE = workload("my_code", arm("draft", "draft", 1.6, "faster"), arm("ngram", "ngram", 1.2, "faster"))
CHAT = workload("my_chat", arm("draft", "draft", 0.8, "slower"), arm("ngram", "ngram", 0.9, "slower"))
QUOTE = workload("my_quote", arm("draft", "draft", 1.02, "no_clear_difference"))


@pytest.fixture(autouse=True)
def unchecked_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.session.profiles.check_model", lambda *arguments: None)


def read(*records: Record) -> list[RunWorkload]:
    return [RunWorkload.model_validate(record) for record in records]


def saved(*records: Record, **changes: Any) -> NamedProfile:
    return read_profile(make_profile("own", run_of(*records), datetime(2025, 1, 1, tzinfo=UTC), **changes))


def test_each_kind_has_its_outcome_in_words() -> None:
    assert outcome_line(kind_outcomes(read(CHAT, QUOTE, CODE))) == (
        "In your chats drafting pays for code 1.60x (1.50 to 1.70; draft n_max 5), "
        "makes no clear difference for quote: 1.02x (0.92 to 1.12; draft n_max 5), "
        "costs in chat 0.90x (0.80 to 1.00; ngram n_max 5)."
    )
    assert outcome_line(()) == ""


def test_what_is_surely_faster_goes_before_what_only_looks_so() -> None:
    mixed = workload("my_code", arm("draft", "draft", 1.9, "no_clear_difference"), arm("ngram", "ngram", 1.2, "faster"))
    (outcome,) = kind_outcomes(read(mixed))
    assert (outcome.arm.name, outcome.pays) == ("ngram", True)


def test_an_unsteady_machine_claims_nothing() -> None:
    unusable = RunWorkload.model_validate(CODE).model_copy(update={"is_reliable": False})
    assert [outcome.pays for outcome in kind_outcomes([unusable])] == [None]
    assert arms_by_kind([unusable])["code"].method == "off"


def test_only_own_texts_count() -> None:
    built_in = workload("code", arm("draft", "draft", 1.6, "faster"))
    document = {"workloads": [built_in, CODE]}
    assert outcome_record(outcomes_of(document)) == {
        "code": {
            "arm": "draft",
            "speedup": {"median": 1.6, "low": 1.5, "high": 1.7000000000000002, "pairs": 3},
            "pays": True,
        }
    }
    assert outcomes_of({}) == outcomes_of({"workloads": [{"name": 3}]}) == ()


def test_a_profile_holds_a_setting_for_each_kind() -> None:
    profile = saved(CODE, CHAT, QUOTE)
    kinds = profile.document.by_workload
    assert {kind: group.method for kind, group in kinds.items()} == {"code": "draft", "chat": "off", "quote": "off"}
    assert kinds["code"].n_max == 5
    assert [role for role, _ in profile.models] == ["target", "draft"]
    record: Any = profile_record(profile)
    assert record["by_workload"]["code"]["method"] == "draft" and "n_ctx" not in record["by_workload"]["code"]


def test_drafts_may_pay_for_one_kind_only() -> None:
    chat = workload("my_chat", arm("draft", "draft", 0.4, "slower"))
    profile = saved(workload("my_code", arm("draft", "draft", 1.6, "faster")), chat)
    assert profile.document.speculation.method == "off"
    assert profile.document.by_workload["code"].method == "draft"
    assert profile.document.draft is not None
    with pytest.raises(UsageError, match="No way of drafting was clearly faster"):
        saved(chat)


def test_a_named_arm_is_for_all_kinds_unless_they_are_asked_for() -> None:
    assert saved(CODE, CHAT, arm="ngram").document.by_workload == {}
    both = saved(CODE, CHAT, arm="ngram", with_kinds=True).document
    assert (both.speculation.method, both.by_workload["code"].method) == ("ngram", "draft")


def test_profiles_without_kinds_are_as_before() -> None:
    assert named_profile().document.by_workload == {}


def test_a_kind_that_needs_a_draft_and_has_none_is_damage() -> None:
    changes: Record = {"speculation": drafting("ngram"), "by_workload": {"code": drafting("draft")}, "draft": None}
    with pytest.raises(LocalspecError, match="drafts with a model and names none"):
        read_profile(profile_of(**changes))
    with pytest.raises(LocalspecError, match="damaged"):
        read_profile(profile_of(by_workload={"code": {**drafting("draft"), "n_max": 0}}))
