"""`localspec profile`: configurations with names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from localspec.cli.advice import command_line
from localspec.cli.chat_store import say_loss
from localspec.cli.failures import EXIT_DONE, say_notice
from localspec.cli.screen import DASH, print_table, results_console, say, table
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.errors import LocalspecError
from localspec.session.drafting_text import settings_phrase
from localspec.session.exporting.exports import profile_record
from localspec.session.hashing import remembered_sha256
from localspec.session.library import local_models
from localspec.session.plain_text import one_line
from localspec.session.profiles import (
    NamedProfile,
    evidence_notes,
    evidence_text,
    file_notes,
    make_profile,
    read_profile,
    speedup_text,
)
from localspec.session.records import encode_record
from localspec.session.run_document import Figure, choose_run
from localspec.store.database import Database
from localspec.store.profiles import Profiles, check_name
from localspec.store.runs import Runs
from localspec.store.values import Profile

SCHEMA = 1


@contextmanager
def opened(services: Services) -> Iterator[Database]:
    """Open the database for a command, and say what was set aside."""
    with services.open_database() as database:
        try:
            yield database
        finally:
            say_loss(database)
            for notice in database.notices:
                say_notice(notice)


def run_save(services: Services, name: str, run: str, arm: str, workload: str, replaces: bool) -> int:
    """Make a profile of a run, keep and show it, and return the exit code."""
    check_name(name)
    with opened(services) as database:
        stored = choose_run(Runs(database), run)
        made = make_profile(
            name,
            stored,
            datetime.now(UTC),
            arm=arm,
            workload=workload,
            repo_of=RepoOf(),
            on_reading=say_reading,
        )
        # What could not be read again is not kept.
        read = read_profile(made)
        Profiles(database).save(made, replaces=replaces)
    console = results_console()
    _show(console, read)
    say(console, f"To use it: {command_line('localspec', 'chat', '--profile', name)}")
    return EXIT_DONE


def run_list(services: Services, is_json: bool) -> int:
    """Print all profiles and return the exit code."""
    with opened(services) as database:
        kept = Profiles(database).all()
    console = results_console(is_json)
    found = [_read(profile) for profile in kept]
    if not kept:
        say(console, "There are no profiles yet. `localspec profile save NAME` makes one of the last run.")
    else:
        grid = table("Name", "Target", "Method", "Speedup", "On", "Run")
        for column in grid.columns[1:5]:
            column.justify = "left"
        for profile, read in zip(kept, found, strict=True):
            grid.add_row(*_cells(profile, read))
        print_table(console, grid)
    for read in found:
        if isinstance(read, NamedProfile):
            for note in (*evidence_notes(read.document.evidence), *file_notes(read)):
                say(console, f"note: {one_line(f'{read.name}: {note}')}")
        else:
            say(console, f"note: {one_line(read)}")
    if is_json:
        records = [
            {**profile_record(read), "notes": list(file_notes(read))}
            if isinstance(read, NamedProfile)
            else _stub(profile, read)
            for profile, read in zip(kept, found, strict=True)
        ]
        print(encode_record({"schema": SCHEMA, "profiles": records}))
    return EXIT_DONE


def run_show(services: Services, name: str, is_json: bool) -> int:
    """Print a profile and return the exit code."""
    with opened(services) as database:
        found = read_profile(Profiles(database).get(name))
    console = results_console(is_json)
    _show(console, found)
    for words in (("chat", "--profile"), ("bench", "--profile")):
        say(console, f"To {words[0]} with it: {command_line('localspec', *words, found.name)}")
    say(console, f"To take it elsewhere: {command_line('localspec', 'export', found.name, '--to', 'llama-server')}")
    if is_json:
        print(encode_record({**profile_record(found), "notes": list(file_notes(found))}))
    return EXIT_DONE


def run_rename(services: Services, name: str, new_name: str) -> int:
    """Give a profile another name and return the exit code."""
    with opened(services) as database:
        Profiles(database).rename(name, new_name)
    say_notice(f"The profile is called {new_name} now.")
    return EXIT_DONE


def run_delete(services: Services, name: str) -> int:
    """Delete a profile and return the exit code."""
    with opened(services) as database:
        Profiles(database).delete(name)
    say_notice("The profile is deleted; its models and its run are where they were.")
    return EXIT_DONE


def method_text(profile: NamedProfile) -> str:
    """Return how a profile drafts, such as `draft n_max 4, p_min 0.5`."""
    drafting = profile.document.speculation
    match = f", match {drafting.ngram_min} to {drafting.ngram_max}" if drafting.method == "ngram" else ""
    return f"{settings_phrase(drafting)}{match}"


def _show(console: Console, profile: NamedProfile) -> None:
    document = profile.document
    context, sampling, evidence = document.context, document.sampling, document.evidence
    say(console, one_line(f"profile {profile.name}"), style="bold")
    rows = table("Setting", "")
    rows.columns[1].justify = "left"
    for role, model in profile.models:
        rows.add_row(role, one_line(model.path))
    own = document.draft_context
    threads = context.n_threads or "all cores"
    placed = f"n_ctx {context.n_ctx}, threads {threads}, layers on the GPU {_layers(context.n_gpu_layers)}"
    rows.add_row("drafting", method_text(profile))
    for kind, group in document.by_workload.items():
        rows.add_row(one_line(f"drafting for {kind}"), settings_phrase(group))
    rows.add_row("context", f"{placed}, cache {_types(context.type_k, context.type_v)}")
    if own is not None:
        rows.add_row(
            "draft's context",
            f"n_ctx {own.n_ctx}, threads {own.n_threads or 'as the target'}, "
            f"layers on the GPU {_layers(own.n_gpu_layers)}, cache {_types(own.type_k, own.type_v)}",
        )
    rows.add_row("flash attention", "on" if context.flash_attn else "off")
    rows.add_row(
        "sampling",
        f"temperature {sampling.temperature:g}, top_k {sampling.top_k}, top_p {sampling.top_p:g}, "
        f"min_p {sampling.min_p:g}, seed {sampling.seed}",
    )
    if evidence is not None:
        for result in evidence.results:
            speedup = result.get("speedup")
            figure = speedup_text(Figure.model_validate(speedup)) if isinstance(speedup, dict) else ""
            figure += ", unusable" if figure and result.get("is_reliable") is False else ""
            rows.add_row(f"measured on {one_line(str(result.get('workload')))}", figure or DASH)
        rows.add_row("run", f"{profile.run_id or 'deleted'}, {one_line(evidence.measured_at)}")
        rows.add_row("device", one_line(evidence.device) or DASH)
        rows.add_row("build", one_line(evidence.build) or DASH)
    print_table(console, rows)
    for note in (*evidence_notes(profile.document.evidence), *file_notes(profile)):
        say(console, f"note: {one_line(note)}")


def say_reading(path: Path) -> None:
    # A sum that is remembered takes no time.
    if not remembered_sha256(path):
        say_notice(one_line(f"Reading {path} for its SHA-256."))


def _cells(profile: Profile, read: NamedProfile | str) -> tuple[str, ...]:
    if isinstance(read, str):
        return (profile.name, DASH, DASH, DASH, DASH, str(profile.run_id or DASH))
    evidence = read.document.evidence
    return (
        profile.name,
        one_line(read.document.target.name),
        method_text(read),
        evidence_text(evidence) or DASH,
        one_line("" if evidence is None else evidence.workload) or DASH,
        str(profile.run_id or DASH),
    )


def _read(profile: Profile) -> NamedProfile | str:
    try:
        return read_profile(profile)
    except LocalspecError as error:
        return error.message


def _stub(profile: Profile, failure: str) -> dict[str, Any]:
    return {"name": profile.name, "created_at": profile.created_at, "run_id": profile.run_id, "failure": failure}


def _layers(n_gpu_layers: int) -> str:
    return "all" if n_gpu_layers < 0 else str(n_gpu_layers)


def _types(key: str, value: str) -> str:
    return key if key == value else f"{key}/{value}"


class RepoOf:
    """Tells where on the Hub a file is from. The folders are looked through when it is asked first."""

    def __init__(self) -> None:
        self._repos: dict[Path, str] | None = None

    def __call__(self, path: Path) -> str:
        if self._repos is None:
            self._repos = {shard: model.repo for model in local_models(settings_in_force()) for shard in model.shards}
        return self._repos.get(path, "")
