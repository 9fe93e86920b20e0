"""The command that says how good drafts would have to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from localspec.cli import completion, options
from localspec.cli.model_commands import LOCAL_MODEL_HELP
from localspec.cli.services import Services

_FILE = click.Path(path_type=Path)


@click.command(
    epilog=f"{options.BENCH_EPILOG}\n\n{LOCAL_MODEL_HELP}\n\n{options.DEFAULTS_EPILOG}",
    short_help="Say how good a draft must be to pay, before you fetch one.",
)
@options.target
@options.draft
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    default=15.0,
    show_default=True,
    metavar="S",
    help="Time for each depth, both models together.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    metavar="N",
    help="Positions in the cache before each step.",
)
@click.option("--deep", "is_deep", is_flag=True, help="Measure at 2048 positions, too.")
@click.option(
    "--workload",
    metavar="NAME",
    shell_complete=completion.complete_workload,
    help="Text that the steps read, one of those below; it matters for mixtures of experts. Default: summary.",
)
@click.option("--text", "text_file", type=_FILE, metavar="FILE", help="A text file to read instead.")
@click.option("--plot", type=_FILE, metavar="FILE", help="Draw it, too: FILE ends in .svg or .png.")
@options.placement
@options.draft_placement
@click.option("--force", "is_forced", is_flag=True, help="Load what would not fit into memory; write over any picture.")
@options.as_json
@click.pass_obj
def probe(services: Services, /, **given: Any) -> int:
    """Time steps of TARGET, and say from which acceptance drafts of which cost pay on this machine.

    It takes about 20 seconds, and needs no draft; with --draft it also measures what that one costs.
    """
    from localspec.cli.probe import ProbeChoice, run_probe

    choice = ProbeChoice(
        target=given["target"],
        draft=given["draft"],
        seconds=given["seconds"],
        depth=given["depth"],
        is_deep=given["is_deep"],
        workload=given["workload"],
        text_file=given["text_file"],
        plot=given["plot"],
        is_forced=given["is_forced"],
    )
    return run_probe(services, choice, options.flags_of(given), given["is_json"])


COMMANDS: tuple[click.Command, ...] = (probe,)
