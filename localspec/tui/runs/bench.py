"""A profile laid on the workbench."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.engine.values import ContextSettings, SamplingSettings
from localspec.errors import UsageError
from localspec.methods import needs_draft, takes_draft
from localspec.tui.state import ChosenModel, KindSettings, Workbench

if TYPE_CHECKING:
    from localspec.session.profiles import NamedProfile, ProfileModel


def bench_of(profile: NamedProfile, bench: Workbench) -> Workbench:
    """Return the workbench with a profile's models, method and settings; what a profile has no say in stays.

    Raises:
        UsageError: a model file of the profile is gone.
    """
    from localspec.session.kind_drafting import drafting_of, settings_by_kind

    document = profile.document
    for role, model in profile.models:
        if not _is_file(model.path):
            raise UsageError(
                f"The profile's {role} is gone: there is no file {model.path}.",
                "Put it back, or save the profile anew from another run.",
            )
    context = ContextSettings(**document.context.model_dump())
    usual, by_kind = drafting_of(document.speculation), settings_by_kind(document.by_workload)
    own = document.draft_context
    has_draft = takes_draft(document.methods) and document.draft is not None
    kinds = tuple((kind, one) for kind, one in by_kind.items() if has_draft or not needs_draft((one.method,)))
    return replace(
        bench,
        target=_chosen(document.target),
        draft=_chosen(document.draft) if has_draft and document.draft is not None else None,
        speculation=usual,
        context=context,
        draft_context=replace(
            context, **({} if own is None else own.model_dump(exclude_none=True)), experts_on_cpu=False
        ),
        sampling=SamplingSettings(**document.sampling.model_dump()),
        is_forced=False,
        kinds=KindSettings(kinds, usual, Path(document.target.path)) if kinds else None,
    )


def _chosen(model: ProfileModel) -> ChosenModel:
    # A profile names the file; everywhere else in the app a model is called without the end of it.
    return ChosenModel(model.name.removesuffix(".gguf"), Path(model.path))


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False
