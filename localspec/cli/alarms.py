"""The alarm after a measurement: this configuration was faster before."""

from __future__ import annotations

import sqlite3

from rich.console import Console

from localspec.cli.run_store import open_runs
from localspec.cli.screen import say
from localspec.cli.services import Services
from localspec.errors import LocalspecError
from localspec.session.alarm import EarlierRun, alarm_record, alarm_sentences, find_alarms
from localspec.session.plain_text import one_line
from localspec.store.runs import Runs
from localspec.store.values import Record, RunSummary

MAX_READ = 40
"""Documents of earlier runs that are looked into, the newest first."""


def raise_alarms(services: Services, document: Record, run_id: int, console: Console) -> list[Record]:
    """Compare a run that has just been kept with earlier ones, print what is slower, and return it as JSON has it.

    A store that cannot be read raises no alarm: that the run could not be kept has been said already.
    """
    try:
        with open_runs(services) as runs:
            own = runs.get(run_id).summary
            alarms = find_alarms(document, _earlier(runs, own))
    except (LocalspecError, sqlite3.Error):
        return []
    for index, sentence in enumerate(alarm_sentences(alarms, own.profile)):
        if index == 0:
            console.print()
        say(console, one_line(f"{'' if index else 'warning: '}{sentence}"), indent=2 if index else 0)
    return [alarm_record(alarm) for alarm in alarms]


def _earlier(runs: Runs, own: RunSummary) -> list[EarlierRun]:
    likely = [
        summary.id
        for summary in runs.summaries()
        if summary.id < own.id
        and summary.state in ("done", "interrupted", "failed")
        and summary.target_name == own.target_name
        and set(summary.workloads) & set(own.workloads)
    ]
    documents = ((run_id, runs.get(run_id).document) for run_id in likely[:MAX_READ])
    return [EarlierRun(run_id, document) for run_id, document in documents if document is not None]
