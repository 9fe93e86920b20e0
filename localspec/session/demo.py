"""The demo's models: copies of one small embedded model that llama.cpp makes once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localspec.catalog.embedded import (
    DEMO_DRAFT,
    DEMO_PRUNED_DRAFT,
    DEMO_TARGET,
    DerivedModel,
    demo_dir,
    find_smollm2,
)
from localspec.engine.events import EngineFailed, Quantized, QuantizeProgress
from localspec.engine.interface import Engine, as_error
from localspec.engine.requests import Quantize
from localspec.errors import EngineDiedError


@dataclass(frozen=True, slots=True)
class PreparationProgress:
    """How much of a copy is written."""

    title: str
    num_done: int
    num_total: int
    """Tensors; 0 before the first."""


@dataclass(frozen=True, slots=True)
class DemoModels:
    """Where the demo's models lie."""

    target: Path
    draft: Path
    pruned_draft: Path | None
    """None unless it was asked for."""


OnPreparation = Callable[[PreparationProgress], None]


async def prepare_demo_models(
    engine: Engine,
    on_progress: OnPreparation,
    source: Path | None = None,
    folder: Path | None = None,
    with_pruned: bool = False,
) -> DemoModels:
    """Return the demo's models, and make the copies that are not cached yet.

    Args:
        engine: makes the copies.
        on_progress: called as tensors are written; not called for a copy that exists.
        source: the embedded model; by default the one that is installed.
        folder: where the copies are kept; by default the cache folder's `demo`.
        with_pruned: also make the copy with fewer layers.

    Raises:
        ModelFileError: the embedded model is not installed.
        LocalspecError: a copy could not be made.
    """
    source = find_smollm2() if source is None else source
    folder = demo_dir() if folder is None else folder
    target = await _prepare(engine, source, folder, DEMO_TARGET, on_progress)
    draft = await _prepare(engine, source, folder, DEMO_DRAFT, on_progress)
    pruned = await _prepare(engine, source, folder, DEMO_PRUNED_DRAFT, on_progress) if with_pruned else None
    return DemoModels(target, draft, pruned)


async def _prepare(engine: Engine, source: Path, folder: Path, model: DerivedModel, on_progress: OnPreparation) -> Path:
    path = folder / model.file_name
    # The engine renames a copy into place when it is complete, so one that is there is whole.
    if path.is_file():
        return path
    on_progress(PreparationProgress(model.title, 0, 0))
    request = Quantize(
        id=engine.next_id(),
        source_path=str(source),
        destination_path=str(path),
        quantisation=model.quantisation,
        prune_layers=model.prune_layers,
    )
    async for event in engine.stream(request):
        if isinstance(event, QuantizeProgress):
            on_progress(PreparationProgress(model.title, event.num_done, event.num_total))
        elif isinstance(event, Quantized):
            return path
        elif isinstance(event, EngineFailed):
            raise as_error(event)
    raise EngineDiedError("The engine gave no answer to copying a model.", "Try again; its log file may say more.")
