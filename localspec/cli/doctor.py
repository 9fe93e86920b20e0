"""`localspec doctor`: the machine, the build, and what would make speculation slow here."""

from __future__ import annotations

import dataclasses
import json

from rich.console import Console

from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, say_failure, say_notice
from localspec.cli.interruption import Interruptions
from localspec.cli.screen import notices_console, print_table, results_console, say, table
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.planning.devices import DEFAULT_RESERVE_BYTES
from localspec.planning.notes import Note, feature_names
from localspec.session.examination import Examination, examine
from localspec.session.figures import bytes_text
from localspec.session.fit import device_record
from localspec.session.loading import reserve_bytes
from localspec.session.plain_text import one_line


def run_doctor(services: Services, is_json: bool) -> int:
    """Print the examination, and return the exit code: a failure of the engine is one, notes are not."""
    reserve = reserve_bytes(settings_in_force())
    with Interruptions(say_notice) as interruptions:
        examination = interruptions.run(_examine(services))
        show(examination, results_console(is_json), reserve)
        if examination.failure is not None:
            say_failure(examination.failure)
        if is_json:
            print(json.dumps(document(examination, reserve)))
    return EXIT_DONE if examination.failure is None else EXIT_FAILED


async def _examine(services: Services) -> Examination:
    engine = services.make_engine()
    try:
        if notices_console().is_terminal:
            with notices_console().status("Asking llama.cpp …"):
                return await examine(engine)
        return await examine(engine)
    finally:
        await engine.close()


def document(examination: Examination, reserve: int = DEFAULT_RESERVE_BYTES) -> dict[str, object]:
    """Return the examination as JSON types; what the engine did not answer is null or empty."""
    profile, build = examination.profile, examination.build
    offload: dict[str, object] | None = None
    if build is not None:
        offload = {"supported": build.supports_gpu_offload, "devices": [device.name for device in profile.gpus]}
    return {
        "host": {**dataclasses.asdict(profile.host), "clock": dataclasses.asdict(profile.clock)},
        "devices": [dataclasses.asdict(device) for device in profile.devices],
        "build": None if build is None else dataclasses.asdict(build),
        "offload": offload,
        "memory": [device_record(device) for device in examination.memories(reserve)],
        "notes": [dataclasses.asdict(note) for note in all_notes(examination)],
    }


def all_notes(examination: Examination) -> tuple[Note, ...]:
    """Return the notes, with an engine that failed as the first of them."""
    if examination.failure is None:
        return examination.notes
    failure = examination.failure
    return (Note("engine_failed", "serious", failure.message, failure.hint), *examination.notes)


def show(examination: Examination, console: Console, reserve: int = DEFAULT_RESERVE_BYTES) -> None:
    """Print the examination for people."""
    facts = table("Machine", "")
    facts.columns[1].justify = "left"
    for name, value in (*_machine(examination), *_memories(examination, reserve)):
        facts.add_row(name, one_line(value))
    print_table(console, facts)
    if examination.profile.devices:
        devices = table("Device", "Type", "Backend", "Description", "Free", "Total")
        for column in devices.columns[1:4]:
            column.justify = "left"
        for device in examination.profile.devices:
            devices.add_row(
                one_line(device.name),
                device.type.replace("_", " "),
                one_line(device.backend),
                one_line(device.description),
                # llama.cpp gives the processor all of the machine's memory as free, used or not.
                "see memory" if device.type == "cpu" else bytes_text(device.free_bytes),
                "" if device.type == "cpu" else bytes_text(device.total_bytes),
            )
        console.print()
        print_table(console, devices)
    console.print()
    if not examination.notes and examination.failure is None:
        say(console, "Nothing here stands in the way of speculation.")
    for note in examination.notes:
        say(console, f"{note.severity}: {one_line(note.text)}")
        say(console, one_line(note.advice), indent=2)


def _machine(examination: Examination) -> list[tuple[str, str]]:
    host, build = examination.profile.host, examination.build
    threads = "" if host.logical_cores == host.physical_cores else f" ({host.logical_cores} logical)"
    limit = " (this container's or service's limit)" if host.is_memory_limited else ""
    if host.process_limit:
        limit = f" (this process's limit, {host.process_limit})"
    rows = [
        ("system", f"{host.os}, {host.machine}"),
        ("processor", host.cpu_name or "unknown"),
        ("cores", f"{host.physical_cores}{threads}"),
        ("memory", f"{bytes_text(host.memory_available_bytes)} free of {bytes_text(host.memory_total_bytes)}{limit}"),
        ("power", host.power.replace("_", " ")),
    ]
    if host.load_average is not None:
        last, five, fifteen = host.load_average
        rows.append(("load", f"{last:.1f} programs at a time in the last minute, {five:.1f} in 5, {fifteen:.1f} in 15"))
    if build is not None:
        rows.append(("llama.cpp", f"{build.llama_cpp or 'version not stated'}, by binding {build.llama_cpp_python}"))
        rows.append(("features", ", ".join(feature_names(build.system_info)) or "not stated"))
        rows.append(("offload", _offload(examination)))
    return rows


def _memories(examination: Examination, reserve: int) -> list[tuple[str, str]]:
    """Return a line for each memory on what plans may use of it."""
    return [
        (
            f"for plans, {device.name}",
            f"{bytes_text(device.budget_bytes)}: {bytes_text(device.free_bytes)} free, "
            f"{bytes_text(device.reserve_bytes)} of them kept free. {device.note}",
        )
        for device in examination.memories(reserve)
    ]


def _offload(examination: Examination) -> str:
    build, gpus = examination.build, examination.profile.gpus
    if build is None or not build.supports_gpu_offload:
        return "none: this build runs on the processor only"
    if not gpus:
        return "this build can use a GPU, but finds none"
    return ", ".join(f"{gpu.name} ({gpu.description})" for gpu in gpus)
