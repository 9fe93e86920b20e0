"""Loads follow the memory plan: what is refused, what is placed otherwise, and what a plan may never do."""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.cli.heading import memory_texts
from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.events import EngineFailed, ModelsLoaded
from localspec.engine.values import ContextSettings, SpeculationSettings, SpeculationState
from localspec.errors import ModelLoadError
from localspec.planning.devices import HypotheticalDevice
from localspec.planning.footprint import Footprint, MemoryRow, PairFootprint, Placement
from localspec.session.footprints import ProbeEngine
from localspec.session.load_plan import LoadPlan, plan_load
from localspec.session.loading import context_settings, draft_context_settings, reserve_bytes
from localspec.session.memory_use import check_use, differences, memory_record, used_lines
from localspec.settings import load_settings
from tests.fit_kit import FitEngine, card, write_models
from tests.made_up_machine import model_info
from tests.plan_kit import MIB

RESERVE = 100 * MIB


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    return write_models(tmp_path)


async def load(
    engine: FitEngine, target: Path, draft: Path | None = None, is_forced: bool = False, **settings: object
) -> tuple[LoadPlan, list[str]]:
    context = replace(ContextSettings(), **settings)  # type: ignore[arg-type]
    log: list[str] = []
    plan = await plan_load(
        engine, target, draft, context, context, reserve_bytes=RESERVE, is_forced=is_forced, log=log.append
    )
    return plan, log


async def test_what_fits_is_loaded_as_asked_without_a_word(paths: dict[str, Path]) -> None:
    plan, log = await load(FitEngine(gpus=(card(500),)), paths["big"], paths["small"])
    assert plan.plan is not None and plan.plan.verdict == "FITS"
    assert (plan.context, plan.draft_context) == (ContextSettings(), ContextSettings())
    assert plan.notes == () and log == []


async def test_a_stated_context_is_kept_with_layers_in_host_memory(paths: dict[str, Path]) -> None:
    plan, _ = await load(FitEngine(gpus=(card(500),)), paths["big"], paths["small"], n_ctx=16384)
    assert plan.plan is not None and plan.plan.verdict == "FITS_WITH_PARTIAL_OFFLOAD"
    assert plan.context.n_ctx == plan.draft_context.n_ctx == 16384
    assert 0 < plan.context.n_gpu_layers == plan.plan.target.n_gpu_layers < 9
    assert plan.draft_context.n_gpu_layers == -1
    assert any(f"{plan.context.n_gpu_layers} layers on GPUs" in note for note in plan.notes)


async def test_stated_layers_are_kept_too_or_the_load_is_refused_with_offers(paths: dict[str, Path]) -> None:
    with pytest.raises(ModelLoadError) as caught:
        await load(FitEngine(gpus=(card(500),)), paths["big"], paths["small"], n_ctx=16384, n_gpu_layers=9)
    assert caught.value.message.startswith(
        "Does not fit as asked (context 16384, 9 layers on the GPU, with the draft): it is "
    )
    assert "too much on GeForce" in caught.value.message
    assert all("(" in line for line in caught.value.hint.splitlines()[:-1])
    assert "(--n-ctx " in caught.value.hint and "--type-k q8_0 --type-v q8_0" in caught.value.hint
    assert caught.value.hint.endswith("--force.")


async def test_a_refusal_on_a_machine_without_a_gpu_speaks_of_none(paths: dict[str, Path]) -> None:
    with pytest.raises(ModelLoadError) as caught:
        await load(FitEngine(), paths["big"], n_ctx=1 << 40)
    assert caught.value.message.startswith(f"Does not fit as asked (context {1 << 40}): it is ")
    assert f"instead of {1 << 40}" in caught.value.hint.splitlines()[0]
    assert "GPU" not in caught.value.message + caught.value.hint


async def test_a_context_that_was_left_open_is_the_most_that_fits(paths: dict[str, Path]) -> None:
    plan, _ = await load(FitEngine(gpus=(card(500),)), paths["big"], paths["small"], n_ctx=0)
    assert plan.plan is not None
    assert plan.context.n_ctx == plan.draft_context.n_ctx == plan.plan.n_ctx
    assert 4096 < plan.context.n_ctx < 16384


