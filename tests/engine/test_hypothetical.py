"""GPUs that are not here: llama.cpp sees them, plans for them, and nothing else happens on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.engine.client import EngineClient
from localspec.engine.events import DevicesRegistered, FootprintMeasured, Probed
from localspec.engine.interface import last_event
from localspec.engine.llama import ggml, ggml_structs, hypothetical
from localspec.engine.llama.library import is_unified, start_library
from localspec.engine.requests import MeasureFootprint, Probe, RegisterDevices
from localspec.errors import LocalspecError, MissingSymbolError, UsageError
from localspec.planning.devices import MAX_HYPOTHETICAL, HypotheticalDevice, parse_device
from localspec.planning.footprint import Placement
from tests.device_process import run
from tests.synthetic_gguf import write_synthetic

MIB, GIB = 1 << 20, 1 << 30
CARD = "RTX 4070:12GiB"
MAC = "M3 Pro:36GiB,unified"
HOST_BUFFERS = ("CPU", "CPU_REPACK", "HYPO_Host")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_synthetic("llama-3.2-1b", tmp_path_factory.mktemp("hypothetical") / "llama.gguf")


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of 576 elements in Q8_0: no multiple of 512."""
    return write_synthetic("smollm2-135m", tmp_path_factory.mktemp("hypothetical") / "smollm2.gguf")


def on_host(sizes: dict[str, int]) -> int:
    return sum(sizes.get(name, 0) for name in HOST_BUFFERS)


def test_llama_cpp_lists_them_as_described() -> None:
    answer = run([CARD, "Zweite, größere:24GiB"])
    assert answer.devices[0][0] == "CPU"
    assert answer.devices[1:] == (
        ("HYPO0", "RTX 4070", "gpu", 12 * GIB, 12 * GIB, False),
        ("HYPO1", "Zweite, größere", "gpu", 24 * GIB, 24 * GIB, False),
    )
    assert answer.errors == ""


def test_a_unified_one_offers_what_its_gpu_may_use() -> None:
    assert run([MAC]).devices[1] == ("HYPO0", "M3 Pro", "integrated_gpu", 24 * GIB, 24 * GIB, True)


def test_layers_go_where_they_are_sent(llama: Path) -> None:
    placements = [Placement(2048, n_gpu_layers=layers) for layers in (0, 1, 8, -1)]
    answer = run([CARD], llama, *placements)
    none, output, half, everything = answer.found
    on_gpu = [found.weights.get("HYPO0", 0) for found in answer.found]
    assert none.weights.get("HYPO0", 0) == 0
    assert none.context.get("HYPO0", 0) == output.context.get("HYPO0", 0) == 0
    assert on_gpu == sorted(on_gpu)
    # Half of the layers and the output layer's: 7 of 16 layers' keys and values.
    assert half.context["HYPO0"] == 7 * everything.context["HYPO0"] // 16
    assert on_host(half.context) == 9 * everything.context["HYPO0"] // 16
    assert on_host(everything.context) == 0
    assert answer.num_blocks == 0
    assert answer.errors == ""


def test_cuda_pins_host_memory_and_metal_does_not(llama: Path) -> None:
    (cuda,) = run([CARD], llama, Placement(2048)).found
    (metal,) = run([MAC], llama, Placement(2048)).found
    assert cuda.weights["HYPO_Host"] == on_host(metal.weights) > 0
    assert "HYPO_Host" not in metal.weights
    assert "CPU" not in cuda.weights or cuda.weights["CPU"] == 0


def test_cuda_pads_rows_of_quantised_tensors(smollm2: Path) -> None:
    (cuda,) = run([CARD], smollm2, Placement(2048)).found
    (metal,) = run([MAC], smollm2, Placement(2048)).found
    # 30 layers with q, k, v, output, gate and up, whose rows of 576 lack 448 to 1024: 14 blocks of 34 bytes, and 4
    # to make 128 of it. What is 1536 wide (down) lacks nothing.
    matrices = 30 * 6
    more = cuda.weights["HYPO0"] - metal.weights["HYPO0"]
    assert matrices * 476 <= more <= matrices * 480 + 200 * 128


def test_two_share_the_layers_by_their_memory_and_work_at_the_same_time(llama: Path) -> None:
    (found,) = run(["A:12GiB", "B:4GiB"], llama, Placement(2048)).found
    # 17 layers with the output: those below 3/4 go to the first.
    assert found.context["HYPO0"] == 13 * (found.context["HYPO0"] + found.context["HYPO1"]) // 16
    assert found.is_pipelined
    (alone,) = run(["A:12GiB"], llama, Placement(2048)).found
    assert found.context["HYPO0"] + found.context["HYPO1"] == alone.context["HYPO0"]
    assert not alone.is_pipelined
    # Which costs copies of the inputs: the mask's, above all.
    assert sum(found.compute.values()) > sum(alone.compute.values())


def test_as_many_as_llama_cpp_computes_with(llama: Path) -> None:
    (found,) = run(["a card:1GiB"] * MAX_HYPOTHETICAL, llama, Placement(512)).found
    assert sum(size > 0 for name, size in found.weights.items() if name.startswith("HYPO") and name != "HYPO_Host") > 10


