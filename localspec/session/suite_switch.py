"""A text that changes its kind: several answers in a row, between which adaptive drafting keeps what it has learnt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import Configure
from localspec.engine.values import SamplingSettings
from localspec.metrics.comparison import PairedRate, compare_rates
from localspec.metrics.statistics import median
from localspec.session.arms import Arm, PromptCase
from localspec.session.comparison import run_order
from localspec.session.pacing_memory import COLD
from localspec.session.suite_result import SwitchRow
from localspec.session.trial import Trial, run_trial


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the text."""

    workload: str
    prompt: PromptCase


Passes = Mapping[str, Sequence[Sequence[Trial]]]
"""By arm: for each pair its trials, one for each segment."""


async def run_switch(
    engine: Engine,
    segments: Sequence[Segment],
    arms: Sequence[Arm],
    sampling: SamplingSettings,
    max_tokens: int,
    num_pairs: int,
    on_progress: Callable[[str, float], None],
) -> SwitchRow:
    """Let each arm write all segments in a row, arms taking turns, and return how auto fares.

    Args:
        engine: has the models loaded.
        segments: in order.
        arms: the baseline first, auto second, then the settings that are the best of one segment or another.
        max_tokens: of each segment.
        num_pairs: times that each arm writes the whole.
        on_progress: hears which arm is at work, and what share is done.

    Raises:
        LocalspecError: the engine failed.
    """
    passes: dict[str, list[list[Trial]]] = {arm.name: [] for arm in arms}
    order = run_order(len(arms), num_pairs)[: len(arms) * num_pairs]
    for place, (pair, index) in enumerate(order):
        arm = arms[index]
        on_progress(arm.name, place / len(order))
        # Cold at the beginning, and never again: the next segment finds what the last one taught.
        await last_event(engine, Configure(engine.next_id(), arm.speculation, pacing_state=COLD))
        trials = []
        for segment in segments:
            request = segment.prompt.request(engine.next_id(), sampling, max_tokens, True)
            name = segment.prompt.name
            trials.append(await run_trial(engine, request, arm.name, pair, place, name, lambda event: None))
        passes[arm.name].append(trials)
    return evaluate_switch([segment.workload for segment in segments], passes, arms[0].name, arms[1].name)


def evaluate_switch(workloads: Sequence[str], passes: Passes, baseline: str, auto: str) -> SwitchRow:
    """Return auto's speed against the baseline's, and against the best other arm of each segment.

    The best arm of a segment is the one whose time is least in the median of the pairs.
    """
    others = [name for name in passes if name != auto]
    best = tuple(
        min(others, key=lambda name: median([_seconds(trials[place]) for trials in passes[name]]))
        for place in range(len(workloads))
    )
    ideal = [_rate([passes[name][pair][place] for place, name in enumerate(best)]) for pair in range(len(passes[auto]))]
    autos, offs = ([_rate(trials) for trials in passes[name]] for name in (auto, baseline))
    return SwitchRow(
        tuple(workloads),
        best,
        compare_rates([PairedRate(*pair) for pair in zip(offs, autos, strict=True)], np.random.default_rng(1)),
        compare_rates([PairedRate(*pair) for pair in zip(ideal, autos, strict=True)], np.random.default_rng(1)),
    )


def _rate(trials: Sequence[Trial]) -> float | None:
    """Return decode tokens per second over several answers."""
    seconds = sum(_seconds(trial) for trial in trials)
    return sum(trial.stats.num_tokens - 1 for trial in trials) / seconds if seconds else None


def _seconds(trial: Trial) -> float:
    """Return the time of the tokens after the first one."""
    return (trial.stats.num_tokens - 1) / trial.decode_tps if trial.decode_tps else 0.0
