"""Options that commands share. None stands for an option that was not given; settings then decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localspec.cli.completion import complete_model, complete_workload
from localspec.methods import DRAFTING_SETTINGS

if TYPE_CHECKING:
    from localspec.settings import DraftGroup

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

WORKLOADS = {
    "chat": "Open chat",
    "code": "Code generation",
    "edit": "Code editing",
    "extract": "Extraction to JSON",
    "quote": "Quoting a paragraph",
    "story": "Story at temperature 0.8",
    "summary": "Summary with quotations",
}
"""Names and titles, written out since help must not wait for the files to be read."""

DEFAULTS_EPILOG = "Defaults stand in for settings.toml and LOCALSPEC_... variables, which override them."

BENCH_EPILOG = "\b\nWorkloads:\n" + "\n".join(f"  {name:<9}{title}" for name, title in WORKLOADS.items())

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")

_GROUPS: dict[str, tuple[str, ...]] = {
    "draft": DRAFTING_SETTINGS,
    "sampling": (
        *("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed"),
        # Of a profile; no options of their own.
        *("repeat_last_n", "frequency_penalty", "presence_penalty", "grammar"),
    ),
    "context": (
        *("n_batch", "n_ubatch", "use_mmap"),
        "n_ctx",
        "n_threads",
        "n_threads_batch",
        "n_gpu_layers",
        "type_k",
        "type_v",
        "flash_attn",
        "experts_on_cpu",
    ),
    "bench": ("pairs", "max_tokens"),
}


DEFAULT_MAX_TOKENS = 1024
"""Of an answer in a chat."""


@dataclass(frozen=True, slots=True)
class BenchChoice:
    """What to compare, and on what text; everything else is a setting."""

    target: str
    """A path, or a name of a local model; likewise the draft."""
    draft: str | None
    methods: tuple[str, ...]
    workloads: tuple[str, ...]
    prompt_file: Path | None
    ignore_eos: bool
    is_forced: bool = False
    """Load what would not fit into memory, too."""
    is_kept: bool = True
    """Keep it as a run."""
    profile: str = ""
    """Name of the profile that all this came from; empty for none."""
    is_tuned: bool = False
    """Adaptive arms begin with what earlier answers taught."""
    is_own: bool = False
    """Measure on the user's own chats, too."""


@dataclass(frozen=True, slots=True)
class ChatChoice:
    """Whom to chat with; everything else is a setting. None stands for what was not given."""

    target: str | None
    """A path, or a name of a local model; likewise the draft."""
    draft: str | None
    method: str | None
    system: str | None
    max_tokens: int | None
    is_forced: bool = False
    """Load what would not fit into memory, too."""
    is_kept: bool = True
    """Keep the chat in the store."""
    by_workload: Mapping[str, DraftGroup] = field(default_factory=dict)
    """A profile's settings for kinds of text; empty where none depend on it."""
    is_fixed_asked: bool = False
    """Whether the command line itself asks for fixed pacing."""


