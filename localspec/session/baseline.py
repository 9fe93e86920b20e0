"""How fast the target is without drafts: measured, for the same models and settings, or not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from localspec.errors import LocalspecError
from localspec.methods import needs_draft, settings_read_by, takes_draft
from localspec.metrics.statistics import median

if TYPE_CHECKING:
    from localspec.engine.events import ModelsLoaded
    from localspec.engine.values import ModelInfo, SpeculationSettings
    from localspec.metrics.latency import Latency
    from localspec.session.run_document import RunDocument, RunWorkload
    from localspec.store.runs import Runs

MAX_READ = 12
"""Runs that are looked into, the newest first."""

_IN_FORCE = ("n_ctx", "n_threads", "n_threads_batch", "n_gpu_layers", "type_k", "type_v", "flash_attn")


@dataclass(frozen=True, slots=True)
class Baseline:
    """A measured speed with speculation off."""

    decode_tps: float
    source: str
    """Where it was measured, such as `run 12`."""


def speedup_over(baseline: Baseline | None, latency: Latency) -> float | None:
    """Return decode_tps with drafts / without; None where one of them is not known."""
    if baseline is None or latency.decode_tps is None:
        return None
    return latency.decode_tps / baseline.decode_tps


def saved_s(baseline: Baseline | None, latency: Latency) -> float | None:
    """Return seconds that the tokens after the first took less than without drafts; negative: more."""
    if baseline is None or latency.tpot_s is None:
        return None
    return (latency.num_tokens - 1) * (1.0 / baseline.decode_tps - latency.tpot_s)


def find_baseline(runs: Runs, loaded: ModelsLoaded, speculation: SpeculationSettings) -> Baseline | None:
    """Return what the newest run of the same models and settings measured; None if there is none.

    Raises:
        StoreError: the store cannot be read.
    """
    # What is kept takes long to import, and an answer's figures need none of it.
    from localspec.session.run_document import read_document

    likely = [summary for summary in runs.summaries() if summary.state in ("done", "interrupted") and summary.speedup]
    for summary in likely[:MAX_READ]:
        try:
            document = read_document(runs.get(summary.id))
        except LocalspecError:
            continue
        rates = [
            workload.baseline.decode_tps.median
            for workload in document.workloads
            if workload.baseline is not None
            and workload.baseline.decode_tps is not None
            and _has_arm(workload, speculation)
        ]
        if rates and _is_same(document, loaded, speculation):
            return Baseline(median(rates), f"run {summary.id}")
    return None


def _is_same(document: RunDocument, loaded: ModelsLoaded, speculation: SpeculationSettings) -> bool:
    if document.target.path != loaded.target.path or not _is_in_force(document.settings, loaded.target):
        return False
    if not takes_draft((speculation.method,)):
        return True
    if document.draft is None or loaded.draft is None:
        # `auto` does without one, if there is none.
        return not needs_draft((speculation.method,)) and document.draft is None and loaded.draft is None
    if document.draft.path != loaded.draft.path:
        return False
    context = document.settings.get("draft_context")
    return not isinstance(context, dict) or _is_in_force(context, loaded.draft)


def _is_in_force(settings: dict[str, object], info: ModelInfo) -> bool:
    return all(settings.get(name) == getattr(info, name) for name in _IN_FORCE)


def _has_arm(workload: RunWorkload, speculation: SpeculationSettings) -> bool:
    read = settings_read_by(speculation.method, speculation.verification)
    return any(
        arm.method == speculation.method and all(getattr(arm, name) == getattr(speculation, name) for name in read)
        for arm in workload.speculative
    )
