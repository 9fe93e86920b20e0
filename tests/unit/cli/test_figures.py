from __future__ import annotations

import pytest

from localspec.cli.screen import DASH
from localspec.session.figures import (
    GIB,
    KIB,
    MIB,
    bytes_span,
    bytes_text,
    context_text,
    count_text,
    duration_text,
    milliseconds_text,
    number_text,
    percent_text,
    rate_text,
)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, DASH),
        (0, "0 MiB"),
        (7, "7 bytes"),
        (KIB, "1.0 KiB"),
        (500 * KIB, "500 KiB"),
        (MIB, "1.0 MiB"),
        (87 * MIB, "87 MiB"),
        (GIB, "1.0 GiB"),
        (int(39.6 * GIB), "39.6 GiB"),
    ],
)
def test_sizes(size: int | None, text: str) -> None:
    assert bytes_text(size) == text


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (87 * MIB, 94 * MIB, "87 to 94 MiB"),
        (800 * MIB, 2 * GIB, "800 MiB to 2.0 GiB"),
        (0, 94 * MIB, "0 to 94 MiB"),
        (0, 2 * GIB, "0 MiB to 2.0 GiB"),
        (5 * GIB, 20 * GIB, "5.0 to 20.0 GiB"),
    ],
)
def test_spans_say_a_shared_unit_once(first: int, last: int, text: str) -> None:
    assert bytes_span(first, "to", last) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, DASH),
        (0, DASH),
        (7, "7"),
        (4711, "4.7k"),
        (134_515_008, "135M"),
        (999_600_000, "1.0B"),
        (8_190_000_000, "8.2B"),
        (10**400, "over 1000000T"),
    ],
)
def test_counts(count: int | None, text: str) -> None:
    assert count_text(count) == text


def test_a_size_beyond_all_measure() -> None:
    assert bytes_text(10**400) == "over 931322574.6 GiB"


def test_durations_rates_and_contexts() -> None:
    assert [duration_text(value) for value in (None, 12.4, 89.0, 95.0, 5400.0)] == [
        DASH,
        "12 s",
        "89 s",
        "2 min",
        "1 h 30 min",
    ]
    assert [rate_text(value) for value in (None, 9.87, 123.4)] == [DASH, "9.9", "123"]
    assert [percent_text(value) for value in (None, 0.0, 0.456)] == [DASH, "0 %", "46 %"]
    assert [number_text(None), number_text(0.128), number_text(1.5, 1)] == [DASH, "0.13", "1.5"]
    assert [milliseconds_text(value) for value in (None, 0.0123, 1.5)] == [DASH, "12.3 ms", "1500 ms"]
    assert [context_text(value) for value in (0, 8192, 32768, 40000)] == [DASH, "8192", "32k", "40000"]
