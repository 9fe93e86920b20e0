"""What loaded models really take, beside what was planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from localspec.planning.devices import HOST
from localspec.session.fit import plan_record
from localspec.session.journal import write_note
from localspec.units import memory_scale

if TYPE_CHECKING:
    from localspec.engine.events import ModelsLoaded
    from localspec.planning.footprint import Footprint, MemoryRow, ModelRole, PairFootprint
    from localspec.planning.plan import MemoryPlan, PlanRow
    from localspec.session.load_plan import LoadPlan

TOLERANCE = 0.01
"""A difference up to this share is none."""

LEAST_BYTES = 100 << 10
"""Nor is one up to this size: some of llama.cpp's own figures are rounded to hundredths of a MiB."""

Part = Literal["weights", "kv", "recurrent", "compute", "output"]

_WORDS: dict[Part, str] = {
    "weights": "weights",
    "kv": "KV cache",
    "recurrent": "state",
    "compute": "compute buffer",
    "output": "output buffer",
}

_MAPPED = "Mapped"
"""Part of the names of llama.cpp's buffers over a mapped file outside host memory."""


@dataclass(frozen=True, slots=True)
class MemoryDifference:
    """Something that takes other memory than planned."""

    device: str
    model: ModelRole
    part: Part
    planned_bytes: int
    real_bytes: int

    def __str__(self) -> str:
        unit, name = memory_scale()[1]
        return (
            f"The {self.model}'s {_WORDS[self.part]} on {self.device} takes {self.real_bytes / unit:.1f} {name} "
            f"where {self.planned_bytes / unit:.1f} {name} were planned."
        )


def differences(plan: MemoryPlan, real: PairFootprint, use_mmap: bool) -> tuple[MemoryDifference, ...]:
    """Return where real contexts take more than 1 % more or less than planned.

    Weights in a mapped file are left out: whole pages of the file count there, and none need be in memory.
    """
    found: list[MemoryDifference] = []
    models: tuple[tuple[ModelRole, Footprint | None], ...] = (("target", real.target), ("draft", real.draft))
    for role, footprint in models:
        if footprint is None:
            continue
        planned_rows = [row for row in plan.rows if row.model == role]
        devices = {row.device for row in planned_rows} | {row.device for row in footprint.rows}
        for device in sorted(devices):
            planned = _sums(row for row in planned_rows if row.device == device)
            taken = _sums(row for row in footprint.rows if row.device == device)
            if use_mmap and _is_mapped(device, footprint):
                del planned["weights"]
            found += [
                MemoryDifference(device, role, part, size, taken[part])
                for part, size in planned.items()
                if abs(taken[part] - size) > max(LEAST_BYTES, TOLERANCE * max(size, taken[part]))
            ]
    return tuple(found)


def check_use(load: LoadPlan, loaded: ModelsLoaded, log: Callable[[str], None] = write_note) -> tuple[str, ...]:
    """Return a sentence on each difference between plan and reality, having logged it."""
    if load.plan is None or loaded.footprint is None:
        return ()
    found = differences(load.plan, loaded.footprint, load.context.use_mmap)
    sentences = tuple(str(difference) for difference in found)
    for sentence in sentences:
        log(f"Other memory than planned for {loaded.target.path}: {sentence}")
    return sentences


def memory_record(load: LoadPlan | None, loaded: ModelsLoaded) -> dict[str, Any]:
    """Return plan and reality as JSON has them; null for what is not known."""
    plan, real = None if load is None else load.plan, loaded.footprint
    rows = [] if real is None else [*_rows("target", real.target), *_rows("draft", real.draft)]
    return {
        "plan": None if plan is None else plan_record(plan),
        "real": None
        if real is None
        else {"rows": rows, "is_exact": real.target.is_exact and (real.draft is None or real.draft.is_exact)},
    }


def used_lines(plan: MemoryPlan | None, loaded: ModelsLoaded) -> tuple[tuple[str, int | None, int | None], ...]:
    """Return for each device what is planned and what is really taken; None where it is not known."""
    real = loaded.footprint
    planned: dict[str, int] = {}
    taken: dict[str, int] = {}
    for row in () if plan is None else plan.rows:
        planned[row.device] = planned.get(row.device, 0) + row.total_bytes
    for footprint in () if real is None else (real.target, real.draft):
        for one in () if footprint is None else footprint.rows:
            taken[one.device] = taken.get(one.device, 0) + one.total_bytes
    names = dict.fromkeys((*planned, *taken))
    return tuple(
        (
            name,
            None if plan is None else planned.get(name, 0),
            None if real is None else taken.get(name, 0),
        )
        for name in names
    )


def file_pages(load: LoadPlan, loaded: ModelsLoaded) -> dict[str, int]:
    """Return by device the bytes of mapped weights beyond those that were planned.

    llama.cpp counts all pages of a mapped file, those of weights among them of which it made repacked copies, and of
    the gaps. A plan has only what must be in memory.
    """
    plan, real = load.plan, loaded.footprint
    if plan is None or real is None or not load.context.use_mmap:
        return {}
    pages: dict[str, int] = {}
    models: tuple[tuple[ModelRole, Footprint | None], ...] = (("target", real.target), ("draft", real.draft))
    for role, footprint in models:
        for device in () if footprint is None else dict.fromkeys(row.device for row in footprint.rows):
            if footprint is None or not _is_mapped(device, footprint):
                continue
            taken = _sums(row for row in footprint.rows if row.device == device)
            planned = _sums(row for row in plan.rows if row.device == device and row.model == role)
            pages[device] = pages.get(device, 0) + max(0, taken["weights"] - planned["weights"])
    return pages


def _is_mapped(device: str, footprint: Footprint) -> bool:
    """Whether a device's weights are pages of a mapped file, in host memory or in a GPU's buffer over them."""
    return device == HOST or any(_MAPPED in row.buffer for row in footprint.rows if row.device == device)


def _rows(role: ModelRole, footprint: Footprint | None) -> list[dict[str, Any]]:
    return [] if footprint is None else [{"model": role, **asdict(row)} for row in footprint.rows]


def _sums(rows: Iterable[PlanRow | MemoryRow]) -> dict[Part, int]:
    sums: dict[Part, int] = dict.fromkeys(_WORDS, 0)
    for row in rows:
        sums["weights"] += row.weights_bytes
        sums["kv"] += row.kv_bytes
        sums["recurrent"] += row.recurrent_bytes
        sums["compute"] += row.compute_bytes
        sums["output"] += row.output_bytes
    return sums
