"""A profile for another engine, by the engine's name."""

from __future__ import annotations

import json
from typing import Literal, get_args

from localspec.session.exporting.koboldcpp import koboldcpp_command
from localspec.session.exporting.llama_cpp import llama_cpp_command
from localspec.session.exporting.lm_studio import lm_studio_file
from localspec.session.exporting.ollama import ollama_file
from localspec.session.exporting.presets import llama_presets_file, llama_swap_file
from localspec.session.exporting.sglang import sglang_command
from localspec.session.exporting.shells import Shell
from localspec.session.exporting.vllm import vllm_command
from localspec.session.profiles import DraftContext, NamedProfile

Destination = Literal[
    "llama-server",
    "llama-cli",
    "llama-presets",
    "llama-swap",
    "koboldcpp",
    "lmstudio",
    "vllm",
    "sglang",
    "ollama",
    "json",
]

DESTINATIONS: tuple[Destination, ...] = get_args(Destination)


def export(profile: NamedProfile, to: Destination, shell: Shell = "sh") -> str:
    """Return a profile as text for another engine: a command line with comments, or a file's content.

    Of a profile with a setting for each kind of text, llama-presets, llama-swap, lmstudio and json hold all; the others
    hold that for the rest, and say so.

    Args:
        profile: what to export.
        to: the engine.
        shell: whose quotes a command line has; files have none.

    Raises:
        UsageError: a path holds what does not show, or what cannot be written there.
    """
    match to:
        case "llama-server" | "llama-cli":
            return llama_cpp_command(profile, to).text(profile, shell)
        case "llama-presets":
            return llama_presets_file(profile)
        case "llama-swap":
            return llama_swap_file(profile, shell)
        case "koboldcpp":
            return koboldcpp_command(profile).text(profile, shell)
        case "vllm":
            return vllm_command(profile, shell).text(profile, shell)
        case "sglang":
            return sglang_command(profile).text(profile, shell)
        case "lmstudio":
            return lm_studio_file(profile)
        case "ollama":
            return ollama_file(profile)
        case "json":
            return json.dumps(profile_record(profile), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def profile_record(profile: NamedProfile) -> dict[str, object]:
    """Return a profile as JSON has it."""
    document = profile.document.model_dump(mode="json")
    # They say how the draft's context differs, which draft_context does.
    for name in DraftContext.model_fields:
        for group in (document["speculation"], *document["by_workload"].values()):
            group.pop(name)
    return {
        "schema": 1,
        "name": profile.name,
        "created_at": profile.created_at,
        "run_id": profile.run_id,
        **document,
    }
