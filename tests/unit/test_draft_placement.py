"""Does the draft run where the target runs: on machines that are described, and on the one that is here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine.requests import MeasureFootprint
from localspec.engine.values import ContextSettings
from localspec.planning.budgets import hypothetical_plan_devices
from localspec.planning.devices import HostMemory, HypotheticalDevice, PlanDevice
from localspec.planning.footprint import Placement
from localspec.planning.plan import Wishes
from localspec.session.draft_placement import slow_draft
from tests.fit_kit import FitEngine, card, write_models
from tests.plan_kit import GIB, MIB, host, planned

HOST_MEMORY = HostMemory(64 * GIB, 60 * GIB)


def described(device: HypotheticalDevice) -> tuple[PlanDevice, ...]:
    return hypothetical_plan_devices([device], HOST_MEMORY)


RTX = described(HypotheticalDevice("RTX 4070", 24 * GIB))
SMALL = described(HypotheticalDevice("GTX 1650", 4 * GIB))
MAC = described(HypotheticalDevice("M3 Pro", 36 * GIB, is_unified=True, style="metal"))


def wishes(target_layers: int, draft_layers: int) -> Wishes:
    return Wishes(Placement(4096, target_layers), Placement(0, draft_layers))


@pytest.mark.parametrize("devices", [RTX, MAC], ids=["card", "unified"])
async def test_a_draft_on_the_processor_beside_a_target_on_the_gpu(devices: tuple[PlanDevice, ...]) -> None:
    plan, _ = await planned(devices, wishes(-1, 0))
    assert plan.slow_draft in plan.notes
    assert plan.slow_draft.startswith("The draft would run on the processor although the target is on the GPU")
    assert plan.slow_draft.count(".") == 1


async def test_a_part_of_the_draft_is_counted_in_layers() -> None:
    plan, _ = await planned(RTX, wishes(-1, 7))
    assert plan.slow_draft.startswith("Only 7 of 29 layers of the draft would be on the GPU, but the whole target")
    plan, _ = await planned(RTX, wishes(30, 7))
    assert "but 30 of 37 of the target's" in plan.slow_draft


@pytest.mark.parametrize(
    ("devices", "asked"),
    [
        (RTX, wishes(-1, -1)),
        (RTX, wishes(0, 0)),
        (RTX, wishes(0, -1)),
        (RTX, wishes(20, 29)),
        (RTX, replace(wishes(-1, -1), draft=None)),
        ((host(),), wishes(-1, -1)),
        ((host(),), wishes(-1, 0)),
    ],
    ids=["both there", "both here", "draft there", "target in part", "no draft", "no gpu", "no gpu, layers said"],
)
async def test_else_nothing_is_said(devices: tuple[PlanDevice, ...], asked: Wishes) -> None:
    plan, _ = await planned(devices, asked)
    assert plan.slow_draft == "" and not [note for note in plan.notes if "processor" in note]


async def test_a_small_card_takes_the_draft_before_the_whole_target() -> None:
    plan, _ = await planned(SMALL, wishes(-1, -1))
    assert plan.verdict == "FITS_WITH_PARTIAL_OFFLOAD" and plan.slow_draft == ""


async def ask(engine: FitEngine, folder: Path, draft_layers: int) -> str:
    paths = write_models(folder)
    context = ContextSettings()
    return await slow_draft(
        engine,
        paths["big"],
        paths["small"],
        context,
        replace(context, n_gpu_layers=draft_layers),
        reserve_bytes=100 * MIB,
    )


async def test_before_loading_the_machines_own_devices_count(tmp_path: Path) -> None:
    assert "processor" in await ask(FitEngine(gpus=(card(500),)), tmp_path, 0)
    assert await ask(FitEngine(gpus=(card(500),)), tmp_path, -1) == ""


async def test_without_a_gpu_nothing_is_measured(tmp_path: Path) -> None:
    engine = FitEngine()
    assert await ask(engine, tmp_path, 0) == ""
    assert not [request for request in engine.requests if isinstance(request, MeasureFootprint)]
