"""What a run was measured with, as rows for a page: enough to measure it again, and nothing private.

Models are named by their files alone: where a person keeps them is nobody's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

from localspec.methods import settings_read_by
from localspec.session.records import Record
from localspec.session.reporting.figures import DASH, count, size
from localspec.session.reporting.reading import clean, number, objects, part, text, value

_PARTS: Final = ("weights", "kv", "recurrent", "compute", "output")

_SETTINGS: Final = (
    ("context", ("n_ctx", "n_batch", "n_ubatch", "type_k", "type_v", "flash_attn", "use_mmap")),
    ("placement", ("n_gpu_layers", "experts_on_cpu", "n_threads", "n_threads_batch")),
    ("sampling", ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed")),
    ("measurement", ("num_pairs", "max_tokens", "warmup_tokens", "ignore_eog", "bootstrap_seed", "pacing_start")),
)

_POWER: Final = {
    "mains": "mains",
    "battery": "battery",
    "no_battery": "mains (the machine has no battery)",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A fact with its name."""

    label: str
    fact: str


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """What a model takes on a device, planned and real; a dash where it is not known."""

    device: str
    model: str
    planned: str
    real: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """All of it."""

    build: tuple[Row, ...]
    machine: tuple[Row, ...]
    models: tuple[Row, ...]
    settings: tuple[Row, ...]
    memory: tuple[MemoryLine, ...]
    memory_sentence: str


def make_receipt(document: Record) -> Receipt:
    """Return a document's receipt; what it does not say is left out or a dash."""
    return Receipt(
        build=_build(document),
        machine=_machine(document),
        models=(*_model("target", part(document, "target")), *_model("draft", part(document, "draft"))),
        settings=_settings(part(document, "settings")),
        memory=memory_lines(document),
        memory_sentence=text(document, "memory", "plan", "sentence"),
    )


def model_text(model: Record) -> str:
    """Return a model as people tell their files apart, such as `tiny.gguf (Q4_0)`; empty for none."""
    file = file_name(text(model, "path")) or text(model, "name")
    quantisation = text(model, "quantisation")
    return f"{file} ({quantisation})" if file and quantisation else file


def device_text(document: Record) -> str:
    """Return what the target ran on."""
    device = part(document, "device")
    return text(device, "description") or text(device, "name") or DASH


def build_text(document: Record) -> str:
    """Return llama.cpp and its binding in a word or two."""
    build = part(document, "build")
    binding = text(build, "llama_cpp_python")
    words = [f"llama.cpp {text(build, 'llama_cpp')}" if text(build, "llama_cpp") else ""]
    words.append(f"llama-cpp-python {binding}" if binding else "")
    return ", ".join(word for word in words if word) or DASH


def file_name(path: str) -> str:
    """Return the last part of a path of any system."""
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name


def memory_lines(document: Record) -> tuple[MemoryLine, ...]:
    """Return what each model takes on each device."""
    planned = _sums(objects(document, "memory", "plan", "rows"))
    real = _sums(objects(document, "memory", "real", "rows"))
    return tuple(
        MemoryLine(device, model, size(planned.get((device, model))), size(real.get((device, model))))
        for device, model in dict.fromkeys((*planned, *real))
    )


def _sums(rows: Iterable[Record]) -> dict[tuple[str, str], float]:
    sums: dict[tuple[str, str], float] = {}
    for row in rows:
        key = text(row, "device"), text(row, "model")
        sums[key] = sums.get(key, 0.0) + sum(number(row, f"{name}_bytes") or 0.0 for name in _PARTS)
    return sums


def _build(document: Record) -> tuple[Row, ...]:
    build = part(document, "build")
    return _rows(
        ("llama-cpp-python", text(build, "llama_cpp_python")),
        ("llama.cpp", text(build, "llama_cpp")),
        ("features", text(build, "system_info")),
    )


def _machine(document: Record) -> tuple[Row, ...]:
    device, host = part(document, "device"), part(document, "device", "host")
    others = [
        f"{text(item, 'name')}: {text(item, 'description')} ({size(number(item, 'total_bytes'))})"
        for item in objects(device, "devices")
    ]
    cores = number(host, "physical_cores")
    memory = number(host, "memory_total_bytes")
    battery = number(host, "battery_percent")
    power = text(device, "power_source") or text(host, "power")
    charge = f", {battery:.0f} % charged" if battery is not None else ""
    return _rows(
        ("ran on", f"{device_text(document)} ({text(device, 'backend') or DASH})"),
        ("devices", "; ".join(others)),
        ("processor", text(host, "cpu_name")),
        ("cores", "" if cores is None else f"{count(cores)} physical, {count(number(host, 'logical_cores'))} logical"),
        ("memory", "" if memory is None else size(memory)),
        ("system", " ".join(word for word in (text(host, "os"), text(host, "machine")) if word)),
        ("power", f"{_POWER.get(power, 'not known')}{charge}"),
        ("throttling", text(device, "throttling") or "not known: this system does not count it"),
    )


def _model(role: str, model: Record) -> tuple[Row, ...]:
    if not model:
        return ()
    params = number(model, "num_params")
    facts = [
        text(model, "architecture"),
        "" if not params else f"{params / 1e9:.2f}B parameters" if params >= 1e9 else f"{params / 1e6:.0f}M parameters",
        size(number(model, "size_bytes")),
        f"{count(number(model, 'n_gpu_layers'))} layers on the GPU",
    ]
    return _rows(
        (role, model_text(model)),
        (f"{role}, kind", ", ".join(fact for fact in facts if fact and fact != DASH)),
        (f"{role}, SHA-256", text(model, "sha256") or "not read"),
    )


def _settings(settings: Record) -> tuple[Row, ...]:
    rows = [
        (group, ", ".join(f"{name} {_shown(settings[name])}" for name in names if settings.get(name) is not None))
        for group, names in _SETTINGS
    ]
    rows += [
        (
            f"arm {clean(arm)}",
            ", ".join(f"{name} {_shown(part(settings, 'speculation', arm)[name])}" for name in wanted),
        )
        for arm in part(settings, "speculation")
        if (wanted := _wanted(part(settings, "speculation", arm)))
    ]
    draft = part(settings, "draft_context")
    if draft:
        rows.append(("draft's context", ", ".join(f"{name} {_shown(found)}" for name, found in draft.items())))
    return _rows(*rows)


def _wanted(speculation: Record) -> list[str]:
    """Return the names of the settings that count for an arm's method."""
    method = text(speculation, "method")
    read = settings_read_by(method, text(speculation, "verification") or "exact")
    names = ("method", *read) if read else ()
    return [name for name in names if value(speculation, name) is not None]


def _shown(found: object) -> str:
    if isinstance(found, bool):
        return "on" if found else "off"
    if isinstance(found, float):
        return f"{found:g}"
    return clean(str(found))


def _rows(*facts: tuple[str, str]) -> tuple[Row, ...]:
    return tuple(Row(label, fact) for label, fact in facts if fact)
