"""Rows of the table of models: found by words, sorted, and downloads' files by what tells them apart."""

from __future__ import annotations

import pytest

from localspec.tui.model_rows import matching, ordered, row_of
from localspec.tui.widgets.models_downloads import file_title
from tests.candidate_kit import entry, facts


def test_words_match_in_any_order_and_column() -> None:
    rows = [row_of(entry("Qwen3-8B-Q4_K_M", facts())), row_of(entry("other", None))]
    assert [row.name for row in matching(rows, "q4 QWEN")] == ["Qwen3-8B-Q4_K_M"]
    assert matching(rows, "") == tuple(rows)
    assert matching(rows, "nothing") == ()


def test_rows_of_unread_models_sort_as_nothing() -> None:
    rows = [row_of(entry("a", None)), row_of(entry("b", facts(params=5))), row_of(entry("c", facts(params=9)))]
    assert [row.name for row in ordered(rows, "parameters", is_descending=True)] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("q4/big-00002-of-00003.gguf", "part 2 of 3"),
        ("q4/mmproj-F16.gguf", "mmproj-F16.gguf"),
        ("small.gguf", "small.gguf"),
        ("b-00001-of-00002.gguf.part", "b-00001-of-00002.gguf.part"),
    ],
)
def test_a_shard_is_called_by_its_number(path: str, title: str) -> None:
    assert file_title(path) == title
