"""For llama-server and llama-cli. Names and meanings: common/arg.cpp of the llama.cpp in llama-cpp-python 0.3.36."""

from __future__ import annotations

from typing import Literal

from localspec.session.exporting.values import (
    NOTHING_DRAFTED,
    Command,
    Option,
    draft_path,
    drafting_remarks,
    number,
    target_path,
)
from localspec.session.profiles import NamedProfile

_SUFFIX = (
    "Suffix decoding has no equivalent here: nothing is drafted. Nearest is --spec-type ngram-simple, which `localspec "
    "bench --method ngram` measures."
)


def llama_cpp_command(profile: NamedProfile, program: Literal["llama-server", "llama-cli"]) -> Command:
    """Return the command line of a llama.cpp program.

    Raises:
        UsageError: a path holds what does not show.
    """
    options: list[Option] = [("--model", target_path(profile)), *_placement(profile)]
    if program == "llama-server":
        # With several slots a chat would have a part of the context only.
        options.append(("--parallel", "1"))
    remarks: list[str] = []
    drafting = profile.document.speculation
    match drafting.method:
        case "draft":
            more, said = _draft_model(profile)
        case "ngram":
            more, said = _ngram(profile)
        case "off":
            more, said = [], [NOTHING_DRAFTED]
        case "suffix":
            more, said = [], [_SUFFIX]
        case _:
            more, said = [], list(drafting_remarks(profile, ("verification",)))
    options += more
    remarks += said
    sampling_options, sampling_remarks = _sampling(profile)
    remarks += sampling_remarks
    if more:
        remarks.append(
            "llama.cpp keeps a draft token if the target samples the same, which is localspec's verification `exact`."
        )
        if drafting.verification != "exact":
            remarks.append(f"The profile's `{drafting.verification}` keeps more of them at a temperature.")
    return Command(program, (*options, *sampling_options), tuple(remarks))


def _placement(profile: NamedProfile) -> list[Option]:
    context = profile.document.context
    options: list[Option] = [
        ("--ctx-size", str(context.n_ctx)),
        ("--batch-size", str(context.n_batch)),
        ("--ubatch-size", str(context.n_ubatch)),
        ("--n-gpu-layers", _layers(context.n_gpu_layers)),
        ("--flash-attn", "on" if context.flash_attn else "off"),
        ("--cache-type-k", context.type_k),
        ("--cache-type-v", context.type_v),
    ]
    if context.n_threads:
        options.append(("--threads", str(context.n_threads)))
    if context.n_threads_batch:
        options.append(("--threads-batch", str(context.n_threads_batch)))
    if not context.use_mmap:
        options.append(("--load-mode", "none"))
    if context.experts_on_cpu:
        options.append(("--cpu-moe",))
    # Unasked, llama.cpp would change what is not stated to fit the memory that is free.
    options.append(("--fit", "off"))
    return options


def _draft_model(profile: NamedProfile) -> tuple[list[Option], list[str]]:
    document = profile.document
    drafting, own = document.speculation, document.draft_context
    options: list[Option] = [
        # A draft model alone is loaded and never asked.
        ("--spec-type", "draft-simple"),
        ("--spec-draft-model", draft_path(profile)),
        ("--spec-draft-n-max", str(drafting.n_max)),
        ("--spec-draft-n-min", str(drafting.n_min)),
        ("--spec-draft-p-min", number(drafting.p_min)),
    ]
    remarks = list(drafting_remarks(profile, ("n_min", "p_min", "verification")))
    if own is not None:
        # Left out, both are as the target's, the second one, too (common/arg.cpp: postprocess_cpu_params).
        context = document.context
        if own.n_threads and own.n_threads != context.n_threads:
            options.append(("--spec-draft-threads", str(own.n_threads)))
        if own.n_threads_batch and own.n_threads_batch != context.n_threads_batch:
            options.append(("--spec-draft-threads-batch", str(own.n_threads_batch)))
        options += [
            ("--spec-draft-ngl", _layers(own.n_gpu_layers)),
            ("--spec-draft-type-k", own.type_k),
            ("--spec-draft-type-v", own.type_v),
        ]
        if own.n_ctx != document.context.n_ctx:
            remarks.append(f"The draft's own n_ctx {own.n_ctx} has no equivalent: it follows the target's.")
    if drafting.p_min:
        remarks.append(
            "p_min is counted among the draft's ten best tokens here, among all of them in localspec: drafts may be a "
            "little longer."
        )
    return options, remarks


def _ngram(profile: NamedProfile) -> tuple[list[Option], list[str]]:
    drafting = profile.document.speculation
    # ngram-simple drops a draft that is shorter than the match (common/ngram-map.cpp): a longer match would let nothing
    # be drafted at all.
    size = min(drafting.ngram_min, drafting.n_max)
    remarks = [
        f"ngram-simple looks for one length of match, {size} tokens here; localspec tries {drafting.ngram_max} down to "
        f"{drafting.ngram_min}.",
        "It drafts nothing shorter than the match, and only once the text is longer than match and draft together.",
    ]
    options: list[Option] = [
        ("--spec-type", "ngram-simple"),
        ("--spec-ngram-simple-size-n", str(size)),
        ("--spec-ngram-simple-size-m", str(drafting.n_max)),
        ("--spec-ngram-simple-min-hits", "1"),
    ]
    return options, [*remarks, *drafting_remarks(profile, ("ngram", "verification"))]


def _sampling(profile: NamedProfile) -> tuple[list[Option], list[str]]:
    sampling, n_ctx = profile.document.sampling, profile.document.context.n_ctx
    remarks = []
    last_n = sampling.repeat_last_n
    if last_n < 0:
        last_n = n_ctx
        remarks.append("A repeat_last_n of -1, the whole context, is written out as the context's size.")
    if sampling.grammar:
        remarks.append("The profile's grammar is left out: write it into a file, and add --grammar-file FILE.")
    options: list[Option] = [
        ("--temp", number(sampling.temperature)),
        ("--top-k", str(sampling.top_k)),
        ("--top-p", number(sampling.top_p)),
        ("--min-p", number(sampling.min_p)),
        ("--repeat-penalty", number(sampling.repeat_penalty)),
        ("--repeat-last-n", str(last_n)),
        ("--frequency-penalty", number(sampling.frequency_penalty)),
        ("--presence-penalty", number(sampling.presence_penalty)),
        ("--seed", str(sampling.seed)),
    ]
    return options, remarks


def _layers(n_gpu_layers: int) -> str:
    return "all" if n_gpu_layers < 0 else str(n_gpu_layers)
