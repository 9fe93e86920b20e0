"""The commands about models: what is here, what the Hub has, pairs, downloads, kits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from localspec.cli import fit_options, options
from localspec.cli.completion import SHELLS, complete_model
from localspec.cli.services import Services

_DRAFT = click.option(
    "--draft", metavar="MODEL", shell_complete=complete_model, help="The same as DRAFT behind the target."
)
_YES = click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")

_MODEL_HELP = "A model is a path, a name that `localspec models` shows, or OWNER/NAME[:QUANT] on the Hub."

LOCAL_MODEL_HELP = (
    "A model is a path, a name that `localspec models` shows, or OWNER/NAME[:QUANT] that `localspec pull` has fetched."
)
"""For commands that need the whole of it."""


@click.command()
@options.as_json
@click.pass_obj
def models(services: Services, is_json: bool) -> int:
    """List the models on this machine."""
    from localspec.cli.models import run_models

    return run_models(services, is_json)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="WORDS...")
@click.option("--limit", type=click.IntRange(1, 50), default=10, show_default=True, metavar="N", help="Most answers.")
@options.as_json
@click.pass_obj
def search(services: Services, words: tuple[str, ...], limit: int, is_json: bool) -> int:
    """Search the Hub for GGUF models, with sizes and known drafts."""
    from localspec.cli.search import run_search

    return run_search(services, " ".join(words), limit, is_json)


@click.command(epilog=_MODEL_HELP)
@click.argument("model", metavar="MODEL", shell_complete=complete_model)
@click.option("--hub", "is_remote", is_flag=True, help="Look on the Hub even if the model is here.")
@options.as_json
@click.pass_obj
def show(services: Services, model: str, is_remote: bool, is_json: bool) -> int:
    """Show what a model is, before a byte of weights is fetched."""
    from localspec.cli.show import run_show

    return run_show(services, model, is_remote, is_json)


@click.command(epilog=_MODEL_HELP, short_help="Say whether two models are a pair, or find drafts.")
@click.argument("target", metavar="TARGET", shell_complete=complete_model)
@click.argument("beside", required=False, metavar="[DRAFT]", shell_complete=complete_model)
@_DRAFT
@click.option("--local", "is_local", is_flag=True, help="Look for drafts on this machine only.")
@options.as_json
@click.pass_obj
def pair(services: Services, target: str, beside: str | None, draft: str | None, is_local: bool, is_json: bool) -> int:
    """Say whether DRAFT can draft for TARGET; without DRAFT, list the drafts that can.

    Only headers are read, those of models on the Hub too. The exit code is 0 for a pair and 1 for none.
    """
    from localspec.cli.pair import run_pair

    return run_pair(services, target, fit_options.draft_of(beside, draft), is_local, is_json)


@click.command(epilog=_MODEL_HELP, short_help="Say whether models fit into memory, and with how much context.")
@options.target
@options.together(*fit_options.OPTIONS)
@options.as_json
@click.pass_obj
def fit(services: Services, /, **given: Any) -> int:
    """Say whether TARGET fits into memory, here or on a machine that you describe, and what could be given up if not.

    Only headers are read, those of models on the Hub too. The exit code is 0 if it fits, with less context or fewer
    layers on the GPU too, and 1 if it does not.
    """
    choice = fit_options.fit_choice(given)
    if given["is_matrix"]:
        from localspec.cli.fit_matrix import run_matrix

        return run_matrix(services, choice, given["is_json"])
    from localspec.cli.fit import run_fit

    return run_fit(services, choice, given["is_json"])


@click.command(
    epilog=f"{_MODEL_HELP}\n\nWithout QUANT the one with four bits or so is taken; `localspec show` lists all."
)
@click.argument("reference", metavar="OWNER/NAME[:QUANT]")
@click.option(
    "--draft",
    default="auto",
    show_default=True,
    metavar="auto|OWNER/NAME[:QUANT]|none",
    help="Which draft to fetch with it; auto takes the first that `localspec pair` finds.",
)
@click.option("--force", "is_forced", is_flag=True, help="Fetch a draft that is no pair all the same.")
@_YES
@options.as_json
@click.pass_obj
def pull(services: Services, reference: str, draft: str, is_forced: bool, is_sure: bool, is_json: bool) -> int:
    """Fetch a model from the Hub, and a draft for it.

    What is fetched and how large it is stands there first. A download that was broken off goes on where it ended.
    """
    from localspec.cli.pull import run_pull

    return run_pull(services, reference, draft, is_forced, is_sure, is_json)


@click.command(short_help="Remove models, broken-off downloads and what was learnt.")
@click.argument("names", nargs=-1, metavar="MODEL...", shell_complete=complete_model)
@click.option("--partial", "with_partials", is_flag=True, help="Remove what broken-off downloads left.")
@click.option("--answers", "with_answers", is_flag=True, help="Remove the answers that are kept to copy drafts from.")
@click.option("--learnt", "with_learnt", is_flag=True, help="Remove what adaptive drafting has learnt.")
@_YES
@click.pass_obj
def remove(
    services: Services,
    names: tuple[str, ...],
    with_partials: bool,
    with_answers: bool,
    with_learnt: bool,
    is_sure: bool,
) -> int:
    """Remove models from localspec's folder or the Hugging Face cache, and what localspec keeps for drafting."""
    from localspec.cli.remove import run_remove

    return run_remove(services, names, with_partials, is_sure, with_answers, with_learnt)


@click.group()
def kit() -> None:
    """Carry a pair of models to a machine without network."""


@kit.command("export", epilog=LOCAL_MODEL_HELP)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("target", metavar="TARGET", shell_complete=complete_model)
@click.argument("beside", required=False, metavar="[DRAFT]", shell_complete=complete_model)
@_DRAFT
@options.as_json
@click.pass_obj
def kit_export(
    services: Services, folder: Path, target: str, beside: str | None, draft: str | None, is_json: bool
) -> int:
    """Copy models and their SHA-256 sums into FOLDER."""
    from localspec.cli.kit import run_export

    return run_export(services, folder, target, fit_options.draft_of(beside, draft), is_json)


@kit.command("import")
@click.argument("folder", type=click.Path(path_type=Path))
@options.as_json
@click.pass_obj
def kit_import(services: Services, folder: Path, is_json: bool) -> int:
    """Verify the kit in FOLDER and copy its models into localspec's folder."""
    from localspec.cli.kit import run_import

    return run_import(services, folder, is_json)


@click.command(short_help="Print the script for completion in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the script that completes commands and model names in SHELL."""
    from localspec.cli.completion import print_script

    return print_script(context.find_root().command, shell)


COMMANDS: tuple[click.Command, ...] = (models, search, show, pair, fit, pull, remove, kit, completion)
