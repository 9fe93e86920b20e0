"""Options of `localspec fit`, and the command line that they make up again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from localspec.cli import options
from localspec.cli.advice import command_line
from localspec.cli.completion import complete_model
from localspec.errors import UsageError

if TYPE_CHECKING:
    from localspec.settings import Flags

MOST = "max"


@dataclass(frozen=True, slots=True)
class FitChoice:
    """What is to fit where. What was not given is left to the settings."""

    target: str
    draft: str | None
    """A model, or `auto` for the best that is found."""
    devices: tuple[str, ...]
    """Descriptions of GPUs that are not here; empty for this machine's."""
    reserve: str | None
    """A size."""
    given: Mapping[str, str | None]
    """Options that are settings, by name as typed; "" for a flag."""
    flags: Flags
    """The same as settings."""

    def command(self, draft: str | None, changed: Mapping[str, str | None]) -> str:
        """Return the command line that asks this again with other values.

        Args:
            draft: what to type for the draft; None for none.
            changed: by option; None leaves it out.
        """
        words = ["localspec", "fit", self.target]
        for name, value in {"--draft": draft, **self.given, "--reserve": self.reserve, **changed}.items():
            if value is not None:
                words += [name, value] if value else [name]
        for device in self.devices:
            words += ["--device", device]
        return command_line(*words)


_POSITIONS = re.compile(r"(\d{1,12})(k?)", re.IGNORECASE | re.ASCII)


def _positions(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Return positions, given as a number or as in `32k`, which is 32 * 1024; 0 for the most."""
    if value is None:
        return None
    has_most = parameter.name == "n_ctx"
    if has_most and value.lower() == MOST:
        return 0
    match = _POSITIONS.fullmatch(value.strip())
    number = 0 if match is None else int(match[1]) * (1024 if match[2] else 1)
    if match is None or (has_most and number < 1):
        or_most = f", or {MOST}" if has_most else ""
        raise click.BadParameter(f"{value!r} is not positions as in 4096 or 32k{or_most}.", context, parameter)
    return number


OPTIONS = (
    click.argument("beside", required=False, metavar="[DRAFT]", shell_complete=complete_model),
    click.option(
        "--draft",
        metavar="MODEL|auto",
        shell_complete=complete_model,
        help="A draft model that is to fit beside it; auto takes the first that `localspec pair` finds.",
    ),
    click.option(
        "--n-ctx",
        callback=_positions,
        metavar="N|max",
        help="Positions of the context, such as 8192 or 32k; max asks for as many as fit. Default: 4096.",
    ),
    click.option("--kv", callback=options.kv_types, metavar="TYPE", help="Type of the KV cache. Default: f16."),
    click.option(
        "--n-gpu-layers",
        type=click.IntRange(min=-1),
        metavar="N",
        help="Layers on the GPU. Default: -1, as many as fit.",
    ),
    click.option("--flash-attn/--no-flash-attn", "flash_attn", default=None, help="Flash attention. Default: on."),
    click.option(
        "--experts-on-cpu",
        is_flag=True,
        default=None,
        help="Keep the experts of a mixture in host memory, whatever layers are on the GPU.",
    ),
    click.option(
        "--draft-n-ctx",
        callback=_positions,
        metavar="N",
        help="Positions of the draft's context; it stops drafting there. Default: as many as the target's.",
    ),
    click.option(
        "--draft-n-gpu-layers",
        type=click.IntRange(min=-1),
        metavar="N",
        help="The draft's layers on the GPU. Default: as for the target.",
    ),
    click.option(
        "--draft-kv",
        callback=options.kv_types,
        metavar="TYPE",
        help="Type of the draft's KV cache. Default: the target's.",
    ),
    click.option(
        "--device",
        "devices",
        multiple=True,
        metavar="[NAME:]SIZE[,unified]",
        help='A GPU that is not here, such as 12GB, "RTX 4070:12GiB" or "M3 Pro:36GiB,unified"; may be given several '
        "times.",
    ),
    click.option("--reserve", metavar="SIZE", help="Kept free on each device, such as 512MiB. Default: 1GiB."),
    click.option("--matrix", "is_matrix", is_flag=True, help="Which quantisations fit with which contexts."),
)


def fit_choice(given: Mapping[str, Any]) -> FitChoice:
    """Return what the options say."""
    key, _, value = (given["kv"] or "").partition("/")
    flags = options.flags_of({**given, "type_k": key or None, "type_v": value or key or None})
    n_ctx, flash_attn = given["n_ctx"], given["flash_attn"]
    typed: dict[str, str | None] = {
        "--n-ctx": MOST if n_ctx == 0 else _text(n_ctx),
        "--kv": given["kv"],
        "--n-gpu-layers": _text(given["n_gpu_layers"]),
        "--flash-attn": "" if flash_attn is True else None,
        "--no-flash-attn": "" if flash_attn is False else None,
        "--experts-on-cpu": "" if given["experts_on_cpu"] else None,
        "--draft-n-ctx": _text(given["draft_n_ctx"]),
        "--draft-n-gpu-layers": _text(given["draft_n_gpu_layers"]),
        "--draft-kv": given["draft_kv"],
    }
    draft = draft_of(given["beside"], given["draft"])
    return FitChoice(given["target"], draft, given["devices"], given["reserve"], typed, flags)


def draft_of(beside: str | None, option: str | None) -> str | None:
    """Return the draft, which may be named behind the target or with --draft.

    Raises:
        UsageError: it is named twice, and differently.
    """
    if beside is not None and option is not None and beside != option:
        raise UsageError(f"Two drafts are named: {beside} and {option}.", "Name one of them.")
    return option if beside is None else beside


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)