def flags_of(given: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """Return the options that are settings, by group."""
    flags: dict[str, dict[str, object]] = {
        group: {name: given.get(name) for name in names} for group, names in _GROUPS.items()
    }
    key, _, value = (given.get("draft_kv") or "").partition("/")
    flags["draft"] |= {
        "n_ctx": given.get("draft_n_ctx"),
        "n_threads": given.get("draft_n_threads"),
        "n_threads_batch": given.get("draft_n_threads_batch"),
        "n_gpu_layers": given.get("draft_n_gpu_layers"),
        "type_k": key or None,
        "type_v": value or key or None,
    }
    return flags


def kv_types(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a type for keys and values, or one for each as in `q8_0/f16`; one that llama.cpp lacks is wrong usage."""
    if value is None:
        return None
    key, slash, values = value.lower().partition("/")
    for one in (key, values) if slash else (key,):
        if one not in KV_TYPES:
            raise click.BadParameter(f"{one!r} is not one of {', '.join(KV_TYPES)}.", context, parameter)
    return value.lower()


def together(*decorators: Decorator) -> Decorator:
    """Return one decorator that does what all of these do; help lists them in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


target = click.argument("target", metavar="TARGET", shell_complete=complete_model)

draft = click.option(
    "--draft", metavar="MODEL", shell_complete=complete_model, help="A small model of the same family that drafts."
)

as_json = click.option(
    "--json", "is_json", is_flag=True, help="Print one JSON document as the last line of stdout; all else to stderr."
)


def _whole(least: int, most: int | None = None) -> click.IntRange:
    return click.IntRange(min=least, max=most)


def _share() -> click.FloatRange:
    return click.FloatRange(min=0, max=1)


pairs = click.option(
    "--pairs", type=_whole(1), metavar="N", help="Paired runs of each way of drafting. Default: 3; more are surer."
)

max_tokens = click.option("--max-tokens", type=_whole(2), metavar="N", help="Most tokens of an answer. Default: 128.")

sampling = together(
    click.option(
        "--temp",
        "temperature",
        type=click.FloatRange(min=0),
        metavar="T",
        help="0 takes the most probable token; it overrides a workload's own. Default: 0.",
    ),
    click.option("--top-k", type=_whole(0), metavar="N", help="Keep the N most probable; 0 keeps all. Default: 40."),
    click.option(
        "--top-p", type=_share(), metavar="P", help="Keep the most probable tokens up to this sum. Default: 0.95."
    ),
    click.option(
        "--min-p",
        type=_share(),
        metavar="P",
        help="Keep tokens with this share of the best one's or more. Default: 0.05.",
    ),
    click.option(
        "--repeat-penalty",
        type=click.FloatRange(min=0, min_open=True),
        metavar="X",
        help="Over 1 disfavours tokens that came before. Default: 1.",
    ),
    click.option(
        "--seed", type=_whole(0, 2**32 - 2), metavar="N", help="The same seed gives the same text. Default: 1."
    ),
)

placement = together(
    click.option(
        "--n-ctx", type=_whole(0), metavar="N", help="Positions of the context; 0 takes the trained one. Default: 4096."
    ),
    click.option(
        "--threads",
        "n_threads",
        type=_whole(0),
        metavar="N",
        help="Threads. Default: 0, which takes the physical cores.",
    ),
    click.option(
        "--threads-batch",
        "n_threads_batch",
        type=_whole(0),
        metavar="N",
        help="Threads of steps with several tokens. Default: 0, which takes --threads.",
    ),
    click.option("--n-gpu-layers", type=_whole(-1), metavar="N", help="Layers on the GPU. Default: -1, all."),
    click.option("--type-k", type=click.Choice(KV_TYPES), help="Type of the cached keys. Default: f16."),
    click.option("--type-v", type=click.Choice(KV_TYPES), help="Type of the cached values. Default: f16."),
    click.option("--flash-attn/--no-flash-attn", "flash_attn", default=None, help="Flash attention. Default: on."),
    click.option(
        "--experts-on-cpu",
        is_flag=True,
        default=None,
        help="Keep the experts of a mixture in host memory, whatever layers are on the GPU.",
    ),
)

draft_placement = together(
    click.option(
        "--draft-n-ctx",
        type=_whole(0),
        metavar="N",
        help="Positions of the draft's context; it stops drafting there. Default: as many as the target's.",
    ),
    click.option(
        "--draft-threads",
        "draft_n_threads",
        type=_whole(0),
        metavar="N",
        help="Threads of the draft. Default: 0, which takes --threads.",
    ),
    click.option(
        "--draft-threads-batch",
        "draft_n_threads_batch",
        type=_whole(0),
        metavar="N",
        help="Threads of the draft's steps with several tokens. Default: 0, which takes --threads-batch, or else "
        "--draft-threads.",
    ),
    click.option(
        "--draft-n-gpu-layers",
        type=_whole(-1),
        metavar="N",
        help="The draft's layers on the GPU. Default: as for the target.",
    ),
    click.option(
        "--draft-kv",
        callback=kv_types,
        metavar="TYPE",
        help="Type of the draft's KV cache. Default: the target's.",
    ),
)

texts = together(
    click.option(
        "--workload",
        "workloads",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_workload,
        help="Prompts of one kind, one of those below; may be given several times. Default: edit and chat.",
    ),
    click.option(
        "--prompt",
        "prompt_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A text file as the prompt, beside or instead of workloads.",
    ),
    click.option(
        "--my-chats",
        "is_own",
        is_flag=True,
        help="Your own prompts from the kept chats, sorted by kind, beside or instead of workloads. They stay on this "
        "machine.",
    ),
)
"""What is generated from."""

ignore_eos = click.option(
    "--ignore-eos", is_flag=True, help="Go on past the end of the answer, so that all runs are equally long."
)

force = click.option("--force", "is_forced", is_flag=True, help="Load even what would not fit into memory.")

keep = click.option("--no-keep", "is_kept", is_flag=True, flag_value=False, default=True, help="Do not keep the run.")
