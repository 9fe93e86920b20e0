"""Where ways of drafting are tried on loaded models: each between two runs of the baseline on the same prompt."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from localspec.engine.events import Configured, Event
from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import Configure
from localspec.engine.values import ContextSettings, ModelInfo, SamplingSettings, SpeculationSettings
from localspec.errors import EngineDiedError, LocalspecError
from localspec.hardware.energy import EnergyReading, joules_between
from localspec.methods import is_adaptive
from localspec.metrics.comparison import interpolate_rate
from localspec.session.arms import BASELINE_NAME, PromptCase
from localspec.session.pacing_memory import COLD
from localspec.session.trial import Trial, run_trial
from localspec.session.tuning.values import WarmSetting

ARMS_BETWEEN: Final = 2
"""Runs of other arms between two of the baseline."""


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt of a workload, with what its answer is drawn with."""

    workload: str
    prompt: PromptCase
    sampling: SamplingSettings


@dataclass(frozen=True, slots=True)
class Run:
    """One run's figures."""

    decode_tps: float | None
    joules_per_token: float | None
    wall_s: float
    trial: Trial


Ratios = dict[WarmSetting, dict[str, float]]
"""Of each setting: decode_tps / the baseline's, by workload; what has none is missing."""


@dataclass
class Stand:
    """An engine with loaded models, and what is known of its speed."""

    engine: Engine
    max_tokens: int
    ignore_eog: bool
    draft: Path | None
    """Which draft model is loaded."""
    draft_context: ContextSettings
    clock: Callable[[], float]
    read_energy: Callable[[], EnergyReading | None]
    on_event: Callable[[Event], None]
    on_setting: Callable[[WarmSetting | None], None]
    """Hears what runs next; None for the baseline."""
    draft_info: ModelInfo | None = None
    """That draft, as llama.cpp describes it; None for none."""
    reasons: dict[WarmSetting, str] = field(default_factory=dict)
    """Why settings could not be switched on."""
    baseline_runs: list[tuple[str, float]] = field(default_factory=list)
    """Prompt and decode_tps of each, in order."""
    joules: dict[WarmSetting | None, list[float]] = field(default_factory=dict)
    """Per token, of each setting; None is the baseline."""
    _walls_s: list[float] = field(default_factory=list)
    _in_force: WarmSetting | None = None
    _is_off: bool = False

    @property
    def run_s(self) -> float:
        """Time that a run takes, by those that were made; 0 before the first."""
        return statistics.fmean(self._walls_s[-12:]) if self._walls_s else 0.0

    async def baseline(self, case: Case, max_tokens: int = 0, is_fresh: bool = False) -> Run:
        """Run once without drafts.

        Args:
            case: what to answer.
            max_tokens: of a run that is no measurement; 0 for one that is.
            is_fresh: read the whole prompt, even if it was the last one.

        Raises:
            LocalspecError: the engine failed.
        """
        self.on_setting(None)
        if not self._is_off:
            self._in_force = None
            await self._configure(WarmSetting(SpeculationSettings(method="off"), self.draft))
            self._is_off = True
        run = await self._run(case, None, max_tokens, is_fresh)
        if run.decode_tps is not None and not max_tokens:
            self.baseline_runs.append((case.prompt.name, run.decode_tps))
        return run

    async def block(self, cases: Sequence[Case], settings: Sequence[WarmSetting], until_s: float) -> Ratios:
        """Run each setting once on each case, and the baseline before, after and after every second of them.

        Args:
            cases: one prompt of each workload.
            settings: in the order in which they run.
            until_s: on the clock; what would end later is not begun.

        Raises:
            LocalspecError: the engine failed.
        """
        found: Ratios = {}
        order = _by_draft(settings, self.draft)
        for start in range(0, len(order), ARMS_BETWEEN):
            arms = [setting for setting in order[start : start + ARMS_BETWEEN] if setting not in self.reasons]
            if not arms:
                continue
            if self.clock() + (len(arms) + 2) * len(cases) * self.run_s > until_s:
                break
            for case in cases:
                for setting, ratio in (await self._flanked(case, arms)).items():
                    found.setdefault(setting, {})[case.workload] = ratio
        return found

    async def switch_to(self, setting: WarmSetting) -> bool:
        """Put a setting in force, and return whether the engine really does what it asks.

        Raises:
            LocalspecError: the engine died.
        """
        given = setting.speculation
        if self._in_force == setting and not is_adaptive(given.method, given.pacing):
            return True
        self._is_off, self._in_force = False, None
        try:
            answer = await self._configure(setting)
        except EngineDiedError:
            raise
        except LocalspecError as error:
            self.reasons[setting] = error.message
            return False
        state = answer.speculation
        if not state.is_on or state.method != given.method:
            self.reasons[setting] = answer.draft_failure or state.reason or f"the engine drafts by {state.method}"
            return False
        if setting.draft is not None and self.draft != setting.draft:
            # `auto` goes on without a draft model, and would be taken for what it is not.
            self.reasons[setting] = answer.draft_failure or "the draft model cannot be used"
            return False
        self._in_force = setting
        return True

    async def _flanked(self, case: Case, arms: Sequence[WarmSetting]) -> dict[WarmSetting, float]:
        """Return ratios to what the baseline's flanking runs say about the moment of each run."""
        before = await self.baseline(case)
        runs = [(arm, await self._run(case, arm)) for arm in arms if await self._begin(arm)]
        if not runs:
            return {}
        after = await self.baseline(case)
        found = {}
        for place, (arm, run) in enumerate(runs, start=1):
            if before.decode_tps and after.decode_tps and run.decode_tps:
                flanks = (0, before.decode_tps), (len(runs) + 1, after.decode_tps)
                found[arm] = run.decode_tps / interpolate_rate(*flanks, place)
        return found

    async def _begin(self, setting: WarmSetting) -> bool:
        self.on_setting(setting)
        return await self.switch_to(setting)

    async def _configure(self, setting: WarmSetting) -> Configured:
        given = setting.speculation
        path = None
        if setting.draft is not None and setting.draft != self.draft:
            path = str(setting.draft)
        # What a run has learnt must not help the next one, and an answer that was kept would be copied by it.
        request = Configure(
            self.engine.next_id(),
            replace(given, remembers=False),
            draft_path=path,
            draft_context=self.draft_context,
            pacing_state=COLD if is_adaptive(given.method, given.pacing) else "",
        )
        answer = await last_event(self.engine, request)
        if not isinstance(answer, Configured):
            raise EngineDiedError("The engine gave another answer than the one asked for.", "Try again.")
        if path is not None:
            self.draft, self.draft_info = (setting.draft if answer.draft is not None else None), answer.draft
        return answer

    async def _run(self, case: Case, setting: WarmSetting | None, max_tokens: int = 0, is_fresh: bool = False) -> Run:
        tokens = max_tokens or self.max_tokens
        request = case.prompt.request(self.engine.next_id(), case.sampling, tokens, self.ignore_eog)
        # Runs of one prompt follow each other, and what counts begins after it: it need not be read each time.
        request = replace(request, is_fresh=is_fresh)
        name = BASELINE_NAME if setting is None else setting.speculation.method
        begun_s, energy = self.clock(), self.read_energy()
        trial = await run_trial(self.engine, request, name, 0, 0, case.prompt.name, self.on_event)
        wall_s = self.clock() - begun_s
        joules = joules_between(energy, self.read_energy())
        per_token = joules / len(trial.tokens) if joules is not None and trial.tokens else None
        if not max_tokens:
            self._walls_s.append(wall_s)
            if per_token is not None:
                self.joules.setdefault(setting, []).append(per_token)
        return Run(trial.decode_tps, per_token, wall_s, trial)


def _by_draft(settings: Sequence[WarmSetting], loaded: Path | None) -> list[WarmSetting]:
    """Return settings with those of one draft model together, the loaded one's first: loading takes time."""
    drafts = dict.fromkeys([loaded, *(setting.draft for setting in settings if setting.draft is not None)])
    order = {draft: place for place, draft in enumerate(drafts)}
    return sorted(settings, key=lambda setting: 0 if setting.draft is None else order[setting.draft])
