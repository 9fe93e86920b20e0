"""What is planned from a header is what a real load takes, to the byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.catalog.embedded import find_gemma3, find_smollm2
from localspec.engine.llama import library
from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.context import LlamaContext
from localspec.engine.llama.footprint import FootprintProbe, output_bytes
from localspec.engine.llama.header import read_header
from localspec.engine.llama.loading import load
from localspec.engine.llama.model import LlamaModel
from localspec.engine.llama.params import MAX_OUTPUTS, placement_of
from localspec.engine.llama.quantize import quantize
from localspec.engine.llama.real_footprint import real_footprint
from localspec.engine.llama.stub import Stubs
from localspec.engine.values import ContextSettings, KvType
from localspec.errors import ModelFileError
from localspec.planning.footprint import Footprint, MemoryRow, Placement
from localspec.session.demo import DemoModels
from tests.tiny_architectures import ARCHITECTURES, write_tiny
from tests.tiny_gguf import write_llama, write_mamba

REAL = ("SmolLM2 Q4_1", "SmolLM2 Q8_0", "SmolLM2 F16", "SmolLM2 Q4_0", "Gemma 3 Q4_K_M")
TINY = ("llama", "mamba", *ARCHITECTURES)
SETTINGS = ContextSettings(use_mmap=False, n_threads=1)
KINDS: tuple[tuple[KvType, bool], ...] = (("f16", True), ("f16", False), ("q8_0", True))
CELLS = tuple(
    replace(SETTINGS, n_ctx=n_ctx, type_k=kv, type_v=kv, flash_attn=flash_attn)
    for n_ctx in (512, 2048, 8192)
    for kv, flash_attn in KINDS
)
"""A quantised V cache needs flash attention, so that cell is not there."""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FootprintProbe]:
    measured = FootprintProbe(stubs=Stubs(tmp_path_factory.mktemp("stubs")))
    yield measured
    measured.close()


@pytest.fixture(scope="module", params=TINY)
def tiny_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / f"{request.param}.gguf"
    if request.param == "llama":
        return write_llama(path, n_embd=128, n_ctx_train=8192)
    return write_mamba(path) if request.param == "mamba" else write_tiny(request.param, path)


@pytest.fixture(
    scope="module", params=["SmolLM2 Q4_1", "SmolLM2 Q8_0", "SmolLM2 F16", "SmolLM2 Q4_0", "Gemma 3 Q4_K_M"]
)
def real_path(request: pytest.FixtureRequest, models: DemoModels) -> Path:
    try:
        match request.param:
            case "SmolLM2 Q8_0":
                path = models.target.with_name("smollm2-135m-q8_0.gguf")
                if not path.is_file():
                    quantize(str(find_smollm2()), str(path), "Q8_0", ())
                return path
            case "SmolLM2 F16":
                return models.target
            case "SmolLM2 Q4_0":
                return models.draft
            case "SmolLM2 Q4_1":
                return find_smollm2()
        return find_gemma3()
    except ModelFileError as error:
        pytest.skip(error.message)


def totals(rows: tuple[MemoryRow, ...]) -> Counter[str]:
    """Bytes by buffer and column, KV cache and recurrent state as one: their sum is what llama.cpp accounts for."""
    found: Counter[str] = Counter()
    for row in rows:
        found[f"{row.buffer} weights"] += row.weights_bytes
        found[f"{row.buffer} context"] += row.kv_bytes + row.recurrent_bytes
        found[f"{row.buffer} compute"] += row.compute_bytes
        found[f"{row.buffer} output"] += row.output_bytes
    return +found


def planned(probe: FootprintProbe, path: Path, settings: ContextSettings) -> Footprint:
    return probe.measure(str(path), placement_of(settings)).target


def assert_plan_is_real(probe: FootprintProbe, path: Path, cells: tuple[ContextSettings, ...]) -> None:
    library.start_library()
    for settings in cells:
        plan = planned(probe, path, settings)
        loaded = load(str(path), settings, 1, AbortFlag(), lambda _: True)
        try:
            pair = real_footprint(loaded, None)
        finally:
            loaded.close()
        assert pair is not None
        assert totals(plan.rows) == totals(pair.target.rows), settings
        assert sum(row.recurrent_bytes for row in plan.rows) == pytest.approx(
            sum(row.recurrent_bytes for row in pair.target.rows), abs=0.01 * 2**20
        )
        assert (plan.n_ctx, plan.n_ctx_train) == (pair.target.n_ctx, pair.target.n_ctx_train)
        assert plan.is_exact and not plan.note


def test_tiny_models_take_what_was_planned(probe: FootprintProbe, tiny_path: Path) -> None:
    assert_plan_is_real(probe, tiny_path, CELLS)


@pytest.mark.model
def test_real_models_take_what_was_planned(probe: FootprintProbe, real_path: Path) -> None:
    """Of the larger files the weights are loaded once, and every context beside them."""
    library.start_library()
    model = LlamaModel(read_header(str(real_path)), SETTINGS)
    try:
        for settings in CELLS:
            plan = planned(probe, real_path, settings)
            context = LlamaContext(model, settings, 1, AbortFlag())
            try:
                assert totals(plan.rows) == totals(_real_rows(context)), settings
            finally:
                context.close()
    finally:
        model.close()


def _real_rows(context: LlamaContext) -> tuple[MemoryRow, ...]:
    from localspec.engine.llama.accounts import exact_account

    account = exact_account(context.handle)
    account.output[context.log.output_buffer] += output_bytes(context.n_vocab, "target")
    return account.rows()


@pytest.mark.parametrize("n_gpu_layers", [0, 1, -1])
def test_layers_do_not_matter_without_a_gpu(probe: FootprintProbe, tmp_path: Path, n_gpu_layers: int) -> None:
    path = write_llama(tmp_path / "model.gguf", n_embd=128)
    assert_plan_is_real(probe, path, (replace(SETTINGS, n_ctx=512, n_gpu_layers=n_gpu_layers),))


def test_a_split_model_takes_what_the_whole_one_does(probe: FootprintProbe, tmp_path: Path) -> None:
    whole = write_llama(tmp_path / "whole.gguf", n_embd=128)
    split = write_llama(tmp_path / "split.gguf", n_embd=128, shards=3)
    settings = replace(SETTINGS, n_ctx=512)
    assert planned(probe, split, settings).rows == planned(probe, whole, settings).rows
    assert_plan_is_real(probe, split, (settings,))


def test_experts_kept_on_the_cpu_load_as_planned(probe: FootprintProbe, tmp_path: Path) -> None:
    path = write_tiny("qwen3moe", tmp_path / "moe.gguf")
    assert_plan_is_real(probe, path, (replace(SETTINGS, n_ctx=512, experts_on_cpu=True),))
    assert planned(probe, path, SETTINGS).num_experts == 4


def test_the_buffer_of_logits_holds_a_verification_of_the_longest_draft(tmp_path: Path) -> None:
    """The plan counts it as large as it becomes: its rows lie one behind the other, the last ends at its end."""
    import ctypes

    import llama_cpp.llama_cpp as C

    loaded = load(
        str(write_llama(tmp_path / "model.gguf")), replace(SETTINGS, n_ctx=512), 1, AbortFlag(), lambda _: True
    )
    try:
        loaded.context.decode([1] * MAX_OUTPUTS, MAX_OUTPUTS)
        first, last = (
            ctypes.addressof(C.llama_get_logits_ith(loaded.context.handle, row).contents)
            for row in (0, MAX_OUTPUTS - 1)
        )
        row_bytes = 4 * loaded.context.n_vocab
        assert last + row_bytes - first == output_bytes(loaded.context.n_vocab, "target")
        assert output_bytes(loaded.context.n_vocab, "draft") == row_bytes
    finally:
        loaded.close()


def test_a_mapped_load_differs_in_weights_alone(probe: FootprintProbe, tmp_path: Path) -> None:
    settings = replace(SETTINGS, n_ctx=512, use_mmap=True)
    path = write_llama(tmp_path / "model.gguf", n_embd=128)
    loaded = load(str(path), settings, 1, AbortFlag(), lambda _: True)
    try:
        pair = real_footprint(loaded, loaded)
    finally:
        loaded.close()
    assert pair is not None and pair.draft is not None
    plan = planned(probe, path, settings)
    for column in ("kv_bytes", "recurrent_bytes", "compute_bytes", "output_bytes"):
        assert sum(getattr(row, column) for row in pair.target.rows) == sum(getattr(row, column) for row in plan.rows)
    assert "pages of the file" in pair.target.note
    assert sum(row.output_bytes for row in pair.draft.rows) < sum(row.output_bytes for row in pair.target.rows)


def test_a_pair_is_planned_with_contexts_of_its_own(probe: FootprintProbe, tmp_path: Path) -> None:
    target = write_llama(tmp_path / "target.gguf", n_embd=128)
    draft = write_llama(tmp_path / "draft.gguf", n_embd=64)
    pair = probe.measure(str(target), Placement(2048), str(draft), Placement(512, type_k="q8_0"))
    assert pair.draft is not None
    assert (pair.target.n_ctx, pair.draft.n_ctx) == (2048, 512)
    alone = probe.measure(str(draft), Placement(512, type_k="q8_0")).target
    for column in ("weights_bytes", "kv_bytes", "compute_bytes"):
        assert [getattr(row, column) for row in pair.draft.rows] == [getattr(row, column) for row in alone.rows]
