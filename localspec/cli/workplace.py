"""What `localspec fit` is about: models, wishes and memories, from the command line and the settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from localspec.catalog.found_model import FoundModel
from localspec.catalog.pairing import PairVerdict
from localspec.cli.advice import command_line
from localspec.cli.errand import stepper
from localspec.cli.fit_options import FitChoice
from localspec.cli.pair import candidates_for, locate
from localspec.cli.screen import Report
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.engine.interface import Engine
from localspec.engine.values import MAX_DRAFT_TOKENS
from localspec.planning.devices import HypotheticalDevice, PlanDevice, parse_device
from localspec.planning.notes import CONTEXT_PADDING
from localspec.planning.plan import Wishes
from localspec.planning.sizes import parse_size
from localspec.session.arguments import find_local
from localspec.session.fit import wishes_of
from localspec.session.footprints import ProbeEngine
from localspec.session.header_questions import ask_verdicts
from localspec.session.library import local_models
from localspec.session.loading import context_settings, draft_context_settings, reserve_bytes
from localspec.session.located import LocatedModel, local_model, locate_offer
from localspec.session.memory_devices import described_devices, machine_devices
from localspec.settings import Settings

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Workplace:
    """The command's words, understood as far as that goes without an engine or the Hub."""

    services: Services
    settings: Settings
    choice: FitChoice
    hypothetical: tuple[HypotheticalDevice, ...]
    reserve_bytes: int
    found: FoundModel | None
    """The target, if it is here; likewise the draft."""
    found_draft: FoundModel | None
    notes: list[str] = field(default_factory=list)
    """What a person should hear, in the order in which it was found."""

    def wishes(self, has_draft: bool) -> Wishes:
        """Return what is wished for."""
        return wishes_of(context_settings(self.settings), draft_context_settings(self.settings) if has_draft else None)

    async def devices(self, engine: Engine) -> tuple[PlanDevice, ...]:
        """Return the memories to plan for, the host last."""
        if self.hypothetical:
            return described_devices(self.hypothetical, self.reserve_bytes)
        return await machine_devices(engine, self.reserve_bytes)

    @asynccontextmanager
    async def probe(self, engine: Engine) -> AsyncIterator[ProbeEngine]:
        """Give what measures. Described devices get a process of their own, since they stay for the life of it."""
        if not self.hypothetical:
            yield ProbeEngine(engine)
            return
        own = self.services.make_engine()
        try:
            yield ProbeEngine(own, self.hypothetical)
        finally:
            await own.close()

    async def target(self, report: Report) -> LocatedModel:
        """Return the target with its header at hand."""
        return await locate(self.services, self.settings, self.choice.target, self.found, report, self.notes.append)

    async def draft(self, engine: Engine, target: LocatedModel, report: Report) -> LocatedModel | None:
        """Return the draft with its header at hand, None for none. A search that finds none is noted."""
        argument = self.choice.draft
        if argument is None:
            return None
        if argument != AUTO:
            draft = await locate(self.services, self.settings, argument, self.found_draft, report, self.notes.append)
            verdict = (await ask_verdicts(engine, target.path, [draft.path]))[draft.path]
            if isinstance(verdict, PairVerdict) and verdict.status == "NO_PAIR":
                self.notes.append(f"They are no pair, so this draft cannot draft for it: {verdict.reason}.")
            return draft
        # For a model that is here, the drafts that are here will do: nothing about it calls for the network.
        is_local = target.listing is None
        candidates = await candidates_for(
            self.services, engine, self.settings, target, is_local, report, self.notes.append
        )
        best = next((one for one in candidates if one.is_runnable and one.method == "draft"), None)
        if best is None or (best.path is None and best.download is None):
            self.notes.append("No draft model for it was found, so this is for the target alone.")
            if is_local:
                advice = command_line("localspec", "pair", self.choice.target)
                self.notes.append(f"Only this machine was searched; to look on the Hub: {advice}")
            return None
        if best.path is not None:
            here = next((model for model in local_models(self.settings) if model.path == best.path), None)
            return LocatedModel(best.label, best.path, None) if here is None else local_model(here)
        assert best.download is not None
        async with self.services.open_hub() as hub:
            return await locate_offer(hub, *best.download, stepper(report))


def open_workplace(services: Services, choice: FitChoice) -> Workplace:
    """Return what a command line means.

    Raises:
        UsageError: a model, a device or a size is not what it should be.
        SettingsError: an option or a setting is wrong.
    """
    flags, notes = _least_context(choice)
    settings = settings_in_force(flags)
    return Workplace(
        services=services,
        settings=settings,
        choice=choice,
        hypothetical=tuple(map(parse_device, choice.devices)),
        reserve_bytes=reserve_bytes(settings) if choice.reserve is None else parse_size(choice.reserve),
        found=find_local(choice.target, settings),
        found_draft=None if choice.draft in (None, AUTO) else find_local(str(choice.draft), settings),
        notes=notes,
    )


def _least_context(choice: FitChoice) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the options with the least context that llama.cpp makes, where less than a draft's length is asked for.

    The settings refuse such a context, since nothing could be drafted in it; as a question about memory it is sound.
    """
    flags = {group: dict(values) for group, values in choice.flags.items()}
    n_ctx = flags.get("context", {}).get("n_ctx")
    if not isinstance(n_ctx, int) or not 0 < n_ctx <= MAX_DRAFT_TOKENS:
        return flags, []
    flags["context"]["n_ctx"] = CONTEXT_PADDING
    return flags, [f"llama.cpp makes no context of fewer than {CONTEXT_PADDING} positions, so this is for as many."]
