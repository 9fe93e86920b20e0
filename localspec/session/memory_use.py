"""What loaded models really take, beside what was planned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from localspec.engine.events import ModelsLoaded
from localspec.planning.footprint import Footprint, ModelRole, PairFootprint
from localspec.planning.plan import MemoryPlan
from localspec.session.fit import plan_record
from localspec.session.journal import write_note

TOLERANCE = 0.01
"""A difference up to this share is none."""

_PARTS = ("weights", "kv", "recurrent", "compute", "output")
_WORDS = {"weights": "weights", "kv": "KV cache", "recurrent": "state", "compute": "compute", "output": "output"}
_MAPPED = "Mapped"
"""Part of the names of llama.cpp's buffers over a mapped file, whose pages are counted in full and read on demand."""


@dataclass(frozen=True, slots=True)
class MemoryDifference:
    """Something that takes other memory than planned."""

    device: str
    model: ModelRole
    part: str
    """`weights`, `kv`, `recurrent`, `compute` or `output`."""
    planned_bytes: int
    real_bytes: int

    def __str__(self) -> str:
        mib = 1024 * 1024
        return (
            f"The {self.model}'s {_WORDS[self.part]} on {self.device} takes {self.real_bytes / mib:.1f} MiB "
            f"where {self.planned_bytes / mib:.1f} MiB were planned."
        )


def differences(plan: MemoryPlan, real: PairFootprint) -> tuple[MemoryDifference, ...]:
    """Return where real contexts take more than 1 % more or less than planned.

    Weights in a mapped file are left out: whole pages of the file count there, and none need be in memory.
    """
    found: list[MemoryDifference] = []
    for role, footprint in (("target", real.target), ("draft", real.draft)):
        if footprint is None:
            continue
        is_mapped = any(_MAPPED in row.buffer for row in footprint.rows)
        devices = {row.device for row in footprint.rows}
        devices |= {row.device for row in plan.rows if row.model == role}
        for device in sorted(devices):
            for part in _PARTS:
                if part == "weights" and is_mapped:
                    continue
                planned = sum(_part(row, part) for row in plan.rows if row.model == role and row.device == device)
                taken = sum(_part(row, part) for row in footprint.rows if row.device == device)
                if abs(taken - planned) > TOLERANCE * max(planned, taken):
                    found.append(MemoryDifference(device, role, part, planned, taken))  # type: ignore[arg-type]
    return tuple(found)


def check_use(
    plan: MemoryPlan | None, loaded: ModelsLoaded, log: Callable[[str], None] = write_note
) -> tuple[str, ...]:
    """Return a sentence on each difference between plan and reality, having logged it."""
    real = loaded.footprint
    if plan is None or real is None:
        return ()
    sentences = tuple(str(difference) for difference in differences(plan, real))
    for sentence in sentences:
        log(f"Other memory than planned for {loaded.target.path}: {sentence}")
    return sentences


def memory_record(plan: MemoryPlan | None, loaded: ModelsLoaded) -> dict[str, Any]:
    """Return plan and reality as JSON has them; null for what is not known."""
    real = loaded.footprint
    return {
        "plan": None if plan is None else plan_record(plan),
        "real": None
        if real is None
        else {
            "rows": [
                *_rows("target", real.target),
                *([] if real.draft is None else _rows("draft", real.draft)),
            ],
            "is_exact": real.target.is_exact and (real.draft is None or real.draft.is_exact),
        },
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


def _rows(role: ModelRole, footprint: Footprint) -> list[dict[str, Any]]:
    return [{"model": role, **asdict(row), "is_mapped": _MAPPED in row.buffer} for row in footprint.rows]


def _part(row: Any, part: str) -> int:
    value = getattr(row, f"{part}_bytes")
    return int(value)
