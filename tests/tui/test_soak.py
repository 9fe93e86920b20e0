"""A long chat takes no more memory than a short one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MB = 1_000_000

pytestmark = pytest.mark.slow


@pytest.mark.timeout(900)
def test_two_hundred_turns_with_long_answers_among_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.soak_app", str(tmp_path), "200", "50"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    after = {record["turns"]: record for record in map(json.loads, done.stdout.splitlines())}
    assert list(after) == [50, 100, 150, 200]
    assert after[200]["rss_bytes"] < 150 * MB
    assert after[200]["rss_bytes"] - after[50]["rss_bytes"] < 6 * MB
    assert after[200]["widgets"] <= after[50]["widgets"] + 20
