"""The command that searches the best settings."""

from __future__ import annotations

from typing import Any

import click

from localspec.cli import completion, drafting_options, options
from localspec.cli.model_commands import LOCAL_MODEL_HELP
from localspec.cli.services import Services

DEFAULT_BUDGET = "5m"

_SEARCHED = (
    *("n_threads", "n_threads_batch", "draft_n_threads", "draft_n_threads_batch"),
    *("flash_attn", "type_k", "type_v", "draft_n_gpu_layers"),
)
"""Options that are searched unless they are given."""


@click.command(
    short_help="Search the best settings within a time, and keep them.",
    epilog=f"{options.BENCH_EPILOG}\n\n{LOCAL_MODEL_HELP}\n\n{options.DEFAULTS_EPILOG}",
)
@options.target
@click.option(
    "--draft",
    "drafts",
    multiple=True,
    metavar="MODEL",
    shell_complete=completion.complete_model,
    help="A model that may draft; may be given several times, and each is a candidate.",
)
@options.texts
@click.option(
    "--budget",
    default=DEFAULT_BUDGET,
    show_default=True,
    metavar="TIME",
    help="How long it may take, loading included: 90s, 5m, 1h.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=drafting_options.method_choice,
    help="Search these ways of drafting only, and auto; may be given several times. Default: all.",
)
@click.option(
    "--kv",
    "kv_types",
    multiple=True,
    type=click.Choice(options.KV_TYPES),
    help="Also try this type of KV cache; may be given several times. One below f16 changes the text a little.",
)
@click.option(
    "--save",
    "profile",
    metavar="NAME",
    help="Name of the profile that is kept if something wins. Default: tuned and the target's name.",
)
@click.option("--replace", "replaces", is_flag=True, help="Replace a profile of that name.")
@click.option("--no-keep", "is_kept", is_flag=True, flag_value=False, default=True, help="Keep no run and no profile.")
@options.ignore_eos
@options.sampling
@options.max_tokens
@options.placement
@options.draft_placement
@options.force
@options.as_json
@click.pass_obj
def tune(services: Services, /, **given: Any) -> int:
    """Search how to draft for TARGET, and how to load it, within a time; keep a profile if it clearly wins.

    Ways of loading are timed first, then ways of drafting are searched, always against runs without drafts in between,
    and the best two are confirmed on prompts that the search has not seen. If none wins there, off is best.
    Ctrl-C ends it with what is known.
    """
    from localspec.cli.tune import TuneChoice, run_tune

    names = ("target", "drafts", "workloads", "prompt_file", "budget", "methods", "kv_types", "profile", "replaces")
    choice = TuneChoice(
        **{name: given[name] for name in names},
        is_kept=given["is_kept"],
        ignore_eos=given["ignore_eos"],
        is_forced=given["is_forced"],
        is_own=given["is_own"],
        fixed=tuple(name for name in _SEARCHED if given[name] is not None),
    )
    return run_tune(services, choice, options.flags_of(given), given["is_json"])


COMMANDS: tuple[click.Command, ...] = (tune,)
