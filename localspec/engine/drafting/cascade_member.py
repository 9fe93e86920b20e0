"""A drafter of a cascade, whose proposals are held against what the target emits, whoever spoke."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from localspec.engine.drafting.cascade_record import AcceptanceRecord, CostRecord, ProposalCounts, num_common
from localspec.engine.drafting.drafter import Draft, Drafter, GoOn
from localspec.engine.model import Progress

_NOTHING = Draft((), "silent")


class CascadeMember:
    """A drafter that remembers what it proposed until it hears what the target emitted.

    How much of a proposal the target emitted is seen by comparing the two. So it does not matter whether the proposal
    was used, cut or left, and a draft model keeps just the cells of its cache that are right.
    """

    def __init__(self, drafter: Drafter, clock: Callable[[], float], keeps_record: bool = True) -> None:
        """Take a drafter, which is closed with the member, and a clock in seconds.

        Args:
            drafter: which proposes.
            clock: seconds.
            keeps_record: whether its chances and costs are recorded; whoever judges by own measures needs none.
        """
        self._keeps_record = keeps_record
        self._drafter = drafter
        self._clock = clock
        self._proposal = _NOTHING
        self._started_s = self._proposed_s = 0.0
        self.acceptance = AcceptanceRecord()
        self.costs = CostRecord()
        self.counts = ProposalCounts(drafter.name)

    @property
    def name(self) -> str:
        """What screens and reports call it."""
        return self._drafter.name

    @property
    def num_unseen(self) -> int:
        """As the drafter says."""
        return self._drafter.num_unseen

    @property
    def is_free(self) -> bool:
        """As the drafter says."""
        return self._drafter.is_free

    @property
    def has_proposed(self) -> bool:
        """Whether it was asked since the target last emitted something."""
        return bool(self._proposal.tokens)

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        """Start over with a text; what is known of its chances stays."""
        self._proposal = _NOTHING
        self._drafter.begin(prompt, progress)

    def forget(self) -> None:
        """Keep nothing of earlier texts; what is known of its chances stays."""
        self._proposal = _NOTHING
        self._drafter.forget()

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        """Propose, and remember it."""
        self._started_s = self._clock()
        self._proposal = _NOTHING
        self._proposal = self._drafter.draft(limit, go_on)
        self._proposed_s = self._clock()
        return self._proposal

    def observe(self, tokens: Sequence[int], num_accepted: int = 0) -> None:
        """Hear what the target emitted; `num_accepted` is not needed, and may be another drafter's."""
        proposal, self._proposal = self._proposal, _NOTHING
        num_right = 0
        if not self._keeps_record:
            num_right = num_common(proposal.tokens, tokens)
        elif proposal.tokens and tokens:
            num_reached, num_right = self.acceptance.learn(proposal, tokens)
            self.costs.learn(num_right, self._proposed_s - self._started_s, self._clock() - self._proposed_s)
            counts = self.counts
            self.counts = ProposalCounts(
                counts.name,
                counts.num_rounds + 1,
                counts.num_drafted + num_reached,
                counts.num_accepted + num_right,
            )
        self._drafter.observe(tokens, num_right)

    def close(self) -> None:
        """Close the drafter."""
        self._drafter.close()
