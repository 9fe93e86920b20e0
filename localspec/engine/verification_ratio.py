"""Verification by the ratio of two distributions: more of a draft is kept than by matching, at a temperature.

p is the target's distribution after the user's whole sampler chain, q what the drafted token was really drawn from
(the token itself where it was not drawn). Both rules emit tokens with exactly the target's distribution, for
any q, if two things hold: the dice know nothing of those that drew the draft, and whether a further token is drafted
depends on those before it only, never on itself. A draft that is shortened or thrown away after its tokens
were looked at is no longer one of q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localspec.engine.dice import Dice, SeededDice, Weights
from localspec.engine.distribution import Distribution, excess, probability_of
from localspec.engine.drafting.drafter import Draft
from localspec.engine.model import TokenSampler
from localspec.engine.values import Origin, Verification
from localspec.engine.verification import Ends, Verdict, Verify, verify_exact


def choose_verify(verification: Verification, temperature: float, seed: int) -> Verify:
    """Return the rule for one answer. At temperature 0 each of them is matching."""
    if verification == "exact" or temperature <= 0.0:
        return verify_exact
    dice = SeededDice(seed, "verification")
    return VerifyByBlock(dice) if verification == "block" else VerifyByToken(dice)


def proposal(draft: Draft, position: int) -> Distribution:
    """Return what a drafted token was drawn from: itself alone, if it was not drawn."""
    if draft.distributions is not None:
        return draft.distributions[position]
    return Distribution(np.array([draft.tokens[position]], np.int32), np.ones(1))


def ratio(p: Distribution, q: Distribution, token: int) -> float:
    """Return p / q of a drafted token."""
    drawn = probability_of(q, token)
    return probability_of(p, token) / drawn if drawn > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class VerifyByToken:
    """Accept a token with min(1, p/q); after the first rejection draw from max(p - q, 0), normalised.

    Leviathan et al. 2023 and Chen et al. 2023. A token is accepted with the sum of min(p, q).
    """

    dice: Dice

    def __call__(self, sampler: TokenSampler, draft: Draft, ends: Ends, verdict: Verdict) -> None:
        """Fill the verdict; see Verify."""
        emit = _Emission(sampler, draft, ends, verdict)
        for position, token in enumerate(draft.tokens):
            p = sampler.distribution(position, ())
            q = proposal(draft, position)
            if not self.dice.happens(ratio(p, q, token)):
                emit.own(_draw(self.dice, p, excess(p, q, 1.0)), "correction")
                return
            if not emit.accepted(token):
                return
        p = sampler.distribution(len(draft.tokens), ())
        emit.own(_draw(self.dice, p, p.probabilities), "bonus")


@dataclass(frozen=True, slots=True)
class VerifyByBlock:
    """Accept the longest part of a draft that its tokens' joint probability allows.

    Sun et al. 2024, Algorithm 2. With c_0 = 1, c_i = min(c_(i-1) p_i/q_i, 1) for the drafted tokens 1 to k,
    r_i = sum of max(c_i p_(i+1) - q_(i+1), 0) and h_i = r_i / (r_i + 1 - c_i) for i < k, h_k = c_k: the longest i at
    which an event of probability h_i happens is kept, each on its own, and the target's own token is drawn
    from max(c_i p_(i+1) - q_(i+1), 0), normalised, or after all k from p. At least i tokens are kept with probability
    c_i, so never fewer are expected than token by token. It holds for a draft of any length that was
    decided on by earlier tokens: the sum over what comes next is c_i either way.
    """

    dice: Dice

    def __call__(self, sampler: TokenSampler, draft: Draft, ends: Ends, verdict: Verdict) -> None:
        """Fill the verdict; see Verify."""
        if draft.distributions is None:
            # For tokens that were not drawn, c is a product of p, and as many are kept token by token, for less work.
            VerifyByToken(self.dice)(sampler, draft, ends, verdict)
            return
        tokens, qs = draft.tokens, draft.distributions
        joint = [1.0]
        ps = [sampler.distribution(0, ())]
        for position, token in enumerate(tokens):
            ahead = min(joint[-1] * ratio(ps[-1], qs[position], token), 1.0)
            if ahead <= 0.0:
                # No longer part can be kept, and a grammar could not even read on.
                break
            joint.append(ahead)
            ps.append(sampler.distribution(position + 1, tokens[: position + 1]))
        num_kept = len(joint) - 1
        while True:
            scale = joint[num_kept]
            if num_kept == len(tokens):
                weights, chance = ps[num_kept].probabilities, scale
            else:
                weights = excess(ps[num_kept], qs[num_kept], scale)
                left = float(weights.sum())
                chance = left / (left + 1.0 - scale) if left > 0.0 else 0.0
            if num_kept == 0 or self.dice.happens(chance):
                break
            num_kept -= 1
        emit = _Emission(sampler, draft, ends, verdict)
        for token in tokens[:num_kept]:
            if not emit.accepted(token):
                return
        emit.own(_draw(self.dice, ps[num_kept], weights), "bonus" if num_kept == len(tokens) else "correction")


def _draw(dice: Dice, p: Distribution, weights: Weights) -> int:
    # All weights are 0 only where p equals q but for rounding, and then p is as good.
    return int(p.ids[dice.choose(weights if weights.any() else p.probabilities)])


@dataclass(frozen=True, slots=True)
class _Emission:
    """Emits tokens one by one, with verify_exact's rules of what counts as whose."""

    sampler: TokenSampler
    draft: Draft
    ends: Ends
    verdict: Verdict

    def accepted(self, token: int) -> bool:
        """Emit a drafted token, and return whether the text goes on."""
        verdict = self.verdict
        is_last = len(verdict.tokens) + 1 == len(self.draft.tokens)
        self._emit(token)
        if verdict.finish == "stop" and not is_last:
            verdict.origins.append("bonus")
            return False
        verdict.origins.append("accepted")
        verdict.num_accepted += 1
        verdict.num_cut = 0 if verdict.finish is None else 1
        return verdict.finish is None

    def own(self, token: int, origin: Origin) -> None:
        """Emit the target's own token."""
        self._emit(token)
        self.verdict.origins.append(origin)

    def _emit(self, token: int) -> None:
        self.sampler.accept(token)
        self.verdict.finish = self.ends(token)
        self.verdict.tokens.append(token)
