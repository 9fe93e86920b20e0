"""The command that chats, and the options that it shares with the one that goes on with a chat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from localspec.cli import drafting_options, options, profile_choice
from localspec.cli.completion import complete_model
from localspec.cli.model_commands import LOCAL_MODEL_HELP
from localspec.cli.services import Services

CHAT_OPTIONS = options.together(
    options.draft,
    click.option(
        "--method",
        type=drafting_options.method_choice,
        help="How to draft, one of those below. Default: auto.",
    ),
    click.option("--system", metavar="TEXT", help="A system message for the whole conversation."),
    drafting_options.drafting,
    drafting_options.remembers,
    options.sampling,
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help=f"Most tokens of an answer. Default: {options.DEFAULT_MAX_TOKENS}.",
    ),
    options.placement,
    options.draft_placement,
    options.force,
    click.option("--no-keep", "is_unkept", is_flag=True, help="Keep nothing of what is said, for copying neither."),
)


def chat_choice(given: Mapping[str, Any]) -> options.ChatChoice:
    """Return what the options say on whom to chat with."""
    return options.ChatChoice(
        target=given["target"],
        draft=given["draft"],
        method=given["method"],
        system=given["system"],
        max_tokens=given["max_tokens"],
        is_forced=given["is_forced"],
        is_kept=not given["is_unkept"],
        by_workload=given.get("by_workload") or {},
    )


def chat_flags(given: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """Return the options that are settings; the most tokens of an answer are none in a chat."""
    # An answer that is remembered is kept, too.
    remembers = False if given["is_unkept"] else given["remembers"]
    return options.flags_of({**given, "max_tokens": None, "remembers": remembers})


def check_keeping(given: Mapping[str, Any]) -> None:
    """Refuse options that contradict each other.

    Raises:
        click.UsageError: answers are to be kept, and nothing is.
    """
    if given["is_unkept"] and given["remembers"]:
        raise click.UsageError("--no-keep keeps nothing of what is said, and --remember keeps answers: choose one.")


@click.command(epilog=f"{drafting_options.METHODS_EPILOG}\n\n{LOCAL_MODEL_HELP}\n\n{options.DEFAULTS_EPILOG}")
@click.argument("target", required=False, metavar="[TARGET]", shell_complete=complete_model)
@CHAT_OPTIONS
@profile_choice.option
@click.option("--continue", "is_continued", is_flag=True, help="Go on with the last chat, with its models.")
@click.pass_obj
def chat(services: Services, /, **given: Any) -> int:
    """Chat with TARGET line by line; /help shows the commands.

    Chats are kept: `localspec history` lists them.
    """
    check_keeping(given)
    is_fixed_asked = given["pacing"] == "fixed"
    if given["profile"] is not None:
        if given["is_continued"]:
            raise click.UsageError("--continue takes the models of the last chat, and --profile its own: choose one.")
        given = profile_choice.filled(services, given)
    choice, flags = replace(chat_choice(given), is_fixed_asked=is_fixed_asked), chat_flags(given)
    if given["is_continued"]:
        from localspec.cli.continuation import run_continue

        return run_continue(services, None, choice, flags)
    from localspec.cli.chat import run_chat

    return run_chat(services, choice, flags)
