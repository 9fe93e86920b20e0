"""Runs and profiles that were never measured."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from localspec.engine.values import SpeculationSettings
from localspec.session.profiles import NamedProfile, read_profile
from localspec.store.values import Profile, Record, RunSummary, StoredRun

CONTEXT: Record = {
    "n_ctx": 4096,
    "n_batch": 512,
    "n_ubatch": 512,
    "n_threads": 4,
    "n_threads_batch": 4,
    "n_gpu_layers": 0,
    "type_k": "f16",
    "type_v": "f16",
    "flash_attn": True,
    "use_mmap": True,
    "experts_on_cpu": False,
}
SAMPLING: Record = {
    "temperature": 0.0,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
    "repeat_penalty": 1.0,
    "repeat_last_n": 64,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "seed": 1,
    "grammar": "",
}
DRAFT_CONTEXT: Record = {
    "n_ctx": 4096,
    "n_threads": 4,
    "n_threads_batch": 4,
    "n_gpu_layers": 0,
    "type_k": "f16",
    "type_v": "f16",
}


def model(path: str, **changes: object) -> Record:
    """Return a profile's model."""
    name = path.rpartition("/")[2]
    return {"name": name, "path": path, "sha256": "ab" * 32, "repo": "", "quantisation": "Q4_0", **changes}


def drafting(method: str = "draft", **changes: object) -> Record:
    """Return how a profile drafts."""
    return {**asdict(SpeculationSettings()), "n_max": 5, "method": method, **changes}


def profile_of(name: str = "quick", **changes: Any) -> Profile:
    """Return a profile as it is kept."""
    document = {
        "target": model("/models/target.gguf"),
        "draft": model("/models/draft.gguf"),
        "speculation": drafting(),
        "context": CONTEXT,
        "draft_context": DRAFT_CONTEXT,
        "sampling": SAMPLING,
        "evidence": {
            "arm": "draft",
            "workload": "edit",
            "speedup": {"median": 1.5, "low": 1.4, "high": 1.6, "pairs": 3},
            "verdict": "faster",
            "results": [{"workload": "edit", "speedup": {"median": 1.5, "low": 1.4, "high": 1.6}, "verdict": "faster"}],
            "device": "Processor",
            "build": "b1",
            "measured_at": "2026-01-02T03:04:05+00:00",
        },
        **changes,
    }
    return Profile(name, "2026-01-02T03:04:05+00:00", None, document)


def named_profile(name: str = "quick", **changes: Any) -> NamedProfile:
    """Return a profile that has been read."""
    return read_profile(profile_of(name, **changes))


def arm(name: str, method: str, speedup: float | None = None, verdict: str | None = None, **changes: Any) -> Record:
    """Return an arm of a run."""
    figure = None if speedup is None else {"median": speedup, "low": speedup - 0.1, "high": speedup + 0.1, "pairs": 3}
    return {
        "name": name,
        **drafting(method),
        "has_run": True,
        "reason": "",
        "speedup": figure,
        "verdict": verdict,
        **changes,
    }


def run_of(*workloads: Record, run_id: int = 7, **changes: Any) -> StoredRun:
    """Return a kept run of some workloads."""
    document = {
        "schema": 1,
        "build": {"llama_cpp_python": "0.3.36"},
        "device": {"description": "Processor"},
        "target": {"path": "/models/target.gguf", "sha256": "cd" * 32, "name": "Target", "quantisation": "F16"},
        "draft": {"path": "/models/draft.gguf", "sha256": None, "name": "Draft", "quantisation": "Q4_0"},
        "settings": {**CONTEXT, **SAMPLING, "max_tokens": 128, "draft_context": {**DRAFT_CONTEXT, "flash_attn": True}},
        "workloads": list(workloads),
        **changes,
    }
    summary = RunSummary(
        id=run_id,
        created_at="2026-01-02T03:04:05+00:00",
        finished_at="2026-01-02T03:05:05+00:00",
        state="done",
        kind="bench",
        target_name="target.gguf",
        draft_name="draft.gguf",
        workloads=tuple(workload["name"] for workload in workloads),
        speedup=None,
        speedup_low=None,
        speedup_high=None,
        best_arm="",
        build="b1",
        device="Processor",
        profile="",
    )
    return StoredRun(summary, {}, document, (), ())


def workload(name: str, *arms: Record, trials: list[Record] | None = None, **changes: Any) -> Record:
    """Return a workload of a run."""
    return {"name": name, "arms": [arm("off", "off"), *arms], "trials": trials or [], "sampling": SAMPLING, **changes}
