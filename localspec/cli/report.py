"""`localspec report`: a page of kept runs, and their pictures alone."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from localspec.cli.chat_store import open_database
from localspec.cli.failures import EXIT_DONE
from localspec.cli.screen import notices_console, progress, results_console, say
from localspec.cli.services import Services
from localspec.errors import LocalspecError, UsageError
from localspec.session.figures import bytes_text
from localspec.session.new_file import is_stdout
from localspec.session.plain_text import one_line
from localspec.session.records import document_of
from localspec.session.reporting.writing import Output, check_place, write_all
from localspec.session.run_document import LAST, choose_run
from localspec.store.runs import Runs
from localspec.store.values import StoredRun

DEFAULT_OUTPUT = Path("report.html")


def run_report(
    services: Services, words: Sequence[str], output: Path | None, folder: Path | None, title: str, is_forced: bool
) -> int:
    """Write what was asked for, say where it is, and return the exit code."""
    page_path = DEFAULT_OUTPUT if output is None and folder is None else output
    to_stdout = page_path is not None and is_stdout(page_path)
    # Before anything is drawn.
    if page_path is not None and not to_stdout:
        check_place(page_path, is_forced)
    if folder is not None:
        _check_folder(folder)
    with ExitStack() as stack:
        runs = Runs(open_database(stack, services))
        numbers = [number for word in words or (LAST,) for number in _meant(runs, word)]
        chosen = {run.summary.id: run for run in (choose_run(runs, number) for number in dict.fromkeys(numbers))}
    pages, pictures = _make(tuple(chosen.values()), page_path, folder, title)
    write_all(((*pictures,) if to_stdout else (*pages, *pictures)), is_forced)
    # Then stdout is for the page alone.
    console = results_console(to_stdout)
    for page in pages:
        if to_stdout:
            sys.stdout.write(page.content.decode("utf-8"))
            continue
        say(console, one_line(f"{page.path} ({bytes_text(len(page.content))}) of {_runs_phrase(list(chosen))}"))
    if folder is not None:
        say(console, one_line(f"{len(pictures)} pictures in {folder}"))
    return EXIT_DONE


def _make(
    chosen: Sequence[StoredRun], page_path: Path | None, folder: Path | None, title: str
) -> tuple[list[Output], list[Output]]:
    with progress(notices_console(), "drawing") as show:
        # matplotlib takes a while to load, and nothing else needs it.
        from localspec.session.reporting.canvas import png_of
        from localspec.session.reporting.page import ReportRun, make_page, pictures_of

        runs = [
            ReportRun(
                id=run.summary.id,
                created_at=run.summary.created_at,
                state=run.summary.state,
                profile=run.summary.profile,
                document=document_of(run),
            )
            for run in chosen
        ]
        pages, pictures = [], []
        if page_path is not None:
            page = make_page(runs, title, _home(), lambda fraction: show("drawing the page", fraction, ""))
            pages.append(Output(page_path, page.encode("utf-8", errors="replace")))
        if folder is not None:
            _make_folder(folder)
            found = pictures_of(runs)
            if not found:
                raise UsageError("Nothing in these runs can be drawn.", "Measure again, with more tokens and pairs.")
            for place, (name, picture) in enumerate(found, start=1):
                if picture.draw is not None:
                    pictures.append(Output(folder / f"{name}.png", png_of(picture.draw)))
                show("drawing the pictures", place / len(found), "")
    return pages, pictures


def _meant(runs: Runs, word: str) -> list[str]:
    """Return the runs that a word means: itself, or those that are kept of a range such as `1-3`."""
    ends = re.fullmatch(r"([0-9]{1,18})-([0-9]{1,18})", word)
    if ends is None:
        return [word]
    first, last = int(ends[1]), int(ends[2])
    found = [str(summary.id) for summary in reversed(runs.summaries()) if first <= summary.id <= last]
    if not found:
        raise UsageError(f"No run from {first} to {last} is kept.", "`localspec runs` shows all.")
    return found


def _check_folder(folder: Path) -> None:
    try:
        is_other = folder.exists() and not folder.is_dir()
    except (OSError, ValueError):
        return  # Making it says why.
    if is_other:
        raise UsageError(f"{folder} is no folder, and is left as it is.", "Name another with --png.")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LocalspecError(f"Cannot make the folder {folder}: {reason}", "Name another with --png.") from None


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        return ""


def _runs_phrase(ids: Sequence[int]) -> str:
    return f"run {ids[0]}" if len(ids) == 1 else f"runs {', '.join(map(str, ids))}"
