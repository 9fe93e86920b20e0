"""Is a run slower than the same configuration was before? A pure function over the documents of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from localspec.metrics.statistics import Estimate, median
from localspec.session.figures import rate_text, speed_text
from localspec.session.run_comparison import ratio_of
from localspec.session.run_differences import Difference, surroundings_differences
from localspec.session.run_figures import (
    arm_settings,
    file_name,
    find_arm,
    find_workload_record,
    prompt_sizes,
    trial_rates,
)
from localspec.session.verdict import factor_text, speedup_phrase
from localspec.store.run_facts import is_unusable_workload
from localspec.store.values import Record

LEAST_LOSS: Final = 0.05
"""A loss below this share is no alarm, however sure it is."""

MAX_EARLIER_RUNS: Final = 8
"""The newest ones, so that an old configuration is not held against a new one for ever."""

_SPREADS: Final = 3.0 * 1.4826
"""A loss must also exceed three standard deviations of earlier runs, estimated by their median absolute deviation."""

_NO_MATTER: Final = frozenset({"num_pairs", "warmup_tokens", "bootstrap_seed", "speculation", "draft_context"})
_BY_CORES: Final = frozenset({"n_threads", "n_threads_batch"})
_BY_DEVICE: Final = frozenset({"n_gpu_layers"})
"""Read back from llama.cpp, and so no choice of the user's where the hardware is another."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A kept run."""

    id: int
    document: Record


@dataclass(frozen=True, slots=True)
class Alarm:
    """An arm that is clearly slower than it was."""

    workload: str
    arm: str
    decode_tps: float
    """Median of the new run."""
    earlier_tps: float
    """Median of all trials of the earlier runs."""
    ratio: Estimate
    """New / earlier."""
    run_ids: tuple[int, ...]
    """The earlier runs that were not slow themselves, the newest first."""
    changes: tuple[Difference, ...]
    """What is not as it was in the first of those, but for settings."""


@dataclass(frozen=True, slots=True)
class _Figure:
    run: EarlierRun
    rates: list[float]

    @property
    def median(self) -> float:
        return median(self.rates)


def find_alarms(document: Record, earlier: Sequence[EarlierRun]) -> tuple[Alarm, ...]:
    """Return an alarm for every arm that is significantly slower than the same configuration was in earlier runs.

    That is: the interval of the ratio of medians lies wholly below 1, the loss is LEAST_LOSS or more, and it is larger
    than what earlier runs differ by among themselves.

    Args:
        document: of the new run.
        earlier: in any order; those of other models or settings are passed over.
    """
    newest_first = sorted(earlier, key=lambda run: run.id, reverse=True)
    found = []
    for workload in document["workloads"]:
        if is_unusable_workload(workload):
            continue
        for arm in workload["arms"]:
            rates = trial_rates(workload, arm["name"])
            figures = [figure for run in newest_first if (figure := _figure(document, workload, arm, run)) is not None]
            alarm = _judge(workload["name"], arm["name"], rates, figures[:MAX_EARLIER_RUNS], document)
            if alarm is not None:
                found.append(alarm)
    return tuple(found)


def alarm_sentences(alarms: Sequence[Alarm], profile: str = "") -> tuple[str, ...]:
    """Return what to tell: a line for each arm, and what has changed. Empty without an alarm.

    Args:
        alarms: of one run.
        profile: the profile that the run measured; empty for none.
    """
    if not alarms:
        return ()
    whom = f"The profile {profile} is slower than before" if profile else "This configuration is slower than before"
    lines = [f"{whom}:"]
    lines += [
        f"{alarm.workload}, {alarm.arm}: {speed_text(alarm.decode_tps)} where {_runs(alarm.run_ids)} had "
        f"{rate_text(alarm.earlier_tps)}: {_interval(alarm.ratio)}."
        for alarm in alarms
    ]
    for since, changes in dict.fromkeys((alarm.run_ids[0], alarm.changes) for alarm in alarms):
        if changes:
            lines.append(f"Changed since run {since}: {'; '.join(map(str, changes))}.")
        else:
            lines.append(
                f"Nothing that is recorded has changed since run {since}: "
                "the machine may be hot, or busy with something else."
            )
    return tuple(lines)


