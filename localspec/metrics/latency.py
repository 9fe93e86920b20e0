"""When tokens arrived, as a fold over the events of one generation.

Times are seconds since the request was received.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from localspec.metrics.statistics import percentile

if TYPE_CHECKING:
    from localspec.engine.events import Event


@dataclass(frozen=True, slots=True)
class GapPercentiles:
    """Percentiles of the time per token, in seconds.

    A round that emits m tokens after dt counts as m gaps of dt / m. The tokens of a round really appear together,
    but taken so most gaps of a speculative run would be 0 and its median would say nothing; in shares the
    mean gap is exactly the time per output token, and arms with and without drafts can be compared.
    """

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Latency:
    """The times of one generation. None where there were too few tokens to tell."""

    num_tokens: int
    ttft_s: float | None
    """Request received to the first visible text, both prefills included; to the first token if none was visible."""
    tpot_s: float | None
    """(t_last - t_first_round) / (n - n_first_round): the first round's tokens belong to the prefill."""
    gaps: GapPercentiles | None
    longest_gap_s: float | None
    """Longest time between two rounds: the longest pause that a reader saw."""
    prefill_s: float | None
    """Time of both prefills."""
    num_prefilled: int
    """Prompt tokens that were not in the KV cache already."""

    @property
    def decode_tps(self) -> float | None:
        """Tokens per second after the first round."""
        return 1.0 / self.tpot_s if self.tpot_s else None

    @property
    def prefill_tps(self) -> float | None:
        """Prompt tokens read per second of both prefills."""
        return self.num_prefilled / self.prefill_s if self.prefill_s and self.num_prefilled else None


class LatencyFold:
    """Takes the events of one generation and gives its Latency, at any moment."""

    def __init__(self) -> None:
        self._arrivals: list[tuple[float, int]] = []
        self._num_later = 0
        self._first_visible_s: float | None = None
        self._prefill_s: float | None = None
        self._num_prefilled = 0

    def observe(self, event: Event) -> None:
        """Take an event; those that tell nothing about time are ignored."""
        if event.type == "round_finished":
            if event.emitted:
                self._num_later += len(event.emitted) if self._arrivals else 0
                self._arrivals.append((event.at_s, len(event.emitted)))
            if self._first_visible_s is None and any(token.text for token in event.emitted):
                self._first_visible_s = event.at_s
        elif event.type == "generation_started":
            self._num_prefilled = len(event.prompt_tokens) - event.num_reused
        elif event.type == "generation_finished":
            self._prefill_s = event.prefill_s

    @property
    def decode_tps(self) -> float | None:
        """Tokens per second after the first round so far, as Latency.decode_tps has it, whatever the length."""
        if not self._num_later:
            return None
        elapsed_s = self._arrivals[-1][0] - self._arrivals[0][0]
        return self._num_later / elapsed_s if elapsed_s > 0.0 else None

    def result(self) -> Latency:
        """Return the times so far."""
        arrivals = self._arrivals
        num_tokens = sum(count for _, count in arrivals)
        first_s = self._first_visible_s if self._first_visible_s is not None or not arrivals else arrivals[0][0]
        num_later = num_tokens - arrivals[0][1] if arrivals else 0
        gaps: list[float] = []
        waits: list[float] = []
        for (before_s, _), (at_s, count) in pairwise(arrivals):
            waits.append(at_s - before_s)
            gaps.extend([(at_s - before_s) / count] * count)
        return Latency(
            num_tokens=num_tokens,
            ttft_s=first_s,
            tpot_s=(arrivals[-1][0] - arrivals[0][0]) / num_later if num_later else None,
            gaps=GapPercentiles(*(percentile(gaps, rank) for rank in (50.0, 95.0, 99.0))) if gaps else None,
            longest_gap_s=max(waits, default=None),
            prefill_s=self._prefill_s,
            num_prefilled=self._num_prefilled,
        )
