"""Earlier answers on disk: bounded, shared, and never in the way when the file or the disk is bad."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from localspec.engine.drafting import remembered
from localspec.engine.drafting.remembered import (
    SHORTEST_ANSWER,
    RememberedAnswers,
    answers_file,
    clear_answers,
    kept_answers,
)
from localspec.engine.drafting.suffix_index import SEPARATOR, SuffixIndex
from localspec.errors import StoreError

FINGERPRINT = "0123456789abcdef" * 2


def answer(number: int, length: int = 10) -> list[int]:
    return [1000 * number + place for place in range(length)]


def answers_in(store: RememberedAnswers) -> list[int]:
    """First token of each answer, divided by 1000."""
    text = list(store.index.text)
    return [text[place] // 1000 for place in range(len(text)) if place == 0 or text[place - 1] == SEPARATOR]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = answers_file(tmp_path / "answers", FINGERPRINT)
    assert found is not None
    return found


def test_what_was_kept_is_there_at_the_next_start(path: Path) -> None:
    store = RememberedAnswers(path)
    assert not path.parent.exists()
    for number in (1, 2, 3):
        store.add(answer(number))
    again = RememberedAnswers(path)
    assert list(again.index.text) == list(store.index.text)
    assert answers_in(again) == [1, 2, 3]
    assert again.num_tokens == 33


def test_short_answers_are_not_kept(path: Path) -> None:
    store = RememberedAnswers(path)
    store.add(list(range(SHORTEST_ANSWER - 1)))
    store.add([])
    assert (store.num_tokens, path.exists()) == (0, False)


def test_the_oldest_go_first_in_memory_and_on_disk(path: Path) -> None:
    store = RememberedAnswers(path, most_tokens=100)
    for number in range(1, 60):
        store.add(answer(number))
        assert store.num_tokens <= 1.25 * 110
        assert path.stat().st_size <= 1.25 * 4 * 100 + 200
    again = RememberedAnswers(path, most_tokens=100)
    assert answers_in(again) == list(range(50, 60))
    assert answers_in(store)[-1] == 59


def test_an_answer_longer_than_everything_keeps_its_end(path: Path) -> None:
    store = RememberedAnswers(path, most_tokens=20)
    store.add(answer(1, 50))
    assert list(RememberedAnswers(path, 20).index.text) == [*answer(1, 50)[-20:], SEPARATOR]


@pytest.mark.parametrize("num_lost", [1, 5, 39, 41, 47])
def test_a_record_that_was_cut_off_costs_only_itself(path: Path, num_lost: int) -> None:
    store = RememberedAnswers(path)
    store.add(answer(1))
    store.add(answer(2))
    path.write_bytes(path.read_bytes()[:-num_lost])
    after = RememberedAnswers(path)
    assert answers_in(after) == [1]
    after.add(answer(3))
    assert answers_in(RememberedAnswers(path)) == [1, 3]


@pytest.mark.parametrize("place", [0, 5, 30, 80])
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path: Path, place: int) -> None:
    store = RememberedAnswers(path)
    store.add(answer(1))
    store.add(answer(2))
    data = bytearray(path.read_bytes())
    data[place] ^= 0x55
    path.write_bytes(data)
    after = RememberedAnswers(path)
    assert after.num_tokens == 0
    assert path.with_name(path.name + ".damaged").read_bytes() == data
    after.add(answer(3))
    assert answers_in(RememberedAnswers(path)) == [3]


@pytest.mark.parametrize("content", [b"", b"local", b"\0" * 1000, b"localspec answers 1\n\xff\xff\xff\xff\0\0\0\0"])
def test_any_content_is_survived(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    store = RememberedAnswers(path)
    assert store.num_tokens == 0
    store.add(answer(1))
    assert answers_in(RememberedAnswers(path)) == [1]


def test_a_place_that_cannot_be_written_costs_only_what_would_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = RememberedAnswers(tmp_path / "file" / "x.answers")
    store.add(answer(1))
    assert answers_in(store) == [1]


def test_a_failed_rewrite_leaves_the_old_file_and_nothing_beside_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RememberedAnswers(path, most_tokens=20)
    for number in (1, 2):
        store.add(answer(number))
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    store.add(answer(3))
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir() if found.suffix != ".lock"] == [path.name]
    assert answers_in(store)[-1] == 3


WRITER = """
import sys
from pathlib import Path
from localspec.engine.drafting.remembered import RememberedAnswers
store = RememberedAnswers(Path(sys.argv[1]), most_tokens=500)
for number in range(20):
    store.add([1000 * (int(sys.argv[2]) + number) + place for place in range(10)])
