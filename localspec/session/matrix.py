"""Which quantisations of a model fit with which contexts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from localspec.errors import EngineDiedError, LocalspecError
from localspec.planning.devices import PlanDevice
from localspec.planning.fitting import Fitting, at_context
from localspec.planning.plan import Wishes
from localspec.planning.search import most_layers
from localspec.session.footprints import ProbeEngine

CONTEXTS = (4096, 8192, 16384, 32768, 65536, 131072)

MAX_MODELS = 16
"""Quantisations whose headers are read for one table."""

OpenModel = Callable[[], Awaitable[Path]]
"""Gets a model's header and returns where it is."""

Cell = Literal["fits", "partial", "-", "?"]
"""All on GPUs (or in host memory without any), part of it in host memory, not at all; `?` could not be said."""


@dataclass(frozen=True, slots=True)
class MatrixModel:
    """One quantisation."""

    label: str
    size_bytes: int
    """Of its files."""
    open: OpenModel


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """What is possible with one quantisation."""

    label: str
    size_bytes: int
    cells: tuple[Cell, ...]
    """One for each context of the table; less where the model was trained for less."""
    failure: str = ""
    """Why nothing can be said; empty otherwise."""


OnRow = Callable[[str, float], None]


def contexts_up_to(n_ctx_train: int) -> tuple[int, ...]:
    """Return the usual columns that a model is trained for; its own context if that is shorter than all of them."""
    if n_ctx_train <= 0:
        return CONTEXTS
    return tuple(n_ctx for n_ctx in CONTEXTS if n_ctx <= n_ctx_train) or (n_ctx_train,)


async def fit_matrix(
    probe: ProbeEngine,
    devices: Sequence[PlanDevice],
    models: Sequence[MatrixModel],
    draft: Path | None,
    wishes: Wishes,
    contexts: Sequence[int] = CONTEXTS,
    on_progress: OnRow = lambda text, fraction: None,
) -> tuple[MatrixRow, ...]:
    """Return a row for each model, in order. One that cannot be read is a row with its reason.

    Args:
        probe: measures on these devices.
        devices: where it is to fit.
        models: each header is read at most once; one whose files are larger than all memory is not read.
        draft: a draft model that is to fit beside; None for none.
        wishes: for every cell but its context.
        contexts: the columns, rising.
        on_progress: hears which quantisation is looked at.
    """
    room = _room(devices)
    rows: list[MatrixRow] = []
    for index, model in enumerate(models):
        on_progress(f"measuring {model.label}", index / len(models))
        if model.size_bytes > room:
            rows.append(MatrixRow(model.label, model.size_bytes, _all("-", contexts)))
            continue
        try:
            fitting = Fitting(devices, probe.measure(await model.open(), draft))
            rows.append(MatrixRow(model.label, model.size_bytes, await _cells(fitting, wishes, contexts)))
        except EngineDiedError:
            raise
        except LocalspecError as error:
            rows.append(MatrixRow(model.label, model.size_bytes, _all("?", contexts), error.message))
    return tuple(rows)


async def _cells(fitting: Fitting, wishes: Wishes, contexts: Sequence[int]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    best: Cell = "fits"
    for n_ctx in contexts:
        # More context never needs less, so a column is no better than the one before.
        best = await _cell(fitting, at_context(wishes, n_ctx), best)
        cells.append(best)
    return tuple(cells)


async def _cell(fitting: Fitting, wishes: Wishes, at_best: Cell) -> Cell:
    if at_best == "-":
        return "-"
    whole = await fitting.trial(wishes)
    if whole.fits:
        return "fits"
    if whole.gpus_fit or not fitting.has_gpu or wishes.target.n_gpu_layers >= 0:
        return "-"
    choices = [wishes]
    if whole.footprint.target.num_experts:
        choices.insert(0, replace(wishes, target=replace(wishes.target, experts_on_cpu=True)))
    for choice in choices:
        trial = await fitting.trial(choice)
        if not trial.fits and not trial.gpus_fit:
            choice = await most_layers(fitting, choice, "target", trial)
            trial = await fitting.trial(choice)
        if trial.fits:
            return "partial"
    return "-"


def _all(cell: Cell, contexts: Sequence[int]) -> tuple[Cell, ...]:
    return tuple(cell for _ in contexts)


def _room(devices: Sequence[PlanDevice]) -> int:
    """Return the budget of all devices together; memory that a GPU shares with the host counts once."""
    return sum(device.budget_bytes for device in devices if not device.shares_host_memory)
