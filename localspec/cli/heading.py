"""What figures were measured on, and the command that uses what they say."""

from __future__ import annotations

import shlex
from pathlib import Path

from localspec.cli.figures import bytes_text
from localspec.cli.text import one_line
from localspec.engine.values import ContextSettings, ModelInfo
from localspec.session.measurement import Measurement
from localspec.session.memory_use import used_lines
from localspec.session.verdict import best_arm


def model_text(info: ModelInfo) -> str:
    """Return a model as people tell their files apart, such as `tiny.gguf (Q4_0)`."""
    return one_line(f"{Path(info.path).name} ({info.quantisation})")


def heading(measurement: Measurement) -> tuple[str, ...]:
    """Return lines on the models and the settings that all tables share."""
    plan, target, draft = measurement.plan, measurement.loaded.target, measurement.loaded.draft
    lines = [f"target  {_sized(target)}"]
    if draft is not None:
        lines.append(f"draft   {_sized(draft)}")
    threads = f"{target.n_threads}"
    if target.n_threads_batch != target.n_threads:
        threads += f" ({target.n_threads_batch} for several tokens)"
    temperatures = dict.fromkeys(plan.sampling_for(workload).temperature for workload in plan.workloads)
    pairs = "1 pair" if plan.num_pairs == 1 else f"{plan.num_pairs} pairs"
    lines.append(
        f"n_ctx {target.n_ctx}, threads {threads}, {pairs} x {plan.max_tokens} tokens, "
        f"temperature {' and '.join(f'{value:g}' for value in temperatures)}"
    )
    if memory := _memory_line(measurement):
        lines.append(memory)
    return tuple(lines)


def chat_command(measurement: Measurement) -> str:
    """Return the command line that chats in the best way of those measured; empty if nothing was compared."""
    results, plan = measurement.results, measurement.plan
    if not any(arm.speedup is not None for result in results for arm in result.speculative):
        return ""
    words = ["localspec", "chat", str(plan.target)]
    best = best_arm(results)
    if best is None:
        words += ["--method", "off"]
    else:
        settings = best.speculation
        if settings.method == "draft":
            words += ["--draft", str(plan.draft)]
        words += ["--method", settings.method, "--n-max", str(settings.n_max)]
        if settings.n_min:
            words += ["--n-min", str(settings.n_min)]
        if settings.method == "draft" and settings.p_min:
            words += ["--p-min", f"{settings.p_min:g}"]
    if plan.context.n_ctx != ContextSettings().n_ctx:
        words += ["--n-ctx", str(plan.context.n_ctx)]
    return shlex.join(words)


def _memory_line(measurement: Measurement) -> str:
    """Return what the models take on each device beside what was planned; empty if the engine does not say."""
    memory, loaded = measurement.memory, measurement.loaded
    if memory is None or memory.plan is None or loaded.footprint is None:
        return ""
    parts = [
        f"{device} {bytes_text(taken)} (planned {bytes_text(planned)})"
        for device, planned, taken in used_lines(memory.plan, loaded)
    ]
    return f"memory  {one_line(', '.join(parts))}"


def _sized(info: ModelInfo) -> str:
    return one_line(f"{Path(info.path).name} ({info.quantisation}, {bytes_text(info.size_bytes)})")
