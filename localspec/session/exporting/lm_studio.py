"""For LM Studio, as a model.yaml (lmstudio.ai/docs/app/modelyaml). Keys: packages/lms-kv-config of lmstudio-js."""

from __future__ import annotations

import json
from typing import Any

from localspec.session.exporting.kinds import entries
from localspec.session.exporting.shells import comment, plain_line
from localspec.session.exporting.values import draft_threads_remarks, drafting_remarks, heading
from localspec.session.profiles import NamedProfile, ProfileModel

Fields = list[tuple[str, Any]]


def lm_studio_file(profile: NamedProfile) -> str:
    """Return a model.yaml with the profile's fields, and how to set them by hand; one for each setting it holds."""
    files = [_file(one, name) for name, one in entries(profile).items()]
    if len(files) == 1:
        return files[0]
    apart = comment(f"{len(files)} files, one for each kind of text: cut at the lines of three hyphens.")
    return f"{apart}\n" + "---\n".join(files)


def _file(profile: NamedProfile, label: str) -> str:
    document = profile.document
    remarks = [
        "LM Studio: put this file into a folder of the hub's, or set the fields by hand in My Models, under the "
        "model's default settings; the names below are the settings' own.",
        f"The target is {document.target.name}.",
    ]
    load, operation = _load(profile, remarks), _operation(profile, remarks)
    remarks += drafting_remarks(profile, ("n_min", "p_min"))
    base = document.target.repo or "OWNER/NAME"
    if not document.target.repo:
        remarks.append("Where the target is from is not known: replace OWNER/NAME by its repository.")
    owner, _, name = base.partition("/")
    lines = [
        *(comment(line) for line in (*heading(profile), *remarks)),
        f"model: {_yaml(f'localspec/{label}')}",
        "base:",
        f"  - key: {_yaml(base.lower() if document.target.repo else base)}",
        "    sources:",
        "      - type: huggingface",
        f"        user: {_yaml(owner)}",
        f"        repo: {_yaml(name)}",
        "config:",
        "  load:",
        *_fields(load),
        "  operation:",
        *_fields(operation),
    ]
    return "\n".join(lines) + "\n"


def _load(profile: NamedProfile, remarks: list[str]) -> Fields:
    context = profile.document.context
    fields: Fields = [("llm.load.contextLength", context.n_ctx), ("llm.load.llama.evalBatchSize", context.n_batch)]
    if context.n_gpu_layers <= 0:
        ratio = "max" if context.n_gpu_layers < 0 else "off"
        fields.append(("llm.load.llama.acceleration.offloadRatio", ratio))
    else:
        remarks.append(
            f"{context.n_gpu_layers} layers were on the GPU; LM Studio wants the share of all layers, as "
            "llm.load.llama.acceleration.offloadRatio."
        )
    if context.n_threads:
        fields.append(("llm.load.llama.cpuThreadPoolSize", context.n_threads))
    if context.n_threads_batch not in (0, context.n_threads):
        remarks.append(f"n_threads_batch {context.n_threads_batch} has no equivalent here.")
    fields.append(("llm.load.llama.flashAttention", context.flash_attn))
    fields.append(("llm.load.llama.tryMmap", context.use_mmap))
    for name, kind in (("kCache", context.type_k), ("vCache", context.type_v)):
        if kind != "f16":
            fields.append((f"llm.load.llama.{name}QuantizationType", {"checked": True, "value": kind}))
    return fields


def _operation(profile: NamedProfile, remarks: list[str]) -> Fields:
    document = profile.document
    drafting, sampling = document.speculation, document.sampling
    fields: Fields = [
        ("llm.prediction.temperature", sampling.temperature),
        ("llm.prediction.topKSampling", sampling.top_k),
        ("llm.prediction.topPSampling", _checked(sampling.top_p)),
        ("llm.prediction.minPSampling", _checked(sampling.min_p)),
        ("llm.prediction.repeatPenalty", _checked(sampling.repeat_penalty)),
        ("llm.prediction.seed", _checked(sampling.seed)),
    ]
    if drafting.method == "draft" and document.draft is not None:
        fields += [
            ("llm.prediction.speculativeDecoding.draftModel", _key(document.draft)),
            ("llm.prediction.speculativeDecoding.maxTokensToDraft", drafting.n_max),
            ("llm.prediction.speculativeDecoding.minDraftLengthToConsider", drafting.n_min),
            ("llm.prediction.speculativeDecoding.minContinueDraftingProbability", drafting.p_min),
        ]
        remarks.append(
            f"The draft is {document.draft.name}; draftModel must be the key that `lms ls` shows for it, so check it."
        )
        remarks += draft_threads_remarks(profile)
    elif drafting.method == "ngram":
        remarks.append("Drafting by n-grams has no setting here: nothing is drafted.")
    return fields


def _fields(fields: Fields) -> list[str]:
    lines = ["    fields:"]
    for key, value in fields:
        lines += [f"      - key: {key}", f"        value: {_yaml(value)}"]
    return lines


def _checked(value: float) -> dict[str, Any]:
    return {"checked": True, "value": value}


def _key(model: ProfileModel) -> str:
    return model.repo.lower() if model.repo else plain_line(model.name.removesuffix(".gguf"))


def _yaml(value: object) -> str:
    """Return a value as JSON, which is YAML, too."""
    return json.dumps(value)
