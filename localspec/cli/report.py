"""`localspec report`: a page of kept runs, and their pictures alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from localspec.cli.chat_store import open_database
from localspec.cli.failures import EXIT_DONE
from localspec.cli.figures import bytes_text
from localspec.cli.screen import notices_console, progress, results_console, say
from localspec.cli.services import Services
from localspec.cli.text import one_line
from localspec.errors import LocalspecError, UsageError
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
    if page_path is not None:
        # Before anything is drawn.
        check_place(page_path, is_forced)
    with ExitStack() as stack:
        runs = Runs(open_database(stack, services))
        chosen = {run.summary.id: run for run in (choose_run(runs, word) for word in words or (LAST,))}
    pages, pictures = _make(tuple(chosen.values()), page_path, folder, title)
    write_all((*pages, *pictures), is_forced)
    console = results_console()
    for page in pages:
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
