"""What steps cost on made-up machines, after curves measured or published for real ones."""

from __future__ import annotations

import random
from dataclasses import dataclass

PLAIN_S = 0.05
"""A plain step."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A verification curve: points (width, cost in plain steps), linear between them."""

    name: str
    points: tuple[tuple[int, float], ...]
    reading: float
    """What a model pays for a token that it reads among many, in its own plain steps."""

    def cost(self, width: int) -> float:
        """Return the cost of a step over `width` positions, in plain steps."""
        before = self.points[0]
        for point in self.points[1:]:
            if width <= point[0]:
                share = (width - before[0]) / (point[0] - before[0])
                return before[1] + share * (point[1] - before[1])
            before = point
        last, end = self.points[-2:]
        return end[1] + (end[1] - last[1]) / (end[0] - last[0]) * (width - end[0])


GPU = Machine("GPU, flat to 4", ((1, 1.0), (2, 1.17), (4, 1.36), (8, 2.2), (9, 3.4), (16, 3.8), (33, 4.6)), 0.04)
CPU_F16 = Machine("CPU F16", ((1, 1.0), (2, 1.65), (3, 1.82), (4, 2.0), (6, 2.1), (8, 2.6), (12, 3.1), (16, 3.6)), 0.12)
CPU_Q4_0 = Machine(
    "CPU Q4_0, stairs",
    ((1, 1.0), (2, 1.85), (3, 2.48), (4, 2.48), (5, 3.53), (7, 4.3), (8, 4.3), (12, 6.0), (16, 6.57)),
    0.2,
)
CPU_Q4_K = Machine(
    "CPU Q4_K, steep", ((1, 1.0), (2, 2.03), (3, 2.75), (4, 3.19), (5, 3.98), (8, 6.93), (16, 9.2)), 0.35
)
MOE = Machine("MoE", ((1, 1.0), (2, 1.59), (3, 1.84), (5, 2.44), (8, 3.3), (16, 5.2)), 0.2)
METAL = Machine("Metal-like", ((1, 1.0), (2, 1.5), (3, 1.75), (4, 2.0), (8, 2.9), (9, 4.6), (16, 5.5)), 0.1)

MACHINES = (GPU, CPU_F16, CPU_Q4_0, CPU_Q4_K, MOE, METAL)


class Clock:
    """Simulated time: what the code under test sees is noisy, what it is judged by is not."""

    def __init__(self, seed: int, noise: float = 0.04, outliers: float = 0.01, drift: float = 0.0) -> None:
        """Take the spread of a step's time, the share of steps that take five times as long, and how much slower
        everything gets per token."""
        self._random = random.Random(seed)
        self._noise = noise
        self._outliers = outliers
        self._drift = drift
        self.now_s = 0.0
        self.spent = 0.0
        """Plain steps' worth of time that was really used."""
        self.slowness = 1.0

    def __call__(self) -> float:
        return self.now_s

    def spend(self, cost: float) -> None:
        """Let a step of this cost pass."""
        self.spent += cost
        factor = self._random.lognormvariate(0.0, self._noise)
        if self._random.random() < self._outliers:
            factor *= 5.0
        self.now_s += cost * PLAIN_S * factor * self.slowness

    def age(self) -> None:
        """Let the machine grow slower by a token."""
        self.slowness += self._drift
