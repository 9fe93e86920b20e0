"""Makes the plans of the fit screen: on this machine's probe, or on engines of their own for machines described."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.hardware.host import Host, read_host
from localspec.session.fit import FitRequest, fit
from localspec.session.footprints import ProbeEngine
from localspec.session.library import local_models, read_library
from localspec.session.located import LocatedModel
from localspec.session.memory_devices import described_devices, machine_devices
from localspec.session.quantisations import quantisation_labels, smaller_quantisations
from localspec.session.released_memory import with_released
from localspec.tui.state import ChosenModel

if TYPE_CHECKING:
    from localspec.catalog.found_model import FoundModel
    from localspec.engine.interface import Engine
    from localspec.planning.devices import HypotheticalDevice
    from localspec.planning.footprint import Footprint, PairFootprint, Placement
    from localspec.planning.plan import Measure, MemoryPlan, TradeOffer
    from localspec.settings import Settings
    from localspec.tui.fit_knobs import FitKnobs

MAX_DESCRIBED = 3
"""Engines of described machines that are kept; each is a process."""


@dataclass(frozen=True, slots=True)
class FitAnswer:
    """A plan, what it is for, and what the models' files say."""

    knobs: FitKnobs
    plan: MemoryPlan
    num_layers: int
    """Of the target, its output layer counted."""
    num_draft_layers: int
    """0 without a draft."""
    n_ctx_train: int
    num_experts: int
    is_complete: bool = True
    """With its offers."""
    smaller_drafts: Mapping[str, ChosenModel] = field(default_factory=dict)
    """Other files of the draft on this machine, by quantisation."""

    @property
    def has_gpu(self) -> bool:
        """Whether there is anything to offload to."""
        return any(device.kind == "gpu" for device in self.plan.devices)


class NotingProbe(ProbeEngine):
    """Measures each placement once, and keeps what was last measured of each model."""

    target: Footprint | None = None
    draft: Footprint | None = None
    _known: dict[tuple[Path, Path | None, Placement, Placement | None], PairFootprint]

    def forget(self) -> None:
        """Measure anew from here on: how layers spread over GPUs depends on what is free."""
        self._known = {}
        self.target = self.draft = None

    def measure(self, target_path: Path, draft_path: Path | None = None) -> Measure:
        """Return what measures these models."""
        ask = super().measure(target_path, draft_path)

        async def measure(target: Placement, draft: Placement | None) -> PairFootprint:
            key = target_path, draft_path, target, draft
            pair = self._known.get(key) or await ask(target, draft)
            self._known[key] = pair
            self.target, self.draft = pair.target, pair.draft or self.draft
            return pair

        return measure


