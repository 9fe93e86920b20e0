"""What every benchmark is given, and what it gives back."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localspec.engine.values import ContextSettings
from localspec.session.demo import DemoModels

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Setting:
    """The same for all sides that are compared."""

    models: DemoModels
    n_threads: int
    """Physical cores, for single steps and for batches."""
    pairs: int
    """Paired runs of each comparison; warm-ups are not counted."""
    num_tokens: int
    """Tokens of each run."""
    folder: Path
    """For log files."""
    n_ctx: int = 1024

    @property
    def context(self) -> ContextSettings:
        """The context that our engine makes."""
        return ContextSettings(n_ctx=self.n_ctx, n_threads=self.n_threads, n_gpu_layers=0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a benchmark found, in words and as JSON."""

    lines: tuple[str, ...]
    numbers: dict[str, Json] = field(default_factory=dict)


Benchmark = Callable[[Setting], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and greatest of some measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    def words(self, digits: int = 2, unit: str = "") -> str:
        """Return it in words, such as `1.25 (1.20 to 1.31)`."""
        return f"{self.median:.{digits}f}{unit} ({self.low:.{digits}f} to {self.high:.{digits}f})"

    @property
    def json(self) -> Json:
        """The three numbers."""
        return {"median": self.median, "min": self.low, "max": self.high}


async def alternate(
    pairs: int, sides: Sequence[Callable[[int], Awaitable[float]]]
) -> tuple[tuple[Spread, ...], tuple[Spread, ...]]:
    """Run sides in turn, every other pair in reverse order (A B, B A, A B …), one at a time.

    Args:
        pairs: how often.
        sides: measured with the pair's number, from 0; the last one is the baseline.

    Returns:
        Each side's values, and each side's paired ratios to the baseline.
    """
    values: list[list[float]] = [[] for _ in sides]
    for pair in range(pairs):
        order = range(len(sides)) if pair % 2 == 0 else reversed(range(len(sides)))
        for index in order:
            values[index].append(await sides[index](pair))
    ratios = [[mine / base for mine, base in zip(own, values[-1], strict=True)] for own in values]
    return tuple(map(Spread.of, values)), tuple(map(Spread.of, ratios))
