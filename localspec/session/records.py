"""The JSON document of `localspec bench --json`. What is not known is null; no number is NaN or infinite."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from localspec.engine.values import BuildInfo, ContextSettings, DeviceInfo, ModelInfo, SamplingSettings
from localspec.methods import DRAFTING_SETTINGS
from localspec.metrics.statistics import Estimate
from localspec.session.arms import Arm
from localspec.session.outcome import ArmResult, ComparisonResult
from localspec.session.same_text import SameText
from localspec.session.trial_record import drafters_record, pacing_record, trial_record
from localspec.session.verdict import arm_sentence, is_reliable, summary_sentence, verdict_sentences
from localspec.store.values import StoredRun

SCHEMA = 1
"""Raised when a key changes its meaning or goes; not when one is added."""

Record = dict[str, Any]


def bench_record(
    *,
    build: BuildInfo,
    device: Record,
    target: Record,
    draft: Record | None,
    settings: Record,
    results: Sequence[ComparisonResult],
    is_interrupted: bool = False,
) -> Record:
    """Return the whole document, from the parts that the other functions here make."""
    return {
        "schema": SCHEMA,
        "build": asdict(build),
        "device": device,
        "target": target,
        "draft": draft,
        "settings": settings,
        "workloads": [workload_record(result) for result in results],
        "interrupted": is_interrupted or any(result.is_interrupted for result in results),
    }


def encode_record(record: Record) -> str:
    """Return a record as one line of JSON; a number that JSON lacks becomes null."""
    return json.dumps(_plain(record), ensure_ascii=True, allow_nan=False)


def device_record(
    devices: Sequence[DeviceInfo],
    n_gpu_layers: int,
    power_source: str | None = None,
    throttling: str | None = None,
    host: Mapping[str, object] | None = None,
    drivers: Mapping[str, str] | None = None,
) -> Record:
    """Return what the models ran on.

    Args:
        devices: as llama.cpp reports them.
        n_gpu_layers: the target's, as read back; 0 keeps it on the CPU.
        power_source: such as `battery`; None if not known.
        throttling: what is known of a lowered clock; None if nothing is.
        host: more facts about the machine.
        drivers: versions of GPU drivers by name.
    """
    gpus = [device for device in devices if device.type in ("gpu", "integrated_gpu")]
    used = gpus[0] if gpus and n_gpu_layers != 0 else next((item for item in devices if item.type == "cpu"), None)
    return {
        "name": used.name if used else None,
        "description": used.description if used else None,
        "type": used.type if used else None,
        "backend": used.backend if used else None,
        "devices": [asdict(device) for device in devices],
        "power_source": power_source,
        "throttling": throttling,
        "host": dict(host) if host is not None else None,
        "drivers": dict(drivers) if drivers is not None else None,
    }


def model_record(info: ModelInfo, sha256: str | None) -> Record:
    """Return a loaded model's identity; `sha256` of its (first) file."""
    return {
        # Whole, since the folder that a person was in is not kept.
        "path": os.path.abspath(info.path),
        "sha256": sha256,
        "name": info.name,
        "architecture": info.architecture,
        "quantisation": info.quantisation,
        "description": info.description,
        "num_params": info.num_params,
        "size_bytes": info.size_bytes,
        "n_vocab": info.n_vocab,
        "n_ctx": info.n_ctx,
        "n_ctx_train": info.n_ctx_train,
        "n_gpu_layers": info.n_gpu_layers,
        "type_k": info.type_k,
        "type_v": info.type_v,
        "template": info.template,
    }


def settings_record(
    target: ModelInfo,
    context: ContextSettings,
    sampling: SamplingSettings,
    *,
    max_tokens: int,
    num_pairs: int,
    ignore_eog: bool = False,
    warmup_tokens: int = 16,
    bootstrap_seed: int = 1,
    draft: ModelInfo | None = None,
    arms: Sequence[Arm] = (),
    pacing_start: str = "",
) -> Record:
    """Return every setting in force. What llama.cpp may have changed is read back from the loaded target."""
    return {
        **asdict(context),
        **_in_force(target),
        **asdict(sampling),
        "max_tokens": max_tokens,
        "num_pairs": num_pairs,
        "ignore_eog": ignore_eog,
        "warmup_tokens": warmup_tokens,
        "bootstrap_seed": bootstrap_seed,
        "draft_context": _in_force(draft) if draft is not None else None,
        "pacing_start": pacing_start or None,
        "speculation": {arm.name: asdict(arm.speculation) for arm in arms},
    }


