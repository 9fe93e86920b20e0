"""The command that makes a page of runs."""

from __future__ import annotations

from pathlib import Path

import click

from localspec.cli.services import Services

_FILE = click.Path(path_type=Path)


@click.command(
    short_help="Make a page with pictures of kept runs.",
    epilog="Without -o the page is report.html; with --png and without -o there is no page. What localspec made itself "
    "is written over.",
)
@click.argument("words", nargs=-1, metavar="[N...]")
@click.option(
    "-o", "--output", type=_FILE, metavar="FILE", help="Where the page goes; - for stdout. Default: report.html."
)
@click.option("--png", "folder", type=_FILE, metavar="DIR", help="Write the pictures alone, as PNG files in DIR.")
@click.option("--title", default="", metavar="TEXT", help="Heading of the page.")
@click.option("--force", "is_forced", is_flag=True, help="Write over files that localspec did not make, too.")
@click.pass_obj
def report(
    services: Services, words: tuple[str, ...], output: Path | None, folder: Path | None, title: str, is_forced: bool
) -> int:
    """Make a page of the runs N, numbers that `localspec runs` shows, or ranges such as 1-3; by default of the newest.

    The page is one HTML file without scripts that needs nothing from elsewhere: verdicts, pictures, settings and
    receipts. Model files are named without their folders.
    """
    from localspec.cli.report import run_report

    return run_report(services, words, output, folder, title, is_forced)


COMMANDS: tuple[click.Command, ...] = (report,)
