"""The loop: draft, verify, accept, truncate. It knows neither llama.cpp nor the wire.

What holds whenever a caller gets a round, and however it leaves the generator:
- the target's cache holds the prompt and all emitted tokens but the last, the draft's a prefix of the same text;
- emitted tokens = target passes + accepted - cut;
- the sampler has accepted exactly the emitted tokens;
- no draft is longer than the policy, the room in the contexts or the tokens left allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter

from localspec.engine.drafting.drafter import Draft, Drafter
from localspec.engine.model import SequenceModel, TokenSampler
from localspec.engine.pacing import Outcome, Pacing
from localspec.engine.values import Beliefs, DraftStop, FinishReason, Origin
from localspec.engine.verification import Verdict, Verify, verify_exact

_NO_DRAFT = Draft((), "off")


@dataclass(frozen=True, slots=True)
class Round:
    """One draft-verify-accept cycle in token ids; times in seconds."""

    index: int
    drafter: str
    drafted: tuple[int, ...]
    num_accepted: int
    num_discarded: int
    emitted: tuple[int, ...]
    origins: tuple[Origin, ...]
    num_cut: int
    draft_stop: DraftStop
    draft_s: float
    verify_s: float
    sample_s: float
    total_s: float
    n_past: int
    finish: FinishReason | None
    """Why there is no further round; None while there is one."""
    match_length: int = 0
    beliefs: Beliefs | None = None


def speculate(
    target: SequenceModel,
    sampler: TokenSampler,
    drafter: Drafter | None,
    pacing: Pacing,
    max_tokens: int,
    ends: Callable[[int], FinishReason | None],
    clock: Callable[[], float] = perf_counter,
    verify: Verify = verify_exact,
) -> Iterator[Round]:
    """Generate after a prefill, one round at a time.

    Args:
        target: its cache holds the prompt, and row 0 of its last step the logits after it.
        sampler: draws from the target's rows.
        drafter: has begun with the same prompt; None for plain decoding.
        pacing: length of the drafts; hears of each round.
        max_tokens: at least 1.
        ends: called with each emitted token in order; says whether the text ends with it.
        clock: seconds.
        verify: which drafted tokens are kept.

    Yields:
        Round 0, whose single token the prefill has paid for, then a round per target pass. The last has `finish`.

    Raises:
        Cancelled: a step was aborted.
        DecodeError: a step or a truncation failed.
    """
    mark = clock()
    token = sampler.sample(0)
    now = clock()
    num_emitted = 1
    finish = ends(token) or _out_of_room(target, max_tokens - num_emitted)
    if drafter is not None:
        drafter.observe((token,), 0)
    name = drafter.name if drafter is not None else ""
    first: tuple[Origin, ...] = ("bonus",)
    yield Round(
        0, name, (), 0, 0, (token,), first, 0, "off", 0.0, 0.0, now - mark, now - mark, len(target.tokens), finish
    )
    mark = now
    index = 0
    while finish is None:
        index += 1
        started = mark
        mark_draft = clock()
        room = min(target.n_ctx - len(target.tokens) - 1, max_tokens - num_emitted - 1)
        draft = _propose(drafter, pacing, room, target.n_vocab)
        mark_verify = clock()
        length = len(target.tokens)
        verdict = Verdict()
        try:
            target.decode((token, *draft.tokens), len(draft.tokens) + 1)
            mark_sample = clock()
            verify(sampler, draft, ends, verdict)
            mark_truncate = clock()
        finally:
            target.truncate(length + 1 + verdict.num_accepted)
            if drafter is not None:
                drafter.observe(verdict.tokens, verdict.num_accepted)
        token = verdict.tokens[-1]
        num_emitted += len(verdict.tokens)
        finish = verdict.finish or _out_of_room(target, max_tokens - num_emitted)
        mark = clock()
        if drafter is not None:
            pacing.learn(
                Outcome(
                    draft,
                    verdict.num_accepted,
                    len(verdict.tokens),
                    verdict.finish is not None,
                    mark_verify - mark_draft,
                    mark_sample - mark_verify,
                    mark_truncate - mark_sample,
                    mark - started,
                    len(target.tokens),
                    tuple(verdict.tokens),
                )
            )
        yield Round(
            index,
            draft.drafter or name,
            draft.tokens,
            verdict.num_accepted,
            draft.num_discarded,
            tuple(verdict.tokens),
            tuple(verdict.origins),
            verdict.num_cut,
            draft.stop,
            mark_verify - mark_draft,
            mark_sample - mark_verify,
            mark_truncate - mark_sample,
            mark - started,
            len(target.tokens),
            finish,
            draft.match_length,
            pacing.beliefs if drafter is not None else None,
        )


def _propose(drafter: Drafter | None, pacing: Pacing, room: int, n_vocab: int) -> Draft:
    if drafter is None:
        return _NO_DRAFT
    draft = pacing.propose(drafter, room)
    # A padded draft vocabulary can name ids that the target lacks, and llama.cpp fails on them.
    for position, token in enumerate(draft.tokens):
        if not 0 <= token < n_vocab:
            num_lost = len(draft.tokens) - position
            return replace(
                draft,
                tokens=draft.tokens[:position],
                stop="silent",
                probabilities=draft.probabilities and draft.probabilities[:position],
                distributions=draft.distributions and draft.distributions[:position],
                num_discarded=draft.num_discarded + num_lost,
            )
    return draft


def _out_of_room(target: SequenceModel, tokens_left: int) -> FinishReason | None:
    if tokens_left <= 0:
        return "length"
    return "context_full" if len(target.tokens) >= target.n_ctx else None
