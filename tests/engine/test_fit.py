"""Memory plans from the real engine, as loads and the command line make them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.cli.main import run
from localspec.engine.client import EngineClient
from localspec.engine.values import ContextSettings, SpeculationSettings
from localspec.errors import LocalspecError, ModelLoadError
from localspec.planning.devices import HypotheticalDevice
from localspec.planning.footprint import Placement
from localspec.session.footprints import ProbeEngine
from localspec.session.load_plan import plan_load
from localspec.session.loading import load_models
from localspec.session.memory_use import check_use, used_lines

MIB = 1 << 20
CONTEXT = ContextSettings(n_ctx=512, n_batch=64, n_ubatch=64)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[EngineClient]:
    client = EngineClient(tmp_path / "engine.log")
    yield client
    await client.close()


@pytest.mark.parametrize("use_mmap", [True, False])
async def test_a_load_takes_what_was_planned(
    use_mmap: bool, client: EngineClient, tiny_files: dict[str, Path], tmp_path: Path
) -> None:
    context = replace(CONTEXT, use_mmap=use_mmap)
    own = replace(context, n_ctx=256, type_k="f32")
    log: list[str] = []
    load = await plan_load(client, tiny_files["target"], tiny_files["draft"], context, own, log=log.append)
    assert log == [] and load.plan is not None and load.plan.verdict == "FITS"
    assert (load.context, load.draft_context) == (context, own)
    loaded = await load_models(
        client,
        tiny_files["target"],
        tiny_files["draft"],
        load.context,
        SpeculationSettings(),
        lambda event: None,
        load.draft_context,
    )
    assert loaded.draft is not None and (loaded.target.n_ctx, loaded.draft.n_ctx) == (512, 256)
    assert check_use(load, loaded, log.append) == () and log == []
    [(device, planned, taken)] = used_lines(load.plan, loaded)
    assert device == "CPU"
    if not use_mmap:
        assert planned == taken


async def test_a_load_that_does_not_fit_is_refused_before_it_begins(
    client: EngineClient, tiny_files: dict[str, Path]
) -> None:
    with pytest.raises(ModelLoadError) as caught:
        await plan_load(client, tiny_files["target"], None, CONTEXT, CONTEXT, reserve_bytes=1 << 60)
    assert caught.value.message.startswith("Does not fit")
    assert "--force" in caught.value.hint


async def test_a_file_that_is_no_model_is_left_to_loading(client: EngineClient, tmp_path: Path) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(b"GGUF" + bytes(20))
    log: list[str] = []
    load = await plan_load(client, path, None, CONTEXT, CONTEXT, log=log.append)
    assert load.plan is None and len(log) == 1 and "damaged.gguf" in log[0]


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
async def test_a_killed_probe_comes_back_with_its_devices(client: EngineClient, tiny_files: dict[str, Path]) -> None:
    probe = ProbeEngine(client, (HypotheticalDevice("RTX 4070", 64 * MIB),))
    measure = probe.measure(tiny_files["target"])
    before = await measure(Placement(512), None)
    assert client.pid is not None
    os.kill(client.pid, signal.SIGKILL)
    after = await measure(Placement(512), None)
    assert before == after
    assert sum(row.weights_bytes for row in after.target.rows if row.device == "HYPO0") > 0


async def test_a_process_with_devices_that_are_not_here_loads_nothing(
    client: EngineClient, tiny_files: dict[str, Path]
) -> None:
    probe = ProbeEngine(client, (HypotheticalDevice("RTX 4070", 64 * MIB),))
    await probe.measure(tiny_files["target"])(Placement(512), None)
    with pytest.raises(LocalspecError):
        await load_models(client, tiny_files["target"], None, CONTEXT, SpeculationSettings(), lambda event: None)


def test_the_command_line_on_a_card_that_is_not_here(
    tiny_files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fit", str(tiny_files["target"]), "--draft", str(tiny_files["draft"]), "--n-ctx", "512", "--json"]
    assert run([*words, "--device", "RTX 4070:256MiB"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [device["name"] for device in document["devices"]] == ["HYPO0", "CPU"]
    on_card = [row for row in document["rows"] if row["device"] == "HYPO0"]
    assert [row["model"] for row in on_card] == ["target", "draft"]
    assert all(row["weights_bytes"] and row["kv_bytes"] and row["compute_bytes"] for row in on_card)
    # Logits come to host memory.
    assert all(row["output_bytes"] for row in document["rows"] if row["device"] == "CPU")


def test_the_matrix_of_a_model_trained_for_512_positions(
    tiny_files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fit", str(tiny_files["target"]), "--matrix", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["contexts"] == [512]
    assert [row["cells"] for row in document["matrix"]] == [["fits"]]