class FitPlanner:
    """Owns the engines of described machines. Everything may be cancelled at any time."""

    def __init__(
        self,
        probe: Callable[[], Engine],
        make_engine: Callable[[], Engine],
        settings: Settings,
        read: Callable[[], Host] = read_host,
    ) -> None:
        """Prepare; no engine is started before it is needed.

        Args:
            probe: returns the engine that measures on this machine; it is not closed here.
            make_engine: makes one for a described machine.
            settings: say where models are.
            read: tells the host's memory.
        """
        self._probe = probe
        self._make_engine = make_engine
        self._settings = settings
        self._read = read
        self._described: dict[tuple[HypotheticalDevice, ...], tuple[Engine, NotingProbe]] = {}
        self._lock = asyncio.Lock()
        self._here: tuple[FoundModel, ...] | None = None

    def forget_models(self) -> None:
        """Look anew at which models are here, the next time they are needed."""
        self._here = None

    async def plan(
        self,
        knobs: FitKnobs,
        loaded: PairFootprint | None = None,
        on_first: Callable[[FitAnswer], None] = lambda answer: None,
    ) -> FitAnswer:
        """Return the plan for the knobs.

        Args:
            knobs: models, wishes and machine.
            loaded: what is loaded on this machine now, and would be gone before anything else is.
            on_first: hears the plan without its offers, which is known much earlier.

        Raises:
            LocalspecError: llama.cpp could not say what the models take, or the devices make no machine.
        """
        async with self._lock:
            here = await self._models()
            target = _located(knobs.target, here)
            draft = None if knobs.draft is None else _located(knobs.draft, here)
            labels = {} if draft is None else quantisation_labels(draft, here)
            smaller = () if draft is None else smaller_quantisations(labels, draft)
            described = knobs.machine.devices
            if described:
                devices = described_devices(described, knobs.reserve_bytes, self._read)
                probe = await self._probe_of(described)
            else:
                engine = self._probe()
                devices = with_released(await machine_devices(engine, knobs.reserve_bytes, self._read), loaded)
                probe = NotingProbe(engine)
            probe.forget()
            request = FitRequest(target, draft, knobs.wishes, devices, smaller)
            on_first(_answer(knobs, await fit(probe, request, with_offers=False), probe))
            plan = await fit(probe, request)
        paths = {model.name: model.path for model in here}
        smaller_drafts = {
            quantisation: ChosenModel(label, paths[label])
            for quantisation, (label, _) in labels.items()
            if label in paths
        }
        return replace(_answer(knobs, plan, probe), smaller_drafts=smaller_drafts, is_complete=True)

    async def drafts(self, target: ChosenModel) -> tuple[ChosenModel, ...]:
        """Return the models on this machine that may draft for a target, the most promising first.

        Raises:
            LocalspecError: the target's header cannot be read.
        """
        from localspec.catalog.curated import curated_folders, read_curated
        from localspec.session.candidates import find_candidates

        async with self._lock:
            found = await self._models()
            curated = await asyncio.to_thread(read_curated, curated_folders())
            engine = self._probe()
            library = await read_library(engine, found)
            located = _located(target, found)
            candidates = await find_candidates(engine, located.as_target(), curated=curated.pairs, local=library)
        return tuple(
            ChosenModel(one.label, one.path)
            for one in candidates
            if one.is_runnable and one.method == "draft" and one.path is not None and one.path != target.path
        )

    async def close(self) -> None:
        """End the engines of described machines."""
        engines = [engine for engine, _ in self._described.values()]
        self._described.clear()
        await asyncio.gather(*(engine.close() for engine in engines))

    async def _models(self) -> tuple[FoundModel, ...]:
        if self._here is None:
            self._here = await asyncio.to_thread(local_models, self._settings)
        return self._here

    async def _probe_of(self, devices: tuple[HypotheticalDevice, ...]) -> NotingProbe:
        kept = self._described.pop(devices, None)
        if kept is None:
            engine = self._make_engine()
            kept = engine, NotingProbe(engine, devices)
        self._described[devices] = kept
        while len(self._described) > MAX_DESCRIBED:
            oldest = next(iter(self._described))
            await self._described.pop(oldest)[0].close()
        return kept[1]


def _answer(knobs: FitKnobs, plan: MemoryPlan, probe: NotingProbe) -> FitAnswer:
    target, draft = probe.target, probe.draft
    return FitAnswer(
        knobs=knobs,
        plan=plan,
        num_layers=0 if target is None else target.num_layers,
        num_draft_layers=0 if draft is None else draft.num_layers,
        n_ctx_train=0 if target is None else target.n_ctx_train,
        num_experts=0 if target is None else target.num_experts,
        is_complete=False,
    )


def offered_knobs(answer: FitAnswer, offer: TradeOffer) -> FitKnobs:
    """Return the knobs with an offer taken, a smaller file of the draft included."""
    knobs = answer.knobs.with_wishes(offer.wishes)
    if offer.code != "smaller_draft" or knobs.draft is None:
        return knobs
    meant = (model for name, model in answer.smaller_drafts.items() if offer.text.startswith(f"The draft as {name}:"))
    return replace(knobs, draft=next(meant, knobs.draft))


def _located(model: ChosenModel, here: tuple[FoundModel, ...]) -> LocatedModel:
    found = next((one for one in here if one.path == model.path), None)
    return LocatedModel(model.name if found is None else found.name, model.path, found)