def test_attention_takes_what_its_kernels_need(llama: Path) -> None:
    placements = [Placement(65536, type_k=kind, type_v=kind) for kind in ("f16", "q8_0")]
    f16, q8_0 = run([CARD], llama, *placements).found
    # Copies in F16 of one layer's keys and values, 8 heads of 64 each, which F16 itself needs not.
    copies = 65536 * 8 * 64 * 2 * 2
    assert q8_0.compute["HYPO0"] > copies > f16.compute["HYPO0"]
    assert q8_0.context["HYPO0"] < f16.context["HYPO0"]


def test_what_cuda_has_no_kernel_for_is_done_by_the_processor(llama: Path) -> None:
    known, unknown = run([CARD], llama, *(Placement(8192, type_k=k, type_v=k) for k in ("q4_0", "iq4_nl"))).found
    assert known.context["HYPO0"] == unknown.context["HYPO0"]
    assert on_host(unknown.compute) > on_host(known.compute)


@pytest.mark.parametrize("name", ["deepseek-v2-lite", "gpt-oss-20b", "gemma-4-e4b"])
def test_architectures_of_all_kinds_can_be_asked_about(tmp_path: Path, name: str) -> None:
    model = write_synthetic(name, tmp_path / "model.gguf")
    (cuda,) = run([CARD], model, Placement(4096)).found
    (metal,) = run([MAC], model, Placement(4096)).found
    assert cuda.context["HYPO0"] == metal.context["HYPO0"] > 0
    assert cuda.weights["HYPO0"] >= metal.weights["HYPO0"] > on_host(metal.weights)
    assert min(cuda.compute["HYPO0"], metal.compute["HYPO0"]) > 0


def test_recurrent_state_is_allocated_but_never_touched(tmp_path: Path) -> None:
    model = write_synthetic("qwen3.5-27b", tmp_path / "model.gguf")
    answer = run([CARD, "B:12GiB"], model, *[Placement(4096, n_rs_seq=4)] * 3)
    assert sum(answer.found[0].context.values()) > 700 * MIB
    assert answer.found[0] == answer.found[1] == answer.found[2]
    assert answer.num_blocks == 0
    assert answer.peak_rss_bytes < 200 * MIB


def test_what_goes_wrong_inside_a_callback_stays_there(smollm2: Path) -> None:
    (sound,) = run([CARD], smollm2, Placement(2048)).found
    answer = run([CARD], smollm2, Placement(2048), breakage=("alloc_bytes", "can_compute", "wants"))
    (broken,) = answer.found
    assert broken.context == sound.context
    assert broken.weights["HYPO0"] < sound.weights["HYPO0"]
    # Each is said once, not at each of thousands of questions.
    assert answer.errors.count("hypothetical devices fail") == 3


@pytest.mark.parametrize(
    "devices",
    [
        [],
        [parse_device(CARD)] * 16,
        [HypotheticalDevice("tiny", 1)],
        [HypotheticalDevice("huge", 1 << 60)],
        [HypotheticalDevice("odd", GIB, True, 2 * GIB)],
    ],
)
def test_devices_that_make_no_sense_are_refused(devices: list[HypotheticalDevice]) -> None:
    with pytest.raises(UsageError) as caught:
        hypothetical.register(devices)
    assert caught.value.hint
    assert hypothetical.handles() == ()


def test_a_library_with_other_structures_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    start_library()
    hypothetical.check_version()
    before = ggml.device_count()
    monkeypatch.setattr(ggml_structs, "API_VERSION", 3)
    with pytest.raises(MissingSymbolError, match="devices of version 2"):
        hypothetical.register([parse_device(CARD)])
    assert ggml.device_count() == before


def test_which_memory_is_the_hosts() -> None:
    assert is_unified("gpu", "MTL", "arm64")
    assert not is_unified("gpu", "MTL", "x86_64")
    assert not is_unified("gpu", "CUDA", "arm64")
    assert is_unified("integrated_gpu", "CUDA", "x86_64")


async def test_an_engine_process_has_them_until_it_ends(tmp_path: Path, llama: Path) -> None:
    client = EngineClient(tmp_path / "engine.log")
    try:
        request = RegisterDevices(client.next_id(), (parse_device(CARD),))
        answer = await last_event(client, request)
        assert isinstance(answer, DevicesRegistered)
        assert [device.name for device in answer.devices] == ["CPU", "HYPO0"]
        probed = await last_event(client, Probe(client.next_id()))
        assert isinstance(probed, Probed)
        assert probed.devices == answer.devices
        with pytest.raises(LocalspecError, match="already"):
            await last_event(client, RegisterDevices(client.next_id(), (parse_device(CARD),)))
        measured = await last_event(client, MeasureFootprint(client.next_id(), str(llama), Placement(2048)))
        assert isinstance(measured, FootprintMeasured)
        rows = measured.footprint.target.rows
        assert {row.device for row in rows} == {"HYPO0", "CPU"}
        assert sum(row.weights_bytes for row in rows if row.device == "HYPO0") > 500 * MIB
    finally:
        await client.close()
