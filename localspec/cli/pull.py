"""`localspec pull`: a target and its draft from the Hub."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from localspec.catalog.curated import curated_folders, read_curated
from localspec.catalog.file_names import is_model
from localspec.catalog.found_model import FoundModel
from localspec.catalog.naming import is_own_place, resolve
from localspec.cli.advice import command_line
from localspec.cli.errand import stepper
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, say_notice
from localspec.cli.interruption import Interruptions
from localspec.cli.labels import Name, fitting_table
from localspec.cli.pair import SENTENCES, verdict_record
from localspec.cli.screen import DASH, Report, notices_console, print_table, progress, results_console, say, table
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.cli.transfers import transfer_printer
from localspec.engine.interface import Engine
from localspec.errors import LocalspecError, OfflineError, UsageError
from localspec.planning.plan import MemoryPlan
from localspec.session.arguments import choose_local
from localspec.session.figures import bytes_text
from localspec.session.fit import plan_record
from localspec.session.journal import write_note
from localspec.session.library import local_models, read_library, scan_models
from localspec.session.loading import context_settings, draft_context_settings, reserve_bytes
from localspec.session.plain_text import one_line
from localspec.session.pulling import PAIRED, PullPlan, fit_of, plan_pull
from localspec.session.records import encode_record
from localspec.settings import Settings

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub

SCHEMA = 1


def run_pull(services: Services, reference: str, draft: str, is_forced: bool, is_sure: bool, is_json: bool) -> int:
    """Say what is to be fetched, fetch it, and return the exit code."""
    settings = settings_in_force()
    console = results_console(is_json)
    if (local := _local_name(settings, reference)) is not None:
        return _say_here(console, (local,), is_json)
    hub = services.open_hub()
    with Interruptions(say_notice) as interruptions:
        engine = services.make_engine()
        try:
            with progress(notices_console(), "asking the Hub") as report:
                try:
                    plan = interruptions.run(_plan(engine, hub, settings, reference, draft, report))
                except OfflineError as error:
                    if not (here := _all_here(settings, reference, draft)):
                        raise
                    say_notice(f"note: {one_line(error.message)}")
                    return _say_here(console, here, is_json)
                report("measuring whether it fits", 1.0, "")
                memory = interruptions.run(_measure(engine, settings, plan))
            show_plan(console, plan)
            show_fit(console, plan, memory)
            check_plan(plan, is_forced)
            if not is_sure and plan.missing_bytes and sys.stdin is not None and sys.stdin.isatty():
                with interruptions.allowed():
                    is_wanted = click.confirm(f"Fetch {bytes_text(plan.missing_bytes)}?", default=True, err=True)
                if not is_wanted:
                    say_notice("Nothing was fetched.")
                    return EXIT_FAILED
            try:
                with progress(notices_console(), "fetching") as report:
                    paths = interruptions.run(_fetch(hub, plan, report))
            except KeyboardInterrupt:
                say_notice("What has come is kept; the same command goes on with it.")
                raise
        finally:
            interruptions.run(_close(engine, hub), is_stoppable=False)
        names = _names(settings, paths)
        _show_result(console, plan, names)
        if is_json:
            print(encode_record(pull_record(plan, paths, names, memory)))
        return EXIT_DONE


def _local_name(settings: Settings, reference: str) -> FoundModel | None:
    """Return the local model that a name means which can be none of the Hub; None for a name of the Hub.

    Raises:
        UsageError: it is neither.
    """
    from localspec.catalog.hub.values import parse_reference

    found = local_models(settings)
    try:
        if not is_own_place(parse_reference(reference)):
            return None
    except UsageError as error:
        try:
            model = resolve(reference, found)
        except LocalspecError:
            raise error from None
        if model not in found and not is_model(model.path.name):
            raise
        return model
    return resolve(reference, found)


def _all_here(settings: Settings, reference: str, draft: str) -> tuple[FoundModel, ...]:
    """Return what is wanted, if all of it that was named is here whole; else nothing."""
    found = local_models(settings)
    named = [reference] if draft in ("auto", "none") else [reference, draft]
    chosen = [choose_local(name, found)[0] for name in named]
    return tuple(model for model in chosen if model is not None) if None not in chosen else ()


def _say_here(console: Console, models: Sequence[FoundModel], is_json: bool) -> int:
    for model in models:
        if model.missing:
            missing = f"{model.name} is on this machine, but {', '.join(model.missing[:3])} is missing."
            raise UsageError(missing, "`localspec models` says how to get the rest.")
    say(console, one_line(f"here already: {', '.join(model.name for model in models)}"))
    if is_json:
        print(encode_record(here_record(models)))
    return EXIT_DONE


async def _plan(engine: Engine, hub: Hub, settings: Settings, reference: str, draft: str, report: Report) -> PullPlan:
    curated = read_curated(curated_folders())
    local = await read_library(engine, scan_models(settings).models) if draft == "auto" else ()
    return await plan_pull(
        engine,
        hub,
        reference,
        draft,
        curated.pairs,
        local,
        stepper(report),
        lambda note: say_notice(f"note: {one_line(note)}"),
    )


async def _measure(engine: Engine, settings: Settings, plan: PullPlan) -> MemoryPlan | None:
    try:
        return await fit_of(
            engine, plan, context_settings(settings), draft_context_settings(settings), reserve_bytes(settings)
        )
    except LocalspecError as error:
        # Whether to fetch is not for the plan to say.
        write_note(f"No memory plan for {plan.target.label}: {error.message}")
        return None


async def _fetch(hub: Hub, plan: PullPlan, report: Report) -> tuple[Path, ...]:
    from localspec.catalog.hub.queue import Downloads

    wanted = [(part.listing, part.offer) for part in plan.parts]
    return await Downloads(hub).fetch(wanted, transfer_printer(report))


async def _close(engine: Engine, hub: Hub) -> None:
    await hub.close()
    await engine.close()


def check_plan(plan: PullPlan, is_forced: bool) -> None:
    """Refuse to fetch a draft that cannot draft for its target.

    Raises:
        UsageError: it is no pair, and nobody insists.
    """
    verdict = plan.verdict
    if verdict is None or plan.draft is None or verdict.status in PAIRED or is_forced:
        return
    raise UsageError(
        f"{plan.draft.label} is {SENTENCES[verdict.status].replace('cannot be said', 'perhaps')} no draft for "
        f"{plan.target.label}: {verdict.reason}."
        if verdict.status == "UNKNOWN"
        else f"{plan.draft.label} cannot draft for {plan.target.label}: {verdict.reason}.",
        "Nothing was fetched. --draft auto looks for another, --draft none fetches none, --force fetches it anyway.",
    )


def show_plan(console: Console, plan: PullPlan) -> None:
    """Print what is to be fetched and why this draft."""
    print_table(console, fitting_table(console, partial(_grid, plan)))
    if plan.draft_here:
        say(console, one_line(f"The draft is here already: {plan.draft_here}."))
    if plan.verdict is not None:
        reason = f": {plan.verdict.reason}" if plan.verdict.reason else ""
        say(console, one_line(f"Target and draft: {SENTENCES[plan.verdict.status]}{reason}."))
        for note in plan.verdict.notes:
            say(console, one_line(f"note: {note}"), indent=2)
    if plan.remark:
        say(console, one_line(plan.remark))


def show_fit(console: Console, plan: PullPlan, memory: MemoryPlan | None) -> None:
    """Print whether what is to be fetched fits into this machine's memory, with the context of the settings."""
    if memory is None:
        say(console, "Whether it fits into memory could not be measured; the log file says why.")
        return
    say(console, one_line(memory.sentence))
    if memory.verdict != "FITS":
        drafting = ("--draft", plan.draft.label) if plan.draft is not None else ()
        say(console, "What could be done about it:")
        console.print(f"  {command_line('localspec', 'fit', plan.target.label, *drafting)}", soft_wrap=True)