def workload_record(result: ComparisonResult) -> Record:
    """Return one workload; its speedup, verdict and same_text are those of the first arm with drafts that has run."""
    leading = result.leading
    closing = [] if result.closing is None else [{**trial_record(result.closing), "is_closing": True}]
    return {
        "name": result.workload_name,
        "arms": [arm_record(arm, result) for arm in result.arms],
        "speedup": estimate_record(leading.speedup) if leading else None,
        "verdict": leading.verdict if leading else None,
        "same_text": same_text_record(leading.same_text) if leading else None,
        "summary": summary_sentence(result),
        "sentences": list(verdict_sentences(result)),
        "pairs": result.num_pairs,
        "sampling": asdict(result.sampling),
        "interrupted": result.is_interrupted,
        "notes": list(result.notes),
        "trials": sorted(
            [*(trial_record(trial) for arm in result.arms for trial in arm.trials), *closing],
            key=lambda record: int(record["place"]),
        ),
    }


def arm_record(result: ArmResult, comparison: ComparisonResult) -> Record:
    """Return one arm. Counts and times are sums over its trials, rates and percentiles medians over them."""
    settings, state, stats = result.arm.speculation, result.state, result.stats
    is_on = result.has_run and state is not None and state.is_on
    record: Record = {
        "name": result.arm.name,
        "method": settings.method,
        **{name: getattr(settings, name) for name in DRAFTING_SETTINGS},
        "has_run": result.has_run,
        "speculation": "on" if is_on else "off",
        "drafter": state.drafter if state is not None and is_on else None,
        "reason": result.reason or (state.reason if state is not None else ""),
        "decode_tps": estimate_record(result.decode_tps),
        "prefill_tps": result.prefill_tps,
        "ttft_s": result.ttft_s,
        "tpot_s": {name: result.gap_percentile(name) for name in ("p50", "p95", "p99")},
        "num_trials": len(result.trials),
    }
    counts = {
        "num_tokens": stats.num_tokens,
        "num_rounds": stats.num_rounds,
        "num_target_passes": stats.num_target_passes,
        "target_passes_saved": stats.target_passes_saved,
        "num_draft_tokens": stats.num_draft_tokens,
        "num_accepted_tokens": stats.num_accepted_tokens,
        "num_cut": stats.num_cut,
        "num_discarded": stats.num_discarded,
        "acceptance_rate": stats.acceptance_rate,
        "mean_accepted_length": stats.mean_accepted_length,
        "acceptance_by_position": list(stats.acceptance_by_position),
        "conditional_acceptance_by_position": list(stats.conditional_acceptance_by_position),
        "draft_stops": dict(stats.draft_stops),
        "by_drafter": drafters_record(stats),
        "pacing_stats": pacing_record(stats),
        "draft_s": stats.draft_s,
        "verify_s": stats.verify_s,
        "sample_s": stats.sample_s,
        "own_s": stats.own_s,
        "total_s": stats.total_s,
    }
    return {
        **record,
        # An arm that has not run has no counts: zeros would read as measured.
        **(counts if result.has_run else dict.fromkeys(counts)),
        "peak_rss_bytes": result.peak_rss_bytes,
        "device_used_bytes": result.device_used_bytes,
        "finish_reason": result.finish_reason,
        "speedup": estimate_record(result.speedup),
        "verdict": result.verdict,
        "same_text": same_text_record(result.same_text),
        "sentence": None
        if result.arm.is_baseline
        else arm_sentence(result, comparison.baseline, is_reliable(comparison)),
    }


def document_of(stored: StoredRun) -> Record:
    """Return the document of any kept run, with its number as `run_id`.

    One that never came to an end has it put together again from what was kept; there `unfinished` tells of the trial
    that was under way, and whether the texts agree is not known.

    Raises:
        StoreError: what was kept cannot be read.
    """
    # Reading a run's settings takes the measurement, and that takes this module.
    from localspec.session.kept_document import rebuilt_document

    document = rebuilt_document(stored) if stored.document is None else stored.document
    return {**document, "run_id": stored.summary.id}


def estimate_record(estimate: Estimate | None) -> Record | None:
    """Return a median with its interval."""
    return None if estimate is None else asdict(estimate)


def same_text_record(answer: SameText | None) -> Record | None:
    """Return the answer to "same text?"."""
    return None if answer is None else asdict(answer)


def _in_force(info: ModelInfo) -> Record:
    return {
        "n_ctx": info.n_ctx,
        "n_threads": info.n_threads,
        "n_threads_batch": info.n_threads_batch,
        "n_gpu_layers": info.n_gpu_layers,
        "type_k": info.type_k,
        "type_v": info.type_v,
        "flash_attn": info.flash_attn,
    }


def _plain(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    return value
