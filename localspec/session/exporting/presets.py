"""For servers that hold several settings under names, and load the one that a request names.

llama-server's own: tools/server/README.md (Model presets) and common/preset.cpp of llama.cpp. llama-swap:
docs/configuration.md of mostlygeek/llama-swap.
"""

from __future__ import annotations

from collections.abc import Iterable

from localspec.errors import UsageError
from localspec.session.exporting.kinds import entries
from localspec.session.exporting.llama_cpp import llama_cpp_command
from localspec.session.exporting.shells import Shell, comment, plain_line, quote
from localspec.session.exporting.values import Command, Option, heading
from localspec.session.profiles import NamedProfile


def llama_presets_file(profile: NamedProfile) -> str:
    """Return an .ini file for `llama-server --models-preset`, with a section for each setting.

    Raises:
        UsageError: a path holds what does not show, or what would end a value there.
    """
    lines = [
        comment("llama-server --models-preset THIS_FILE --models-max 1"),
        comment("A request names one as its model. One at a time is loaded, since each loads the models for itself."),
        "version = 1",
    ]
    for name, command, about in _commands(profile):
        lines += ["", *map(comment, about), f"[{name}]", *map(_ini_line, command.options)]
    return "\n".join(lines) + "\n"


def llama_swap_file(profile: NamedProfile, shell: Shell) -> str:
    """Return a config.yaml for llama-swap, with a model for each setting.

    Args:
        profile: what to export.
        shell: `powershell` splits commands as Windows does, which llama-swap does there.

    Raises:
        UsageError: a path holds what does not show, or what llama-swap would replace.
    """
    lines = [comment("llama-swap --config THIS_FILE; a request names one as its model."), "models:"]
    for name, command, about in _commands(profile):
        lines += [*map(comment, about), f'  "{name}":', "    cmd: |", f"      {command.program}"]
        lines += ["      --port ${PORT}", *(f"      {_swap_line(option, shell)}" for option in command.options)]
    return "\n".join(lines) + "\n"


def _commands(profile: NamedProfile) -> Iterable[tuple[str, Command, tuple[str, ...]]]:
    """Yield a name, llama-server's command, and what to know of it, for each setting."""
    for name, one in entries(profile).items():
        command = llama_cpp_command(one, "llama-server")
        yield name, command, (*heading(one), *command.remarks)


def _ini_line(option: Option) -> str:
    key, value = option[0].removeprefix("--"), " ".join(option[1:]) or "true"
    if value != value.strip() or any(mark in value for mark in ";#"):
        raise UsageError(
            f"{plain_line(value)} cannot be written into an .ini file: a value ends at ;, # or a space at its end.",
            "Rename the file or its folder, and make the profile again; or export --to llama-swap.",
        )
    return f"{key} = {value}"


def _swap_line(option: Option, shell: Shell) -> str:
    if any("${" in word for word in option):
        raise UsageError(
            f"{plain_line(option[-1])} holds ${{, which llama-swap takes for a name to replace.",
            "Rename the file or its folder, and make the profile again; or export --to llama-presets.",
        )
    if shell == "sh":
        return " ".join(quote(word, shell) for word in option)
    # Windows has no quotation mark in names.
    return " ".join(f'"{word}"' if " " in word or not word else word for word in option)
