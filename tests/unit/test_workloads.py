from __future__ import annotations

import re
from pathlib import Path

import pytest

from localspec.catalog.workloads import (
    MAX_PROMPT_BYTES,
    find_workload,
    load_workloads,
    read_workload,
    workload_from_file,
)
from localspec.errors import LocalspecError, UsageError

GOOD = """
name = "tiny"
title = "Tiny"
description = "d"
is_copy_heavy = true
temperature = 0.5

[[prompts]]
name = "one"
user = " hello \\n"
"""


def test_seven_workloads_with_four_prompts_each() -> None:
    workloads = load_workloads()
    assert [workload.name for workload in workloads] == [
        "chat",
        "code",
        "edit",
        "extract",
        "quote",
        "story",
        "summary",
    ]
    assert {workload.name for workload in workloads if workload.is_copy_heavy} == {
        "edit",
        "extract",
        "quote",
        "summary",
    }
    for workload in workloads:
        assert len(workload.prompts) >= 4
        assert len({prompt.user for prompt in workload.prompts}) == len(workload.prompts)


def test_only_the_story_has_a_temperature_of_its_own() -> None:
    assert {
        workload.name: workload.temperature for workload in load_workloads() if workload.temperature is not None
    } == {"story": 0.8}


def test_copy_heavy_prompts_carry_enough_text_to_copy() -> None:
    for workload in load_workloads():
        if workload.is_copy_heavy:
            for prompt in workload.prompts:
                assert len(re.findall(r"\w+", prompt.user)) >= 70, (workload.name, prompt.name)


def test_quote_asks_for_an_exact_repetition() -> None:
    for prompt in find_workload("quote").prompts:
        instruction, _, text = prompt.user.partition("\n\n")
        assert instruction == "Repeat the following text exactly:"
        assert "\n" not in text


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        find_workload("sumary")
    assert "summary" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        find_workload("zzzz")
    assert "chat, code" in caught.value.hint


def test_a_file_is_read_and_stripped(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(GOOD, encoding="utf-8")
    workload = read_workload(path)
    assert workload.prompts[0].user == "hello"
    assert workload.prompts[0].system == ""
    assert workload.temperature == 0.5


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('user = " hello \\n"', 'user = "  "', "empty"),
        ("is_copy_heavy", "is_copy_heawy", "is_copy_hea"),
        ("0.5", "-1", "temperature"),
        ("[[prompts]]", "[[prompts]", "TOML"),
        ('name = "tiny"', 'name = "../tiny"', "name"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(LocalspecError) as caught:
        read_workload(path)
    assert said in caught.value.message
    assert str(path) in caught.value.message


def test_equal_names_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(LocalspecError, match="tiny"):
        load_workloads(tmp_path)


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LocalspecError, match="no workloads"):
        load_workloads(tmp_path)


def test_a_plain_file_is_one_prompt(tmp_path: Path) -> None:
    path = tmp_path / "my question.txt"
    path.write_text("  [bold]What?\n", encoding="utf-8")
    workload = workload_from_file(path)
    assert workload.name == "my question"
    assert [prompt.user for prompt in workload.prompts] == ["[bold]What?"]
    assert workload.temperature is None


@pytest.mark.parametrize("content", [b"", b" \n ", b"\xff\xfe\x00", b"x" * (MAX_PROMPT_BYTES + 1)])
def test_a_bad_prompt_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError):
        workload_from_file(path)


def test_a_missing_prompt_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(UsageError):
            workload_from_file(path)
