"""Several drafters in order: those that cost nothing where they have much to say, else the draft model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

from localspec.engine.drafting.cascade_member import CascadeMember
from localspec.engine.drafting.cascade_record import ProposalCounts
from localspec.engine.drafting.drafter import Draft, Drafter, GoOn
from localspec.engine.model import Progress


class CascadeDrafter:
    """Asks its members in turn, and lets one speak that promises at least as many tokens a second as the last one.

    The last member is the draft model, if there is one. With E tokens accepted of a free draft, by what became of
    earlier ones with a match of that length, a round gives 1 + E tokens in the time of a verification. The draft
    model's rounds gave 1 + M tokens in r times of it. The free draft speaks if 1 + E >= (1 + M) / r. That both
    verifications take equally long is assumed: with a fixed length nothing better is known. Where speaking
    is chosen by measured costs (adaptive pacing), `members` are asked directly instead of `draft`.

    A free member's proposal is held against what the target emitted even where another spoke, so a silent one is heard
    again as soon as its proposals come true. A draft model that was not asked reads what it has missed in one
    batch when it is.
    """

    def __init__(
        self,
        members: Sequence[Drafter],
        n_min: int = 0,
        clock: Callable[[], float] = perf_counter,
        keeps_record: bool = True,
    ) -> None:
        """Take the drafters, free ones first.

        Args:
            members: at least one, with different names; they are closed with the cascade.
            n_min: shorter drafts of a free member do not count, since they would be thrown away.
            clock: seconds.
            keeps_record: False where the members are asked directly by adaptive pacing, which has measures of its own.
        """
        if not members:
            raise ValueError("a cascade needs a drafter")
        self._members = tuple(CascadeMember(member, clock, keeps_record) for member in members)
        self._n_min = n_min

    @property
    def members(self) -> tuple[CascadeMember, ...]:
        """The drafters, to be asked directly by those who choose for themselves; never to be told, begun or closed."""
        return self._members

    @property
    def counts(self) -> tuple[ProposalCounts, ...]:
        """What became of each member's proposals, in order."""
        return tuple(member.counts for member in self._members)

    @property
    def name(self) -> str:
        """The members' names."""
        return " + ".join(member.name for member in self._members)

    @property
    def num_unseen(self) -> int:
        """Tokens that the models among the members must read before their first proposals."""
        return sum(member.num_unseen for member in self._members)

    @property
    def is_free(self) -> bool:
        """Whether all members are."""
        return all(member.is_free for member in self._members)

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        """Begin with all members."""
        for member in self._members:
            member.begin(prompt, None if member.is_free else progress)

    def forget(self) -> None:
        """Keep nothing of earlier texts."""
        for member in self._members:
            member.forget()

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        """Return the draft of the first member that may speak; where none may, of the first that has something."""
        left: Draft | None = None
        draft = Draft((), "silent")
        for index, member in enumerate(self._members):
            draft = self.draft_by(index, limit, go_on)
            if draft.tokens and (not member.is_free or self._may_speak(index, draft)):
                return draft
            if draft.tokens and left is None:
                left = draft
        return left or draft

    def draft_by(self, index: int, limit: int, go_on: GoOn | None = None) -> Draft:
        """Return a member's draft, with its name."""
        member = self._members[index]
        return replace(member.draft(limit, go_on), drafter=member.name)

    def shadow(self, limit: int) -> None:
        """Let free members that were not asked in this round propose for the record alone."""
        for member in self._members:
            if member.is_free and not member.has_proposed:
                member.draft(limit)

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        """Tell all members; each finds out by itself what of its own proposal came true."""
        for member in self._members:
            member.observe(tokens)

    def close(self) -> None:
        """Close all members."""
        for member in self._members:
            member.close()

    def _may_speak(self, index: int, draft: Draft) -> bool:
        last = self._members[-1]
        if last.is_free:
            return True
        if len(draft.tokens) < self._n_min:
            return False
        expected = self._members[index].acceptance.expected_accepted(draft)
        return 1.0 + expected >= (1.0 + last.costs.mean_accepted) / last.costs.relative_s
