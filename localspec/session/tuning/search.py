"""The search among ways of drafting: Optuna's TPE proposes, successive halving spends the runs.

A bracket begins with several settings. All get one pair on the same prompts, the better half another one on other
prompts, and the best quarter two more; all of a rung run on one prompt, so that easy prompts favour nobody. What they
reached is told to the optimiser (Bergstra et al. 2011, tree-structured Parzen estimator), which proposes the next
bracket. The best known setting runs again in the last rung of each, so that brackets can be compared.

Successive halving: Jamieson and Talwalkar 2016, with reduction factor 2.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from localspec.session.tuning.space import Space, complexity
from localspec.session.tuning.stand import Case, Ratios, Stand
from localspec.session.tuning.values import TuningTrial, WarmSetting

if TYPE_CHECKING:
    import optuna

RUNGS: Final = (1, 1, 2)
"""Pairs of each rung of a bracket."""

_LEAST_SPREAD: Final = 0.02
"""Of log ratios, where few are known."""
_MAX_REPEATS: Final = 24
"""Proposals of what is known already, after which the space counts as searched."""

Pool = Sequence[Sequence[Case]]
"""Prompts to run on: of each pair, one case of each workload."""


class Ledger:
    """What is known of each setting."""

    def __init__(self) -> None:
        self._ratios: dict[WarmSetting, dict[str, list[float]]] = {}
        self._reasons: dict[WarmSetting, str] = {}
        self._spread = 0.1

    def add(self, ratios: Ratios) -> None:
        """Take what a block of runs gave."""
        for setting, by_workload in ratios.items():
            own = self._ratios.setdefault(setting, {})
            for workload, ratio in by_workload.items():
                own.setdefault(workload, []).append(ratio)
        self._spread = self._pooled_spread()

    def refuse(self, reasons: dict[WarmSetting, str]) -> None:
        """Take why settings could not be switched on."""
        self._reasons.update(reasons)

    def trial(self, setting: WarmSetting) -> TuningTrial:
        """Return what is known of a setting."""
        ratios = self._ratios.get(setting, {})
        return TuningTrial(
            setting,
            tuple((workload, tuple(values)) for workload, values in ratios.items()),
            self._reasons.get(setting, ""),
        )

    def trials(self) -> tuple[TuningTrial, ...]:
        """Return all settings that were tried, by `score`, those without a figure last."""
        settings = dict.fromkeys([*self._ratios, *self._reasons])
        return tuple(sorted(map(self.trial, settings), key=self.score, reverse=True))

    def score(self, trial: TuningTrial) -> float:
        """Return the log ratio less its standard error: few pairs must not win by luck. -inf without a figure."""
        ratio = trial.ratio
        if ratio is None or trial.reason:
            return -math.inf
        return math.log(ratio) - self._spread / math.sqrt(max(1, trial.num_pairs))

    @property
    def spread(self) -> float:
        """Standard deviation of one log ratio of one setting, pooled over settings and workloads."""
        return self._spread

    def _pooled_spread(self) -> float:
        columns = [
            list(map(math.log, values)) for own in self._ratios.values() for values in own.values() if len(values) > 1
        ]
        squares = sum((value - statistics.fmean(logs)) ** 2 for logs in columns for value in logs)
        freedom = sum(len(logs) - 1 for logs in columns)
        return max(_LEAST_SPREAD, math.sqrt(squares / freedom)) if freedom else 0.1

    def best(self) -> TuningTrial | None:
        """Return the best setting that seems faster than the baseline; None if none does."""
        ranked = self.trials()
        return ranked[0] if ranked and (ranked[0].ratio or 0.0) > 1.0 and not ranked[0].reason else None


async def search(
    stand: Stand,
    space: Space,
    pool: Pool,
    ledger: Ledger,
    *,
    first: Sequence[WarmSetting],
    num_candidates: int,
    until_s: float,
    seed: int,
    on_change: Callable[[], None],
) -> None:
    """Search until the time is over or nothing new is left, writing into the ledger.

    Args:
        stand: runs the settings.
        space: of all settings.
        pool: prompts, used in turn.
        ledger: gets what is found as it comes, so that nothing is lost when the search is cancelled.
        first: tried before all others.
        num_candidates: settings of a bracket.
        until_s: on the stand's clock.
        seed: of the optimiser.
        on_change: called when the ledger has changed.

    Raises:
        LocalspecError: the engine failed.
    """
    optimiser = _Optimiser(space, first, seed)
    turn = 0
    while stand.clock() + 4 * max(1, len(pool[0])) * stand.run_s <= until_s:
        fresh = optimiser.propose(num_candidates, ledger)
        known = [trial.setting for trial in ledger.trials() if trial.ratio is not None and not trial.reason]
        alive = fresh or known[:4]
        if not alive:
            return
        before = len(stand.baseline_runs)
        for rung, num_pairs in enumerate(RUNGS):
            if rung == len(RUNGS) - 1 and turn > len(RUNGS) and known:
                alive = list(dict.fromkeys([*alive, known[0]]))
            for _ in range(num_pairs):
                # Back and forth, so that a machine that slows down harms no place in the order.
                order = alive if turn % 2 == 0 else alive[::-1]
                ledger.add(await stand.block(pool[turn % len(pool)], order, until_s))
                ledger.refuse(stand.reasons)
                on_change()
                turn += 1
            alive = _better_half(alive, ledger, keeps_auto=rung == 0 and optimiser.is_first)
        optimiser.learn(fresh, ledger)
        if len(stand.baseline_runs) == before:
            return


def finalists(ledger: Ledger, most: int) -> tuple[WarmSetting, ...]:
    """Return the settings worth a confirmation, the best first: those that seem faster than the baseline at all.

    `auto` is preferred where it is within the spread of the second place, since what it chose is no matter of luck.
    """
    ranked = [trial for trial in ledger.trials() if trial.ratio is not None and not trial.reason]
    worth = [trial for trial in ranked if (trial.ratio or 0.0) > 1.0]
    chosen = worth[:most]
    auto = next((trial for trial in worth if trial.setting.speculation.method == "auto"), None)
    if auto is not None and auto not in chosen and len(chosen) > 1:
        margin = ledger.spread / math.sqrt(max(1, auto.num_pairs))
        if math.log(auto.ratio or 1.0) + margin >= math.log(chosen[-1].ratio or 1.0):
            chosen[-1] = auto
    return tuple(trial.setting for trial in chosen)


def _better_half(alive: Sequence[WarmSetting], ledger: Ledger, keeps_auto: bool) -> list[WarmSetting]:
    found = [ledger.trial(setting) for setting in alive]
    ranked = sorted(
        (trial for trial in found if trial.ratio is not None and not trial.reason),
        key=lambda trial: (-(trial.ratio or 0.0), complexity(trial.setting)),
    )
    kept = ranked[: math.ceil(len(ranked) / 2)]
    kept += [trial for trial in ranked if keeps_auto and trial.setting.speculation.method == "auto"]
    names = {trial.setting for trial in kept}
    return [setting for setting in alive if setting in names]


class _Optimiser:
    """Optuna, asked and told."""

    def __init__(self, space: Space, first: Sequence[WarmSetting], seed: int) -> None:
        import optuna

        self._optuna = optuna
        self._space = space
        self._trials: dict[WarmSetting, optuna.trial.Trial] = {}
        self.is_first = True
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            # `group` and `constant_liar` are marked as experimental.
            warnings.simplefilter("ignore")
            sampler = optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=len(first), multivariate=True, group=True, constant_liar=True
            )
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        for setting in first:
            self._study.enqueue_trial(dict(space.values_of(setting)))

    def propose(self, count: int, ledger: Ledger) -> list[WarmSetting]:
        """Return up to so many settings that nothing is known of; fewer where the space holds no more."""
        fresh: list[WarmSetting] = []
        num_repeats = 0
        while len(fresh) < count and num_repeats < _MAX_REPEATS:
            trial = self._study.ask()
            setting = self._space.choose(_Choices(trial))
            known = ledger.trial(setting)
            if setting in fresh or known.reason:
                self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
                num_repeats += 1
            elif known.ratio is not None:
                self._study.tell(trial, math.log(known.ratio))
                num_repeats += 1
            else:
                self._trials[setting] = trial
                fresh.append(setting)
        return fresh

    def learn(self, settings: Sequence[WarmSetting], ledger: Ledger) -> None:
        """Tell what was found; those that left early count as pruned, at the pairs that they reached."""
        self.is_first = False
        state = self._optuna.trial.TrialState
        for setting in settings:
            found, trial = ledger.trial(setting), self._trials.pop(setting)
            if found.ratio is None or found.reason:
                self._study.tell(trial, state=state.FAIL)
                continue
            trial.report(math.log(found.ratio), step=found.num_pairs)
            if found.num_pairs < 2:
                self._study.tell(trial, state=state.PRUNED)
            else:
                self._study.tell(trial, math.log(found.ratio))


class _Choices:
    """A trial of Optuna's as the space asks it."""

    def __init__(self, trial: optuna.trial.Trial) -> None:
        self._trial = trial

    def suggest_int(self, name: str, low: int, high: int) -> int:
        return self._trial.suggest_int(name, low, high)

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        return str(self._trial.suggest_categorical(name, list(choices)))
