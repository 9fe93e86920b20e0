"""The commands about profiles, and the estimate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from localspec.cli import options
from localspec.cli.services import Services

DESTINATIONS = (
    *("llama-server", "llama-cli", "llama-presets", "llama-swap", "koboldcpp", "lmstudio", "vllm", "sglang", "ollama"),
    "json",
)
"""Written out, likewise the shells, since help must not wait for the exports to be loaded."""

SHELLS = ("sh", "powershell")

_RUN_HELP = "A run's number as `localspec runs` shows it, or last."


@click.group()
def profile() -> None:
    """Keep the best settings of a run under a name, and use them again."""


@profile.command("save", epilog="Without --arm the arm is taken that did best, over all workloads or on the one named.")
@click.argument("name", metavar="NAME")
@click.option("--run", "run", default="last", show_default=True, metavar="N|last", help=_RUN_HELP)
@click.option("--arm", default="", metavar="NAME", help="The way of drafting to take; off is one.")
@click.option("--workload", default="", metavar="NAME", help="Judge by this workload alone.")
@click.option("--force", "replaces", is_flag=True, help="Replace a profile of the same name.")
@click.pass_obj
def profile_save(services: Services, name: str, run: str, arm: str, workload: str, replaces: bool) -> int:
    """Keep models, method and settings of a run as NAME."""
    from localspec.cli.profile import run_save

    return run_save(services, name, run, arm, workload, replaces)


@profile.command("list")
@options.as_json
@click.pass_obj
def profile_list(services: Services, is_json: bool) -> int:
    """List the profiles."""
    from localspec.cli.profile import run_list

    return run_list(services, is_json)


@profile.command("show")
@click.argument("name", metavar="NAME")
@options.as_json
@click.pass_obj
def profile_show(services: Services, name: str, is_json: bool) -> int:
    """Show what a profile holds, and what it stands on."""
    from localspec.cli.profile import run_show

    return run_show(services, name, is_json)


@profile.command("rename")
@click.argument("name", metavar="NAME")
@click.argument("new_name", metavar="NEW_NAME")
@click.pass_obj
def profile_rename(services: Services, name: str, new_name: str) -> int:
    """Give a profile another name."""
    from localspec.cli.profile import run_rename

    return run_rename(services, name, new_name)


@profile.command("delete")
@click.argument("name", metavar="NAME")
@click.pass_obj
def profile_delete(services: Services, name: str) -> int:
    """Delete a profile. Models and runs stay."""
    from localspec.cli.profile import run_delete

    return run_delete(services, name)


@click.command(short_help="Print a profile as another engine takes it.")
@click.argument("name", metavar="PROFILE")
@click.option("--to", "to", required=True, type=click.Choice(DESTINATIONS), help="The engine.")
@click.option("--workload", default="", metavar="NAME", help="Only what the profile holds for this kind of text.")
@click.option(
    "--shell",
    type=click.Choice(SHELLS),
    help="Whose quotes a command line has. Default: powershell on Windows, sh elsewhere.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE instead of stdout."
)
@click.option("--force", "replaces", is_flag=True, help="Replace FILE if it exists.")
@click.pass_obj
def export(
    services: Services, name: str, to: str, workload: str, shell: str | None, output: Path | None, replaces: bool
) -> int:
    """Print PROFILE as the command line or file of another engine, with a comment for what has no equivalent there.

    Where it has a setting for each kind of text, llama-presets, llama-swap, lmstudio and json hold them all.
    """
    from localspec.cli.export import run_export

    return run_export(services, name, to, workload, shell, output, replaces)


def _costs(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[float, ...]:
    found = []
    for text in ",".join(value).split(",") if value else ():
        try:
            found.append(float(text))
        except ValueError:
            raise click.BadParameter(f"{text!r} is not a number.", context, parameter) from None
    return tuple(found)


@click.command(
    short_help="Predict the gain from acceptance and costs.",
    epilog="Costs are in plain steps of the target. With --run all figures come from a kept run, and what it measured "
    "stands beside the prediction.",
)
@click.option("--acceptance", type=float, metavar="A", help="Chance that a draft token is accepted, 0 to 1.")
@click.option("--n-max", type=int, metavar="K", help="Longest draft. Default: 8, or as long as the run's.")
@click.option("--draft-cost", type=float, metavar="C", help="Time of a draft step / time of a step of the target.")
@click.option(
    "--verify-cost",
    "verify_costs",
    multiple=True,
    callback=_costs,
    metavar="V[,V...]",
    help="Time of a verification / time of a plain step: one for all lengths, or t(2)/t(1), t(3)/t(1) and so on. "
    "Default: 1.",
)
@click.option("--run", "run", metavar="N|last", help=_RUN_HELP)
@click.option("--workload", default="", metavar="NAME", help="Only this workload of the run.")
@click.option("--arm", default="", metavar="NAME", help="Only this way of drafting of the run.")
@options.as_json
@click.pass_obj
def estimate(services: Services, /, **given: Any) -> int:
    """Predict tokens per round, cost and speedup for every draft length, and say which is best."""
    stated = {name: given[name] for name in ("acceptance", "draft_cost") if given[name] is not None}
    if given["run"] is not None:
        if stated or given["verify_costs"]:
            raise click.UsageError("With --run, acceptance and costs come from the run: leave the others out.")
        from localspec.cli.estimate import run_measured

        return run_measured(services, given["run"], given["workload"], given["arm"], given["n_max"], given["is_json"])
    if given["workload"] or given["arm"]:
        raise click.UsageError("--workload and --arm choose in a run: give one with --run.")
    if len(stated) < 2:
        raise click.UsageError("Give --acceptance and --draft-cost, or a kept run with --run.")
    from localspec.cli.estimate import run_stated

    n_max = 8 if given["n_max"] is None else given["n_max"]
    return run_stated(given["acceptance"], n_max, given["draft_cost"], given["verify_costs"], given["is_json"])


COMMANDS: tuple[click.Command, ...] = (profile, export, estimate)
