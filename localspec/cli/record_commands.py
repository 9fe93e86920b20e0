"""The commands on runs that are kept."""

from __future__ import annotations

from pathlib import Path

import click

from localspec.cli import options
from localspec.cli.services import Services

_LIMIT = click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Most runs listed."
)
_EPILOG = "N is a number that `localspec runs` shows, or `last` for the newest run."


@click.group(invoke_without_command=True)
@_LIMIT
@options.as_json
@click.pass_context
def runs(context: click.Context, limit: int, is_json: bool) -> int | None:
    """List, show, compare, repeat, export and delete measurements.

    Without a command the runs are listed, the newest first.
    """
    if context.invoked_subcommand is not None:
        return None
    from localspec.cli.runs import run_list

    return run_list(context.obj, limit, is_json)


@runs.command("list")
@_LIMIT
@options.as_json
@click.pass_obj
def runs_list(services: Services, limit: int, is_json: bool) -> int:
    """List the runs, the newest first."""
    from localspec.cli.runs import run_list

    return run_list(services, limit, is_json)


@runs.command("show", epilog=_EPILOG, short_help="Show a run and all that it rests on.")
@click.argument("run", metavar="N")
@options.as_json
@click.pass_obj
def runs_show(services: Services, run: str, is_json: bool) -> int:
    """Show run N: its tables, settings, build, device, power and file hashes."""
    from localspec.cli.runs import run_show

    return run_show(services, run, is_json)


@runs.command("compare", epilog=_EPILOG, short_help="Compare two runs.")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@options.as_json
@click.pass_obj
def runs_compare(services: Services, before: str, after: str, is_json: bool) -> int:
    """Compare runs A and B: what differs between them, and whether B is faster or slower."""
    from localspec.cli.run_compare import run_compare

    return run_compare(services, before, after, is_json)


@runs.command("rerun", epilog=_EPILOG)
@click.argument("run", metavar="N")
@options.force
@options.keep
@options.as_json
@click.pass_obj
def runs_rerun(services: Services, run: str, is_forced: bool, is_kept: bool, is_json: bool) -> int:
    """Measure with the settings of run N again, and compare.

    What differs now (build, driver, device, power, files) is said first.
    """
    from localspec.cli.run_rerun import run_rerun

    return run_rerun(services, run, is_forced, is_kept, is_json)


@runs.command("export", epilog=_EPILOG)
@click.argument("run", metavar="N")
@click.option("--json", "is_csv", flag_value=False, default=None, help="The document of `bench --json`. The default.")
@click.option("--csv", "is_csv", flag_value=True, help="A table with a line for each round.")
@click.option(
    "--output", "-o", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE instead of stdout."
)
@click.option("--force", "is_forced", is_flag=True, help="Write over a file that exists.")
@click.pass_obj
def runs_export(services: Services, run: str, is_csv: bool | None, file: Path | None, is_forced: bool) -> int:
    """Write run N to a file or to stdout."""
    from localspec.cli.run_export import run_export

    return run_export(services, run, is_csv, file, is_forced)


@runs.command("delete", epilog=_EPILOG)
@click.argument("names", nargs=-1, required=True, metavar="N...")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.pass_obj
def runs_delete(services: Services, names: tuple[str, ...], is_sure: bool) -> int:
    """Delete runs. Profiles that stand on them stay."""
    from localspec.cli.runs import run_delete

    return run_delete(services, names, is_sure)


COMMANDS: tuple[click.Command, ...] = (runs,)
