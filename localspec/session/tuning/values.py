"""What a search for the best settings is given, tells on its way, and finds."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from localspec.catalog.workloads import Workload
from localspec.engine.events import Event, ModelsLoaded, StepCost
from localspec.engine.values import ContextSettings, KvType, Method, SamplingSettings, SpeculationSettings
from localspec.errors import LocalspecError
from localspec.metrics.comparison import Verdict
from localspec.metrics.statistics import Estimate
from localspec.planning.devices import DEFAULT_RESERVE_BYTES
from localspec.session.measurement import Measurement, MeasurementProgress

Stage = Literal["load", "screen", "search", "confirm"]

STAGES: Final[tuple[tuple[Stage, str], ...]] = (
    ("load", "load, and see how fast answers are"),
    ("screen", "threads, flash attention, placement"),
    ("search", "ways of drafting"),
    ("confirm", "the best ones on new prompts"),
)
"""In order, with what each is about."""

Knob = Literal["threads", "draft_threads", "flash_attn", "kv", "draft_placement"]
"""What changes with a load only."""


@dataclass(frozen=True, slots=True)
class TuningPlan:
    """What to search, for which text, and for how long."""

    target: Path
    drafts: tuple[Path, ...]
    """Each is a candidate; the first is loaded while what needs a load is screened."""
    context: ContextSettings
    draft_context: ContextSettings
    speculation: SpeculationSettings
    """What is not searched, such as the match lengths of n-gram drafting, is taken from here."""
    workloads: tuple[Workload, ...]
    sampling: SamplingSettings
    budget_s: float
    """Loading included."""
    methods: tuple[Method, ...] = ()
    """Ways of drafting to search; empty for all that are possible."""
    fixed_knobs: frozenset[Knob] = frozenset()
    """What was stated, and so is not searched."""
    kv_types: tuple[KvType, ...] = ()
    """Types of the KV cache to try. Those below f16 change the text a little, so none is tried unasked."""
    is_temperature_fixed: bool = False
    """The sampling's temperature holds for workloads that have one of their own, too."""
    max_tokens: int = 128
    """Longest answer of a run; a small budget takes shorter ones."""
    ignore_eog: bool = False
    with_hashes: bool = False
    reserve_bytes: int = DEFAULT_RESERVE_BYTES
    is_forced: bool = False
    seed: int = 1
    """Of the search itself."""

    @property
    def is_hot(self) -> bool:
        """Whether any answer is drawn at a temperature, so that ways of verification differ."""
        return any(self.temperature_of(workload) > 0.0 for workload in self.workloads)

    def temperature_of(self, workload: Workload) -> float:
        """Return the temperature that is in force for a workload."""
        own = None if self.is_temperature_fixed else workload.temperature
        return self.sampling.temperature if own is None else own


@dataclass(frozen=True, slots=True)
class WarmSetting:
    """A way of drafting. It changes without loading the target again."""

    speculation: SpeculationSettings
    draft: Path | None = None
    """The draft model that is loaded with it; None where none is used."""


@dataclass(frozen=True, slots=True)
class ColdTrial:
    """What steps cost with one way of loading."""

    name: str
    """Such as `threads 4`; `as given` for the first."""
    context: ContextSettings
    draft_context: ContextSettings
    costs: tuple[StepCost, ...]
    """The target's, by width."""
    draft: StepCost | None
    """A single step of the draft model."""
    reason: str = ""
    """Why it could not be measured; empty if it was."""

    @property
    def draft_step_s(self) -> float | None:
        """Median time of a step of the draft model."""
        return None if self.draft is None else self.draft.median_s

    def step_s(self, width: int) -> float | None:
        """Return the median time of a step of this width."""
        return next((cost.median_s for cost in self.costs if cost.width == width), None)


