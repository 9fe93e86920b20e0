"""The engine in this process, for tests that want its insides: models, drafters of their own, and answers as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from localspec.engine.drafting.drafter import Draft, Drafter, GoOn
from localspec.engine.events import Event, GenerationFinished, GenerationStarted, PrefillProgress, RoundFinished
from localspec.engine.llama import library
from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.generation import Generation
from localspec.engine.llama.loading import LoadedModel, load
from localspec.engine.llama.runtime import Runtime
from localspec.engine.requests import Generate
from localspec.engine.values import ContextSettings, SpeculationSettings, SpeculationState
from tests.toys import PlacedDrafter

PAIR_N_CTX = 512
"""Context of the SmolLM2 pair."""

SMALL = ContextSettings(n_ctx=256, n_batch=64, n_ubatch=64, n_threads=1)


@dataclass(frozen=True, slots=True)
class Answer:
    """The events of one generation."""

    events: tuple[Event, ...]

    @property
    def started(self) -> GenerationStarted:
        return next(event for event in self.events if isinstance(event, GenerationStarted))

    @property
    def rounds(self) -> list[RoundFinished]:
        return [event for event in self.events if isinstance(event, RoundFinished)]

    @property
    def prefills(self) -> list[PrefillProgress]:
        return [event for event in self.events if isinstance(event, PrefillProgress)]

    @property
    def finished(self) -> GenerationFinished:
        last = self.events[-1]
        assert isinstance(last, GenerationFinished)
        return last

    @property
    def ids(self) -> list[int]:
        return [token.id for done in self.rounds for token in done.emitted]

    @property
    def text(self) -> str:
        shown = "".join(token.text for done in self.rounds for token in done.emitted)
        return shown + self.finished.tail_text

    @property
    def num_accepted(self) -> int:
        return sum(done.num_accepted for done in self.rounds)


def load_model(path: Path, settings: ContextSettings = SMALL, abort: AbortFlag | None = None) -> LoadedModel:
    library.start_library()
    return load(str(path), settings, 1, abort or AbortFlag(), lambda fraction: True)


def generate(
    target: LoadedModel,
    request: Generate,
    drafter: Drafter | None = None,
    speculation: SpeculationSettings | None = None,
    on_event: Sequence[object] = (),
) -> Answer:
    """Run a request with a drafter of the test's own."""
    events: list[Event] = []
    settings = speculation or SpeculationSettings(method="draft" if drafter else "off")
    name = drafter.name if drafter else ""
    state = SpeculationState(drafter is not None, settings.method, name, "", settings)

    def emit(event: Event) -> None:
        events.append(event)
        for listener in on_event:
            assert callable(listener)
            listener(event)

    Generation(target, drafter, state, emit, perf_counter()).run(request)
    return Answer(tuple(events))


class KnownText(PlacedDrafter):
    """A drafter that knows what the target will emit, and is right with each token but every `wrong_every`-th."""

    def __init__(self, emitted: Sequence[int], wrong_every: int = 0, wrong_token: int = 5) -> None:
        super().__init__("known text")
        self._emitted = tuple(emitted)
        self._wrong_every = wrong_every
        self._wrong_token = wrong_token

    @property
    def is_free(self) -> bool:
        return False

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        tokens = list(self._emitted[self.position : self.position + limit])
        for index in range(len(tokens)):
            if self._wrong_every and (self.position + index) % self._wrong_every == 0:
                tokens[index] = self._wrong_token
        return Draft(tuple(tokens), "n_max")


class RuntimeKit:
    """A Runtime and everything that it has emitted."""

    def __init__(self) -> None:
        library.start_library()
        self.events: list[Event] = []
        self.abort = AbortFlag()
        self.runtime = Runtime(self.events.append, self.abort, 1)

    def generate(self, request: Generate) -> Answer:
        del self.events[:]
        self.runtime.generate(request, perf_counter())
        return Answer(tuple(self.events))
