"""How long a search may take, and what fits into that."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from localspec.errors import UsageError

LEAST_BUDGET_S: Final = 10.0
MOST_BUDGET_S: Final = 24 * 3600.0
SCREEN_SHARE: Final = 0.25
"""Of the budget at most, for what needs a load."""
CONFIRM_PAIRS: Final = 5
"""Fewest pairs on prompts that the search has not seen."""
MAX_CONFIRM_PAIRS: Final = 12
LEAST_TOKENS: Final = 32
"""An answer that is shorter tells more of its first rounds than of the rest."""

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}
_BUDGET: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smh])")
_MARGIN: Final = 1.15
"""Arms that lose take longer than the baseline, and switching takes time too."""
_PAIRS_OF_ROUND: Final = 4
"""Of the candidates that come furthest."""
_REPLAYS: Final = 1.2
"""Replays that find out why texts differ."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What runs cost here, from runs without drafts."""

    start_s: float
    """From the request to the first token: reading the prompt."""
    token_s: float

    def run_s(self, num_tokens: int) -> float:
        """Return the time of a run, with a margin for slower arms."""
        return (self.start_s + num_tokens * self.token_s) * _MARGIN


@dataclass(frozen=True, slots=True)
class Extent:
    """What the time is spent on."""

    max_tokens: int
    """Of each run."""
    num_candidates: int
    """In a round of the search."""
    confirm_pairs: int
    """Fewest."""
    num_finalists: int
    confirm_s: float
    """Kept for the confirmation."""


def parse_budget(text: str) -> float:
    """Return seconds from `90s`, `5m`, `1.5h` or `1h30m`.

    Raises:
        UsageError: it is no time, or one that is too short or too long.
    """
    word = text.strip().lower()
    parts = list(_BUDGET.finditer(word))
    rest = _BUDGET.sub("", word).strip()
    if not parts or rest or len({part[2] for part in parts}) < len(parts):
        raise UsageError(f"{text!r:.80} is no time.", "Write it as in 90s, 5m or 1h.")
    seconds = sum(float(part[1]) * _UNITS[part[2]] for part in parts)
    if not LEAST_BUDGET_S <= seconds <= MOST_BUDGET_S:
        raise UsageError(
            f"A budget of {budget_text(seconds)} is out of range.",
            f"Give {budget_text(LEAST_BUDGET_S)} to {budget_text(MOST_BUDGET_S)}; 5m is usual.",
        )
    return seconds


def budget_text(seconds: float) -> str:
    """Return a time as parse_budget takes it, such as `5m` or `2m30s`; fractions of a second are rounded up."""
    whole = math.ceil(seconds - 1e-9)
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "m"), (whole % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def least_s(pace: Pace, num_workloads: int) -> float:
    """Return the seconds that the smallest search and its confirmation take, without loading."""
    return search_s(pace, num_workloads, LEAST_TOKENS, 3) + confirm_s(
        pace, num_workloads, LEAST_TOKENS, 1, CONFIRM_PAIRS
    )


def num_search_runs(num_candidates: int) -> int:
    """Return about how many runs halving a round of candidates takes, baselines included."""
    # Candidates, then half of them, then a quarter twice: two runs for each, and half as many of the baseline.
    return num_candidates + math.ceil(num_candidates / 2) + 1 if num_candidates < 4 else 3 * num_candidates


def search_s(pace: Pace, num_workloads: int, max_tokens: int, num_candidates: int) -> float:
    """Return the seconds of a round of candidates. The prompt of a pair is read once, and once by a draft."""
    reading = 2 * _PAIRS_OF_ROUND * pace.run_s(0)
    answers = num_search_runs(num_candidates) * (pace.run_s(max_tokens) - pace.run_s(0))
    return num_workloads * (reading + answers)


def confirm_s(pace: Pace, num_workloads: int, max_tokens: int, num_finalists: int, pairs: int) -> float:
    """Return the seconds of a confirmation with its warm-up, its last baseline and the replays."""
    runs = pairs * (1 + num_finalists) + 1
    warm_up = (1 + num_finalists) * pace.run_s(8)
    return num_workloads * (runs * pace.run_s(max_tokens) * _REPLAYS + warm_up)


def size_up(pace: Pace, num_workloads: int, seconds: float, most_tokens: int, elapsed_s: float) -> Extent:
    """Return what fits into the rest of a budget: answers as long as leave time for enough candidates.

    Args:
        pace: of runs without drafts.
        num_workloads: each pair is a run on each.
        seconds: left.
        most_tokens: wanted for an answer.
        elapsed_s: gone already, for the message.

    Raises:
        UsageError: it is too little; the hint names the least budget.
    """
    for num_candidates, num_finalists in ((8, 2), (6, 2), (3, 1)):
        tokens = _tokens_that_fit(pace, num_workloads, seconds, most_tokens, num_candidates, num_finalists)
        if tokens:
            reserved = confirm_s(pace, num_workloads, tokens, num_finalists, CONFIRM_PAIRS)
            # What is left over goes to both; surer figures in the end are worth as much as more candidates.
            return Extent(tokens, num_candidates, CONFIRM_PAIRS, num_finalists, max(reserved, 0.4 * seconds))
    least = elapsed_s + least_s(pace, num_workloads)
    texts, hint = "", "; a machine that does nothing else needs less."
    if num_workloads > 1:
        texts, hint = f", on each of {num_workloads} workloads", "; fewer workloads need less."
    raise UsageError(
        "The budget is too small to find anything that could be relied on: an answer of "
        f"{LEAST_TOKENS} tokens takes {pace.run_s(LEAST_TOKENS):.1f} s here{texts}.",
        f"Give at least --budget {budget_text(10.0 * math.ceil(least / 10.0))}{hint}",
    )


def num_confirm_pairs(pace: Pace, num_workloads: int, max_tokens: int, num_finalists: int, seconds: float) -> int:
    """Return how many pairs fit into the rest, at least CONFIRM_PAIRS."""
    pairs = MAX_CONFIRM_PAIRS
    while pairs > CONFIRM_PAIRS and confirm_s(pace, num_workloads, max_tokens, num_finalists, pairs) > seconds:
        pairs -= 1
    return pairs


def _tokens_that_fit(
    pace: Pace, num_workloads: int, seconds: float, most_tokens: int, num_candidates: int, num_finalists: int
) -> int:
    """Return the longest answer that leaves time for that many candidates; 0 for none."""
    shortest = min(LEAST_TOKENS, most_tokens)
    for tokens in sorted({most_tokens, 384, 256, 192, 128, 96, 64, 48, shortest}, reverse=True):
        needed = search_s(pace, num_workloads, tokens, num_candidates)
        needed += confirm_s(pace, num_workloads, tokens, num_finalists, CONFIRM_PAIRS)
        if shortest <= tokens <= most_tokens and needed <= seconds:
            return tokens
    return 0
