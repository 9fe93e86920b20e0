"""Run the arms of a comparison one after another on the same loaded models.

The order is A B B A A B B A …, with more arms A B C C B A …, so that a machine that slows down or speeds up steadily
harms no arm. That balances in twos: after an odd number of pairs the baseline runs once more, and the last pair
is measured against what the baseline's two flanking runs say about the moment in between. (Without it, the median of
three pairs on a machine that loses 5 % with every run would be 0.95 for two equal arms.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from localspec.engine.events import Configured, Event
from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import Configure
from localspec.engine.values import SamplingSettings, SpeculationState
from localspec.errors import EngineDiedError, LocalspecError, UsageError
from localspec.methods import is_adaptive
from localspec.session.arms import Arm, PromptCase, check_arms
from localspec.session.outcome import (
    ComparisonFailed,
    ComparisonInterrupted,
    ComparisonResult,
    comparison_notes,
    evaluate_arm,
)
from localspec.session.pacing_memory import COLD
from localspec.session.same_text import SameText, compare_text, first_difference, must_be_same, unexplained, worst
from localspec.session.trial import Trial, run_trial

Phase = Literal["warm_up", "trial", "replay"]


@dataclass(frozen=True, slots=True)
class ComparisonProgress:
    """Where a comparison stands. `event` is the engine's newest; None when a phase begins."""

    workload_name: str
    phase: Phase
    arm: Arm
    pair: int
    """From 0."""
    num_pairs: int
    num_done: int
    """Generations finished, warm-ups included."""
    num_total: int
    event: Event | None
    trial: Trial | None = None
    """The measured run that has just ended, whole."""
    so_far: ComparisonResult | None = None
    """After a pair of a comparison that ends when its intervals are narrow: what is known by now."""


OnProgress = Callable[[ComparisonProgress], None]


def run_order(num_arms: int, num_pairs: int) -> tuple[tuple[int, int], ...]:
    """Return (pair, arm) of every measured run in order; arm 0 is the baseline."""
    order = [
        (pair, arm)
        for pair in range(num_pairs)
        for arm in (range(num_arms) if pair % 2 == 0 else reversed(range(num_arms)))
    ]
    if num_pairs % 2 == 1 and num_arms > 1:
        order.append((num_pairs - 1, 0))
    return tuple(order)


def check_extent(num_pairs: int, max_tokens: int) -> None:
    """Raise UsageError if so few runs or tokens measure nothing."""
    if num_pairs < 1 or max_tokens < 2:
        raise UsageError(
            f"Nothing can be measured with {num_pairs} pairs of {max_tokens} tokens.",
            "Take at least 1 pair, better 3, and at least 2 tokens: the first one belongs to the prompt.",
        )


async def run_comparison(
    engine: Engine,
    workload_name: str,
    prompts: Sequence[PromptCase],
    arms: Sequence[Arm],
    sampling: SamplingSettings,
    max_tokens: int,
    on_progress: OnProgress,
    num_pairs: int = 3,
    ignore_eog: bool = False,
    warmup_tokens: int = 16,
    bootstrap_seed: int = 1,
    half_width: float | None = None,
    pacing_state: str = COLD,
    explains: bool = True,
) -> ComparisonResult:
    """Compare arms on loaded models; pair i takes prompt i mod len(prompts).

    Args:
        arms: the baseline first.
        max_tokens: cap of each run.
        num_pairs: measured runs of each arm.
        warmup_tokens: cap of the unmeasured run of each arm before the first pair; 0 for none.
        half_width: end after the pair with which every speedup's Estimate.half_width is at most this; the result's
            num_pairs are then those that were run. None runs all pairs.
        pacing_state: what each run of an arm with adaptive lengths begins with; COLD knows nothing.
        explains: replay texts that differ, to say why.

    Raises:
        UsageError: there is nothing to compare or run.
        ComparisonFailed: the engine failed; carries what was measured.
        LocalspecError: the engine failed before anything was measured.
        ComparisonInterrupted: the task was cancelled, or somebody cancelled a generation; carries what was measured.
    """
    check_arms(arms)
    if not prompts:
        raise UsageError(f"The workload {workload_name} has no prompts.", "Choose another one.")
    check_extent(num_pairs, max_tokens)
    run = _Run(engine, workload_name, arms, sampling, num_pairs, on_progress, pacing_state)
    try:
        await run.warm_up(prompts[0], min(warmup_tokens, max_tokens), ignore_eog)
        await run.measure(prompts, max_tokens, ignore_eog, half_width, bootstrap_seed)
        if explains:
            await run.compare_texts(ignore_eog)
    except asyncio.CancelledError:
        raise ComparisonInterrupted(run.result(True, bootstrap_seed)) from None
    except LocalspecError as error:
        result = run.result(True, bootstrap_seed)
        if not any(arm.trials for arm in result.arms):
            raise
        raise ComparisonFailed(result, error) from error
    return run.result(False, bootstrap_seed)


