"""Adaptive draft length: each round the drafter and the length, 0 included, of the most expected tokens per second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

from localspec.engine.acceptance_model import confidence_cell
from localspec.engine.cost_model import StepCosts
from localspec.engine.drafter_belief import DrafterBelief
from localspec.engine.drafting.drafter import Draft, Drafter
from localspec.engine.loss_budget import LossBudget
from localspec.engine.pacing import Outcome, check_speculation
from localspec.engine.pacing_state import MOST_DRAFTERS, PacingState, from_text, to_text
from localspec.engine.round_choices import Choice, RoundChoices
from localspec.engine.values import MAX_DRAFT_TOKENS, Beliefs, DraftStop, SpeculationSettings

_EXPLORE_GAP = 4
_FIRST_PLAIN = 2
_FIRST_PLAIN_GAP = 20
_LAST_PLAIN_GAP = 64
_RATE_KEEPS = 0.95
_RATE_STRENGTH = 10.0
_SPREAD_SAMPLES = 0.2
_OWN_SHARE = 0.1
_RESTS_PER_SKIP = 4
_MOST_SKIPPED = 3
_TELLING_MATCH = 3
_NOTHING = Draft((), "resting")


def is_adaptive(settings: SpeculationSettings) -> bool:
    """Whether these settings ask for adaptive lengths."""
    return settings.pacing == "adaptive" or settings.method == "auto"


class AdaptivePacing:
    """Measures costs and acceptance as it runs, and drafts where that pays.

    Per round it compares a plain step, each free drafter's proposal cut at its best length, and the draft model with
    its best stopping rule, by expected tokens less the time's worth at the rate reached lately (Dinkelbach's form of
    tokens per second). What may be lost against plain decoding is bounded by a LossBudget: a round for which it
    has no credit is not begun, whatever is expected of it.
    """

    def __init__(
        self,
        settings: SpeculationSettings,
        clock: Callable[[], float] = perf_counter,
        state: str = "",
        draft_cost: float = 0.25,
    ) -> None:
        """Start cold, or with what was learnt earlier.

        Args:
            settings: `n_max` is the longest draft; method `auto` takes at least 16.
            clock: seconds.
            state: text of `state` from an earlier process; anything else is ignored.
            draft_cost: guess of a draft step's time in target steps, until it is measured.

        Raises:
            UsageError: the settings cannot work together.
        """
        check_speculation(settings)
        self._cap = max(settings.n_max, MAX_DRAFT_TOKENS // 2) if settings.method == "auto" else settings.n_max
        self._n_min = settings.n_min
        self._clock = clock
        self._guess = draft_cost
        self._known = from_text(state) or PacingState()
        self._costs = StepCosts(self._known.step_s)
        self._is_warm = self._costs.measured[1]
        self._budget = LossBudget()
        self._choices = RoundChoices(self._costs, self._budget, self._n_min)
        self._by_name: dict[str, DrafterBelief] = {}
        self._asked: list[tuple[DrafterBelief, Draft, list[int]]] = []
        self._rate_tokens, self._rate_cost = _RATE_STRENGTH, _RATE_STRENGTH
        self._sampling_s = 0.0
        self._draft_cost = self._drafting_s = self._own_s = 0.0
        self._plain_gap = _FIRST_PLAIN_GAP
        self._beliefs: Beliefs | None = None
        # Rounds at rest since something was chosen or came true, and rounds that may pass without a look.
        self._num_rests = self._to_skip = 0
        self._is_skipped = False
        self._num_skipped = 0

    @property
    def beliefs(self) -> Beliefs | None:
        """What the last proposal was chosen by."""
        return self._beliefs

    @property
    def state(self) -> str:
        """What was learnt, as text for a later start with these models on this machine."""
        drafters = {name: kept for name, kept in self._known.drafters.items() if name not in self._by_name}
        plain = self._costs.expected[1]
        drafters.update({name: belief.state(plain) for name, belief in self._by_name.items()})
        newest = dict(list(drafters.items())[-MOST_DRAFTERS:])
        return to_text(PacingState(self._costs.known_s, newest))

    def begin(self) -> None:
        """Begin another text: what was true of the last one counts half."""
        for belief in self._by_name.values():
            belief.begin()
        self._asked.clear()
        self._num_rests = self._to_skip = 0
        # The last text may have been broken off in a round of which nothing was heard.
        self._is_skipped = False

    def propose(self, drafter: Drafter, room: int) -> Draft:
        """Choose a drafter and a length, and return the draft as it goes to the target."""
        limit = min(self._cap, room)
        if limit < max(self._n_min, 1):
            self._asked.clear()
            self._draft_cost = 0.0
            return Draft((), "room")
        if self._to_skip > 0:
            # Looking takes time too, and what the text has become shows in the next round as well.
            self._to_skip -= 1
            self._is_skipped = True
            return _NOTHING
        started = self._clock()
        self._asked.clear()
        self._draft_cost = self._drafting_s = 0.0
        members: Sequence[Drafter] = getattr(drafter, "members", (drafter,))
        plain = self._costs.expected[1]
        none = Choice(None, None, 0, 1.0, plain)
        may_speculate = self._is_warm or self._costs.num_plain >= _FIRST_PLAIN
        num_rounds = self._num_skipped + 1
        self._choices.rounds_to_explore -= num_rounds
        stop: DraftStop = "no_match"
        mean_rate = self._rate_tokens / self._rate_cost
        choices: list[Choice] = []
        for member in members:
            belief = self._belief(member)
            if member.is_free:
                proposal = member.draft(limit)
                if not proposal.tokens:
                    continue
                cells = belief.cells(proposal)
                self._asked.append((belief, proposal, cells))
                choices.append(self._choices.of_free(member, belief, proposal, cells, mean_rate))
            else:
                choices.append(self._choices.of_model(member, belief, limit, num_rounds))
        shown = best = none
        rate = 1.0 / plain
        if choices:
            # Time is worth what is reached on average, but no more than the best that there is now: after a lucky
            # stretch nothing would seem good enough.
            rate = max(rate, min(mean_rate, max(choice.rate for choice in choices)))
            shown = max(choices, key=lambda choice: choice.net(rate))
            wanted = [choice for choice in choices if choice.limit and may_speculate]
            if wanted:
                best = max(wanted, key=lambda choice: choice.net(rate))
                if best.net(rate) < none.net(rate):
                    best = next((choice for choice in wanted if choice.is_exploring), none)
        is_refreshing = best.member is not None and self._costs.rounds_since_plain >= self._plain_gap
        if is_refreshing:
            best = none
        if best.member is None and shown.belief is not None:
            stop = "measuring" if is_refreshing or not may_speculate else self._why_not(shown)
        draft = Draft((), stop)
        if best.member is not None and best.belief is not None:
            draft = best.draft or self._ask_model(best, rate)
            draft = self._cut(best, draft, rate)
            if len(members) > 1:
                draft = replace(draft, drafter=best.member.name)
        self._believe(shown if best.member is None else best, best, is_refreshing, stop == "resting")
        self._num_rests = self._num_rests + 1 if stop == "resting" and best.member is None else 0
        self._to_skip = min(self._num_rests // _RESTS_PER_SKIP, _MOST_SKIPPED)
        self._own_s += self._clock() - started - self._drafting_s
        return draft

    def _needed(self, belief: DrafterBelief) -> float:
        return belief.needed(self._cap, self._costs.expected, self._costs.version)

    def _why_not(self, choice: Choice) -> DraftStop:
        """Return why the best draft was not made: its drafter does not pay, is not proven, or had nothing good now."""
        assert choice.belief is not None
        if choice.belief.mean < self._needed(choice.belief):
            return "resting"
        return "unproven" if choice.is_unproven else "not_worth"

    def _belief(self, member: Drafter) -> DrafterBelief:
        name = member.name
        belief = self._by_name.get(name)
        if belief is None:
            kept = self._known.drafters.get(name)
            belief = DrafterBelief(
                member.is_free, self._guess, kept if kept and kept.is_free == member.is_free else None
            )
            self._by_name[name] = belief
        return belief

    def _ask_model(self, choice: Choice, rate: float) -> Draft:
        """Draft with a model by its stopping rule, or to the end where a width is explored."""
        member, belief = choice.member, choice.belief
        assert member is not None and belief is not None
        expected, goes_on = belief.acceptance.expected, belief.rule.goes_on
        joint = 1.0

        def go_on(count: int, probability: float) -> bool:
            nonlocal joint
            joint *= expected(confidence_cell(probability))
            return choice.is_exploring or goes_on(count, joint)

        unseen = member.num_unseen
        started = self._clock()
        draft = member.draft(choice.limit, go_on)
        self._drafting_s = self._clock() - started
        cost = self._drafting_s / (self._costs.unit_s or 1.0)
        num_steps = len(draft.tokens) + (draft.stop == "p_min")
        if num_steps:
            belief.learn_cost(cost, num_steps, unseen)
            self._draft_cost = min(cost, 2.0 * belief.costs.of(num_steps, unseen))
        belief.is_drawn = draft.distributions is not None
        if draft.tokens:
            self._asked.append((belief, draft, belief.cells(draft)))
        return draft

    def _cut(self, choice: Choice, draft: Draft, rate: float) -> Draft:
        """Leave out the tail that is not worth its verification.

        Not of a draft that was drawn at random: to leave tokens out by what they turned out to be would change the
        distribution of what is emitted.
        """
        if draft.distributions is not None or not draft.tokens:
            return draft
        belief = choice.belief
        assert belief is not None
        length = choice.limit
        if not belief.is_free:
            costs = self._costs
            joint, _ = belief.joint(self._asked[-1][2])
            if choice.is_exploring and not costs.measured[len(draft.tokens) + 1]:
                return draft
            length, total = 0, 0.0
            best = -rate * costs.expected[1]
            for position, likely in enumerate(joint, 1):
                total += likely
                value = total - rate * costs.expected[position + 1]
                if value > best and position >= self._n_min:
                    length, best = position, value
        num_left_out = len(draft.tokens) - length
        if num_left_out <= 0:
            return draft
        return replace(
            draft,
            tokens=draft.tokens[:length],
            stop="not_worth",
            probabilities=draft.probabilities and draft.probabilities[:length],
            # What a free drafter could have said on top was never wanted.
            num_discarded=draft.num_discarded + (0 if belief.is_free else num_left_out),
        )

    def _believe(self, shown: Choice, best: Choice, is_refreshing: bool, is_resting: bool) -> None:
        costs, belief = self._costs, shown.belief
        plain = costs.expected[1]
        unit, sampling = costs.unit_s, self._sampling_s
        self._beliefs = Beliefs(
            drafter=shown.member.name if shown.member is not None else "",
            limit=best.limit,
            expected_tokens=best.tokens,
            expected_s=best.cost * unit + best.tokens * sampling,
            plain_s=plain * unit + sampling,
            acceptance=belief.mean if belief is not None else 0.0,
            needed=self._needed(belief) if belief is not None else 1.0,
            is_resting=best.member is None and is_resting,
            is_exploring=best.is_exploring or is_refreshing,
        )

    def learn(self, outcome: Outcome) -> None:
        """Hear what became of the round: costs, acceptance, and what it lost or won."""
        if self._is_skipped:
            self._is_skipped = False
            self._num_skipped += 1
            self._budget.settle(1, 1.0)
            return
        started = self._clock()
        costs = self._costs
        num_emitted = outcome.num_emitted
        width = len(outcome.draft.tokens) + 1
        sampling = outcome.sample_s - self._sampling_s * num_emitted if width > 1 else 0.0
        if width == 1:
            seen = outcome.sample_s / max(num_emitted, 1)
            is_first = not self._sampling_s
            self._sampling_s += (seen - self._sampling_s) * (1.0 if is_first else _SPREAD_SAMPLES)
        own = outcome.total_s - outcome.draft_s - outcome.verify_s - outcome.sample_s
        # Whoever consumes the rounds may pause: that is no cost of a width.
        own = min(max(own, 0.0), _OWN_SHARE * outcome.verify_s)
        if width == 1 and costs.rounds_since_plain >= self._plain_gap:
            self._plain_gap = min(2 * self._plain_gap, _LAST_PLAIN_GAP)
        was_measured = costs.measured[width]
        costs.learn(width, outcome.verify_s + max(sampling, 0.0) + own)
        if not was_measured and width > 1:
            self._choices.rounds_to_explore = _EXPLORE_GAP
        for belief in self._by_name.values():
            belief.age(num_emitted + self._num_skipped)
        self._num_skipped = 0
        for belief, proposed, cells in self._asked:
            if proposed.match_length >= _TELLING_MATCH and proposed.tokens[:1] == outcome.emitted[:1]:
                self._num_rests = self._to_skip = 0
            # Of a drawn token that was not verified, the target's own draw says nothing.
            tokens = proposed.tokens if proposed.distributions is None else outcome.draft.tokens
            belief.judge(tokens, cells, outcome.emitted)
        plain = costs.expected[1]
        cost = costs.expected[width] + self._draft_cost
        self._budget.settle(num_emitted, (cost + self._own_s / (costs.unit_s or 1.0)) / plain)
        self._rate_tokens = self._rate_tokens * _RATE_KEEPS + num_emitted
        self._rate_cost = self._rate_cost * _RATE_KEEPS + cost
        self._own_s = self._clock() - started
