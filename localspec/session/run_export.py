"""A kept run for other programs: its document, or a table with a line for each round."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict

from localspec.session.plain_text import one_line
from localspec.session.records import document_of
from localspec.store.values import Record, StoredRun

_TRIAL_COLUMNS = (
    *("pair", "place", "prompt", "is_closing", "num_prompt_tokens", "num_tokens", "decode_tps", "prefill_tps"),
    *("ttft_s", "acceptance_rate", "finish_reason"),
)

_ROUND_COLUMNS = (
    *("drafted", "accepted", "emitted", "num_cut", "num_discarded", "n_past", "at_s", "draft_s", "verify_s"),
    *("sample_s", "total_s", "drafter", "match_length", "expected_tokens", "expected_s", "acceptance", "needed"),
    *("is_resting", "is_exploring"),
)

COLUMNS = ("run", "workload", "arm", "method", *_TRIAL_COLUMNS, "round", *_ROUND_COLUMNS)
"""Of the table; a round is numbered from 0 in its trial."""

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def exported(stored: StoredRun) -> Record:
    """Return a run's document with what the list of runs says of it, as `run`."""
    return {**document_of(stored), "run": asdict(stored.summary)}


def csv_text(stored: StoredRun) -> str:
    """Return a run as a table of its rounds. What is not known is empty."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in round_rows(stored.summary.id, document_of(stored)):
        writer.writerow([_cell(row.get(column)) for column in COLUMNS])
    return output.getvalue()


def round_rows(run_id: int, document: Record) -> Iterator[Record]:
    """Yield every round with the columns of its trial."""
    for workload in document["workloads"]:
        methods = {arm["name"]: arm["method"] for arm in workload["arms"]}
        for trial in workload.get("trials") or ():
            rounds = trial.get("rounds") or {}
            shared = {
                "run": run_id,
                "workload": workload["name"],
                "arm": trial["arm"],
                "method": methods.get(trial["arm"]),
                **{name: trial.get(name) for name in _TRIAL_COLUMNS},
            }
            for index in range(len(rounds.get("emitted") or ())):
                # An older run has fewer columns.
                columns = {name: rounds[name][index] for name in _ROUND_COLUMNS if index < len(rounds.get(name) or ())}
                yield {**shared, "round": index, **columns}


def _cell(value: object) -> object:
    """Return a value as a spreadsheet takes it: a text that it would carry out as a formula begins with a quote."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
