"""Damaged and hostile files are refused with words, within bounds of time and memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.damaged_gguf import FAULTS, Fault

pytest.importorskip("resource")

ROOT = Path(__file__).parents[2]
MAX_GROWTH_BYTES = 200 << 20


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one file."""

    stage: str
    message: str
    hint: str
    growth: int


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """Read every file in a child process with limits; a file that ends the process is reported as `ends`."""
    paths = []
    for fault in FAULTS:
        path = tmp_path_factory.mktemp(fault.name) / fault.file_name
        fault.make(path)
        paths.append(path)
    reports: dict[str, Report] = {}
    while len(reports) < len(FAULTS):
        remaining = [str(path) for path in paths[len(reports) :]]
        child = subprocess.run(
            [sys.executable, "-m", "tests.damaged_gguf", *remaining],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        for line in child.stdout.splitlines():
            value = json.loads(line)
            report = Report(value["stage"], value["message"], value["hint"], value["growth"])
            reports[FAULTS[len(reports)].name] = report
        if child.returncode:
            last_line = (child.stderr.splitlines() or [""])[-1]
            reports[FAULTS[len(reports)].name] = Report("ends", last_line, f"exit code {child.returncode}", 0)
    return reports


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_reported(fault: Fault, reports: dict[str, Report]) -> None:
    report = reports[fault.name]
    assert report.stage == fault.outcome, report
    assert re.search(fault.words, report.message), report
    assert report.growth < MAX_GROWTH_BYTES, report


def test_a_refusal_says_what_to_do(reports: dict[str, Report]) -> None:
    refusals = [report for report in reports.values() if report.stage in ("header", "load")]
    assert len(refusals) >= 24
    assert all(report.hint for report in refusals)
    assert all(report.message.isprintable() for report in refusals)
