"""The receipt of a run: everything that its figures rest on, from its document."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich.console import Console

from localspec.cli.screen import DASH, say
from localspec.cli.workload_table import show_workload
from localspec.methods import settings_read_by
from localspec.session.drafting_lines import chosen_lengths
from localspec.session.figures import bytes_text, percent_text
from localspec.session.plain_text import one_line
from localspec.session.run_differences import value_text
from localspec.session.run_figures import arm_trials, file_name
from localspec.store.values import Record

LABEL_WIDTH = 10
BAR_WIDTH = 40
"""Characters of the longest bar."""


def show_receipt(document: Record, console: Console) -> None:
    """Print what was measured, on what, and how."""
    for label, text in (*model_lines(document), *surroundings_lines(document), *settings_lines(document)):
        _say_labelled(console, label, text)


def show_workloads(document: Record, console: Console) -> None:
    """Print each workload's table, what follows from it, and how many tokens its rounds accepted."""
    for workload in document["workloads"]:
        show_workload(workload, console)
        for line in (*histogram_lines(workload), *length_lines(workload)):
            say(console, line, indent=2)
    for name in ("draft_failure", "failure"):
        if document.get(name):
            console.print()
            say(console, one_line(f"{name.replace('_', ' ')}: {document[name]}"))


def model_lines(document: Record) -> tuple[tuple[str, str], ...]:
    """Return the models as labels and texts."""
    lines: list[tuple[str, str]] = []
    for role in ("target", "draft"):
        model = document.get(role)
        if model is None:
            continue
        facts = [model.get("quantisation"), bytes_text(model["size_bytes"]) if model.get("size_bytes") else None]
        about = ", ".join(str(fact) for fact in facts if fact)
        lines.append((role, f"{file_name(model)} ({about})" if about else file_name(model)))
        folder = str(model.get("path") or "").removesuffix(file_name(model))
        lines.append(("", f"in {folder}" if folder else ""))
        lines.append(("SHA-256", str(model.get("sha256") or "not taken")))
    return tuple(line for line in lines if line[1])


def surroundings_lines(document: Record) -> tuple[tuple[str, str], ...]:
    """Return build, device, machine and power as labels and texts."""
    build, device = document.get("build") or {}, document.get("device") or {}
    host = device.get("host") or {}
    versions = (("llama.cpp", build.get("llama_cpp")), ("llama-cpp-python", build.get("llama_cpp_python")))
    drivers = ", ".join(f"{name} {version}" for name, version in (device.get("drivers") or {}).items())
    machine = [host.get("os"), host.get("cpu_name")]
    if host.get("physical_cores"):
        machine.append(f"{host['physical_cores']} cores")
    if host.get("memory_total_bytes"):
        machine.append(bytes_text(host["memory_total_bytes"]))
    battery = host.get("battery_percent")
    power = [str(device.get("power_source") or "not known").replace("_", " ")]
    if battery is not None:
        power.append(f"battery at {battery:.0f} %")
    power.append(f"throttling: {device.get('throttling') or 'not known'}")
    return (
        ("build", ", ".join(f"{name} {version}" for name, version in versions if version) or DASH),
        ("device", _device(device)),
        *((("driver", drivers),) if drivers else ()),
        ("machine", ", ".join(str(part) for part in machine if part) or DASH),
        ("power", ", ".join(power)),
        *((("memory", memory),) if (memory := _memory(document)) else ()),
    )


def settings_lines(document: Record) -> tuple[tuple[str, str], ...]:
    """Return the settings in force as labels and texts."""
    settings = document.get("settings") or {}
    lines = [("settings", _settings(settings))]
    if context := settings.get("draft_context"):
        lines.append(("draft's", _settings(context)))
    for name, speculation in (settings.get("speculation") or {}).items():
        method = str(speculation.get("method"))
        if method != "off":
            read = settings_read_by(method, str(speculation.get("verification", "exact")))
            used = {key: value for key, value in speculation.items() if key == "method" or key in read}
            lines.append(("arm", f"{name}: {_settings(used)}"))
    return tuple(lines)


def histogram_lines(workload: Record) -> list[str]:
    """Return bars of how many draft tokens the rounds of each arm accepted; none for an arm without drafts."""
    lines = []
    for arm in workload["arms"]:
        counts = accepted_lengths(workload, arm["name"])
        num_rounds = sum(counts)
        if not num_rounds:
            continue
        lines.append(one_line(f"accepted tokens of a round, {arm['name']} ({num_rounds} rounds with drafts):"))
        lines += _bars(counts)
    return lines


def length_lines(workload: Record) -> list[str]:
    """Return bars of how long the drafts were that adaptive arms chose; none for the others."""
    lines = []
    for arm in workload["arms"]:
        counts = chosen_lengths(arm)
        if num_rounds := sum(counts):
            lines.append(one_line(f"chosen length of a draft, {arm['name']} ({num_rounds} rounds):"))
            lines += _bars(counts)
    return lines


def _bars(counts: Sequence[int]) -> list[str]:
    lines = []
    for length, count in enumerate(counts):
        bar = "#" * max(round(BAR_WIDTH * count / max(counts)), int(count > 0))
        lines.append(f"{length:>4}  {bar:<{BAR_WIDTH}}  {percent_text(count / sum(counts)):>5}")
    return lines


def accepted_lengths(workload: Record, arm_name: str) -> list[int]:
    """Return how many rounds of an arm accepted 0, 1, 2 … tokens, over all its trials."""
    sums: list[int] = []
    for trial in arm_trials(workload, arm_name):
        counts = trial.get("accepted_lengths") or ()
        sums += [0] * (len(counts) - len(sums))
        for length, count in enumerate(counts):
            sums[length] += count
    return sums


def _say_labelled(console: Console, label: str, text: str) -> None:
    width = max(20, console.width - LABEL_WIDTH)
    lines: Sequence[str] = textwrap.wrap(one_line(text), width, break_long_words=False, break_on_hyphens=False) or ("",)
    for index, line in enumerate(lines):
        console.print(f"{'' if index else label:<{LABEL_WIDTH}}{line}".rstrip(), soft_wrap=True)


def _device(device: Record) -> str:
    name, description = device.get("name"), device.get("description")
    parts = [str(name), f"({description})" if description and description != name else ""] if name else [DASH]
    return " ".join(part for part in parts if part)


def _memory(document: Record) -> str:
    real = (document.get("memory") or {}).get("real") or {}
    taken: dict[str, int] = {}
    for row in real.get("rows") or ():
        sizes = (size for key, size in row.items() if key.endswith("_bytes") and key != "total_bytes")
        taken[str(row.get("device"))] = taken.get(str(row.get("device")), 0) + sum(sizes)
    return ", ".join(f"{device} {bytes_text(size)}" for device, size in taken.items())


def _settings(settings: Mapping[str, object]) -> str:
    shown = (
        f"{name} {value_text(value)}"
        for name, value in settings.items()
        if name not in ("speculation", "draft_context") and value is not None and value != ""
    )
    return ", ".join(shown)