class _Run:
    """A comparison that is under way."""

    def __init__(
        self,
        engine: Engine,
        workload_name: str,
        arms: Sequence[Arm],
        sampling: SamplingSettings,
        num_pairs: int,
        on_progress: OnProgress,
        pacing_state: str,
    ) -> None:
        self._engine = engine
        self._pacing_state = pacing_state
        self._workload_name = workload_name
        self._arms = tuple(arms)
        self._sampling = sampling
        self._num_pairs = num_pairs
        self._on_progress = on_progress
        self._current: Arm | None = None
        self._states: dict[str, SpeculationState] = {}
        self._reasons: dict[str, str] = {}
        self._trials: dict[str, list[Trial]] = {arm.name: [] for arm in arms}
        self._closing: Trial | None = None
        self._texts: dict[tuple[str, int], SameText] = {}
        self._num_done = 0
        self._num_total = len(arms) + len(run_order(len(arms), num_pairs))

    async def warm_up(self, prompt: PromptCase, max_tokens: int, ignore_eog: bool) -> None:
        """Switch every arm on once, find out which cannot be, and throw one short run of each away."""
        for arm in self._arms:
            self._report("warm_up", arm, 0, None)
            if await self._switch_to(arm) and max_tokens > 0:
                await self._generate("warm_up", arm, 0, 0, prompt, max_tokens, ignore_eog)
            self._num_done += 1

    async def measure(
        self,
        prompts: Sequence[PromptCase],
        max_tokens: int,
        ignore_eog: bool,
        half_width: float | None,
        bootstrap_seed: int,
    ) -> None:
        """Run all pairs, or as many as the intervals need."""
        active = [arm for arm in self._arms if arm.name not in self._reasons]
        order = run_order(len(active), self._num_pairs)
        num_before, place = self._num_done, 0
        self._num_total = num_before + len(order)
        while place < len(order):
            pair, index = order[place]
            arm = active[index]
            if arm.name not in self._reasons and await self._switch_to(arm):
                self._report("trial", arm, pair, None)
                prompt = prompts[pair % len(prompts)]
                trial = await self._generate("trial", arm, pair, place, prompt, max_tokens, ignore_eog)
                self._keep(arm, trial)
                self._report("trial", arm, pair, None, trial)
            self._num_done += 1
            place += 1
            is_paired = place == (pair + 1) * len(active)
            if half_width is not None and is_paired and self._is_narrow(arm, pair, half_width, bootstrap_seed):
                self._num_pairs = pair + 1
                order = run_order(len(active), self._num_pairs)
                self._num_total = num_before + len(order)

    async def compare_texts(self, ignore_eog: bool) -> None:
        """Compare each pair's outputs. Replays come last, so that none disturbs a measured run."""
        for arm in self._arms[1:]:
            for baseline, trial in self._pairs_of(arm):
                if first_difference(baseline.tokens, trial.tokens) is not None:
                    self._report("replay", arm, trial.pair, None)
                on_event = self._forward("replay", arm, trial.pair)
                answer = await compare_text(self._engine, baseline, trial, self._sampling, ignore_eog, on_event)
                self._texts[arm.name, trial.pair] = answer
                if answer.kind == "error":
                    break

    def result(self, is_interrupted: bool, bootstrap_seed: int) -> ComparisonResult:
        """Return what is known by now."""
        baseline = self._trials[self._arms[0].name]
        results = tuple(
            evaluate_arm(
                arm=arm,
                state=self._states.get(arm.name),
                reason=self._reasons.get(arm.name, ""),
                trials=self._trials[arm.name],
                baseline=baseline,
                closing=self._closing,
                same_text=self._same_text(arm, is_interrupted),
                bootstrap_seed=bootstrap_seed,
            )
            for arm in self._arms
        )
        notes = comparison_notes(baseline, self._closing, self._num_pairs)
        return ComparisonResult(
            self._workload_name, results, self._closing, self._num_pairs, self._sampling, is_interrupted, notes
        )

    def _is_narrow(self, arm: Arm, pair: int, half_width: float, bootstrap_seed: int) -> bool:
        """Report what is known after a pair, and return whether that is exact enough."""
        so_far = self.result(False, bootstrap_seed)
        self._report("trial", arm, pair, None, so_far=so_far)
        speedups = [result.speedup for result in so_far.speculative if result.has_run]
        widths = [None if speedup is None else speedup.half_width for speedup in speedups]
        return bool(widths) and all(width is not None and width <= half_width for width in widths)

    async def _switch_to(self, arm: Arm) -> bool:
        """Put an arm in force and return whether the engine really does what it asks."""
        learns = is_adaptive(arm.speculation.method, arm.speculation.pacing)
        # What a run has learnt must not help the next one.
        if self._current is arm and not learns:
            return True
        self._current = None
        state = self._pacing_state if learns else ""
        try:
            # An answer that was kept would be copied by the next run, which gives the same one.
            speculation = replace(arm.speculation, remembers=False)
            request = Configure(self._engine.next_id(), speculation, pacing_state=state)
            answer = await last_event(self._engine, request)
        except EngineDiedError:
            raise
        except LocalspecError as error:
            if arm.is_baseline:
                raise
            self._reasons[arm.name] = error.message
            return False
        if not isinstance(answer, Configured):
            raise EngineDiedError("The engine gave another answer than the one asked for.", "Try again.")
        self._check_state(arm, answer.speculation)
        if arm.name in self._reasons:
            return False
        self._current = arm
        return True

    def _check_state(self, arm: Arm, state: SpeculationState) -> None:
        self._states[arm.name] = state
        if arm.is_baseline and state.is_on:
            raise LocalspecError(
                "Speculation could not be switched off, so there is no baseline.", "Load the models again."
            )
        if not arm.is_baseline and not state.is_on:
            self._reasons[arm.name] = state.reason or "the engine did not switch it on"
        elif state.is_on and state.method != arm.speculation.method:
            self._reasons[arm.name] = f"the engine drafts by {state.method} instead of {arm.speculation.method}"

    async def _generate(
        self, phase: Phase, arm: Arm, pair: int, place: int, prompt: PromptCase, max_tokens: int, ignore_eog: bool
    ) -> Trial:
        request = prompt.request(self._engine.next_id(), self._sampling, max_tokens, ignore_eog)
        on_event = self._forward(phase, arm, pair)
        trial = await run_trial(self._engine, request, arm.name, pair, place, prompt.name, on_event)
        if trial.finish_reason == "cancelled":
            raise asyncio.CancelledError
        return trial

    def _keep(self, arm: Arm, trial: Trial) -> None:
        self._check_state(arm, trial.speculation)
        if arm.is_baseline and any(kept.pair == trial.pair for kept in self._trials[arm.name]):
            self._closing = trial
        else:
            self._trials[arm.name].append(trial)

    def _pairs_of(self, arm: Arm) -> list[tuple[Trial, Trial]]:
        """Return the runs whose texts must agree."""
        if arm.name in self._reasons or not must_be_same(arm.speculation, self._sampling):
            return []
        baselines = {trial.pair: trial for trial in self._trials[self._arms[0].name]}
        trials = sorted(self._trials[arm.name], key=lambda trial: trial.pair)
        return [(baselines[trial.pair], trial) for trial in trials if trial.pair in baselines]

    def _same_text(self, arm: Arm, is_interrupted: bool) -> SameText | None:
        if arm.is_baseline:
            return None
        answers = [answer for (name, _), answer in sorted(self._texts.items()) if name == arm.name]
        if is_interrupted:
            answers += [
                unexplained(baseline, trial)
                for baseline, trial in self._pairs_of(arm)
                if (arm.name, trial.pair) not in self._texts
            ]
        return worst(answers)

    def _report(
        self,
        phase: Phase,
        arm: Arm,
        pair: int,
        event: Event | None,
        trial: Trial | None = None,
        so_far: ComparisonResult | None = None,
    ) -> None:
        self._on_progress(
            ComparisonProgress(
                workload_name=self._workload_name,
                phase=phase,
                arm=arm,
                pair=pair,
                num_pairs=self._num_pairs,
                num_done=self._num_done,
                num_total=self._num_total,
                event=event,
                trial=trial,
                so_far=so_far,
            )
        )

    def _forward(self, phase: Phase, arm: Arm, pair: int) -> Callable[[Event], None]:
        return lambda event: self._report(phase, arm, pair, event)