"""


def test_two_processes_share_a_file(path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), start]) for start in ("100", "200")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert sorted(answers_in(RememberedAnswers(path))) == [*range(100, 120), *range(200, 220)]


def test_clearing_deletes_the_answers_of_every_vocabulary_and_nothing_else(path: Path) -> None:
    folder = path.parent
    other = answers_file(folder, "f" * 32)
    assert other is not None
    for each in (path, other):
        RememberedAnswers(each).add(answer(1))
    path.with_name(path.name + ".damaged").write_bytes(b"x")
    path.with_name(path.name + ".123.tmp").write_bytes(b"x")
    (folder / "notes.txt").write_text("mine")
    kept = kept_answers(folder)
    assert kept.num_files == 4 and kept.num_bytes > 100
    assert clear_answers(folder) == kept
    assert [found.name for found in folder.iterdir()] == ["notes.txt"]
    assert clear_answers(folder).num_files == 0
    assert clear_answers(folder / "none").num_files == 0


def test_what_cannot_be_cleared_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RememberedAnswers(path).add(answer(1))

    def fail(*_: object, **__: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(Path, "unlink", fail)
    with pytest.raises(StoreError, match="not yours") as caught:
        clear_answers(path.parent)
    assert str(path.parent) in caught.value.hint


@pytest.mark.parametrize("fingerprint", ["", "abc", "../../../etc/passwd", "0123456789ABCDEF", "0" * 65])
def test_what_is_no_fingerprint_names_no_file(tmp_path: Path, fingerprint: str) -> None:
    assert answers_file(tmp_path, fingerprint) is None


def filled(path: Path, count: int) -> None:
    store = RememberedAnswers(path)
    for number in range(count):
        store.add(answer(number))


def test_the_newest_answers_are_there_at_once_and_the_others_soon(path: Path) -> None:
    filled(path, 60)
    store = RememberedAnswers(path, at_once=40)
    assert store.wait(20.0) and store.is_whole
    assert answers_in(store) == list(range(60)) == answers_in(RememberedAnswers(path))


def test_nobody_waits_for_the_older_answers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path, 60)
    may_go_on, sort = threading.Event(), remembered._fulfil

    def slowly(*given: Any) -> None:
        may_go_on.wait(20.0)
        sort(*given)

    monkeypatch.setattr(remembered, "_fulfil", slowly)
    store = RememberedAnswers(path, at_once=3 * len(answer(0)))
    assert not store.wait(0.01) and not store.is_whole
    assert answers_in(store) == [57, 58, 59]
    # What comes meanwhile is found at once, and not lost later.
    store.add(answer(70))
    assert answers_in(store) == [57, 58, 59, 70]
    may_go_on.set()
    assert store.wait(20.0)
    assert answers_in(store) == [*range(60), 70]
    store.add(answer(71))
    assert answers_in(store) == [*range(60), 70, 71] == answers_in(RememberedAnswers(path))


def test_where_memory_is_short_the_newest_are_left(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path, 10)

    def fail(whole: Future[SuffixIndex], answers: object) -> None:
        whole.set_exception(MemoryError())

    monkeypatch.setattr(remembered, "_fulfil", fail)
    store = RememberedAnswers(path, at_once=2 * len(answer(0)))
    assert store.wait(20.0)
    assert answers_in(store) == [8, 9]


def test_few_answers_need_no_second_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path, 3)
    monkeypatch.setattr(remembered, "Thread", None)
    store = RememberedAnswers(path, at_once=remembered.AT_ONCE)
    assert store.is_whole and answers_in(store) == [0, 1, 2]
