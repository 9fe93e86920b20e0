"""Which drafted tokens the target keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from localspec.engine.drafting.drafter import Draft
from localspec.engine.model import TokenSampler
from localspec.engine.values import FinishReason, Origin


@dataclass(slots=True)
class Verdict:
    """What a verification has emitted so far; complete after verify_exact returns, valid whenever it is left."""

    tokens: list[int] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    num_accepted: int = 0
    num_cut: int = 0
    finish: FinishReason | None = None


Ends = Callable[[int], FinishReason | None]
"""Called with each emitted token in order; says whether the text ends with it."""


class Verify(Protocol):
    """Decides which tokens of a draft the target keeps, and adds the target's own."""

    def __call__(self, sampler: TokenSampler, draft: Draft, ends: Ends, verdict: Verdict) -> None:
        """Fill the verdict; row i of the target's last step follows the pending token and i drafted ones."""


def verify_exact(
    sampler: TokenSampler,
    draft: Draft,
    ends: Ends,
    verdict: Verdict,
) -> None:
    """Sample the target at each row and accept while the draw equals the draft.

    The first differing draw is the correction; after k matches one more draw is the bonus. Each draw is
    accepted by the sampler at once and none follows a stop, so the sampler's state is that of plain decoding.
    Lossless for any drafter: the emitted tokens are the target's own draws (llama.cpp's
    `common_sampler_sample_and_accept_n`). As there, an end-of-generation token that matches before the last
    drafted one counts as the target's own token.

    Args:
        sampler: row i holds the distribution after the pending token and i drafted ones.
        draft: k tokens; k + 1 rows are there.
        ends: called with each emitted token in order; says whether the text ends with it.
        verdict: filled as it goes, so that it is right even if a draw raises.
    """
    drafted = draft.tokens
    for row, proposal in enumerate((*drafted, None)):
        token = sampler.sample(row)
        verdict.finish = ends(token)
        verdict.tokens.append(token)
        is_last = row + 1 >= len(drafted)
        if proposal is None or (token == proposal and verdict.finish == "stop" and not is_last):
            verdict.origins.append("bonus")
            return
        if token != proposal:
            verdict.origins.append("correction")
            return
        verdict.origins.append("accepted")
        verdict.num_accepted += 1
        if verdict.finish is not None:
            verdict.num_cut = 1
            return
