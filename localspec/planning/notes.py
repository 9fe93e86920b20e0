"""What would make speculation slow on this machine, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from localspec.units import memory_scale

if TYPE_CHECKING:
    from localspec.hardware.profile import HardwareProfile

Severity = Literal["serious", "warning", "info"]

_ORDER: dict[Severity, int] = {"serious": 0, "warning": 1, "info": 2}

FEW_CORES = 4
"""Up to here a step over several positions is bound by arithmetic and costs clearly more than a single one."""

CONTEXT_PADDING = 256
"""llama.cpp rounds n_ctx up to a multiple of this."""

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What the notes are derived from. None where the system does not say."""

    architecture: str
    """As platform.machine() gives it, such as `x86_64` or `arm64`."""
    physical_cores: int
    """Cores that this process may use."""
    logical_cores: int
    machine_logical_cores: int
    """Of the whole machine, whose load the load average counts."""
    memory_total_bytes: int
    memory_available_bytes: int
    load_average: float | None
    """Runnable processes over the last minute."""
    is_on_battery: bool | None
    supports_gpu_offload: bool
    gpus: tuple[str, ...]
    """Names of the discrete GPUs that llama.cpp sees."""
    integrated_gpus: tuple[str, ...]
    cpu_features: frozenset[str] | None
    """Instruction sets that llama.cpp uses; None if its info line does not tell."""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to know about this machine, and what to do about it."""

    code: str
    severity: Severity
    text: str
    advice: str


def machine_facts(profile: HardwareProfile, supports_gpu_offload: bool, system_info: str) -> MachineFacts:
    """Return what the notes need of a profile and of the build of llama.cpp."""
    host = profile.host
    return MachineFacts(
        architecture=host.machine,
        physical_cores=host.physical_cores,
        logical_cores=host.logical_cores,
        machine_logical_cores=host.machine_logical_cores,
        memory_total_bytes=host.memory_total_bytes,
        memory_available_bytes=host.memory_available_bytes,
        load_average=host.load_average[0] if host.load_average else None,
        is_on_battery={"battery": True, "mains": False, "no_battery": False}.get(host.power),
        supports_gpu_offload=supports_gpu_offload,
        gpus=tuple(device.name for device in profile.devices if device.type == "gpu"),
        integrated_gpus=tuple(device.name for device in profile.devices if device.type == "integrated_gpu"),
        cpu_features=cpu_features(system_info),
    )


def feature_names(system_info: str) -> tuple[str, ...]:
    """Return what is on in llama.cpp's info line (`CPU : AVX2 = 1 | FMA = 1`), in its order."""
    found: list[str] = []
    for part in system_info.split("|"):
        name, separator, value = part.rpartition("=")
        if separator and value.strip() not in ("", "0"):
            found.append(name.rpartition(":")[2].strip())
    return tuple(found)


def cpu_features(system_info: str) -> frozenset[str] | None:
    """Return the CPU features that are on in llama.cpp's info line; None without any."""
    return frozenset(feature_names(system_info)) or None


def context_note(role: str, n_ctx: int, n_ctx_train: int) -> Note | None:
    """Return a note if a context is longer than what the model was trained for; None otherwise.

    Args:
        role: `target` or `draft`.
        n_ctx: positions of the context, which llama.cpp pads to CONTEXT_PADDING.
        n_ctx_train: as the file says; 0 if it does not.
    """
    if n_ctx_train <= 0 or n_ctx < n_ctx_train + CONTEXT_PADDING:
        return None
    return Note(
        "context_over_trained",
        "warning",
        f"The {role} was trained on texts of up to {n_ctx_train} tokens, but its context has {n_ctx} (n_ctx): "
        "past the trained length its text may turn into nonsense.",
        f"Set n_ctx to {n_ctx_train} or less.",
    )


def notes_on(facts: MachineFacts) -> tuple[Note, ...]:
    """Return the notes that hold for a machine, serious ones first."""
    notes = [note for rule in _RULES for note in rule(facts)]
    return tuple(sorted(notes, key=lambda note: _ORDER[note.severity]))


def _few_cores(facts: MachineFacts) -> Iterator[Note]:
    if facts.gpus or facts.physical_cores > FEW_CORES:
        return
    cores = "one core" if facts.physical_cores == 1 else f"{facts.physical_cores} cores"
    yield Note(
        "few_cores",
        "serious" if facts.physical_cores <= 2 else "warning",
        f"With {cores} the check of several drafted tokens is bound by arithmetic: "
        "a step over four positions costs two to three times a single one, where a GPU does it nearly for free.",
        "Draft few tokens (n_max 2 to 4), try n-gram drafting on text that repeats itself, and measure before you "
        "leave it on.",
    )


