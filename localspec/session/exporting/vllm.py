"""For vLLM. Keys and meanings: docs/features/speculative_decoding and quantization/gguf.md of vllm-project/vllm."""

from __future__ import annotations

import json
from typing import Any

from localspec.session.exporting.shells import Shell
from localspec.session.exporting.values import (
    NOTHING_DRAFTED,
    Command,
    Option,
    draft_path,
    drafting_remarks,
    is_without_equal,
    sampling_remark,
    target_path,
)
from localspec.session.profiles import NamedProfile


def vllm_command(profile: NamedProfile, shell: Shell) -> Command:
    """Return vLLM's command line.

    Raises:
        UsageError: a path holds what does not show.
    """
    document = profile.document
    context = document.context
    options: list[Option] = [
        (target_path(profile),),
        ("--max-model-len", str(context.n_ctx)),
        ("--seed", str(document.sampling.seed)),
    ]
    remarks = [
        "GGUF files need the package vllm-gguf-plugin and are experimental in vLLM: where you can, name the original "
        "model (OWNER/NAME) instead of the file. With a file, add --tokenizer and the original model.",
    ]
    config, said = speculative_config(profile)
    remarks += said
    if config is not None:
        options.append(("--speculative-config", json.dumps(config)))
        if shell == "powershell":
            remarks.append("PowerShell before 7.3 drops the double quotes of --speculative-config: use 7.3 or later.")
    if (context.type_k, context.type_v) != ("f16", "f16"):
        remarks.append(f"The cache types {context.type_k} and {context.type_v} have no equivalent here.")
    remarks.append("Threads, batch sizes, layers on the GPU and flash attention are vLLM's own affair.")
    return Command("vllm serve", tuple(options), (*remarks, sampling_remark(profile)))


def speculative_config(profile: NamedProfile) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the object for --speculative-config, None if nothing is drafted, and remarks."""
    document = profile.document
    drafting, own = document.speculation, document.draft_context
    if drafting.method == "off":
        return None, [NOTHING_DRAFTED]
    if is_without_equal(drafting.method):
        return None, list(drafting_remarks(profile, ()))
    verification = _VERIFICATION[drafting.verification]
    if drafting.method == "ngram":
        config: dict[str, Any] = {
            "method": "ngram",
            "num_speculative_tokens": drafting.n_max,
            "prompt_lookup_min": drafting.ngram_min,
            "prompt_lookup_max": drafting.ngram_max,
        }
        suffix = json.dumps({"method": "suffix", "num_speculative_tokens": drafting.n_max})
        remarks = [f"vLLM's suffix decoding is worth a try for the same text: {suffix}"]
        return config, [*remarks, *drafting_remarks(profile, ("ngram", "verification")), verification]
    if drafting.method == "suffix":
        config = {
            "method": "suffix",
            "num_speculative_tokens": drafting.n_max,
            "suffix_decoding_max_spec_factor": drafting.suffix_factor,
            "suffix_decoding_min_token_prob": drafting.suffix_p_min,
            # The profile was measured without earlier answers.
            "suffix_decoding_max_cached_requests": 0,
        }
        remarks = [
            "Suffix decoding needs the package arctic-inference. Without the last key it copies from earlier answers, "
            "too."
        ]
        return config, [*remarks, *drafting_remarks(profile, ("suffix", "verification")), verification]
    config = {
        "method": "draft_model",
        "model": draft_path(profile),
        "num_speculative_tokens": drafting.n_max,
    }
    if own is not None and own.n_ctx != document.context.n_ctx:
        config["max_model_len"] = own.n_ctx
    remarks = [
        "It is not documented that a draft may be a GGUF file: name its original model if vLLM refuses the file.",
        "An EAGLE-3 head made for the target goes in the same place, with the method eagle3.",
    ]
    return config, [*remarks, *drafting_remarks(profile, ("verification",)), verification]


_DEFAULT = "vLLM's default verification (rejection_sample_method strict) keeps the target's distribution"
_VERIFICATION = {
    "exact": f"{_DEFAULT}; localspec's `exact` keeps the very text for a seed.",
    "rejection": f"{_DEFAULT}, as localspec's `rejection` does.",
    "block": f"{_DEFAULT}, as localspec's `block` does, which keeps more of a draft; some releases have it, too.",
}
