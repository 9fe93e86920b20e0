"""A profile for another engine, by the engine's name."""

from __future__ import annotations

import json
from typing import Literal, get_args

from localspec.session.exporting.koboldcpp import koboldcpp_command
from localspec.session.exporting.llama_cpp import llama_cpp_command
from localspec.session.exporting.lm_studio import lm_studio_file
from localspec.session.exporting.ollama import ollama_file
from localspec.session.exporting.sglang import sglang_command
from localspec.session.exporting.shells import Shell
from localspec.session.exporting.vllm import vllm_command
from localspec.session.profiles import NamedProfile

Destination = Literal["llama-server", "llama-cli", "koboldcpp", "lmstudio", "vllm", "sglang", "ollama", "json"]

DESTINATIONS: tuple[Destination, ...] = get_args(Destination)


def export(profile: NamedProfile, to: Destination, shell: Shell = "sh") -> str:
    """Return a profile as text for another engine: a command line with comments, or a file's content.

    Args:
        profile: what to export.
        to: the engine.
        shell: whose quotes a command line has; files have none.

    Raises:
        UsageError: a path holds what does not show.
    """
    match to:
        case "llama-server" | "llama-cli":
            return llama_cpp_command(profile, to).text(profile, shell)
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
    for name in ("n_ctx", "n_gpu_layers", "type_k", "type_v"):
        for group in (document["speculation"], *document["by_workload"].values()):
            group.pop(name)
    return {
        "schema": 1,
        "name": profile.name,
        "created_at": profile.created_at,
        "run_id": profile.run_id,
        **document,
    }