def _no_offload(facts: MachineFacts) -> Iterator[Note]:
    if facts.supports_gpu_offload:
        return
    yield Note(
        "no_gpu_offload",
        "warning",
        "This build of llama.cpp cannot use a GPU, so both models run on the processor.",
        "If this machine has a GPU, build llama-cpp-python for it: CMAKE_ARGS=-DGGML_CUDA=on, -DGGML_METAL=on or "
        "-DGGML_VULKAN=on.",
    )


def _no_device(facts: MachineFacts) -> Iterator[Note]:
    if not facts.supports_gpu_offload or facts.gpus or facts.integrated_gpus:
        return
    yield Note(
        "no_gpu_device",
        "warning",
        "This build of llama.cpp can use a GPU, but it finds none.",
        "Check that the driver is installed and that the GPU is visible to this user or container.",
    )


def _integrated_gpu(facts: MachineFacts) -> Iterator[Note]:
    if facts.gpus or not facts.integrated_gpus or facts.architecture in ("arm64", "aarch64"):
        return
    yield Note(
        "integrated_gpu",
        "info",
        "The only GPU is built into the processor and shares its memory, so it is hardly faster at single tokens.",
        "Compare n_gpu_layers 0 with the default before you compare drafts.",
    )


def _busy(facts: MachineFacts) -> Iterator[Note]:
    cores = facts.machine_logical_cores
    if facts.load_average is None or facts.load_average < max(0.5, 0.25 * cores):
        return
    busy = f"{facts.load_average:.1f}" if facts.load_average < cores else "all"
    yield Note(
        "high_load",
        "serious" if facts.load_average >= 0.75 * cores else "warning",
        f"Other programs are using {busy} of {cores} cores right now (average of the last minute). "
        "llama.cpp's threads wait for each other in every layer, so one busy program can slow a step many times.",
        "Close them before you measure, or use fewer threads than there are cores.",
    )


def _battery(facts: MachineFacts) -> Iterator[Note]:
    if facts.is_on_battery:
        yield Note(
            "on_battery",
            "warning",
            "The machine runs on battery, where most systems slow the processor and the GPU down.",
            "Plug it in before you measure.",
        )


def _threads(facts: MachineFacts) -> Iterator[Note]:
    if facts.logical_cores > facts.physical_cores:
        yield Note(
            "smt",
            "info",
            f"The {facts.logical_cores} logical processors are {facts.physical_cores} physical cores; "
            "two threads on one core share its arithmetic units.",
            "Leave the number of threads at the number of physical cores, which is the default.",
        )


def _memory(facts: MachineFacts) -> Iterator[Note]:
    free, total = facts.memory_available_bytes, facts.memory_total_bytes
    if total <= 0 or (free >= 0.1 * total and free >= GIB):
        return
    unit, name = memory_scale()[0]
    yield Note(
        "low_memory",
        "serious",
        f"Only {free / unit:.1f} of {total / unit:.1f} {name} of memory are free. A second model may push the first "
        "out, and reading weights from the disk is a hundred times slower.",
        "Close other programs, or use n-gram drafting, which needs no second model.",
    )


def _vectors(facts: MachineFacts) -> Iterator[Note]:
    features = facts.cpu_features
    if features is None or facts.gpus:
        return
    if facts.architecture.lower() in ("x86_64", "amd64"):
        if "AVX2" not in features:
            yield Note(
                "no_avx2",
                "serious",
                "llama.cpp uses no AVX2 here, so arithmetic is several times slower and a check of several tokens "
                "costs as much as that many single steps.",
                "If the processor has AVX2, build llama-cpp-python on this machine with CMAKE_ARGS=-DGGML_NATIVE=on.",
            )
        elif not any(name.startswith("AVX512") for name in features):
            yield Note(
                "no_avx512",
                "info",
                "llama.cpp uses AVX2 but no AVX-512 here; checks of several tokens cost somewhat more.",
                "Nothing, unless the processor has AVX-512: then build with CMAKE_ARGS=-DGGML_NATIVE=on.",
            )
    elif facts.architecture.lower() in ("arm64", "aarch64") and "DOTPROD" not in features:
        yield Note(
            "no_dotprod",
            "warning",
            "llama.cpp uses no dot-product instructions here, so quantised models are slow.",
            "If the processor has them, build llama-cpp-python on this machine with CMAKE_ARGS=-DGGML_NATIVE=on.",
        )


_RULES: tuple[Callable[[MachineFacts], Iterator[Note]], ...] = (
    _few_cores,
    _memory,
    _busy,
    _vectors,
    _no_offload,
    _no_device,
    _battery,
    _integrated_gpu,
    _threads,
)
