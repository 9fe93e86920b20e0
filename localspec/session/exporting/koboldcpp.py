"""For KoboldCpp. Names and meanings: the options of koboldcpp.py in LostRuins/koboldcpp."""

from __future__ import annotations

from localspec.session.exporting.values import (
    Command,
    Option,
    draft_path,
    draft_threads_remarks,
    drafting_remarks,
    sampling_remark,
    target_path,
)
from localspec.session.profiles import NamedProfile

_BATCHES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_CONTEXTS = range(256, 262_145)
_KV_LEVELS = {"f16": 0, "q8_0": 1, "q4_0": 2}

ALL_LAYERS = "999"


def koboldcpp_command(profile: NamedProfile) -> Command:
    """Return KoboldCpp's command line.

    Raises:
        UsageError: a path holds what does not show.
    """
    document = profile.document
    context, drafting, own = document.context, document.speculation, document.draft_context
    options: list[Option] = [("--model", target_path(profile))]
    remarks: list[str] = []
    if context.n_ctx in _CONTEXTS:
        options.append(("--contextsize", str(context.n_ctx)))
    else:
        remarks.append(f"--contextsize takes {_CONTEXTS[0]} to {_CONTEXTS[-1]}; n_ctx {context.n_ctx} is left out.")
    if context.n_threads:
        options.append(("--threads", str(context.n_threads)))
    if context.n_threads_batch:
        options.append(("--blasthreads", str(context.n_threads_batch)))
    if context.n_batch in _BATCHES:
        options.append(("--batchsize", str(context.n_batch)))
    else:
        remarks.append(f"--batchsize takes powers of two from 16 to 4096; n_batch {context.n_batch} is left out.")
    if context.n_gpu_layers == 0:
        options.append(("--usecpu",))
    else:
        options.append(("--gpulayers", ALL_LAYERS if context.n_gpu_layers < 0 else str(context.n_gpu_layers)))
        remarks.append("Add --usecuda or --usevulkan if KoboldCpp does not choose your GPU by itself.")
    if context.use_mmap:
        options.append(("--usemmap",))
    options += _cache(profile, remarks)
    remarks.append(
        f"Flash attention was {'on' if context.flash_attn else 'off'}. Releases differ: some have --flashattention to "
        "switch it on, later ones --noflashattention to switch it off."
    )
    if context.experts_on_cpu:
        remarks.append("The experts were kept in host memory: see --moecpu or --overridetensors of your release.")
    if drafting.method == "draft":
        options += [("--draftmodel", draft_path(profile)), ("--draftamount", str(drafting.n_max))]
        layers = context.n_gpu_layers if own is None else own.n_gpu_layers
        options.append(("--draftgpulayers", ALL_LAYERS if layers < 0 else str(layers)))
        if own is not None and own.n_ctx != context.n_ctx:
            remarks.append(f"The draft's own n_ctx {own.n_ctx} has no equivalent here.")
        remarks += draft_threads_remarks(profile)
    if drafting.method == "ngram":
        remarks.append("Drafting by n-grams has no option here: nothing is drafted by this command.")
    else:
        remarks += drafting_remarks(profile, ())
    return Command("koboldcpp", tuple(options), (*remarks, sampling_remark(profile)))


def _cache(profile: NamedProfile, remarks: list[str]) -> list[Option]:
    context = profile.document.context
    level = _KV_LEVELS.get(context.type_k)
    if level is None or context.type_k != context.type_v:
        remarks.append(
            f"--quantkv has one type for keys and values, f16, q8_0 or q4_0: {context.type_k} and {context.type_v} "
            "are left out."
        )
        return []
    return [("--quantkv", str(level))] if level else []
