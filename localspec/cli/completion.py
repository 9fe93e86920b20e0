"""Shell completion: model names, offered by the shell itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from localspec.catalog.found_model import FoundModel
    from localspec.catalog.header_cache import HeaderCache

VARIABLE = "_LOCALSPEC_COMPLETE"
"""Set by the shell's script when it asks for completions."""

SHELLS = ("bash", "zsh", "fish")

_HOW = {
    "bash": '# bash: add to ~/.bashrc:  eval "$(localspec completion bash)"',
    "zsh": '# zsh: add to ~/.zshrc:  eval "$(localspec completion zsh)"',
    "fish": "# fish: localspec completion fish > ~/.config/fish/completions/localspec.fish",
}


def is_asked() -> bool:
    """Return whether this process was started by a shell that completes a word."""
    return bool(os.environ.get(VARIABLE))


def answer(command: click.Group) -> None:
    """Print what the shell asks for, and end the process."""
    from click.shell_completion import add_completion_class

    from localspec.cli.bash_completion import ColonComplete

    add_completion_class(ColonComplete, "bash")
    command.main(prog_name="localspec", complete_var=VARIABLE)


def complete_model(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of local models that begin so, and let the shell complete paths beside them."""
    from click.shell_completion import CompletionItem

    from localspec.catalog.header_cache import HeaderCache
    from localspec.catalog.naming import complete
    from localspec.errors import LocalspecError
    from localspec.session.library import local_models
    from localspec.settings import load_settings

    try:
        cache = HeaderCache()
        names = complete(incomplete, local_models(load_settings()), lambda model: _is_usable(model, cache))
    except (LocalspecError, OSError):
        # A shell that completes has nowhere to say what is wrong; the command itself will.
        names = []
    # Click's scripts split their lines at these.
    shown = [name for name in names if name.isprintable() and "," not in name]
    return [CompletionItem(name) for name in shown] or [CompletionItem(incomplete, type="file")]


def complete_workload(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of workloads that begin so."""
    from click.shell_completion import CompletionItem

    from localspec.cli.options import WORKLOADS

    return [CompletionItem(name, help=title) for name, title in WORKLOADS.items() if name.startswith(incomplete)]


def _is_usable(model: FoundModel, cache: HeaderCache) -> bool:
    """Say whether a model looks as if it could be used, as far as a shell that waits for the answer can tell."""
    from localspec.catalog.header_cache import stamp_of

    try:
        if not model.path.is_file():
            return False
        with model.path.open("rb") as file:
            if file.read(4) != b"GGUF":
                return False
    except (OSError, ValueError):
        return False
    stamp = stamp_of(model.shards)
    reading = None if stamp is None else cache.get(stamp)
    return reading is None or reading.facts is not None


def print_script(command: click.Command, shell: str) -> int:
    """Print what the shell has to run once, and return the exit code."""
    from click.shell_completion import get_completion_class

    completer = get_completion_class(shell)
    assert completer is not None
    print(_HOW[shell])
    print(completer(command, {}, "localspec", VARIABLE).source())
    return 0
