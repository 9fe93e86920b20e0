"""A profile laid on the workbench."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.errors import UsageError
from localspec.methods import takes_draft
from localspec.tui.state import ChosenModel, Workbench

if TYPE_CHECKING:
    from localspec.session.profiles import NamedProfile, ProfileModel


def bench_of(profile: NamedProfile, bench: Workbench) -> Workbench:
    """Return the workbench with a profile's models, method and settings; what a profile has no say in stays.

    Raises:
        UsageError: a model file of the profile is gone.
    """
    document = profile.document
    for role, model in profile.models:
        if not _is_file(model.path):
            raise UsageError(
                f"The profile's {role} is gone: there is no file {model.path}.",
                "Put it back, or save the profile anew from another run.",
            )
    context = ContextSettings(**document.context.model_dump())
    own = document.draft_context
    drafting = document.speculation
    names = {field.name for field in fields(SpeculationSettings)} & set(type(drafting).model_fields)
    has_draft = takes_draft((drafting.method,)) and document.draft is not None
    return replace(
        bench,
        target=_chosen(document.target),
        draft=_chosen(document.draft) if has_draft and document.draft is not None else None,
        speculation=SpeculationSettings(**{name: getattr(drafting, name) for name in names}),
        context=context,
        draft_context=replace(context, **({} if own is None else own.model_dump()), experts_on_cpu=False),
        sampling=SamplingSettings(**document.sampling.model_dump()),
        is_forced=False,
    )


def _chosen(model: ProfileModel) -> ChosenModel:
    return ChosenModel(model.name, Path(model.path))


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False
