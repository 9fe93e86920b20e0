"""`localspec runs rerun`: the same measurement again, and what has become of it."""

from __future__ import annotations

from rich.console import Console

from localspec.cli.bench import carry_out
from localspec.cli.failures import say_notice
from localspec.cli.heading import names_of
from localspec.cli.run_compare import show_comparison
from localspec.cli.run_list import run_line
from localspec.cli.run_store import chosen_run
from localspec.cli.screen import Report
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.engine.interface import Engine
from localspec.session.library import local_models
from localspec.session.measurement import Measurement, OnProgress, measure
from localspec.session.pacing_memory import PacingMemory
from localspec.session.plain_text import one_line
from localspec.session.rerun import Rerun, differences_now, make_rerun
from localspec.session.run_comparison import compare_runs, comparison_record
from localspec.session.run_keeping import RunKeeper
from localspec.store.values import Record


def run_rerun(services: Services, word: str, is_forced: bool, is_kept: bool, is_json: bool) -> int:
    """Say what differs now, measure, print, compare, and return the exit code."""
    stored = chosen_run(services, word)
    models = local_models(settings_in_force())
    rerun = make_rerun(stored, models, is_forced, services.open_database)
    names = names_of(rerun.plan, models)
    say_notice(f"Measuring again: {run_line(stored.summary)}")
    keeper = None
    if is_kept:
        keeper = RunKeeper(stored.summary.kind, services.open_database, say_notice, stored.summary.profile)

    async def work(engine: Engine, report: Report, watch: OnProgress) -> Measurement:
        await _say_differences(engine, rerun, report)
        return await measure(engine, rerun.plan, watch, target_word=names[0].word, learnt=PacingMemory())

    def compare(document: Record, console: Console) -> Record:
        if not document["workloads"]:
            return {}
        comparison = compare_runs(rerun.document, document)
        run_id = document.get("run_id")
        show_comparison(comparison, f"run {rerun.run_id}", "now" if run_id is None else f"run {run_id}", console)
        return {"compared_with": {"run_id": rerun.run_id, **comparison_record(comparison)}}

    return carry_out(services, work, is_json, keeper, compare, names)


async def _say_differences(engine: Engine, rerun: Rerun, report: Report) -> None:
    def on_hashed(num_done: int, num_total: int) -> None:
        report("reading the model files for their SHA-256", num_done / num_total if num_total else 1.0, "")

    found = await differences_now(engine, rerun, on_hashed)
    for sentence in rerun.moved:
        say_notice(one_line(sentence))
    if not found:
        say_notice(f"Build, device, power and files are as in run {rerun.run_id}, as far as they are known.")
        return
    say_notice(f"What differs now (run {rerun.run_id} -> now):")
    for difference in found:
        say_notice(f"  {one_line(str(difference))}")
