"""What the engine says that full-size models take, against closed forms and against what real loads have logged."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio

from localspec.engine.client import EngineClient
from localspec.engine.events import DevicesRegistered, FootprintMeasured
from localspec.engine.interface import last_event
from localspec.engine.requests import MeasureFootprint, RegisterDevices
from localspec.engine.values import MAX_DRAFT_TOKENS
from localspec.planning.devices import HypotheticalDevice
from localspec.planning.footprint import Footprint, PairFootprint, Placement
from tests.memory_formulas import DeviceBytes, Gpu, Placed
from tests.synthetic_gguf import DECODERS, describe, write_synthetic

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1 << 20
GIB = 1 << 30

HALF = -2
"""In the table below: half of a model's layers on GPUs."""

MACHINES: dict[str, tuple[HypotheticalDevice, ...]] = {
    "CPU": (),
    "one GPU": (HypotheticalDevice("RTX 4090", 24 * GIB),),
    "two GPUs": (HypotheticalDevice("RTX 4090", 24 * GIB), HypotheticalDevice("RTX 3080", 10 * GIB)),
    "unified": (HypotheticalDevice("M3 Pro", 36 * GIB, is_unified=True, style="metal"),),
}

PLACEMENTS = {
    "few tokens": Placement(300),
    "KV q8_0": Placement(32768, type_k="q8_0", type_v="q8_0"),
    "large batches": Placement(32768, n_batch=2048, n_ubatch=2048),
    "snapshots, small batches": Placement(1000, n_ubatch=128, n_rs_seq=4),
    "no flash attention, half offloaded": Placement(1000, flash_attn=False, n_gpu_layers=HALF),
    "output offloaded": Placement(1000, n_gpu_layers=1),
    "nothing offloaded": Placement(1000, n_gpu_layers=0),
}

CELLS = {
    "CPU": tuple(name for name, placement in PLACEMENTS.items() if placement.n_gpu_layers < 0),
    "one GPU": ("few tokens", "large batches", "no flash attention, half offloaded"),
    "two GPUs": tuple(name for name in PLACEMENTS if name not in ("few tokens", "large batches")),
    "unified": ("KV q8_0", "no flash attention, half offloaded"),
}
"""What is measured where; on the CPU nothing is ever offloaded."""

HUGE = ("llama-3.1-405b", "qwen3.5-397b-a17b")
HUGE_CELLS = ("KV q8_0", "no flash attention, half offloaded")


@dataclass(slots=True)
class Lab:
    """Engines, one for each set of devices, and the files of the models."""

    folder: Path
    clients: dict[str, EngineClient] = field(default_factory=dict)
    gpus: dict[str, tuple[Gpu, ...]] = field(default_factory=dict)

    def path(self, model: str) -> str:
        """Return a model's file, written when it is first asked for."""
        path = self.folder / f"{model}.gguf"
        return str(path if path.exists() else write_synthetic(model, path))

    async def measure(self, machine: str, model: str, placement: Placement) -> Footprint:
        """Return what a target takes."""
        return (await self.measure_pair(machine, model, placement)).target

    async def measure_pair(
        self, machine: str, model: str, target: Placement, heads: Placement | None = None
    ) -> PairFootprint:
        """Return what a target takes, and what drafting with the heads in its own file takes."""
        client, path = self.clients[machine], self.path(model)
        return await _ask(client, MeasureFootprint(client.next_id(), path, target, path if heads else "", heads))

    async def register(self, machine: str) -> None:
        """Register the machine's devices, and note how much of them llama.cpp takes to be free."""
        client, devices = self.clients[machine], MACHINES[machine]
        self.gpus[machine] = ()
        if devices:
            event = await last_event(client, RegisterDevices(client.next_id(), devices))
            assert isinstance(event, DevicesRegistered)
            free = [device.free_bytes for device in event.devices if device.name.startswith("HYPO")]
            assert len(free) == len(devices)
            styles = {"cuda": (128, True), "metal": (32, False)}
            self.gpus[machine] = tuple(
                Gpu(size, *styles[device.style]) for size, device in zip(free, devices, strict=True)
            )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lab]:
    folder = tmp_path_factory.mktemp("synthetic")
    lab = Lab(folder)
    async with AsyncExitStack() as stack:
        for machine in MACHINES:
            lab.clients[machine] = EngineClient(folder / f"{machine}.log")
            stack.push_async_callback(lab.clients[machine].close)
        await asyncio.gather(*(lab.register(machine) for machine in MACHINES))
        yield lab


async def _ask(client: EngineClient, request: MeasureFootprint) -> PairFootprint:
    event = await last_event(client, request)
    assert isinstance(event, FootprintMeasured)
    return event.footprint


def _by_device(footprint: Footprint, num_gpus: int) -> tuple[DeviceBytes, ...]:
    """Sum up the rows of each device, the host first. A GPU that is really here may have rows for computing alone."""
    totals = {name: DeviceBytes() for name in ("CPU", *(f"HYPO{index}" for index in range(num_gpus)))}
    for row in footprint.rows:
        part = DeviceBytes(row.weights_bytes, row.kv_bytes, row.recurrent_bytes)
        if part != DeviceBytes():
            totals[row.device] += part
    return tuple(totals.values())


