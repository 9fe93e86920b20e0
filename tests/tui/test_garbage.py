"""Garbage is searched for when nobody waits, and none is kept for good."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from localspec.tui import garbage
from localspec.tui.garbage import GarbageSearch


class Knot:
    """Refers to itself, so that only a search frees it."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def lost() -> weakref.ref[Knot]:
    return weakref.ref(Knot())


def test_while_it_rests_what_was_there_before_is_passed_over() -> None:
    search = GarbageSearch()
    gc.collect()
    old = lost()
    search.rest()
    gc.collect()
    assert old() is not None
    # What comes meanwhile is found as ever.
    new = lost()
    gc.collect()
    assert new() is None
    search.search()
    assert old() is None


def test_everything_is_searched_through_only_once_there_is_more() -> None:
    search = GarbageSearch()
    search.search()
    old = lost()
    gc.freeze()
    search.search()
    assert old() is not None
    kept = [[number] for number in range(gc.get_freeze_count())]
    search.search()
    assert old() is None and kept


async def test_it_goes_on_later_and_not_within_another_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "LATER_S", 0.02)
    search = GarbageSearch()
    search.search()
    num_searches = 0

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal num_searches
        num_searches += phase == "start" and info["generation"] == 2

    gc.callbacks.append(count)
    try:
        search.rest()
        search.go_on()
        search.rest()
        await asyncio.sleep(0.05)
        assert num_searches == 0
        search.go_on()
        await asyncio.sleep(0.05)
        assert num_searches >= 1
    finally:
        gc.callbacks.remove(count)
