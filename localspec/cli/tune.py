"""`localspec tune`: search the best settings, say what was found, and keep the winner as a profile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from localspec.catalog.workloads import Workload, find_workload, load_workloads, workload_from_file
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, say_failure, say_notice
from localspec.cli.interruption import Interruptions
from localspec.cli.my_chats import own_texts, show_by_kind
from localspec.cli.screen import notices_console, progress, results_console
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.cli.tune_profile import check_profile_name, keep_winner
from localspec.cli.tune_report import progress_printer, show_result
from localspec.engine.values import KvType, Method
from localspec.errors import UsageError
from localspec.hardware.host import read_power
from localspec.methods import needs_draft
from localspec.session.arguments import named_model
from localspec.session.loading import (
    context_settings,
    draft_context_settings,
    measured_speculation,
    reserve_bytes,
    sampling_settings,
)
from localspec.session.measurement import measurement_record
from localspec.session.records import encode_record
from localspec.session.tuning.budget import parse_budget
from localspec.session.tuning.conditions import battery_note
from localspec.session.tuning.confirmation import confirmation_of
from localspec.session.tuning.record import tuning_record
from localspec.session.tuning.tuner import tune
from localspec.session.tuning.values import Knob, TuningPlan, TuningResult
from localspec.session.tuning.words import order_text
from localspec.settings import Flags, Settings

DEFAULT_WORKLOADS = ("edit", "chat")

_KNOBS: dict[str, Knob] = {
    "n_threads": "threads",
    "n_threads_batch": "threads",
    "draft_n_threads": "draft_threads",
    "draft_n_threads_batch": "draft_threads",
    "flash_attn": "flash_attn",
    "type_k": "kv",
    "type_v": "kv",
    "draft_n_gpu_layers": "draft_placement",
}


@dataclass(frozen=True, slots=True)
class TuneChoice:
    """What to tune; everything else is a setting."""

    target: str
    drafts: tuple[str, ...]
    workloads: tuple[str, ...]
    prompt_file: Path | None
    budget: str
    methods: tuple[str, ...]
    kv_types: tuple[str, ...]
    profile: str | None
    """Name of the one to keep; None makes one up."""
    replaces: bool
    is_kept: bool
    ignore_eos: bool
    is_forced: bool
    fixed: tuple[str, ...]
    """Options that were given, and so are not searched."""
    is_own: bool = False
    """Tune for the user's own chats, too."""


def run_tune(services: Services, choice: TuneChoice, flags: Flags, is_json: bool) -> int:
    """Search, print, keep, and return the exit code."""
    settings = settings_in_force(flags)
    own: tuple[Workload, ...] = ()
    if choice.is_own:
        own = own_texts(services, context_settings(settings), settings.bench.max_tokens)
    plan = make_plan(choice, settings, flags, own)
    if choice.profile is not None and choice.is_kept:
        check_profile_name(services, choice.profile, choice.replaces)
    say_notice(order_text(plan))
    if read_power()[0] == "battery":
        say_notice(f"note: {battery_note()}")
    with Interruptions(say_notice) as interruptions:
        engine = services.make_engine()
        try:
            with progress(notices_console()) as report:
                result = interruptions.run(tune(engine, plan, progress_printer(report, plan)))
        finally:
            interruptions.run(engine.close(), is_stoppable=False)
        return _finish(services, choice, result, is_json)


def make_plan(choice: TuneChoice, settings: Settings, flags: Flags, own: tuple[Workload, ...] = ()) -> TuningPlan:
    """Return the plan that the command line and the settings make up; `own` are workloads of the user's chats.

    Raises:
        UsageError: the budget is no time, a workload or prompt does not exist, or a method lacks its model.
    """
    budget_s = parse_budget(choice.budget)
    methods = cast("tuple[Method, ...]", tuple(name for name in choice.methods if name != "off"))
    if needs_draft(methods) and not choice.drafts:
        raise UsageError("Drafting with a model needs one.", "Give one or several with --draft MODEL.")
    paths = [named_model(draft, settings).path for draft in choice.drafts]
    return TuningPlan(
        target=named_model(choice.target, settings).path,
        drafts=tuple(dict.fromkeys(paths)),
        context=context_settings(settings),
        draft_context=draft_context_settings(settings),
        speculation=measured_speculation(settings),
        workloads=_workloads(choice, own),
        sampling=sampling_settings(settings),
        budget_s=budget_s,
        methods=methods,
        fixed_knobs=frozenset(_KNOBS[name] for name in choice.fixed),
        kv_types=cast("tuple[KvType, ...]", choice.kv_types),
        is_temperature_fixed=flags.get("sampling", {}).get("temperature") is not None,
        max_tokens=settings.bench.max_tokens,
        ignore_eog=choice.ignore_eos,
        with_hashes=choice.is_kept,
        reserve_bytes=reserve_bytes(settings),
        is_forced=choice.is_forced,
    )


def _finish(services: Services, choice: TuneChoice, result: TuningResult, is_json: bool) -> int:
    console = results_console(is_json)
    run_id, profile = keep_winner(services, choice, result) if choice.is_kept else (None, "")
    confirmation = confirmation_of(result) if choice.is_own else None
    more = {} if confirmation is None else show_by_kind(measurement_record(confirmation), console)
    show_result(result, console, profile)
    if run_id is not None:
        say_notice(f"run {run_id} kept: the confirmation")
    if result.failure is not None:
        say_failure(result.failure)
    if is_json:
        print(encode_record({**tuning_record(result, run_id, profile), **more}))
    if result.is_interrupted:
        notices_console().print("Interrupted.")
        return EXIT_INTERRUPTED
    return EXIT_FAILED if result.failure is not None else EXIT_DONE


def _workloads(choice: TuneChoice, own: tuple[Workload, ...]) -> tuple[Workload, ...]:
    if choice.prompt_file is not None:
        own = (*own, workload_from_file(choice.prompt_file))
    names = dict.fromkeys(choice.workloads or (() if own else DEFAULT_WORKLOADS))
    known = load_workloads() if names else ()
    return (*(find_workload(name, known) for name in names), *own)