def _placements(machine: str, model: str) -> dict[str, Placement]:
    layers = {HALF: (DECODERS[model].n_layer + 1) // 2}
    placements = {}
    for name in HUGE_CELLS if model in HUGE else CELLS[machine]:
        wanted = PLACEMENTS[name].n_gpu_layers
        offloaded = 0 if machine == "CPU" else layers.get(wanted, wanted)
        placements[name] = replace(PLACEMENTS[name], n_gpu_layers=offloaded)
    return placements


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("model", DECODERS)
async def test_a_header_takes_what_the_closed_forms_say(lab: Lab, model: str, machine: str) -> None:
    header, gpus = describe(model), lab.gpus[machine]
    measured, computed = {}, {}
    for name, placement in _placements(machine, model).items():
        footprint = await lab.measure(machine, model, placement)
        if any("AMX" in row.buffer for row in footprint.rows):
            pytest.skip("this processor packs weights by rules of its own")
        assert footprint.is_exact
        placed = Placed(header, placement, gpus)
        measured[name] = _by_device(footprint, len(gpus))
        computed[name] = placed.bytes()
    assert measured == computed


async def test_rotation_factors_are_copied_only_to_devices_whose_layers_use_them(lab: Lab) -> None:
    """Seven layers from the end, the first GPU gets blocks 36 to 40 of Gemma 4, which all have the window."""
    placement, gpus = Placement(1000, n_gpu_layers=7), lab.gpus["two GPUs"]
    footprint = await lab.measure("two GPUs", "gemma-4-e4b", placement)
    assert _by_device(footprint, 2) == Placed(describe("gemma-4-e4b"), placement, gpus).bytes()


@pytest.mark.parametrize("machine", ["one GPU", "two GPUs"])
@pytest.mark.parametrize("model", ["gpt-oss-20b", "deepseek-v2-lite", "qwen3.5-35b-a3b"])
async def test_experts_on_the_cpu_leave_the_rest_on_the_gpus(lab: Lab, model: str, machine: str) -> None:
    placement = Placement(4096, experts_on_cpu=True)
    footprint = await lab.measure(machine, model, placement)
    gpus = lab.gpus[machine]
    assert _by_device(footprint, len(gpus)) == Placed(describe(model), placement, gpus).bytes()


@pytest.mark.parametrize("machine", ["CPU", "two GPUs"])
async def test_heads_inside_a_model_take_a_cache_and_no_weights_of_their_own(lab: Lab, machine: str) -> None:
    model, gpus = "qwen3.5-0.8b-mtp", lab.gpus[machine]
    target = Placement(4096, n_gpu_layers=-1 if gpus else 0, n_rs_seq=4)
    draft = replace(target, n_ctx=1000, n_rs_seq=0)
    pair = await lab.measure_pair(machine, model, target, draft)
    assert pair.draft is not None
    whole = Placed(describe(model), target, gpus, loads_mtp=True).bytes()
    heads = Placed(describe(model), draft, gpus, loads_mtp=True, is_mtp_context=True).bytes()
    assert _by_device(pair.target, len(gpus)) == whole
    assert _by_device(pair.draft, len(gpus)) == tuple(replace(part, weights=0) for part in heads)
    assert sum(part.kv for part in heads) > 0


@pytest.mark.parametrize("machine", MACHINES)
async def test_logits_lie_on_the_host_wherever_the_layers_are(lab: Lab, machine: str) -> None:
    placement = Placement(4096, n_gpu_layers=0 if machine == "CPU" else -1)
    footprint = await lab.measure(machine, "qwen3-8b", placement)
    output = {row.device: row.output_bytes for row in footprint.rows if row.output_bytes}
    assert output == {"CPU": Placed(describe("qwen3-8b"), placement).output_bytes(MAX_DRAFT_TOKENS + 1)}


async def test_a_27b_hybrid_takes_what_a_real_load_logged(lab: Lab) -> None:
    """Logged for Qwen3.6-27B, 262144 tokens shared by 4 sequences: KV 16384.00 MiB, recurrent state 598.50 MiB.

    The engine plans one sequence. KV cells are shared, so it needs as many; of the state it needs a quarter.
    """
    placement = Placement(262144, n_gpu_layers=0)
    footprint = await lab.measure("CPU", "qwen3.5-27b", placement)
    assert _total(footprint).kv == 16384 * MIB
    assert _total(footprint).recurrent * 4 == 598.5 * MIB
    assert Placed(describe("qwen3.5-27b"), placement, n_seq=4).bytes()[0].recurrent == 598.5 * MIB


async def test_attention_in_six_of_sixteen_layers_takes_what_a_real_load_logged(lab: Lab) -> None:
    """Logged for LFM2-1.2B, whose KV heads are an array: 384 MiB at 32768 tokens."""
    footprint = await lab.measure("CPU", "lfm2-1.2b", Placement(32768, n_gpu_layers=0))
    assert _total(footprint).kv == 384 * MIB


async def test_a_window_in_every_second_layer_takes_what_a_real_load_logged(lab: Lab) -> None:
    """Logged for gpt-oss-20b: 3.0 GiB at 131072 tokens, beside the window's cache: 128 + 512 tokens are 768 cells."""
    footprint = await lab.measure("CPU", "gpt-oss-20b", Placement(131072, n_gpu_layers=0))
    cell_bytes = 2 * 8 * 64 * 2
    assert _total(footprint).kv == 3 * GIB + 12 * 768 * cell_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory of another process is read from /proc")
@pytest.mark.parametrize("model", HUGE)
async def test_planning_a_model_of_250_gb_takes_under_200_mb(tmp_path: Path, model: str) -> None:
    client = EngineClient(tmp_path / "engine.log")
    path = write_synthetic(model, tmp_path / "huge.gguf")
    try:
        pair = await _ask(
            client, MeasureFootprint(client.next_id(), str(path), Placement(131072, n_gpu_layers=0, n_rs_seq=4))
        )
        status = Path(f"/proc/{client.pid}/status").read_text(encoding="ascii")
    finally:
        await client.close()
    peak_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    assert _total(pair.target).weights > 250e9
    assert peak_kib * 1024 < 200e6


def _total(footprint: Footprint) -> DeviceBytes:
    return sum(_by_device(footprint, 0), DeviceBytes())
