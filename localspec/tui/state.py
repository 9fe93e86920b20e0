"""What the whole app knows, as frozen values: changing something means replacing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings

if TYPE_CHECKING:
    from localspec.engine.events import ModelsLoaded
    from localspec.engine.values import SpeculationState


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A local model that was chosen as target or draft."""

    name: str
    """As `localspec models` calls it."""
    path: Path


@dataclass(frozen=True, slots=True)
class KindSettings:
    """A way of drafting for each of some kinds of text, as a profile brought them."""

    by_kind: tuple[tuple[str, SpeculationSettings], ...]
    """(kind as in session/workload_kind.py, how to draft)."""
    usual: SpeculationSettings
    """The profile's own for all others."""
    target: Path
    """The profile's."""


@dataclass(frozen=True, slots=True)
class Workbench:
    """What is on the bench: the models, and how they are to run. Every screen reads it, and may replace it."""

    target: ChosenModel | None = None
    draft: ChosenModel | None = None
    speculation: SpeculationSettings = field(default_factory=SpeculationSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    draft_context: ContextSettings = field(default_factory=ContextSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    max_tokens: int = 1024
    """Of an answer in the chat."""
    is_forced: bool = False
    """Load what the memory plan says does not fit."""
    kinds: KindSettings | None = None
    """What a profile says for kinds of text; see tui/kinds.py for when that counts."""


@dataclass(frozen=True, slots=True)
class EngineState:
    """What the engine really has, as it said itself, and what it is doing."""

    loaded: ModelsLoaded | None = None
    loaded_for: Workbench | None = None
    """The bench for which that was loaded; None while nothing is."""
    speculation: SpeculationState | None = None
    """The drafter in force; None while nothing is loaded."""
    kind: str = ""
    """Of text, that this way of drafting is for; empty where it is for all."""
    busy: str = ""
    """What is going on, in a few words: `loading`, `answering`, `comparing`; empty when idle."""
    failure: str = ""
    """Why the engine has died or could not load, in one sentence; empty when all is well."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How the app was started."""

    is_demo: bool = False
    """On the embedded models."""
    replay: Path | None = None
    """A recorded session instead of an engine."""
    workbench: Workbench | None = None
    """To begin with; None for what was left the last time."""
    screen: str = ""
    """To begin with; empty for the one that was left."""
    questions: tuple[str, ...] = ()
    """Put into the prompt one after the other, since they were recorded with their answers."""