async def test_a_draft_that_does_not_fit_is_never_dropped_unasked(paths: dict[str, Path]) -> None:
    with pytest.raises(ModelLoadError) as caught:
        await load(FitEngine(gpus=(card(500),)), paths["big"], paths["huge"])
    assert caught.value.message.startswith("Does not fit as asked (context 4096, with the draft): it is ")
    assert "(without --draft)" in caught.value.hint


async def test_force_loads_as_asked_and_still_knows_the_plan(paths: dict[str, Path]) -> None:
    plan, _ = await load(FitEngine(gpus=(card(500),)), paths["huge"], is_forced=True, n_ctx=16384)
    assert plan.context.n_ctx == 16384 and plan.context.n_gpu_layers == -1
    assert plan.plan is not None and not plan.plan.fits


async def test_a_plan_that_cannot_be_made_stands_in_nobodys_way(paths: dict[str, Path], tmp_path: Path) -> None:
    unknown = tmp_path / "unknown.gguf"
    unknown.write_bytes(b"GGUF")
    plan, log = await load(FitEngine(), unknown)
    assert plan == LoadPlan(ContextSettings(), ContextSettings(), None)
    assert log == ["No memory plan for unknown.gguf: This is no model."]
    plan, log = await load(FitEngine(num_deaths=9), paths["big"])
    assert plan.plan is None and "ended twice" in log[0]


async def test_devices_that_a_process_took_with_it_come_back(paths: dict[str, Path]) -> None:
    engine = FitEngine()
    measure = ProbeEngine(engine, (HypotheticalDevice("RTX 4070", 500 * MIB),)).measure(paths["big"])
    before = await measure(Placement(4096), None)
    engine.registered.clear()
    assert await measure(Placement(4096), None) == before
    assert [row.device for row in before.target.rows if row.kv_bytes] == ["HYPO0"]


