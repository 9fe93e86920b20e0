"""The workbench as the settings have it, and what a change of settings makes of one that is in use."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.session.loading import (
    context_settings,
    draft_context_settings,
    sampling_settings,
    speculation_settings,
)
from localspec.settings import Settings
from localspec.tui.state import Workbench

PARTS = ("speculation", "sampling", "context", "draft_context")
"""What of a workbench the settings say."""

Part = TypeVar("Part", SpeculationSettings, SamplingSettings, ContextSettings)


def bench_of(settings: Settings) -> Workbench:
    """Return a workbench without models."""
    return Workbench(
        speculation=speculation_settings(settings, settings.draft.method),
        sampling=sampling_settings(settings),
        context=context_settings(settings),
        draft_context=draft_context_settings(settings),
    )


def carried_over(bench: Workbench, before: Settings, after: Settings) -> Workbench:
    """Return a workbench with what has changed in the settings. What was set on the bench itself stays."""
    old, new = bench_of(before), bench_of(after)
    return replace(
        bench,
        speculation=_merged(bench.speculation, old.speculation, new.speculation),
        sampling=_merged(bench.sampling, old.sampling, new.sampling),
        context=_merged(bench.context, old.context, new.context),
        draft_context=_merged(bench.draft_context, old.draft_context, new.draft_context),
    )


def _merged(own: Part, old: Part, new: Part) -> Part:
    names = [field.name for field in fields(own)]
    changed = {name: getattr(new, name) for name in names if getattr(new, name) != getattr(old, name)}
    return replace(own, **changed)
