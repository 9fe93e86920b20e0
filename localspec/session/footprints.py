"""The measuring side of a memory plan: llama.cpp's own word, from an engine that may die and is then asked again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.engine.events import DevicesRegistered, FootprintMeasured
from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import MeasureFootprint, RegisterDevices, Unload
from localspec.errors import EngineDiedError, LocalspecError
from localspec.planning.devices import HOST, HypotheticalDevice

if TYPE_CHECKING:
    from localspec.planning.footprint import Footprint, PairFootprint, Placement
    from localspec.planning.plan import Measure


class ProbeEngine:
    """Measures models on one set of devices. Nothing is loaded.

    Args:
        engine: for hypothetical devices one that does nothing else, since they stay for the life of its process.
        hypothetical: GPUs to plan for instead of this machine's; empty for what is here.
    """

    def __init__(self, engine: Engine, hypothetical: Sequence[HypotheticalDevice] = ()) -> None:
        self._engine = engine
        self._hypothetical = tuple(hypothetical)
        self._is_registered = not self._hypothetical

    def measure(self, target_path: Path, draft_path: Path | None = None) -> Measure:
        """Return what measures these models; only their headers need to be there."""

        async def measure(target: Placement, draft: Placement | None) -> PairFootprint:
            try:
                return await self._ask(target_path, target, draft_path, draft)
            except EngineDiedError:
                self._is_registered = not self._hypothetical
            # Whatever killed the process may have been something else, such as a want of memory elsewhere.
            try:
                return await self._ask(target_path, target, draft_path, draft)
            except EngineDiedError as error:
                self._is_registered = not self._hypothetical
                has_gpu = bool(self._hypothetical) or target.n_gpu_layers > 0
                raise LocalspecError(
                    f"llama.cpp ended twice over the question what {target_path.name} takes in memory with "
                    f"{placement_words(target, has_gpu)}"
                    + (f", and {_name(draft_path)} with {placement_words(draft, has_gpu)}" if draft is not None else "")
                    + f". {error.message}",
                    "Try other settings; the engine's log file has llama.cpp's own words.",
                ) from error

        return measure

    async def _register(self) -> None:
        if self._is_registered:
            return
        answer = await last_event(self._engine, RegisterDevices(self._engine.next_id(), self._hypothetical))
        if not isinstance(answer, DevicesRegistered):
            raise _other_answer()
        self._is_registered = True

    async def _ask(
        self, target_path: Path, target: Placement, draft_path: Path | None, draft: Placement | None
    ) -> PairFootprint:
        await self._register()
        request = MeasureFootprint(
            id=self._engine.next_id(),
            target_path=str(target_path),
            target=target,
            draft_path="" if draft_path is None or draft is None else str(draft_path),
            draft=None if draft_path is None else draft,
        )
        answer = await last_event(self._engine, request)
        if not isinstance(answer, FootprintMeasured):
            raise _other_answer()
        if self._hypothetical and target.n_gpu_layers and not _is_on_any(answer.footprint.target):
            # The process died between two questions, and the one that came in its place has no such devices.
            await last_event(self._engine, Unload(self._engine.next_id()))
            raise EngineDiedError("The engine has lost its hypothetical devices.", "Try again.")
        return answer.footprint


def placement_words(placement: Placement, has_gpu: bool = True) -> str:
    """Return a placement as a person would say it; without a GPU there is nothing to say of layers."""
    layers = "all layers" if placement.n_gpu_layers < 0 else f"{placement.n_gpu_layers} layers"
    where = f", {layers} on GPUs" if has_gpu else ""
    kv = placement.type_k if placement.type_k == placement.type_v else f"{placement.type_k}/{placement.type_v}"
    experts = ", its experts on the CPU" if placement.experts_on_cpu else ""
    flash = "" if placement.flash_attn else ", flash attention off"
    return f"n_ctx {placement.n_ctx}{where}, KV {kv}{flash}{experts}"


def _is_on_any(footprint: Footprint) -> bool:
    return any(row.device != HOST for row in footprint.rows)


def _name(path: Path | None) -> str:
    return "the draft" if path is None else path.name


def _other_answer() -> EngineDiedError:
    return EngineDiedError("The engine gave another answer than the one asked for.", "Install localspec again.")
