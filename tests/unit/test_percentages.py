"""A percentage is written one way wherever it is said."""

from __future__ import annotations

import re
from pathlib import Path

import localspec
from localspec.metrics.drift import drift_note
from localspec.session.figures import percent_text
from localspec.session.reporting.figures import share
from localspec.session.workload_kind import classify

_FORMATTED = re.compile(r"\{[^{}\n]*:[^{}\n]*%\}")


def test_no_text_is_formatted_as_a_percentage_by_itself() -> None:
    paths = Path(localspec.__file__).parent.rglob("*.py")
    assert [f"{path.name}: {text}" for path in paths for text in _FORMATTED.findall(path.read_text("utf-8"))] == []
    assert _FORMATTED.search('f"{share:.0%} of it"')


def test_who_cannot_share_the_words_writes_them_the_same_way() -> None:
    assert percent_text(0.66) == share(0.66) == "66 %"
    assert " 20 % slower " in drift_note([100.0, 80.0])
    text = " ".join(f"word{place}" for place in range(80))
    assert "100 % of the answer stands in the prompt" in classify(f"Repeat this: {text}", text).why