def alarm_record(alarm: Alarm) -> Record:
    """Return an alarm as JSON has it."""
    return asdict(alarm)


def _figure(document: Record, workload: Record, arm: Record, run: EarlierRun) -> _Figure | None:
    """Return what an earlier run measured of the same configuration; None if it measured another."""
    old = find_workload_record(run.document, workload["name"])
    partner = None if old is None else find_arm(old, arm)
    if old is None or is_unusable_workload(old):
        return None
    if partner is None or arm_settings(partner) != arm_settings(arm):
        return None
    if not _is_same_model(run.document["target"], document["target"]):
        return None
    if arm["method"] == "draft" and not _is_same_model(run.document["draft"], document["draft"]):
        return None
    if old.get("temperature") != workload.get("temperature") or prompt_sizes(old) != prompt_sizes(workload):
        return None
    if not _is_same_choice(run.document, document, with_draft=arm["method"] == "draft"):
        return None
    rates = trial_rates(old, partner["name"])
    return _Figure(run, rates) if rates else None


def _judge(workload: str, arm: str, rates: list[float], figures: list[_Figure], document: Record) -> Alarm | None:
    if not rates or not figures:
        return None
    logs = [math.log(figure.median) for figure in figures]
    centre = median(logs)
    spread = median([abs(value - centre) for value in logs])
    least = centre - max(-math.log(1.0 - LEAST_LOSS), _SPREADS * spread)
    if math.log(median(rates)) > least:
        return None
    # A run that raised an alarm itself must not make its loss the custom.
    usual = [figure for figure in figures if math.log(figure.median) > least]
    pooled = [rate for figure in usual for rate in figure.rates]
    ratio = ratio_of(rates, pooled)
    if ratio is None or ratio.high is None or ratio.high >= 1.0 or ratio.median > 1.0 - LEAST_LOSS:
        return None
    since = usual[0].run
    return Alarm(
        workload=workload,
        arm=arm,
        decode_tps=median(rates),
        earlier_tps=median(pooled),
        ratio=ratio,
        run_ids=tuple(figure.run.id for figure in usual),
        changes=surroundings_differences(since.document, document),
    )


def _is_same_model(before: Record | None, after: Record | None) -> bool:
    """Whether it is the same file, or one that has taken its place under the same name with the same size."""
    if before is None or after is None:
        return before is after
    if before.get("sha256") and before.get("sha256") == after.get("sha256"):
        return True
    return (file_name(before), before.get("size_bytes")) == (file_name(after), after.get("size_bytes"))


def _is_same_choice(before: Record, after: Record, with_draft: bool) -> bool:
    """Whether the user chose the same settings; what follows from other hardware is no choice."""
    passed_over = set(_NO_MATTER)
    devices = [document.get("device") or {} for document in (before, after)]
    hosts = [device.get("host") or {} for device in devices]
    if hosts[0].get("physical_cores") != hosts[1].get("physical_cores"):
        passed_over |= _BY_CORES
    if [devices[0].get(key) for key in ("name", "type")] != [devices[1].get(key) for key in ("name", "type")]:
        passed_over |= _BY_DEVICE
    old, new = before["settings"], after["settings"]
    if not _agree(old, new, passed_over):
        return False
    return not with_draft or _agree(old.get("draft_context") or {}, new.get("draft_context") or {}, passed_over)


def _agree(before: Record, after: Record, passed_over: set[str]) -> bool:
    return all(before[key] == after[key] for key in before.keys() & after.keys() - passed_over)


def _interval(ratio: Estimate) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{factor_text(ratio.median)}x"
    return speedup_phrase(ratio)


def _runs(ids: Sequence[int]) -> str:
    if len(ids) == 1:
        return f"run {ids[0]}"
    return f"runs {', '.join(map(str, ids[:-1]))} and {ids[-1]}"
