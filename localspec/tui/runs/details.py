"""A kept run's document, folded into what the details show. Making them blocks: do it in a thread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from localspec.session.figures import DASH, rate_span, speed_unit

if TYPE_CHECKING:
    from localspec.session.reporting.rate_traces import RateTraces
    from localspec.session.reporting.receipt import Receipt
    from localspec.session.reporting.series import AcceptedLengths, PositionAcceptance, VerifyPoint
    from localspec.session.reporting.words import Sentence
    from localspec.store.values import Record, RunSummary, StoredRun


_DECODE = "decode tokens per second"
"""Header of the column of speeds; the app shows them in the unit that was chosen."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A table with a column for each arm, or for each thing that is compared."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """A label and a cell for each column."""


@dataclass(frozen=True, slots=True)
class WorkloadDetails:
    """One workload of a run."""

    title: str
    figures: Figures
    sentences: tuple[Sentence, ...]
    notes: tuple[str, ...]
    acceptance: tuple[PositionAcceptance, ...]
    lengths: tuple[AcceptedLengths, ...]
    traces: RateTraces | None


@dataclass(frozen=True, slots=True)
class RunDetails:
    """All that is shown of a run."""

    summary: RunSummary
    warnings: tuple[str, ...]
    """What to know before its figures."""
    promises: tuple[str, ...]
    """Of a suite: what `auto` promises, with what was found."""
    workloads: tuple[WorkloadDetails, ...]
    verify_costs: tuple[VerifyPoint, ...]
    receipt: Receipt
    arms: tuple[str, ...]
    """Names of the arms that have run, as they are kept."""
    best_arm: str
    num_pairs: int
    max_tokens: int
    speedups: tuple[float, ...] = ()
    """Of all runs of the same pair, oldest first."""


def run_details(stored: StoredRun) -> RunDetails:
    """Return what is shown of a run.

    Raises:
        StoreError: what was kept of it cannot be read.
    """
    from localspec.session.records import document_of
    from localspec.session.reporting.reading import number, objects, part
    from localspec.session.reporting.receipt import make_receipt
    from localspec.session.reporting.series import verify_costs
    from localspec.session.reporting.words import run_warnings
    from localspec.session.suite_result import suite_sentences

    document = document_of(stored)
    workloads = objects(document, "workloads")
    settings = part(document, "settings")
    arms = [
        str(arm.get("name", "")) for workload in workloads for arm in objects(workload, "arms") if arm.get("has_run")
    ]
    return RunDetails(
        summary=stored.summary,
        warnings=run_warnings(document, stored.summary.state),
        promises=suite_sentences(document),
        workloads=tuple(map(_workload, workloads)),
        verify_costs=verify_costs(workloads),
        receipt=make_receipt(document),
        arms=tuple(dict.fromkeys(arms)),
        best_arm=stored.summary.best_arm,
        num_pairs=int(number(settings, "num_pairs") or 0),
        max_tokens=int(number(settings, "max_tokens") or 0),
    )


def _workload(workload: Record) -> WorkloadDetails:
    from localspec.session.reporting.rate_traces import rate_traces
    from localspec.session.reporting.reading import name, number, objects, text
    from localspec.session.reporting.series import accepted_lengths, position_acceptance
    from localspec.session.reporting.words import arm_grid, sentences, workload_notes
    from localspec.store.run_facts import is_unusable_workload

    grid = arm_grid(workload)
    own, title = name(workload, "name"), text(workload, "title")
    about = f"{title} ({own})" if title and title != own else own
    temperature = number(workload, "temperature")
    return WorkloadDetails(
        title=about if temperature is None else f"{about}, temperature {temperature:g}",
        figures=Figures(
            columns=tuple(row[0] for row in grid.rows),
            # Turned over: arms are few, and figures with their intervals are long.
            rows=tuple(
                (speed_unit(), *map(_speed, objects(workload, "arms")))
                if header == _DECODE
                else (header, *(row[place] for row in grid.rows))
                for place, header in enumerate(grid.headers)
                if place
            ),
        ),
        # The stored verdict of an arm knows nothing of the machine's unrest; its sentence does.
        sentences=tuple(
            replace(sentence, tone="unusable") if is_unusable_workload(workload) else sentence
            for sentence in sentences(workload)
        ),
        notes=workload_notes(workload),
        acceptance=position_acceptance(workload),
        lengths=accepted_lengths(workload),
        traces=rate_traces(workload),
    )


def _speed(arm: Record) -> str:
    from localspec.session.reporting.series import interval

    found = interval(arm, "decode_tps")
    return DASH if found is None else rate_span(found.median, found.low, found.high)
