from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from localspec.catalog.workloads import Prompt, Workload
from localspec.engine.values import ContextSettings, Message, SamplingSettings
from localspec.errors import UsageError
from localspec.session.arms import Arm, prompt_case
from localspec.session.measurement import MeasurementPlan
from localspec.session.my_chats import (
    LEAST,
    OwnPrompt,
    OwnPrompts,
    find_prompts,
    found_lines,
    has_own,
    is_own,
    kind_of,
    own_workloads,
    restored,
    sampled,
)
from localspec.session.run_request import plan_of, request_of
from localspec.session.workload_kind import Classified, Kind
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import Record

CONTEXT = ContextSettings()
MODELS: Record = {"target": {"name": "tiny"}, "draft": None}
PLAIN = "Ferns and ivy like shade, and so do most of the plants that grow under trees in cool and quiet places."


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    start = datetime(2025, 3, 1, tzinfo=UTC)
    minutes = iter(range(100_000))
    with Database(tmp_path / "chats.sqlite3", now=lambda: start + timedelta(minutes=next(minutes))) as database:
        yield Chats(database)


def talk(chats: Chats, *turns: tuple[str, str], system: str = "") -> int:
    chat_id = chats.start("t", {**MODELS, "system": system})
    for question, answer in turns:
        chats.add_message(chat_id, "user", question)
        chats.add_message(chat_id, "assistant", answer, "stop")
    return chat_id


def found_in(chats: Chats) -> OwnPrompts:
    return find_prompts(chats, CONTEXT, 128)


def own(number: int, chat_id: int, kind: Kind = "chat") -> OwnPrompt:
    prompt = Prompt(f"p{number}", "", f"question {number}", source=(chat_id, number))
    return OwnPrompt(prompt, f"2025-01-01T00:{number:02}", Classified(kind, "because"))


def test_a_prompt_comes_with_its_system_text_and_what_was_said_before(chats: Chats) -> None:
    chat_id = talk(chats, ("Hello", PLAIN), ("And in winter?", PLAIN), system="Be kind.")
    second, first = (item.prompt for item in found_in(chats).prompts)
    assert (first.user, first.earlier, first.system) == ("Hello", (), "Be kind.")
    assert (second.user, second.earlier) == ("And in winter?", ("Hello", PLAIN))
    assert second.source is not None and second.source[0] == chat_id
    assert prompt_case(second).messages == (
        Message("system", "Be kind."),
        Message("user", "Hello"),
        Message("assistant", PLAIN),
        Message("user", "And in winter?"),
    )


def test_names_say_where_a_prompt_is_from_and_nothing_of_what_it_says(chats: Chats) -> None:
    talk(chats, ("My secret", PLAIN))
    (item,) = found_in(chats).prompts
    assert item.prompt.name == "chat_1_1"


def test_unanswered_and_repeated_questions_are_left_out(chats: Chats) -> None:
    talk(chats, ("Twice?", "first " + PLAIN))
    talk(chats, ("Twice?", "second " + PLAIN), ("Empty?", "  "))
    chats.add_message(talk(chats), "user", "Nobody answers")
    (item,) = found_in(chats).prompts
    assert (item.prompt.user, item.chat_id) == ("Twice?", 2)


def test_earlier_turns_go_where_there_is_no_room_and_long_questions_are_counted(chats: Chats) -> None:
    talk(chats, ("x " * 2000, PLAIN), ("Short?", PLAIN), ("Next?", PLAIN), ("y " * 9000, PLAIN))
    found = found_in(chats)
    assert found.num_too_long == 1
    by_question = {item.prompt.user: item.prompt for item in found.prompts}
    assert by_question["Next?"].earlier[:1] == (("x " * 2000),)
    narrow = find_prompts(chats, ContextSettings(n_ctx=512), 128)
    assert narrow.num_too_long == 2
    assert {item.prompt.user: item.prompt.earlier for item in narrow.prompts} == {
        "Short?": (),
        "Next?": ("Short?", PLAIN),
    }


def test_nothing_fits_beside_an_answer_that_fills_the_context(chats: Chats) -> None:
    talk(chats, ("Hello", PLAIN))
    assert find_prompts(chats, ContextSettings(n_ctx=256), 512).num_too_long == 1


