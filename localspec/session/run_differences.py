"""What differs between two runs, from their documents. What one of them does not know is no difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from localspec.session.figures import bytes_text
from localspec.session.run_figures import file_name, find_arm, find_workload_record, prompt_sizes, settings_read
from localspec.store.values import Record

Group = Literal["build", "driver", "device", "machine", "power", "file", "settings"]
"""Settings are the user's own choice; all else may change without anybody's wish."""

_SAME_MEMORY_SHARE: Final = 0.02
"""Systems report a little more or less memory after an upgrade."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was. Its texts may come from files: they are not markup."""

    group: Group
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what}: {self.before} -> {self.after}"


def differences(before: Record, after: Record) -> tuple[Difference, ...]:
    """Return everything that is known to differ, what matters most first."""
    return (*surroundings_differences(before, after), *settings_differences(before, after))


def surroundings_differences(before: Record, after: Record) -> tuple[Difference, ...]:
    """Return what differs but for the settings: build, drivers, device, machine, power, files."""
    found = (
        *_build(before.get("build") or {}, after.get("build") or {}),
        *_device(before.get("device") or {}, after.get("device") or {}),
        *_power(before.get("device") or {}, after.get("device") or {}),
        *_file("target", before.get("target"), after.get("target")),
        *_file("draft", before.get("draft"), after.get("draft")),
    )
    return tuple(found)


def settings_differences(before: Record, after: Record) -> tuple[Difference, ...]:
    """Return which settings in force differ, those of arms that both have and the prompts included."""
    old, new = before.get("settings") or {}, after.get("settings") or {}
    found = [*_values("settings", "", old, new, set(old) - {"speculation", "draft_context"})]
    context, new_context = old.get("draft_context") or {}, new.get("draft_context") or {}
    found += _values("settings", "the draft's ", context, new_context, set(context))
    for workload in before["workloads"]:
        other = find_workload_record(after, workload["name"])
        if other is None:
            continue
        prefix = f"{workload['name']}: "
        found += _values("settings", prefix, workload, other, {"temperature"})
        if (one := prompt_sizes(workload)) != (two := prompt_sizes(other)) and one and two:
            found.append(Difference("settings", f"{prefix}tokens of the prompts", one, two))
        for arm in workload["arms"]:
            partner = find_arm(other, arm)
            if partner is not None and arm["method"] != "off":
                found += _values(
                    "settings",
                    f"{arm['name']}: ",
                    arm,
                    partner,
                    set(settings_read(arm)),
                )
    return tuple(dict.fromkeys(found))


def value_text(value: object) -> str:
    """Return a setting's value as people read it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _build(before: Record, after: Record) -> Iterator[Difference]:
    names = {"llama_cpp": "llama.cpp", "llama_cpp_python": "llama-cpp-python", "supports_gpu_offload": "GPU offload"}
    for key, name in names.items():
        yield from _value("build", name, before.get(key), after.get(key))
    old, new = _features(before), _features(after)
    if old and new and old != new:
        lost, gained = ", ".join(sorted(old - new)), ", ".join(sorted(new - old))
        yield Difference("build", "features of llama.cpp", lost or "none of these", gained or "without them")


def _features(build: Record) -> set[str]:
    return {" ".join(part.split()) for part in str(build.get("system_info") or "").split("|") if part.strip()}


def _device(before: Record, after: Record) -> Iterator[Difference]:
    yield from _values("driver", "driver ", before.get("drivers") or {}, after.get("drivers") or {}, None)
    yield from _value("device", "device", _device_text(before), _device_text(after))
    old, new = before.get("host") or {}, after.get("host") or {}
    for key, name in (("os", "system"), ("cpu_name", "processor"), ("physical_cores", "cores")):
        yield from _value("machine", name, old.get(key), new.get(key))
    sizes = [int(host.get("memory_total_bytes") or 0) for host in (old, new)]
    if all(sizes) and abs(sizes[0] - sizes[1]) > _SAME_MEMORY_SHARE * max(sizes):
        yield Difference("machine", "memory", *(bytes_text(size) for size in sizes))


def _device_text(device: Record) -> str | None:
    name, description = device.get("name"), device.get("description")
    return f"{name} ({description})" if name and description and name != description else name


def _power(before: Record, after: Record) -> Iterator[Difference]:
    for key, name in (("power_source", "power"), ("throttling", "throttling")):
        yield from _value("power", name, before.get(key), after.get(key))


def _file(role: str, before: Record | None, after: Record | None) -> Iterator[Difference]:
    if before is None or after is None:
        if before is not after:
            yield Difference("file", role, file_name(before) or "none", file_name(after) or "none")
        return
    name, other = file_name(before), file_name(after)
    sums = before.get("sha256"), after.get("sha256")
    if all(sums):
        if sums[0] == sums[1]:
            return
        yield from _value("file", role, name, other)
        yield Difference("file", f"SHA-256 of the {role}", *(str(one)[:12] for one in sums))
        return
    yield from _value("file", role, name, other)
    yield from _value("file", f"bytes of the {role}", before.get("size_bytes"), after.get("size_bytes"))


def _values(
    group: Group, prefix: str, before: Mapping[str, Any], after: Mapping[str, Any], keys: set[str] | None
) -> Iterator[Difference]:
    """Yield what differs under keys that both have; None takes all."""
    for key in before:
        if key in after and (keys is None or key in keys):
            yield from _value(group, f"{prefix}{key}", before[key], after[key])


def _value(group: Group, what: str, before: object, after: object) -> Iterator[Difference]:
    if before is None or after is None or before == "" or after == "" or before == after:
        return
    yield Difference(group, what, value_text(before), value_text(after))
