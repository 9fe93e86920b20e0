"""Target and draft loaded in this very process, so that drafters that the engine does not have can run too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from localspec.engine.adaptive_pacing import AdaptivePacing
from localspec.engine.drafting.draft_model import DraftModelDrafter
from localspec.engine.drafting.drafter import Drafter
from localspec.engine.events import Event, GenerationStarted, RoundFinished
from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.calibration import calibrate
from localspec.engine.llama.context import LlamaContext
from localspec.engine.llama.generation import Generation
from localspec.engine.llama.library import start_library
from localspec.engine.llama.loading import load
from localspec.engine.pacing_state import to_text
from localspec.engine.requests import Generate
from localspec.engine.values import ContextSettings, Message, SpeculationSettings, SpeculationState


@dataclass(frozen=True, slots=True)
class Run:
    """One generation."""

    prompt: tuple[int, ...]
    rounds: tuple[RoundFinished, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        """Emitted token ids."""
        return tuple(token.id for round_ in self.rounds for token in round_.emitted)

    @property
    def decode_tps(self) -> float:
        """Tokens per second after the first one."""
        return (len(self.tokens) - 1) / (self.rounds[-1].at_s - self.rounds[0].at_s)


class InProcessPair:
    """Two loaded models. Raises LocalspecError where one cannot be loaded; must be closed."""

    def __init__(self, target: Path, draft: Path, n_ctx: int, n_threads: int) -> None:
        start_library()
        abort, settings = AbortFlag(), ContextSettings(n_ctx=n_ctx)
        self._target = load(str(target), settings, n_threads, abort, lambda _: True)
        try:
            self._draft = load(str(draft), settings, n_threads, abort, lambda _: True)
        except BaseException:
            self._target.close()
            raise

    @property
    def target(self) -> LlamaContext:
        """The target's context."""
        return self._target.context

    @property
    def draft(self) -> LlamaContext:
        """The draft's context."""
        return self._draft.context

    def draft_model_drafter(self) -> DraftModelDrafter:
        """Return the engine's own drafter over the draft."""
        return DraftModelDrafter(self.draft, "draft", 0.0)

    def costs(self) -> str:
        """Return what the engine times after loading, as text for AdaptivePacing."""
        return to_text(calibrate(self._target, self._draft, "draft", None))

    def chat_tokens(self, question: str) -> tuple[int, ...]:
        """Return a question's token ids in the target's chat format."""
        text = self._target.chat.render((Message("user", question),))
        return tuple(self._target.chat.tokenize(self._target.model.vocabulary, text))

    def run(
        self,
        drafter: Drafter | None,
        n_max: int,
        prompt: Sequence[int],
        max_tokens: int,
        pacing: AdaptivePacing | None = None,
    ) -> Run:
        """Read a prompt afresh and answer it greedily, end-of-generation tokens banned.

        `pacing` chooses the lengths of drafts; None takes n_max in each round.
        """
        events: list[Event] = []
        self.draft.clear()
        settings = SpeculationSettings("off" if drafter is None else "draft", n_max=n_max)
        state = SpeculationState(drafter is not None, settings.method, "", "", settings)
        generation = Generation(self._target, drafter, state, events.append, perf_counter(), pacing=pacing)
        generation.run(Generate(1, tokens=tuple(prompt), max_tokens=max_tokens, ignore_eog=True, is_fresh=True))
        started = next(event for event in events if isinstance(event, GenerationStarted))
        return Run(started.prompt_tokens, tuple(event for event in events if isinstance(event, RoundFinished)))

    def close(self) -> None:
        """Free both."""
        self._draft.close()
        self._target.close()
