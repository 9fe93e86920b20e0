"""What a step of the target costs at each width, and what a draft costs, measured as they run.

All costs are in units of `unit_s`, which follows the machine: a longer context, or a processor that grows hot, moves
every width alike, and a round at any known width tells of it. What is kept for each width is its ratio to that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from localspec.engine.values import MAX_DRAFT_TOKENS

MAX_WIDTH = MAX_DRAFT_TOKENS + 1

_WINDOW = 7
_GUESSED_SLOPE = 0.5
_HIGHEST_SLOPE = 1.0
_LOWEST_SLOPE = 0.1
_FOLLOW = 0.1
_JUMP = 1.25
_FIRST_TRUST = 1.25
_READING_PER_SLOPE = 0.25
_TRUST_IN_KNOWN = 3
_ENOUGH_UNSEEN = 8
_ROUNDS_OF_UNIT = 2
_STALE = 256
_REFIT = 64


class StepCosts:
    """The verification curve: cost of a target step over 1 to MAX_WIDTH positions.

    Per width the median of the last seven steps, over the widths from 2 on the monotone fit nearest to those (pool
    adjacent violators; de Leeuw, Hornik and Mair 2009), linear in between. Width 1 is the baseline that everything is
    judged by, so it is never pooled with others. Beyond the widest step seen, the slope continues.
    """

    def __init__(self, known_s: Mapping[int, float] | None = None) -> None:
        """Start from nothing, or from seconds by width as an earlier process measured them."""
        self.unit_s = 0.0
        """Seconds of one unit, about those of a plain step; 0 before anything is known."""
        self.expected: list[float] = []
        """Cost by width, in units; index 0 is not used."""
        self.lowest: list[float] = []
        """What a width could cost at best: where it was not measured, little more than the next narrower one."""
        self.highest: list[float] = []
        """What a width is feared to cost: where it was not measured, as much as the next wider one, or a straight line
        from a plain step."""
        self.measured: list[bool] = []
        """By width, whether it was seen lately, and more than once, since one step alone may have been an outlier."""
        self.rounds_since_plain = 0
        self.num_plain = 0
        """Plain steps seen by this process."""
        self.version = 0
        """Rises when the curve moves by more than 2 % anywhere that was measured."""
        self._windows: dict[int, deque[float]] = {}
        self._medians: dict[int, float] = {}
        self._num_steps = 0
        self._seen: dict[int, int] = {}
        self._ratios: list[float] = []
        # What widths cost when a plain step was last seen: slow drift since then is the machine's, not theirs.
        self._anchors: dict[int, float] = {}
        for width, seconds in (known_s or {}).items():
            for _ in range(_TRUST_IN_KNOWN):
                self._keep(width, seconds)
        self._fit()

    def _is_stale(self, width: int) -> bool:
        return self._num_steps - self._seen.get(width, 0) > _STALE

    @property
    def known_s(self) -> dict[int, float]:
        """Seconds by width, of those that were measured."""
        return {width: median * self.unit_s for width, median in sorted(self._medians.items())}

    def learn(self, width: int, seconds: float) -> None:
        """Hear of one step.

        Args:
            width: positions, 1 to MAX_WIDTH.
            seconds: more than 0; nothing is learnt of anything else.
        """
        if not seconds > 0.0:
            return
        if width == 1:
            self.num_plain += 1
            self.rounds_since_plain = 0
        else:
            self.rounds_since_plain += 1
        self._num_steps += 1
        if self._is_stale(width) and width in self._windows:
            # Measured under who knows what load: what is seen now counts alone.
            self._windows[width].clear()
        self._seen[width] = self._num_steps
        known = self._windows.get(width)
        if known is not None and (width == 1 or len(known) > 1):
            self._follow(seconds / (self.unit_s * self._anchors.setdefault(width, self._medians[width])))
        before = self._medians.get(width)
        if before is None and self.unit_s:
            # One step alone may be an outlier, and a width that seems dear is not soon seen again.
            seconds = min(seconds, _FIRST_TRUST * self.highest[width] * self.unit_s)
        after = self._keep(width, seconds)
        if self.num_plain == _ROUNDS_OF_UNIT and width == 1 and len(self._medians) == 1:
            self._rescale(after)
            before = None
            after = 1.0
        if width == 1:
            self._anchors = {1: after}
        if before is None or abs(after - before) > 0.02 * before or self._num_steps % _REFIT == 0:
            self.version += 1
            self._fit()
        else:
            self.measured[width] = len(self._windows[width]) > 1

    def _keep(self, width: int, seconds: float) -> float:
        """Put a step into its window, and return the new median."""
        if not self.unit_s:
            self.unit_s = seconds / (1.0 + _GUESSED_SLOPE * (width - 1))
        window = self._windows.setdefault(width, deque(maxlen=_WINDOW))
        window.append(seconds / self.unit_s)
        # Of an even number the lower one: what disturbs a step makes it slower.
        self._medians[width] = sorted(window)[(len(window) - 1) // 2]
        return self._medians[width]

    def _rescale(self, factor: float) -> None:
        """Make a plain step the unit: the first one alone may have been an outlier."""
        self.unit_s *= factor
        for width, window in self._windows.items():
            self._windows[width] = deque((cost / factor for cost in window), maxlen=_WINDOW)
            self._medians[width] /= factor
        self._ratios.clear()

    def _follow(self, ratio: float) -> None:
        """Move the unit with the machine: slowly by the median of three rounds, at once where all three have jumped."""
        ratios = self._ratios
        ratios.append(ratio)
        if len(ratios) < 3:
            return
        lowest, middle, highest = sorted(ratios)
        if lowest > _JUMP or highest < 1.0 / _JUMP:
            self.unit_s *= middle
            ratios.clear()
            return
        # Two of three may both have been outliers: the unit would be wrong until enough plain steps are seen again.
        self.unit_s *= 1.0 + _FOLLOW * (min(max(middle, 1.0 / _JUMP), _JUMP) - 1.0)
        del ratios[0]

    def _fit(self) -> None:
        self.measured = [False] * (MAX_WIDTH + 1)
        for width, window in self._windows.items():
            self.measured[width] = len(window) > 1 and not self._is_stale(width)
        plain = self._medians.get(1, 1.0)
        widths = sorted(width for width in self._medians if width > 1)
        fitted = monotone([self._medians[width] for width in widths], [len(self._windows[width]) for width in widths])
        expected, lowest, highest = [0.0, plain], [0.0, plain], [0.0, plain]
        last, cost = 1, plain
        slope = 0.0
        for width, raw in zip(widths, fitted, strict=True):
            reached = max(raw, plain)
            slope = (reached - cost) / (width - last)
            for between in range(last + 1, width):
                expected.append(cost + slope * (between - last))
                lowest.append(cost)
                highest.append(reached)
            expected.append(reached)
            lowest.append(reached if self.measured[width] else cost)
            highest.append(reached)
            last, cost = width, reached
        mean_slope = (cost - plain) / (last - 1) if last > 1 else 0.0
        rise = (slope + mean_slope) / 2 if last > 1 else _GUESSED_SLOPE * plain
        most = max(mean_slope, slope) if last > 1 else _HIGHEST_SLOPE * plain
        least = mean_slope / 4 if last > 1 else _LOWEST_SLOPE * plain
        for beyond in range(1, MAX_WIDTH - last + 1):
            expected.append(cost + rise * beyond)
            lowest.append(cost + least * beyond)
            highest.append(cost + most * beyond)
        self.expected, self.lowest, self.highest = expected, lowest, highest


def monotone(values: list[float], weights: list[int]) -> list[float]:
    """Return the non-decreasing sequence nearest to `values` in weighted squares (pool adjacent violators)."""
    blocks: list[tuple[float, int, int]] = []
    for value, weight in zip(values, weights, strict=True):
        mean, total, count = value, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, other_weight, other_count = blocks.pop()
            mean = (mean * total + other * other_weight) / (total + other_weight)
            total += other_weight
            count += other_count
        blocks.append((mean, total, count))
    return [mean for mean, _, count in blocks for _ in range(count)]


class DraftCosts:
    """What a model's draft costs, in units of the target's steps.

    cost = steps * step + (unseen - 1) * catch_up: the first step also reads what the draft has not seen.
    """

    def __init__(self, step: float, catch_up: float | None = None) -> None:
        """Start from a guess, or from what was measured earlier."""
        self.step = step
        self.catch_up = catch_up or 0.0
        self._steps: deque[float] = deque(maxlen=9)
        self._catch_ups: deque[float] = deque(maxlen=5)
        self._is_known = catch_up is not None

    def guess_catch_up(self, slope: float) -> None:
        """Until a gap was caught up with: a quarter of what a second position costs the target, relative to a step.

        Args:
            slope: cost of a target step over two positions / over one, less 1.
        """
        if not self._is_known and not self._catch_ups:
            self.catch_up = _READING_PER_SLOPE * slope * self.step

    def of(self, num_tokens: int, unseen: int) -> float:
        """Return the cost of drafting so many tokens."""
        return num_tokens * self.step + max(unseen - 1, 0) * self.catch_up

    def learn(self, cost: float, num_tokens: int, unseen: int) -> None:
        """Hear of a draft of at least one token."""
        if unseen < _ENOUGH_UNSEEN or not self._steps:
            behind = max(unseen - 2, 0) * self.catch_up
            self._steps.append(max(cost - behind, 0.5 * cost) / num_tokens)
            self.step = sorted(self._steps)[(len(self._steps) - 1) // 2]
            return
        # Of few unseen tokens the difference would be noise.
        behind = max(cost - num_tokens * self.step, 0.0) / (unseen - 1)
        if len(self._catch_ups) < 2 and self.catch_up > 0.0:
            # As with a first step: what seems dear is not soon tried again.
            behind = min(behind, 2.0 * self.catch_up)
        self._catch_ups.append(behind)
        self.catch_up = sorted(self._catch_ups)[(len(self._catch_ups) - 1) // 2]
