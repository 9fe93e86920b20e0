"""A draft model that draws from its distribution while an answer is verified by ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from localspec.engine.dice import SeededDice
from localspec.engine.drafting.draft_model import DraftModelDrafter, Drawing
from localspec.engine.llama.context import LlamaContext
from localspec.engine.llama.sampler import LlamaSampler
from localspec.engine.values import SamplingSettings, SpeculationSettings

_TOP_K = 40


@dataclass(frozen=True, slots=True)
class DrawnDraft:
    """The draft model's drafter, alone or within a cascade, and its context."""

    drafter: DraftModelDrafter
    context: LlamaContext

    @contextmanager
    def drawing(
        self,
        sampling: SamplingSettings,
        speculation: SpeculationSettings,
        prompt: Sequence[int],
        n_vocab: int,
        banned: Sequence[int],
    ) -> Iterator[None]:
        """Let the drafter draw within the block, if the verification makes use of it.

        The draft goes through the user's own chain at its own temperature, for what the target never draws is not worth
        proposing; only a grammar is left out for its cost, and of a whole vocabulary the first 40.

        Args:
            sampling: the user's.
            speculation: the verification and the draft's temperature.
            prompt: its last tokens count for the penalties.
            n_vocab: the target's number of ids; others are never proposed.
            banned: ids that the target never draws.
        """
        temperature = speculation.draft_temperature if speculation.draft_temperature >= 0.0 else sampling.temperature
        if speculation.verification == "exact" or sampling.temperature <= 0.0 or temperature <= 0.0:
            yield
            return
        settings = replace(sampling, temperature=temperature, top_k=sampling.top_k or _TOP_K, grammar="")
        without = {*(token for token in banned if token < self.context.n_vocab), *range(n_vocab, self.context.n_vocab)}
        sampler = LlamaSampler(self.context, settings, prompt, sorted(without))
        self.drafter.draw(Drawing(sampler, SeededDice(sampling.seed, "draft")))
        try:
            yield
        finally:
            self.drafter.draw(None)
            sampler.close()