def test_bench_refuses_and_force_overrides(paths: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    prompt = paths["big"].with_name("prompt.txt")
    prompt.write_text("one two three four", encoding="utf-8")
    words = ["bench", str(paths["huge"]), "--prompt", str(prompt), "--max-tokens", "4", "--pairs", "1", "--json"]
    engine = FitEngine()
    assert run(words, Services(make_engine=lambda: engine)) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "error: Does not fit" in captured.err and "--force" in captured.err
    assert all(request.type != "load_models" for request in engine.requests)

    engine = FitEngine()
    assert run([*words, "--force"], Services(make_engine=lambda: engine)) == 0
    memory = json.loads(capsys.readouterr().out)["memory"]
    assert memory["plan"]["verdict"] == "DOES_NOT_FIT" and memory["real"] is None


def test_the_drafts_own_context_reaches_the_engine(paths: dict[str, Path]) -> None:
    prompt = paths["big"].with_name("prompt.txt")
    prompt.write_text("one two three four", encoding="utf-8")
    engine = FitEngine()
    words = f"--prompt {prompt} --max-tokens 4 --pairs 1 --draft-n-ctx 1024 --draft-kv q8_0 --draft-n-gpu-layers 2"
    arguments = ["bench", str(paths["big"]), "--draft", str(paths["small"]), *words.split()]
    assert run(arguments, Services(make_engine=lambda: engine)) == 0
    request = engine.loaded
    assert (request.context.n_ctx, request.context.type_k, request.context.n_gpu_layers) == (4096, "f16", -1)
    own = request.draft_context
    assert (own.n_ctx, own.type_k, own.type_v, own.n_gpu_layers) == (1024, "q8_0", "q8_0", 2)


def test_without_settings_of_its_own_the_draft_follows_the_target(tmp_path: Path) -> None:
    settings = load_settings({"context": {"n_ctx": 512, "type_k": "q8_0"}}, tmp_path / "none.toml")
    assert draft_context_settings(settings) == context_settings(settings)
    settings = load_settings({"memory": {"reserve_gib": 0.5}, "draft": {"type_v": "q4_0"}}, tmp_path / "none.toml")
    assert draft_context_settings(settings).type_v == "q4_0"
    assert reserve_bytes(settings) == 512 * MIB


async def planned(paths: dict[str, Path]) -> LoadPlan:
    return (await load(FitEngine(gpus=(card(500),)), paths["big"], paths["small"]))[0]


def real_of(load: LoadPlan, **more_bytes: int) -> PairFootprint:
    """What is planned, but for what is added to the target's row on the GPU."""
    assert load.plan is not None

    def footprint(role: str) -> Footprint:
        rows = []
        for row in load.plan.rows if load.plan is not None else ():
            if row.model == role:
                sizes = {
                    name: getattr(row, name) + (more_bytes.get(name, 0) if role == "target" else 0)
                    for name in ("weights_bytes", "kv_bytes", "recurrent_bytes", "compute_bytes", "output_bytes")
                }
                rows.append(MemoryRow(row.device, row.device, **sizes))
        return Footprint(Placement(4096), tuple(rows), 4096, 32768, 9, 0, True)

    return PairFootprint(footprint("target"), footprint("draft"))


def loaded(real: PairFootprint | None) -> ModelsLoaded:
    state = SpeculationState(False, "off", "", "off", SpeculationSettings())
    return ModelsLoaded(1, model_info("/m/big.gguf"), model_info("/m/small.gguf"), "", state, 0.1, real)


async def test_what_is_as_planned_is_no_difference(paths: dict[str, Path]) -> None:
    load = await planned(paths)
    log: list[str] = []
    assert check_use(load, loaded(real_of(load)), log.append) == ()
    assert check_use(load, loaded(real_of(load, kv_bytes=100 << 10)), log.append) == ()
    assert check_use(load, loaded(None), log.append) == ()
    assert log == []


@pytest.mark.parametrize("part", ["kv", "compute", "output"])
async def test_a_difference_is_said_and_logged(part: str, paths: dict[str, Path]) -> None:
    load = await planned(paths)
    log: list[str] = []
    sentences = check_use(load, loaded(real_of(load, **{f"{part}_bytes": 5 * MIB})), log.append)
    assert len(sentences) == len(log) == 2  # on the GPU and in host memory
    assert "The target's" in sentences[0] and "MiB were planned" in sentences[0]
    assert "/m/big.gguf" in log[0]


async def test_mapped_weights_are_not_compared_in_host_memory(paths: dict[str, Path]) -> None:
    load = await planned(paths)
    assert load.plan is not None
    real = real_of(load, weights_bytes=50 * MIB)
    assert [found.device for found in differences(load.plan, real, use_mmap=True)] == ["CUDA0"]
    assert [found.device for found in differences(load.plan, real, use_mmap=False)] == ["CPU", "CUDA0"]


async def test_pages_of_the_file_are_told_apart(paths: dict[str, Path]) -> None:
    load = await planned(paths)
    real = loaded(real_of(load, weights_bytes=50 * MIB))
    texts = memory_texts(load, real)
    (host,) = [text for text in texts if text.startswith("CPU")]
    assert host.endswith(" and 50 MiB in pages of the file, which the system can take back")
    ((taken, planned_size),) = re.findall(r"CPU (.*) \(planned (.*)\)", host)
    assert taken == planned_size
    unmapped = replace(load, context=replace(load.context, use_mmap=False))
    assert not any("pages" in text for text in memory_texts(unmapped, real))


async def test_plan_and_reality_side_by_side(paths: dict[str, Path]) -> None:
    load = await planned(paths)
    real = real_of(load, kv_bytes=MIB)
    lines = {name: (plan, taken) for name, plan, taken in used_lines(load.plan, loaded(real))}
    assert lines["CUDA0"][0] is not None and lines["CUDA0"][1] == lines["CUDA0"][0] + MIB
    record = memory_record(load, loaded(real))
    assert record["plan"]["verdict"] == "FITS"
    assert {(row["model"], row["device"]) for row in record["real"]["rows"]} >= {("target", "CUDA0"), ("draft", "CPU")}
    assert memory_record(None, loaded(None)) == {"plan": None, "real": None}


def test_chat_shows_memory_and_goes_on_without_a_plan(
    paths: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("one two\n/memory\n"))
    engine = FitEngine(failures={"measure_footprint": EngineFailed(1, "MissingSymbolError", "It is missing.", "")})
    assert run(["chat", str(paths["big"])], Services(make_engine=lambda: engine)) == 0
    captured = capsys.readouterr()
    assert captured.out == "one two \n"
    assert "It is not known; the log file says why." in captured.err
