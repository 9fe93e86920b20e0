"""`localspec probe`: how good drafts must be to pay with a target here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localspec.catalog.workloads import Workload, find_workload, workload_from_file
from localspec.cli.errand import run_errand
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, say_failure
from localspec.cli.heading import Names, name_of
from localspec.cli.probe_report import show_report
from localspec.cli.screen import Report, notices_console, results_console, say
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.engine.events import Event, LoadProgress, ModelsLoaded, StepsProgress
from localspec.engine.interface import Engine
from localspec.errors import UsageError
from localspec.session.arguments import named_model
from localspec.session.figures import speed_text
from localspec.session.loading import context_settings, draft_context_settings, reserve_bytes
from localspec.session.plain_text import one_line
from localspec.session.probe_record import probe_record
from localspec.session.probing import DEEP, ProbePlan, ProbeReport, probe_target, reached_depth, workload_text
from localspec.session.records import encode_record
from localspec.session.reporting.writing import Output, check_place, write_all
from localspec.settings import Flags, Settings

DEFAULT_WORKLOAD = "summary"

_PICTURES = (".svg", ".png")


@dataclass(frozen=True, slots=True)
class ProbeChoice:
    """What to probe; everything else is a setting."""

    target: str
    """A path, or a name of a local model; likewise the draft."""
    draft: str | None
    seconds: float
    depth: int
    is_deep: bool
    workload: str | None
    text_file: Path | None
    plot: Path | None
    is_forced: bool = False
    """Load what would not fit into memory, too, and write over foreign pictures."""


def run_probe(services: Services, choice: ProbeChoice, flags: Flags, is_json: bool) -> int:
    """Measure, print, and return the exit code. Ctrl-C ends it early; what is known by then is printed."""
    if choice.plot is not None:
        _check_picture(choice.plot, choice.is_forced)
    plan, names = make_plan(choice, settings_in_force(flags))

    async def work(engine: Engine, report: Report) -> ProbeReport:
        return await probe_target(engine, plan, event_printer(report, plan), target_word=names[0].word)

    found = run_errand(services, "starting llama.cpp", work)
    console = results_console(is_json)
    show_report(found, names, console)
    if choice.plot is not None:
        _draw(found, choice.plot, choice.is_forced)
        say(console, one_line(f"Drawn in {choice.plot}"))
    if found.failure is not None:
        say_failure(found.failure)
    if found.is_interrupted:
        notices_console().print("Interrupted.")
    if is_json:
        print(encode_record(probe_record(found)))
    if found.is_interrupted:
        return EXIT_INTERRUPTED
    return EXIT_DONE if found.failure is None else EXIT_FAILED


def make_plan(choice: ProbeChoice, settings: Settings) -> tuple[ProbePlan, Names]:
    """Return the plan that the command line and the settings make up, and what the user calls its models.

    Raises:
        UsageError: a model or workload does not exist, the text cannot be read, or the time is no number.
    """
    if not math.isfinite(choice.seconds):
        # It passes as neither too small nor too large.
        raise UsageError(f"{choice.seconds} is no number for --seconds.", "Choose between 1 and 3600.")
    text = _text(choice)
    target = named_model(choice.target, settings)
    draft = None if choice.draft is None else named_model(choice.draft, settings)
    plan = ProbePlan(
        target=target.path,
        draft=None if draft is None else draft.path,
        context=context_settings(settings),
        draft_context=draft_context_settings(settings),
        text=workload_text(text),
        text_name=text.title if choice.text_file is not None else text.name,
        depths=tuple(sorted({choice.depth, DEEP})) if choice.is_deep else (choice.depth,),
        seconds=choice.seconds,
        reserve_bytes=reserve_bytes(settings),
        is_forced=choice.is_forced,
    )
    return plan, (name_of(target, choice.target), None if draft is None else name_of(draft, choice.draft or ""))


def event_printer(report: Report, plan: ProbePlan) -> Callable[[Event], None]:
    """Return what turns the engine's events into lines; each request measures the next of the plan's depths."""
    depths = plan.depths
    requests: list[int] = []

    def on_event(event: Event) -> None:
        nonlocal depths
        if isinstance(event, LoadProgress):
            report(f"loading the {event.model}", event.fraction, "")
        elif isinstance(event, ModelsLoaded):
            depths = tuple(reached_depth(depth, event, plan) for depth in plan.depths)
        elif isinstance(event, StepsProgress):
            if event.id not in requests:
                requests.append(event.id)
            depth = depths[min(len(requests), len(depths)) - 1]
            figure = speed_text(1.0 / event.costs[0].median_s) if event.costs and event.costs[0].median_s else ""
            report(f"timing steps of the {event.model} behind {depth} positions", event.fraction, figure)

    return on_event


def _text(choice: ProbeChoice) -> Workload:
    if choice.text_file is None:
        return find_workload(choice.workload or DEFAULT_WORKLOAD)
    if choice.workload is not None:
        raise UsageError("Steps read one text.", "Give either --workload or --text.")
    return workload_from_file(choice.text_file)


def _check_picture(path: Path, is_forced: bool) -> None:
    if path.suffix.lower() not in _PICTURES:
        raise UsageError(f"{path} names no kind of picture.", "Let --plot end in .svg or .png.")
    check_place(path, is_forced)


def _draw(report: ProbeReport, path: Path, is_forced: bool) -> None:
    # matplotlib takes a while to load, and nothing else needs it.
    from localspec.session.reporting.probe_charts import probe_png, probe_svg

    content = probe_png(report) if path.suffix.lower() == ".png" else probe_svg(report)
    write_all([Output(path, content)], is_forced)
