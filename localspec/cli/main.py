"""`localspec`: the command line. Commands import what they need when they run, so that help is quick."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from localspec import __version__
from localspec.cli import completion, drafting_options, options, profile_choice
from localspec.cli.failures import exit_code_of
from localspec.cli.history_commands import COMMANDS as HISTORY_COMMANDS
from localspec.cli.model_commands import COMMANDS, LOCAL_MODEL_HELP
from localspec.cli.probe_command import COMMANDS as PROBE_COMMANDS
from localspec.cli.profile_commands import COMMANDS as PROFILE_COMMANDS
from localspec.cli.record_commands import COMMANDS as RECORD_COMMANDS
from localspec.cli.report_command import COMMANDS as REPORT_COMMANDS
from localspec.cli.services import Services
from localspec.cli.signals import handle_interrupts
from localspec.cli.streams import accept_any_text, check_output, prepare_streams
from localspec.cli.tune_command import COMMANDS as TUNE_COMMANDS
from localspec.errors import UsageError


@click.group(
    invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="localspec")
@click.option("--demo", "is_demo", is_flag=True, help="Open the terminal app on a small embedded model.")
@click.option(
    "--replay",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Open the terminal app on a recorded session, without any model.",
)
@click.pass_context
def cli(context: click.Context, is_demo: bool, replay: Path | None) -> int | None:
    """Does speculative decoding pay on this machine, with this model, and with which settings?

    Without a command the terminal app opens.
    """
    if context.invoked_subcommand is not None:
        if is_demo or replay is not None:
            raise click.UsageError("--demo and --replay open the terminal app and go with no command.", context)
        return None
    services: Services = context.obj
    is_wanted = is_demo or replay is not None
    if services.open_app is None or not (is_wanted or _is_terminal()):
        click.echo(context.get_help())
        return None
    if not _is_terminal():
        raise UsageError("The terminal app needs a terminal.", "Run it without pipes, or use a command: localspec -h.")
    return services.open_app(is_demo, replay)


def _is_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


@cli.command()
@options.as_json
@click.pass_obj
def doctor(services: Services, is_json: bool) -> int:
    """Show the machine, llama.cpp and what slows speculation here."""
    from localspec.cli.doctor import run_doctor

    return run_doctor(services, is_json)


@cli.command(epilog=options.DEFAULTS_EPILOG)
@options.pairs
@options.max_tokens
@options.force
@options.keep
@options.as_json
@click.pass_obj
def demo(
    services: Services, pairs: int | None, max_tokens: int | None, is_forced: bool, is_kept: bool, is_json: bool
) -> int:
    """Measure speculation on a small embedded model."""
    from localspec.cli.demo import run_demo

    return run_demo(services, {"bench": {"pairs": pairs, "max_tokens": max_tokens}}, is_json, is_forced, is_kept)


@cli.command(
    epilog=f"{drafting_options.METHODS_EPILOG}\n\n{options.BENCH_EPILOG}\n\n{LOCAL_MODEL_HELP}\n\n{options.DEFAULTS_EPILOG}"
)
@profile_choice.target
@options.draft
@profile_choice.option
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=drafting_options.method_choice,
    help="A way of drafting to compare with off, one of those below; may be given several times. Default: draft if "
    "there is one, ngram and auto.",
)
@options.texts
@options.ignore_eos
@click.option(
    "--tuned",
    "is_tuned",
    is_flag=True,
    help="Adaptive drafting begins each run with what earlier answers taught. Default: cold, knowing nothing.",
)
@drafting_options.drafting
@options.sampling
@options.max_tokens
@options.placement
@options.draft_placement
@options.force
@options.pairs
@click.option(
    "--suite",
    type=click.Choice(["auto"]),
    help="Instead: auto against drafting nothing and against every fixed setting, on six workloads. Takes long; kept "
    "by --json alone.",
)
@click.option("--budget", metavar="TIME", help="With --suite: begin no further part after it, such as 20m.")
@options.keep
@options.as_json
@click.pass_obj
def bench(services: Services, /, **given: Any) -> int:
    """Compare TARGET with and without speculation, in paired runs."""
    given = profile_choice.filled(services, given)
    if given["budget"] is not None and given["suite"] is None:
        raise click.UsageError("--budget goes with --suite; a comparison has --pairs.")
    choice = options.BenchChoice(
        target=given["target"],
        draft=given["draft"],
        methods=given["methods"],
        workloads=given["workloads"],
        prompt_file=given["prompt_file"],
        ignore_eos=given["ignore_eos"],
        is_forced=given["is_forced"],
        is_kept=given["is_kept"],
        profile=given["profile"] or "",
        is_tuned=given["is_tuned"],
        is_own=given["is_own"],
    )
    if given["suite"] is not None:
        if given["is_own"]:
            raise click.UsageError("--suite has texts of its own: leave --my-chats out.")
        from localspec.cli.suite import run_suite_command

        return run_suite_command(services, choice, given["budget"], options.flags_of(given), given["is_json"])
    from localspec.cli.bench import run_bench

    return run_bench(services, choice, options.flags_of(given), given["is_json"])


for _command in (
    *COMMANDS,
    *PROBE_COMMANDS,
    *RECORD_COMMANDS,
    *PROFILE_COMMANDS,
    *HISTORY_COMMANDS,
    *REPORT_COMMANDS,
    *TUNE_COMMANDS,
):
    cli.add_command(_command)


def run(arguments: Sequence[str], services: Services | None = None) -> int:
    """Carry out a command line and return its exit code.

    0 done, 1 failed, 2 wrong usage, 130 interrupted, 141 the reader of the output has gone.
    """
    earlier = signal.getsignal(signal.SIGINT)
    try:
        return _carry_out(arguments, services)
    finally:
        handle_interrupts(earlier)


def main(services: Services | None = None) -> NoReturn:
    """Carry out the command line of this process, and exit."""
    if completion.is_asked():
        completion.answer(cli)
    prepare_streams()
    # Ctrl-C stays as the command leaves it, since nothing may break off the end of the process.
    sys.exit(_carry_out(sys.argv[1:], services))


def _carry_out(arguments: Sequence[str], services: Services | None) -> int:
    accept_any_text()

    def command() -> object:
        check_output()
        return cli.main(args=list(arguments), prog_name="localspec", standalone_mode=False, obj=services or Services())

    return exit_code_of(command, _log_file)


def _log_file() -> Path:
    from localspec.paths import log_dir

    return log_dir() / "localspec.log"
