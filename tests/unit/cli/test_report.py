"""`localspec report`: which runs, which files, and what it never writes over."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.store.database import Database
from localspec.store.runs import Runs
from tests.report_kit import made_up_document


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return made_up_document("chat", num_pairs=3, num_tokens=60)


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Services:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return Services(open_database=lambda: Database(tmp_path / "kept.sqlite3"))


def keep(services: Services, document: dict[str, Any], times: int = 1) -> list[int]:
    with services.open_database() as database:
        runs = Runs(database)
        ids = [runs.start("bench", {}) for _ in range(times)]
        for run_id in ids:
            runs.finish(run_id, document, "done")
    return ids


def report(services: Services, *arguments: str | int | Path) -> int:
    return run(["report", *map(str, arguments)], services)


def test_by_default_the_newest_run_becomes_report_html(
    services: Services, document: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    first, newest = keep(services, document, 2)
    assert report(services) == 0
    page = Path("report.html").read_text(encoding="utf-8")
    assert f"Run {newest}:" in page
    assert f"Run {first}:" not in page
    assert list(Path().iterdir()) == [Path("report.html")]
    captured = capsys.readouterr()
    assert captured.out.startswith("report.html (")
    assert captured.out.rstrip().endswith(f"of run {newest}")


def test_several_runs_share_a_page_and_one_named_twice_is_there_once(
    services: Services, document: dict[str, Any]
) -> None:
    first, second = keep(services, document, 2)
    assert report(services, second, first, second, "-o", "both.html", "--title", "Mine & <yours>") == 0
    page = Path("both.html").read_text(encoding="utf-8")
    assert page.count(f"Run {second}:") == page.count(f"Run {first}:") == 1
    assert page.index(f"Run {second}:") < page.index(f"Run {first}:")
    assert "<h1>Mine &amp; &lt;yours&gt;</h1>" in page


def test_pictures_alone_need_no_page(services: Services, document: dict[str, Any]) -> None:
    (run_id,) = keep(services, document)
    assert report(services, run_id, "--png", Path("new") / "pictures") == 0
    assert not Path("report.html").exists()
    names = {path.name for path in (Path("new") / "pictures").iterdir()}
    assert {f"run-{run_id}-speedup.png", f"run-{run_id}-chat-rate.png"} <= names
    assert all(name.endswith(".png") for name in names)
    # Again, over its own pictures, and with a page beside them.
    assert report(services, run_id, "--png", Path("new") / "pictures", "-o", "page.html") == 0
    assert Path("page.html").exists()


def test_its_own_page_is_written_over_and_a_foreign_file_only_by_force(
    services: Services, document: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    keep(services, document)
    foreign = Path("notes.html")
    foreign.write_text("<!DOCTYPE html><title>My notes on localspec</title>", encoding="utf-8")
    assert report(services, "-o", foreign) == 2
    assert "localspec did not make it" in capsys.readouterr().err
    assert "My notes" in foreign.read_text(encoding="utf-8")
    assert report(services, "-o", foreign, "--force") == 0
    assert report(services, "-o", foreign, "--title", "Again") == 0
    assert "<h1>Again</h1>" in foreign.read_text(encoding="utf-8")


def test_one_foreign_picture_stops_all(services: Services, document: dict[str, Any]) -> None:
    (run_id,) = keep(services, document)
    folder = Path("pictures")
    folder.mkdir()
    (folder / f"run-{run_id}-speedup.png").write_bytes(b"\x89PNG mine")
    assert report(services, "--png", folder, "-o", "page.html") == 2
    assert [path.name for path in folder.iterdir()] == [f"run-{run_id}-speedup.png"]
    assert not Path("page.html").exists()


@pytest.mark.parametrize("place", [".", "absent/page.html"])
def test_places_that_cannot_be_written_are_refused_before_anything_is_read(place: str, services: Services) -> None:
    assert report(services, "-o", place) == 2


def test_a_link_and_what_it_leads_to_stay(services: Services, document: dict[str, Any]) -> None:
    keep(services, document)
    Path("goal.txt").write_text("goal", encoding="utf-8")
    Path("link.html").symlink_to("goal.txt")
    assert report(services, "-o", "link.html", "--force") == 2
    assert Path("goal.txt").read_text(encoding="utf-8") == "goal"
    assert Path("link.html").is_symlink()


@pytest.mark.skipif(os.name == "nt", reason="there are no such pipes")
def test_a_pipe_is_refused_and_not_waited_for(
    services: Services, document: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    keep(services, document)
    os.mkfifo("pipe.html")
    assert report(services, "-o", "pipe.html") == 2
    assert report(services, "-o", "pipe.html", "--force") == 2
    assert report(services, "--png", "pipe.html", "--force") == 2
    assert "is a named pipe" in capsys.readouterr().err
    assert Path("pipe.html").is_fifo()


def test_a_page_on_stdout_is_alone_there(
    services: Services, document: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    keep(services, document)
    assert report(services, "-o", "-") == 0
    out = capsys.readouterr().out
    assert out.startswith("<!DOCTYPE html>") and out.rstrip().endswith("</html>")
    assert not Path("-").exists()


def test_a_range_takes_the_runs_that_are_kept_of_it(
    services: Services, document: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    keep(services, document, times=3)
    with services.open_database() as database:
        Runs(database).delete(2)
    assert report(services, "1-3") == 0
    assert "of runs 1, 3" in capsys.readouterr().out
    assert report(services, "7-9") == 2
    assert "No run from 7 to 9 is kept." in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_others_may_read_the_page_if_the_umask_lets_them(services: Services, document: dict[str, Any]) -> None:
    keep(services, document)
    before = os.umask(0o022)
    try:
        assert report(services) == 0
    finally:
        os.umask(before)
    assert Path("report.html").stat().st_mode & 0o777 == 0o644


def test_a_folder_of_pictures_that_is_a_file_is_refused(
    services: Services, document: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    keep(services, document)
    Path("file").write_bytes(b"")
    assert report(services, "--png", "file") == 2
    assert "file is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), ("77",), ("x",), ("-1",)])
def test_runs_that_are_not_kept(words: tuple[str, ...], services: Services) -> None:
    assert report(services, *words) == 2
    assert list(Path().iterdir()) == []


def test_a_run_that_cannot_be_drawn_gives_a_page_but_no_pictures(
    services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(services, {"schema": 1, "workloads": []})
    assert report(services) == 0
    assert "not shown" in Path("report.html").read_text(encoding="utf-8")
    assert report(services, "--png", "pictures") == 2
    assert "can be drawn" in capsys.readouterr().err


DRAW = """
import sys, pathlib
from localspec.session.reporting.canvas import png_of, sheet
png_of(lambda: sheet("Title", 1.0)[0])
print("pyplot" in str(sorted(sys.modules)), *sorted(path.name for path in pathlib.Path.home().rglob("*")))
"""


def test_drawing_writes_nothing_at_home_and_needs_no_screen(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    environment = {key: value for key, value in os.environ.items() if key not in ("MPLCONFIGDIR", "DISPLAY")}
    environment |= {"HOME": str(home), "USERPROFILE": str(home), "LOCALSPEC_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", DRAW], capture_output=True, text=True, env=environment, timeout=100, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False"]
    assert done.stderr == ""
    assert (cache / "matplotlib").is_dir()
