"""From settings to loaded models. Importing it is cheap: the terminal app needs the first half of it at its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.engine.values import ContextSettings, Method, SamplingSettings, SpeculationSettings
from localspec.errors import EngineDiedError, ModelFileError
from localspec.session.figures import GIB
from localspec.settings import Settings

if TYPE_CHECKING:
    from localspec.engine.events import Configured, LoadProgress, ModelsLoaded
    from localspec.engine.interface import Engine
    from localspec.planning.notes import Note

OnLoadProgress = Callable[["LoadProgress"], None]

_OF_THE_DRAFT = {"n_ctx", "n_threads", "n_threads_batch", "n_gpu_layers", "type_k", "type_v"}
"""Settings of the draft group that say how the draft model is loaded, and not how it drafts."""


def context_settings(settings: Settings) -> ContextSettings:
    """Return the context group as the engine takes it."""
    return ContextSettings(**settings.context.model_dump())


def draft_context_settings(settings: Settings) -> ContextSettings:
    """Return the draft model's context as the engine takes it: the target's, but for what is set of its own.

    The experts of a draft stay with its layers: in host memory they would slow every drafted token.
    """
    context, draft = context_settings(settings), settings.draft
    return replace(
        context,
        n_ctx=draft.n_ctx or context.n_ctx,
        n_threads=draft.n_threads or context.n_threads,
        n_threads_batch=draft.n_threads_batch or context.n_threads_batch,
        n_gpu_layers=context.n_gpu_layers if draft.n_gpu_layers is None else draft.n_gpu_layers,
        type_k=draft.type_k or context.type_k,
        type_v=draft.type_v or context.type_v,
        experts_on_cpu=False,
    )


def reserve_bytes(settings: Settings) -> int:
    """Return what memory plans keep free on each device."""
    return int(settings.memory.reserve_gib * GIB)


def sampling_settings(settings: Settings) -> SamplingSettings:
    """Return the sampling group as the engine takes it."""
    return SamplingSettings(**settings.sampling.model_dump())


def speculation_settings(settings: Settings, method: Method) -> SpeculationSettings:
    """Return the draft group as the engine takes it, with the given method in place of its own."""
    own = settings.draft.model_dump(exclude=_OF_THE_DRAFT)
    return SpeculationSettings(**{**own, "method": method})


def measured_speculation(settings: Settings) -> SpeculationSettings:
    """Return the draft group for arms of a comparison, which copy from no earlier answers: those of the runs before
    would be the same ones."""
    return replace(speculation_settings(settings, "off"), remembers=False)


def context_notes(loaded: ModelsLoaded) -> tuple[Note, ...]:
    """Return a note for each loaded model whose context is longer than it was trained for."""
    from localspec.planning.notes import context_note

    models = (("target", loaded.target), ("draft", loaded.draft))
    return tuple(
        note
        for role, info in models
        if info is not None and (note := context_note(role, info.n_ctx, info.n_ctx_train)) is not None
    )


async def load_models(
    engine: Engine,
    target: Path,
    draft: Path | None,
    context: ContextSettings,
    speculation: SpeculationSettings,
    on_progress: OnLoadProgress,
    draft_context: ContextSettings | None = None,
) -> ModelsLoaded:
    """Load a target and perhaps a draft. A draft that fails to load is no error here.

    Args:
        engine: loads them in place of what it has.
        target: a file; likewise the draft.
        draft: None for none.
        context: the target's.
        speculation: in force from the first generation on.
        on_progress: hears how far each file is.
        draft_context: None for one like the target's.

    Raises:
        ModelFileError: one of the files does not exist.
        LocalspecError: the target could not be loaded.
    """
    from localspec.engine.events import EngineFailed, LoadProgress, ModelsLoaded
    from localspec.engine.interface import as_error
    from localspec.engine.requests import LoadModels

    require_files(target, draft)
    request = LoadModels(
        id=engine.next_id(),
        target_path=str(target),
        context=context,
        draft_path="" if draft is None else str(draft),
        draft_context=context if draft_context is None else draft_context,
        speculation=speculation,
    )
    async for event in engine.stream(request):
        if isinstance(event, LoadProgress):
            on_progress(event)
        elif isinstance(event, ModelsLoaded):
            return event
        elif isinstance(event, EngineFailed):
            raise as_error(event)
    raise EngineDiedError("The engine gave no answer to loading.", "Try again; the engine's log file may say more.")


async def change_draft(
    engine: Engine,
    draft: Path | None,
    draft_context: ContextSettings,
    speculation: SpeculationSettings,
    on_progress: OnLoadProgress,
) -> Configured:
    """Put another draft, or none, beside the loaded target, which stays. A draft that fails to load is no error here.

    Args:
        engine: has a target loaded.
        draft: a file; None for no draft.
        draft_context: the draft's.
        speculation: in force from the next generation on.
        on_progress: hears how far the file is.

    Raises:
        LocalspecError: the settings cannot work together; the draft is then as it was.
    """
    from localspec.engine.events import Configured, EngineFailed, LoadProgress
    from localspec.engine.interface import as_error
    from localspec.engine.requests import Configure

    path = "" if draft is None else str(draft)
    request = Configure(engine.next_id(), speculation, draft_path=path, draft_context=draft_context)
    async for event in engine.stream(request):
        if isinstance(event, LoadProgress):
            on_progress(event)
        elif isinstance(event, Configured):
            return event
        elif isinstance(event, EngineFailed):
            raise as_error(event)
    raise EngineDiedError("The engine gave no answer to loading.", "Try again; the engine's log file may say more.")


def require_files(*paths: Path | None) -> None:
    """Check that files are there; None is passed over.

    Raises:
        ModelFileError: one is not.
    """
    for path in paths:
        if path is not None and not _exists(path):
            raise ModelFileError(f"There is no file {path}.", "Check the path; a model is a .gguf file.")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        name = str(path)
        shown = name if len(name) <= 200 else f"{name[:100]} … {name[-50:]}"
        raise ModelFileError(
            f"{shown} cannot be opened: {error.strerror}.", "Check the path and its rights."
        ) from error