@dataclass(frozen=True, slots=True)
class ColdChoice:
    """How to load, and what that gains without any drafts."""

    context: ContextSettings
    draft_context: ContextSettings
    changes: tuple[str, ...] = ()
    """What is not as it was given, such as `threads 4`."""
    off_gain: float | None = None
    """Plain steps per second / with the settings as given; None where nothing changed for them, or was measured."""
    trials: tuple[ColdTrial, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def of_draft(self) -> tuple[str, ...]:
        """Those of the changes that help drafting only."""
        return tuple(change for change in self.changes if change.startswith("draft "))


@dataclass(frozen=True, slots=True)
class TuningTrial:
    """What the search has measured of one way of drafting."""

    setting: WarmSetting
    ratios: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """Of each workload: decode_tps / that of the neighbouring runs without drafts, pair by pair."""
    reason: str = ""
    """Why it could not be switched on; empty if it could."""

    @property
    def num_pairs(self) -> int:
        """Pairs on the workload that has fewest."""
        return min((len(values) for _, values in self.ratios), default=0)

    @property
    def ratio(self) -> float | None:
        """Geometric mean over pairs, then over workloads; None before the first pair."""
        means = [statistics.fmean(map(math.log, values)) for _, values in self.ratios if values]
        return math.exp(statistics.fmean(means)) if means else None


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A cell of the map n_max x p_min for drafting with a model at a fixed length."""

    n_max: int
    p_min: float
    ratio: float
    num_pairs: int


@dataclass(frozen=True, slots=True)
class TuningProgress:
    """Where a search stands."""

    stage: Stage
    elapsed_s: float
    budget_s: float
    stage_ends_s: tuple[tuple[Stage, float], ...]
    """When each stage should be over, in seconds from the start."""
    trial: int = 0
    """Ways of drafting, or of loading, that were begun in this stage."""
    what: str = ""
    """What is being tried: a way of loading; empty otherwise."""
    setting: WarmSetting | None = None
    """The way of drafting that runs now; None for the baseline."""
    ratio: float | None = None
    """What is known of that one."""
    best: TuningTrial | None = None
    """The best so far; None before one is known, and where none is faster than the baseline."""
    cells: tuple[HeatCell, ...] = ()
    trials: tuple[TuningTrial, ...] = ()
    """All that is known, the best first."""
    event: Event | None = None
    """The engine's newest."""
    measurement: MeasurementProgress | None = None
    """While the best ones are confirmed."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A finalist on prompts that the search has not used."""

    setting: WarmSetting
    arm: str
    """Its name in the measurement."""
    speedup: Estimate | None
    """Over all workloads, pair by pair; None if no pair is complete."""
    verdict: Verdict | None
    by_workload: tuple[tuple[str, Estimate | None], ...]
    reason: str = ""
    """Why it cannot win whatever its speed; empty otherwise."""
    is_unsettled: bool = False
    """Whether the confirmation, and not the setting, is why it did not win."""


@dataclass(frozen=True, slots=True)
class TuningResult:
    """What was found."""

    plan: TuningPlan
    loaded: ModelsLoaded | None
    """As the models were loaded last; None if they were not."""
    cold: ColdChoice
    trials: tuple[TuningTrial, ...]
    """The best first."""
    confirmed: tuple[Confirmed, ...] = ()
    """Empty if it did not come so far."""
    winner: Confirmed | None = None
    """None: leave drafts off, or nothing is known yet."""
    measurements: tuple[Measurement, ...] = ()
    """The confirmation, one for each draft model among the finalists."""
    is_interrupted: bool = False
    failure: LocalspecError | None = None
    elapsed_s: float = 0.0
    baseline_tps: tuple[float, ...] = ()
    """All runs without drafts of the search, in order."""
    notes: tuple[str, ...] = ()
    on_battery: bool = False
    joules_per_token: tuple[float | None, float | None] = (None, None)
    """Processor's energy without drafts and with the best of the search; None where the system does not say."""
    cells: tuple[HeatCell, ...] = field(default=())

    @property
    def is_conclusive(self) -> bool:
        """Whether the confirmation settled something, so that `off` is an answer and not for want of a better one."""
        return not self.is_interrupted and self.failure is None and not self.is_unsettled

    @property
    def is_unsettled(self) -> bool:
        """Whether the confirmation came to its end and still says nothing."""
        return self.winner is None and any(one.is_unsettled for one in self.confirmed)
