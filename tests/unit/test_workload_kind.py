from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.catalog.workloads import Prompt, load_workloads
from localspec.session.text_shape import (
    borrowed_share,
    code_share,
    copied_share,
    has_code,
    is_structured,
    num_words,
    without_code,
)
from localspec.session.workload_kind import COPY_HEAVY, KINDS, classify

FUNCTION = """\
```python
def total(orders, tax=0.2):
    result = 0
    for order in orders:
        result = result + order["price"] * order["quantity"]
    return result * (1 + tax)
```"""

REPORT = (
    "The inspection took place on two nights in May, when the road could be closed. The steel girders are in good "
    "condition, apart from light rust at the joints on the upstream side. The bearings on the east bank have moved by "
    "eleven millimetres since the last inspection, which is more than the rules allow. We recommend to replace the "
    "four eastern bearings within six months and to measure the abutment every two weeks until then."
)

PROSE = (
    "Ferns and ivy like shade, and so do most of the plants that grow under trees. Water them when the soil feels dry, "
    "which in winter may be every other week. Turn the pots now and then so that they grow evenly."
)


@pytest.mark.parametrize(
    ("workload", "prompt"),
    [(workload.name, prompt) for workload in load_workloads() for prompt in workload.prompts],
    ids=lambda item: item if isinstance(item, str) else item.name,
)
def test_the_prompts_that_come_with_localspec_are_known_by_their_questions(workload: str, prompt: Prompt) -> None:
    assert classify(prompt.user).kind == workload


def test_the_kinds_are_the_workloads() -> None:
    workloads = load_workloads()
    assert {workload.name for workload in workloads} == set(KINDS)
    assert {workload.name for workload in workloads if workload.is_copy_heavy} == COPY_HEAVY


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Fasse diesen Text kurz zusammen: " + REPORT, "summary"),
        ("Schreibe eine kurze Geschichte über einen Fuchs.", "story"),
        ("Schreib mir eine Funktion, die Primzahlen findet.", "code"),
        ("Write a poem about rain", "story"),
        ("How do I sort a dict by value in Python?", "code"),
        ("Write unit tests for this:\n" + FUNCTION, "code"),
        ("Why does this fail?\n" + FUNCTION, "chat"),
        ("Fix the rounding.\n" + FUNCTION, "edit"),
        ("Can you repeat that? I did not hear it.", "chat"),
        ("What is a good name for a cat?", "chat"),
        ("Please change my mind about coffee.", "chat"),
        ("", "chat"),
    ],
)
def test_questions_alone(question: str, kind: str) -> None:
    assert classify(question).kind == kind


def test_a_short_question_means_what_came_before() -> None:
    assert classify("Now rename it, please").kind == "chat"
    assert classify("Now rename it, please", earlier=FUNCTION).kind == "edit"
    assert classify("Give me the key points.").kind == "chat"
    assert classify("Give me the key points.", earlier=REPORT).kind == "summary"


@pytest.mark.parametrize(
    ("question", "answer", "kind"),
    [
        ("Which plants like shade?", PROSE, "chat"),
        ("Tell me the story of shade plants", PROSE, "story"),
        # Whatever the question says: the answer repeats it.
        ("Is this all right?\n" + REPORT, REPORT, "quote"),
        ("Proofread this:\n" + REPORT, REPORT.replace("eleven", "11"), "edit"),
        ("What matters here?\n" + REPORT, PROSE + " " + REPORT[:230], "summary"),
        ("Sum this up: " + REPORT, PROSE, "summary"),
        ("Make it take a discount.\n" + FUNCTION, FUNCTION.replace("tax=0.2", "tax=0.2, discount=0"), "edit"),
        ("Compute a total of orders", FUNCTION, "code"),
        (
            "Who is who? " + REPORT,
            '{\n"bearings": "moved by eleven millimetres",\n"girders": "good condition",\n"when": "nights in May"\n}',
            "extract",
        ),
        (
            "Invent a configuration",
            '{\n"colour": "mauve",\n"size": "large",\n"users": ["ann", "bob", "cy", "dee", "eve", "flo", "gil"]\n}',
            "code",
        ),
    ],
)
def test_the_answer_decides_where_there_is_one(question: str, answer: str, kind: str) -> None:
    assert classify(question, answer).kind == kind


def test_an_answer_copies_from_earlier_turns_too() -> None:
    assert classify("Again, please", REPORT).kind == "chat"
    again = classify("Again, please", REPORT, earlier=REPORT)
    assert again.kind == "quote"
    assert again.copied == 1.0
    assert again.why == "100 % of the answer stands in the prompt"


def test_a_short_answer_says_nothing_of_its_kind() -> None:
    assert classify("Write a poem about rain", "No.").kind == "story"
    assert classify("Write a poem about rain", "No.").copied is None


def test_why_names_the_word_that_decided() -> None:
    assert classify("Sum up this: " + REPORT).why == "the question says 'Sum up' and holds a text"


def test_copied_share_counts_each_word_once_and_runs_only() -> None:
    assert copied_share("a b c d e f", "a b c d e f") == 1.0
    assert copied_share("a b c d", "x a b c d x x x") == 0.5
    assert copied_share("a b c d", "a b c x b c d") == 0.0
    assert copied_share("", "a b c d") == copied_share("a b c d", "") == 0.0


def test_scripts_without_spaces_are_counted_by_characters() -> None:
    text = "今日は天気がいいから散歩しましょう"
    assert num_words(text) == len(text)
    assert copied_share(text, text[:8] + "駅駅駅駅駅駅駅駅") == 0.5


def test_borrowed_words_need_no_order() -> None:
    assert borrowed_share("Anna lives in Oslo", '{"city": "oslo", "name": "Anna"}') == 0.5


def test_code_is_told_from_prose() -> None:
    bare = FUNCTION.replace("```python\n", "").replace("\n```", "")
    assert code_share(FUNCTION) == 1.0
    assert code_share(bare) >= 0.8
    assert code_share(PROSE.replace(". ", ".\n")) == 0.0
    assert has_code(f"Look:\n{FUNCTION}") and has_code(bare) and not has_code(PROSE)
    assert without_code(f"Look:\n{FUNCTION}\nWhy?") == "Look:\nWhy?"
    assert not has_code("```text\nas it was said = so be it\nx = 1\n```")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', True),
        ('Here it is:\n```json\n{"a": 1,\n"b": 2}\n```', True),
        ("| a | b |\n|---|---|\n| 1 | 2 |", True),
        ("[a link](of prose) and so on", False),
        ("{not JSON at all}", False),
        (FUNCTION, False),
        ("", False),
    ],
)
def test_data_is_told_from_text(text: str, expected: bool) -> None:
    assert is_structured(text) is expected


@settings(max_examples=80, deadline=None)
@given(st.text(st.characters(), max_size=300), st.text(st.characters(), max_size=300), st.text(max_size=60))
def test_any_text_has_a_kind(question: str, answer: str, earlier: str) -> None:
    found = classify(question, answer, earlier)
    assert found.kind in KINDS and found.why
    assert found.copied is None or 0.0 <= found.copied <= 1.0
    assert classify(question, answer, earlier) == found


@pytest.mark.parametrize("text", ["(" * 300_000, "a" * 300_000, "x = " * 80_000, "sum up " * 50_000, "\n" * 300_000])
def test_long_texts_end(text: str) -> None:
    assert classify(text, text, text).kind in KINDS
