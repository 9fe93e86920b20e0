"""What figures were measured on, and the command that uses what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localspec.catalog.found_model import FoundModel
from localspec.cli.advice import command_line
from localspec.engine.events import ModelsLoaded
from localspec.engine.values import ContextSettings, ModelInfo, SpeculationSettings
from localspec.methods import settings_read_by, takes_draft
from localspec.session.figures import MIB, bytes_text
from localspec.session.load_plan import LoadPlan
from localspec.session.measurement import Measurement, MeasurementPlan
from localspec.session.memory_use import file_pages, used_lines
from localspec.session.plain_text import one_line
from localspec.session.verdict import best_arm, is_reliable


@dataclass(frozen=True, slots=True)
class ModelName:
    """What a person calls a model."""

    word: str
    """To type: as it was typed."""
    shown: str
    """To read: a name of the Hub or of Ollama, or that of the file."""


_STARTS = {
    "cold": "adaptive drafting begins each run cold, knowing nothing of these models (--tuned: what was learnt before)",
    "tuned": "adaptive drafting begins each run with what was learnt before",
}

_NAMED_PLACES = ("hugging face", "ollama")

Names = tuple[ModelName, ModelName | None]
"""Of target and draft."""


def shown_name(model: FoundModel) -> str:
    """Return what to call a model: what lists show where the name of its file may be a hash, otherwise that name."""
    return model.name if model.place in _NAMED_PLACES else model.path.name


def name_of(model: FoundModel, word: str = "") -> ModelName:
    """Return what to call a model; `word` is what was typed, empty for nothing."""
    return ModelName(word or (model.name if model.place in _NAMED_PLACES else str(model.path)), shown_name(model))


def name_at(path: Path, models: Sequence[FoundModel]) -> ModelName:
    """Return what to call the model of a file, if it is among those of this machine by a name, or by its file."""
    found = next((model for model in models if model.path == path), None)
    return ModelName(str(path), path.name) if found is None else name_of(found)


def names_of(plan: MeasurementPlan, models: Sequence[FoundModel] = ()) -> Names:
    """Return what to call the models of a plan whose files nobody typed."""
    return name_at(plan.target, models), None if plan.draft is None else name_at(plan.draft, models)


def model_text(name: str, info: ModelInfo) -> str:
    """Return a model as people tell their files apart, such as `tiny.gguf (Q4_0)`."""
    return one_line(f"{name} ({info.quantisation})")


def heading(measurement: Measurement, names: Names) -> tuple[str, ...]:
    """Return lines on the models and the settings that all tables share."""
    plan, target, draft = measurement.plan, measurement.loaded.target, measurement.loaded.draft
    lines = [f"target  {_sized(names[0].shown, target)}"]
    if draft is not None:
        lines.append(f"draft   {_sized(Path(draft.path).name if names[1] is None else names[1].shown, draft)}")
    threads = threads_text(target, draft)
    temperatures = dict.fromkeys(plan.sampling_for(workload).temperature for workload in plan.workloads)
    pairs = "1 pair" if plan.num_pairs == 1 else f"{plan.num_pairs} pairs"
    lines.append(
        f"n_ctx {target.n_ctx}, threads {threads}, {pairs} x {plan.max_tokens} tokens, "
        f"temperature {' and '.join(f'{value:g}' for value in temperatures)}"
    )
    if start := measurement.pacing_start:
        lines.append(_STARTS[start])
    memory, loaded = measurement.memory, measurement.loaded
    if memory is not None and memory.plan is not None and loaded.footprint is not None:
        lines.append(f"memory  {', '.join(memory_texts(memory, loaded))}")
    return tuple(lines)


def threads_text(target: ModelInfo, draft: ModelInfo | None) -> str:
    """Return how many threads steps have, such as `4 (8 for several tokens, 2 for the draft)`."""
    more = [f"{target.n_threads_batch} for several tokens"] if target.n_threads_batch != target.n_threads else []
    if draft is not None and draft.n_threads != target.n_threads:
        more.append(f"{draft.n_threads} for the draft")
    return f"{target.n_threads} ({', '.join(more)})" if more else f"{target.n_threads}"


def memory_texts(memory: LoadPlan, loaded: ModelsLoaded) -> tuple[str, ...]:
    """Return for each device what the models take and what was planned; pages of their files are told apart."""
    texts = []
    pages = file_pages(memory, loaded)
    for device, planned, taken in used_lines(memory.plan, loaded):
        own = None if taken is None else taken - pages.get(device, 0)
        text = f"{device} {bytes_text(own)} (planned {bytes_text(planned)})"
        if pages.get(device, 0) >= MIB:
            text += f" and {bytes_text(pages[device])} in pages of the file, which the system can take back"
        texts.append(one_line(text))
    return tuple(texts)


def chat_command(measurement: Measurement, names: Names) -> str:
    """Return the command line that chats in the best way of those measured; empty if nothing was compared."""
    results, plan = [result for result in measurement.results if is_reliable(result)], measurement.plan
    if not any(arm.speedup is not None for result in results for arm in result.speculative):
        return ""
    words = ["localspec", "chat", names[0].word]
    best = best_arm(results)
    if best is None:
        words += ["--method", "off"]
    else:
        with_draft = takes_draft((best.speculation.method,)) and names[1] is not None
        if with_draft and names[1] is not None:
            words += ["--draft", names[1].word]
        words += _drafting_words(best.speculation)
        if with_draft:
            words += draft_context_words(plan.draft_context or plan.context, plan.context)
    words += context_words(plan.context)
    if plan.is_forced:
        words.append("--force")
    return command_line(*words)


def _drafting_words(settings: SpeculationSettings) -> list[str]:
    usual = SpeculationSettings()
    words = ["--method", settings.method]
    for name in settings_read_by(settings.method, settings.verification):
        value = getattr(settings, name)
        if name == "remembers" or (value == getattr(usual, name) and (name != "n_max" or settings.method == "auto")):
            continue
        option = "draft-temp" if name == "draft_temperature" else name.replace("_", "-")
        words += [f"--{option}", value if isinstance(value, str) else f"{value:g}"]
    return words


def context_words(context: ContextSettings) -> list[str]:
    """Return the options that bring a context back, but for those that are as usual."""
    usual = ContextSettings()
    options = (
        ("--n-ctx", context.n_ctx, usual.n_ctx),
        ("--threads", context.n_threads, usual.n_threads),
        ("--threads-batch", context.n_threads_batch, usual.n_threads_batch),
        ("--n-gpu-layers", context.n_gpu_layers, usual.n_gpu_layers),
        ("--type-k", context.type_k, usual.type_k),
        ("--type-v", context.type_v, usual.type_v),
    )
    words = [word for option, value, default in options if value != default for word in (option, str(value))]
    if context.flash_attn != usual.flash_attn:
        words.append("--flash-attn" if context.flash_attn else "--no-flash-attn")
    if context.experts_on_cpu:
        words.append("--experts-on-cpu")
    return words


def draft_context_words(own: ContextSettings, target: ContextSettings) -> list[str]:
    """Return the options that bring a draft's context back, where it is not as the target's."""
    words = []
    if own.n_ctx != target.n_ctx:
        words += ["--draft-n-ctx", str(own.n_ctx)]
    if own.n_threads != target.n_threads:
        words += ["--draft-threads", str(own.n_threads)]
    if own.n_threads_batch != target.n_threads_batch:
        words += ["--draft-threads-batch", str(own.n_threads_batch)]
    if own.n_gpu_layers != target.n_gpu_layers:
        words += ["--draft-n-gpu-layers", str(own.n_gpu_layers)]
    if (own.type_k, own.type_v) != (target.type_k, target.type_v):
        words += ["--draft-kv", own.type_k if own.type_k == own.type_v else f"{own.type_k}/{own.type_v}"]
    return words


def _sized(name: str, info: ModelInfo) -> str:
    return one_line(f"{name} ({info.quantisation}, {bytes_text(info.size_bytes)})")
