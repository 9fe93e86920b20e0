"""The README's pictures come from the recorded session."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.screenshots import ASSETS, NAMES, write_all

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow
def test_all_pictures_are_written_as_they_are_kept(tmp_path: Path) -> None:
    files = write_all(tmp_path)
    assert sorted(file.name for file in files) == sorted(f"screenshot-{name}.svg" for name in NAMES)
    for file in files:
        assert file.read_text("utf-8") == (ASSETS / file.name).read_text("utf-8"), f"make screenshots: {file.name}"


def test_the_readme_shows_pictures_that_are_there_and_need_nothing_else() -> None:
    shown = re.findall(r"!\[[^\]]+\]\((assets/[^)]+)\)", README.read_text("utf-8"))
    assert {Path(name).stem.removeprefix("screenshot-") for name in shown} >= {"chat", "compare"}
    for name in shown:
        text = (README.parent / name).read_text("utf-8")
        assert ElementTree.fromstring(text).tag.endswith("svg")
        assert "url(" not in text and text.count("http") == text.count("http://www.w3.org/2000/svg")