def _grid(plan: PullPlan, shown: Name) -> Table:
    grid = table("To fetch", "", "Size", "Still to come")
    grid.columns[1].justify = "left"
    for role, part in zip(("target", "draft"), plan.parts, strict=False):
        size = bytes_text(part.offer.size_bytes or None)
        missing = (
            bytes_text(part.missing_bytes) if part.missing_bytes else "all here" if part.offer.size_bytes else DASH
        )
        grid.add_row(role, shown(part.label), size, missing)
    return grid


def _names(settings: Settings, paths: tuple[Path, ...]) -> tuple[str, ...]:
    by_path = {model.path.resolve(): model.name for model in local_models(settings)}
    return tuple(by_path.get(path.resolve(), str(path)) for path in paths)


def _show_result(console: Console, plan: PullPlan, names: tuple[str, ...]) -> None:
    draft = names[1] if len(names) > 1 else plan.draft_here
    console.print()
    say(console, one_line(f"Here now: {', '.join(names)}"))
    drafting = ("--draft", draft) if draft else ("--method", "ngram")
    say(console, "To see whether speculation pays:")
    console.print(f"  {command_line('localspec', 'bench', names[0], *drafting)}", soft_wrap=True)


def here_record(models: Sequence[FoundModel]) -> dict[str, Any]:
    """Return the document of `pull --json` where the Hub was not asked, since all is here."""
    records = [
        {
            "role": role,
            "name": model.name,
            "path": str(model.path),
            "repo": model.repo or None,
            "commit": model.commit or None,
            "quantisation": model.quantisation,
            "size_bytes": model.file_bytes,
            "fetched_bytes": 0,
            "files": [{"path": path.name, "sha256": None} for path in model.shards],
        }
        for role, model in zip(("target", "draft"), models, strict=False)
    ]
    return {"schema": SCHEMA, "models": records, "draft_here": None, "verdict": None, "remark": None, "fit": None}


def pull_record(
    plan: PullPlan, paths: tuple[Path, ...], names: tuple[str, ...], memory: MemoryPlan | None
) -> dict[str, Any]:
    """Return the document of `pull --json`."""
    models = [
        {
            "role": role,
            "name": name,
            "path": str(path),
            "repo": part.listing.repo,
            "commit": part.listing.commit,
            "quantisation": part.offer.quantisation,
            "size_bytes": part.offer.size_bytes,
            "fetched_bytes": part.missing_bytes,
            "files": [{"path": file.path, "sha256": file.sha256 or None} for file in part.offer.files],
        }
        for role, part, path, name in zip(("target", "draft"), plan.parts, paths, names, strict=False)
    ]
    return {
        "schema": SCHEMA,
        "models": models,
        "draft_here": plan.draft_here or None,
        "verdict": None if plan.verdict is None else verdict_record(plan.verdict),
        "remark": plan.remark or None,
        "fit": None if memory is None else plan_record(memory),
    }