def test_chats_take_turns_in_a_sample() -> None:
    prompts = [own(9, 1), own(8, 1), own(7, 1), own(3, 2), own(2, 3)]
    assert [item.prompt.name for item in sampled(prompts, 9)] == ["p9", "p3", "p2", "p8", "p7"]


def test_a_sample_is_bounded_half_new_and_half_spread() -> None:
    prompts = [own(number, number) for number in range(40, 0, -1)]
    taken = [int(item.prompt.name[1:]) for item in sampled(prompts, 8)]
    assert len(set(taken)) == 8
    assert taken[0] == 40
    assert {40, 39, 38, 37} <= set(taken)
    older = [number for number in taken if number < 37]
    assert older == sorted(older, reverse=True) and max(older) - min(older) > 20
    for part in (taken[::2], taken[1::2]):
        assert sum(number >= 37 for number in part) == 2
    assert len(sampled(prompts, 1)) == 1 and not sampled([], 8)


def test_kinds_with_enough_prompts_become_workloads() -> None:
    prompts = (*(own(n, n, "code") for n in range(20)), *(own(n, n, "chat") for n in range(LEAST)), own(1, 1, "quote"))
    found = OwnPrompts(21, prompts, num_too_long=2)
    code, chat = own_workloads(found, per_kind=5)
    assert (code.name, len(code.prompts), chat.name, len(chat.prompts)) == ("my_code", 5, "my_chat", LEAST)
    assert found_lines(found, (code, chat)) == (
        "24 prompts of your own in 21 chats: code 20 (5 taken), chat 3, quote 1 (too few).",
        "2 more are too long for the context.",
        "They stay on this machine, and their words are not kept with the run.",
    )
    assert has_own((code,)) and is_own("my_code") and not is_own("code") and not is_own("my_letter")
    assert kind_of("my_code") == kind_of("code") == "code" and kind_of("my_letter") is None


def test_a_prompt_from_a_file_named_like_an_own_workload_is_nobodys() -> None:
    assert not has_own((Workload("my_code", "", "", False, None, (Prompt("my_code", "", "Hello"),)),))


@pytest.mark.parametrize(("count", "words"), [(0, "0 answered prompts of your own were"), (1, "1 answered prompt of")])
def test_too_few_chats_is_an_error_with_the_number(count: int, words: str, chats: Chats) -> None:
    talk(chats, *((f"Question {n}", PLAIN) for n in range(count)))
    with pytest.raises(UsageError, match=f"Too few chats: {words}") as caught:
        own_workloads(found_in(chats))
    assert "--workload" in caught.value.hint


def plan_with(workloads: tuple[Workload, ...]) -> MeasurementPlan:
    from localspec.engine.values import SpeculationSettings

    arms = (Arm("off", SpeculationSettings()), Arm("ngram", SpeculationSettings(method="ngram")))
    target = Path("target.gguf").absolute()
    return MeasurementPlan(target, None, CONTEXT, arms, workloads, SamplingSettings(), False, 128, 3, 16)


def test_a_kept_run_holds_no_word_of_own_prompts_and_can_be_run_again(chats: Chats) -> None:
    talk(chats, *((f"secret question {n}", PLAIN) for n in range(4)), system="secret system")
    plan = plan_with(own_workloads(found_in(chats)))
    request = request_of(plan)
    assert "secret" not in json.dumps(request) and "Ferns" not in json.dumps(request)
    assert all(len(prompt["sha256"]) == 64 for prompt in request["workloads"][0]["prompts"])
    kept = plan_of(json.loads(json.dumps(request)))
    assert replace(kept, workloads=restored(kept.workloads, chats, CONTEXT, 128)) == plan


def test_a_deleted_chat_cannot_be_measured_again(chats: Chats) -> None:
    chat_id = talk(chats, *((f"Question {n}", PLAIN) for n in range(4)))
    workloads = own_workloads(found_in(chats))
    chats.delete(chat_id)
    with pytest.raises(UsageError, match=f"it was in chat {chat_id}"):
        restored(workloads, chats, CONTEXT, 128)


def test_other_prompts_are_kept_whole() -> None:
    workload = Workload("own", "Own", "", False, None, (Prompt("own", "", "Say it."),))
    request = request_of(plan_with((workload,)))
    assert request["workloads"][0]["prompts"][0]["user"] == "Say it."
    assert plan_of(request).workloads == (workload,)
