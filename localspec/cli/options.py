"""Options that commands share. None stands for an option that was not given; settings then decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")

_GROUPS: dict[str, tuple[str, ...]] = {
    "draft": ("n_max", "n_min", "p_min", "ngram_max", "ngram_min"),
    "sampling": ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed"),
    "context": ("n_ctx", "n_threads", "n_threads_batch", "n_gpu_layers", "type_k", "type_v", "flash_attn"),
    "bench": ("pairs", "max_tokens"),
}


@dataclass(frozen=True, slots=True)
class BenchChoice:
    """What to compare, and on what text; everything else is a setting."""

    target: Path
    draft: Path | None
    methods: tuple[str, ...]
    workloads: tuple[str, ...]
    prompt_file: Path | None
    ignore_eos: bool


@dataclass(frozen=True, slots=True)
class ChatChoice:
    """Whom to chat with; everything else is a setting."""

    target: Path
    draft: Path | None
    method: str | None
    system: str
    max_tokens: int


def flags_of(given: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """Return the options that are settings, by group."""
    return {group: {name: given.get(name) for name in names} for group, names in _GROUPS.items()}


def _together(*decorators: Decorator) -> Decorator:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


target = click.argument("target", type=click.Path(path_type=Path), metavar="TARGET")

draft = click.option(
    "--draft", type=click.Path(path_type=Path), metavar="FILE", help="A small model of the same family that drafts."
)

as_json = click.option(
    "--json", "is_json", is_flag=True, help="Print one JSON document as the last line of stdout; all else to stderr."
)

pairs = click.option("--pairs", type=int, metavar="N", help="Paired runs of each way of drafting.")

max_tokens = click.option("--max-tokens", type=int, metavar="N", help="Most tokens of an answer.")

drafting = _together(
    click.option("--n-max", type=int, metavar="N", help="Most tokens drafted in a round."),
    click.option("--n-min", type=int, metavar="N", help="Throw away drafts that are shorter."),
    click.option(
        "--p-min", type=float, metavar="P", help="Draft model: stop before a token that it thinks less probable."
    ),
    click.option("--ngram-max", type=int, metavar="N", help="Longest match that n-gram drafting looks for, in tokens."),
    click.option("--ngram-min", type=int, metavar="N", help="Shortest match that n-gram drafting takes, in tokens."),
)

sampling = _together(
    click.option(
        "--temp",
        "temperature",
        type=float,
        metavar="T",
        help="0 takes the most probable token; it overrides a workload's own.",
    ),
    click.option("--top-k", type=int, metavar="N", help="Keep the N most probable tokens; 0 keeps all."),
    click.option("--top-p", type=float, metavar="P", help="Keep the most probable tokens up to this sum."),
    click.option("--min-p", type=float, metavar="P", help="Keep tokens of at least this share of the best one's."),
    click.option("--repeat-penalty", type=float, metavar="X", help="Over 1 disfavours tokens that came before."),
    click.option("--seed", type=int, metavar="N", help="The same seed gives the same text."),
)

placement = _together(
    click.option("--n-ctx", type=int, metavar="N", help="Positions of the context; 0 takes the trained one."),
    click.option("--threads", "n_threads", type=int, metavar="N", help="Threads; 0 takes the physical cores."),
    click.option(
        "--threads-batch",
        "n_threads_batch",
        type=int,
        metavar="N",
        help="Threads of steps with several tokens; 0 takes --threads.",
    ),
    click.option("--n-gpu-layers", type=int, metavar="N", help="Layers on the GPU; -1 for all."),
    click.option("--type-k", type=click.Choice(KV_TYPES), help="Type of the cached keys."),
    click.option("--type-v", type=click.Choice(KV_TYPES), help="Type of the cached values."),
    click.option("--flash-attn/--no-flash-attn", "flash_attn", default=None, help="Flash attention."),
)
