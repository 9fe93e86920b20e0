"""Measuring models that are not loaded: copies of headers, the log where the account is missing, heads, refusals."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localspec.catalog.embedded import find_gemma3, find_smollm2
from localspec.engine.client import EngineClient
from localspec.engine.events import EngineFailed, Event, FootprintMeasured
from localspec.engine.interface import last_event
from localspec.engine.llama import recurrent, stub
from localspec.engine.llama.accounts import Account
from localspec.engine.llama.breakdown import UnreadableBreakdown
from localspec.engine.llama.footprint import MAX_OPEN, FootprintProbe
from localspec.engine.llama.header import read_header
from localspec.engine.llama.stub import Stubs
from localspec.engine.requests import LoadModels, MeasureFootprint, RegisterDevices
from localspec.errors import ModelFileError, ModelLoadError, UsageError
from localspec.planning.devices import HypotheticalDevice
from localspec.planning.footprint import Footprint, MemoryRow, Placement
from localspec.session.demo import DemoModels
from tests.synthetic_gguf import write_synthetic
from tests.tiny_architectures import ARCHITECTURES, write_eagle3, write_tiny
from tests.tiny_gguf import write_llama, write_mamba

PLACEMENT = Placement(1024)

ABORTS_AT_666 = """
import ctypes, runpy
from localspec.engine.llama import footprint, ggml
measure = footprint.FootprintProbe.measure
def dying(self, path, target, *rest):
    if target.n_ctx == 666:
        argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p)
        ggml.symbol("ggml_abort", None, argtypes)(b"llama-context.cpp", 1, b"GGML_ASSERT(it is 666) failed")
    return measure(self, path, target, *rest)
footprint.FootprintProbe.measure = dying
runpy.run_module("localspec.engine.worker", run_name="__main__")
"""
"""The worker, in which llama.cpp fails a check of its own at one n_ctx."""


@pytest.fixture
def stubs(tmp_path: Path) -> Stubs:
    return Stubs(tmp_path / "stubs")


@pytest.fixture
def probe(stubs: Stubs) -> Iterator[FootprintProbe]:
    measured = FootprintProbe(stubs=stubs)
    yield measured
    measured.close()


def no_account(_: Any) -> Account:
    raise UnreadableBreakdown("switched off", "")


class NoStubs(Stubs):
    def header_of(self, path: str) -> Any:
        return read_header(path)


def column(rows: tuple[MemoryRow, ...], name: str) -> int:
    return sum(getattr(row, name) for row in rows)


def assert_log_agrees(path: Path, stubs: Stubs, placement: Placement) -> None:
    exact = FootprintProbe(stubs=stubs)
    logged = FootprintProbe(stubs=stubs, account=no_account)
    try:
        by_account, by_log = (each.measure(str(path), placement).target for each in (exact, logged))
    finally:
        exact.close()
        logged.close()
    for name in ("weights_bytes", "kv_bytes", "recurrent_bytes", "compute_bytes", "output_bytes"):
        assert column(by_log.rows, name) == pytest.approx(column(by_account.rows, name), abs=0.01 * 2**20), name
    assert by_account.is_exact and not by_log.is_exact
    assert "0.01 MiB" in by_log.note and not by_account.note


@pytest.mark.parametrize("architecture", ["llama", "mamba", *ARCHITECTURES])
def test_the_log_says_the_same_of_tiny_models(architecture: str, tmp_path: Path, stubs: Stubs) -> None:
    path = tmp_path / "model.gguf"
    if architecture == "llama":
        write_llama(path, n_embd=128)
    elif architecture == "mamba":
        write_mamba(path)
    else:
        write_tiny(architecture, path)
    for placement in (PLACEMENT, Placement(4096, type_k="q8_0", type_v="q8_0"), Placement(512, n_rs_seq=3)):
        assert_log_agrees(path, stubs, placement)


@pytest.mark.model
def test_the_log_says_the_same_of_smollm2(models: DemoModels, stubs: Stubs) -> None:
    for path in (find_smollm2(), models.target):
        assert_log_agrees(path, stubs, PLACEMENT)


@pytest.mark.model
@pytest.mark.parametrize("find", [find_smollm2, find_gemma3])
def test_a_copy_without_vocabulary_takes_what_the_model_does(find: Any, stubs: Stubs) -> None:
    try:
        path = find()
    except ModelFileError as error:
        pytest.skip(error.message)
    copy = stubs.header_of(str(path))
    assert copy.path != str(path)
    assert copy.file_bytes < path.stat().st_size
    status = os.stat(copy.path)
    assert getattr(status, "st_blocks", 0) * 512 < 1 << 20
    short, whole = FootprintProbe(stubs=stubs), FootprintProbe(stubs=NoStubs())
    assert short.measure(str(path), PLACEMENT) == whole.measure(str(path), PLACEMENT)
    short.close()
    whole.close()


def test_a_copy_is_made_once_and_anew_for_another_file(tmp_path: Path, stubs: Stubs) -> None:
    path = write_llama(tmp_path / "model.gguf")
    first = stubs.header_of(str(path))
    assert first.integer("llama.vocab_size") == 320
    assert first.text("tokenizer.ggml.model") == "no_vocab"
    assert [tensor.offset for tensor in first.tensors] == [tensor.offset for tensor in read_header(str(path)).tensors]
    made = Path(first.path).stat().st_mtime_ns
    assert stubs.header_of(str(path)).path == first.path
    assert Path(first.path).stat().st_mtime_ns == made
    write_llama(path, n_vocab=600)
    other = stubs.header_of(str(path))
    assert other.path != first.path
    assert other.integer("llama.vocab_size") == 600


def test_copies_are_bounded_and_leave_nothing_behind(tmp_path: Path) -> None:
    stubs = Stubs(tmp_path / "stubs", max_stubs=3)
    for index in range(5):
        stubs.header_of(str(write_llama(tmp_path / f"{index}.gguf")))
    assert len(list((tmp_path / "stubs").iterdir())) == 3
    assert not list((tmp_path / "stubs").glob(".part-*"))


def test_a_damaged_copy_is_not_used(tmp_path: Path, stubs: Stubs, probe: FootprintProbe) -> None:
    path = write_llama(tmp_path / "model.gguf")
    copy = Path(stubs.header_of(str(path)).path)
    copy.write_bytes(b"GGUF")
    assert stubs.header_of(str(path)).path == str(path)
    assert probe.measure(str(path), PLACEMENT).target.is_exact


def test_without_sparse_files_the_model_itself_is_measured(
    tmp_path: Path, stubs: Stubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise OSError("no sparse files")

    path = write_llama(tmp_path / "model.gguf")
    monkeypatch.setattr(stub, "_check_holes", refuse)
    assert stubs.header_of(str(path)).path == str(path)
    assert not list((tmp_path / "stubs").iterdir())


def test_a_header_without_its_weights_is_enough(tmp_path: Path, probe: FootprintProbe, stubs: Stubs) -> None:
    path = write_llama(tmp_path / "model.gguf", n_embd=128)
    whole = probe.measure(str(path), PLACEMENT)
    header = tmp_path / "header.gguf"
    shutil.copyfile(path, header)
    with header.open("r+b") as file:
        file.truncate(read_header(str(path)).data_offset)
        file.truncate(path.stat().st_size)
    assert probe.measure(str(header), PLACEMENT) == whole


def test_models_stay_open_but_not_all(tmp_path: Path, probe: FootprintProbe) -> None:
    path = str(write_llama(tmp_path / "model.gguf", n_layer=20))
    sizes = {probe.measure(path, Placement(256, n_gpu_layers=layers)).target.rows for layers in range(20)}
    assert len(sizes) == 1
    assert len(probe._open) == MAX_OPEN


def test_state_is_told_apart_from_the_kv_cache(tmp_path: Path, probe: FootprintProbe) -> None:
    """lfm2: two layers of (3 - 1) x 64 values in F32, a row more for each snapshot; two layers of K and V in F16."""
    path = str(write_tiny("lfm2", tmp_path / "lfm2.gguf"))
    for n_rs_seq in (0, 1, 4):
        rows = probe.measure(path, Placement(1024, n_rs_seq=n_rs_seq)).target.rows
        assert column(rows, "recurrent_bytes") == 2 * 2 * 64 * 4 * (1 + n_rs_seq)
        assert column(rows, "kv_bytes") == 2 * 2 * 32 * 2 * 1024


def test_large_state_is_multiplied_and_not_made(tmp_path: Path, stubs: Stubs, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(write_synthetic("qwen3.5-0.8b-mtp", tmp_path / "model.gguf"))
    found: list[Footprint] = []
    for limit in (1 << 40, 0):
        monkeypatch.setattr("localspec.engine.llama.footprint.MAX_TOUCHED_BYTES", limit)
        monkeypatch.setattr("localspec.engine.llama.probe.MAX_TOUCHED_BYTES", limit)
        probe = FootprintProbe(stubs=stubs)
        found.append(probe.measure(path, Placement(1024, n_rs_seq=2)).target)
        probe.close()
    assert found[0].rows == found[1].rows
    assert column(found[0].rows, "recurrent_bytes") % 3 == 0


def test_absurd_state_is_refused_before_anything_is_allocated(
    tmp_path: Path, probe: FootprintProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(write_mamba(tmp_path / "mamba.gguf"))
    monkeypatch.setattr(recurrent, "MAX_STATE_BYTES", 1000)
    with pytest.raises(ModelLoadError, match="claims a recurrent state"):
        probe.measure(path, PLACEMENT)


def test_heads_inside_a_file_share_its_weights(tmp_path: Path, probe: FootprintProbe) -> None:
    path = str(write_synthetic("qwen3.5-0.8b-mtp", tmp_path / "model.gguf"))
    pair = probe.measure(path, PLACEMENT, path, PLACEMENT)
    alone = probe.measure(path, PLACEMENT).target
    assert pair.draft is not None and pair.draft.is_exact
    assert column(pair.draft.rows, "weights_bytes") == column(pair.draft.rows, "recurrent_bytes") == 0
    assert 0 < column(pair.draft.rows, "kv_bytes") < column(pair.target.rows, "kv_bytes")
    assert column(pair.target.rows, "weights_bytes") > column(alone.rows, "weights_bytes")


def test_an_eagle3_head_is_measured_on_its_target(tmp_path: Path, probe: FootprintProbe) -> None:
    target, head = str(write_tiny("qwen3", tmp_path / "target.gguf")), write_eagle3(tmp_path / "head.gguf")
    draft = probe.measure(target, PLACEMENT, str(head), PLACEMENT).draft
    assert draft is not None and draft.is_exact
    assert column(draft.rows, "weights_bytes") == read_header(str(head)).tensor_bytes
    assert column(draft.rows, "kv_bytes") == 2 * 32 * 2 * 1024
    with pytest.raises(ModelLoadError, match="cannot run alone"):
        probe.measure(str(head), PLACEMENT)


def test_a_head_of_another_target_is_a_note(tmp_path: Path, probe: FootprintProbe) -> None:
    target, head = write_llama(tmp_path / "target.gguf", n_embd=128), write_eagle3(tmp_path / "head.gguf")
    draft = probe.measure(str(target), PLACEMENT, str(head), PLACEMENT).draft
    assert draft is not None and not draft.is_exact
    assert "width 64, and the target's is 128" in draft.note
    assert column(draft.rows, "weights_bytes") == read_header(str(head)).tensor_bytes
    assert column(draft.rows, "kv_bytes") == 0


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        (Placement(-1), "n_ctx"),
        (Placement(512, n_batch=8, n_ubatch=8), "n_batch"),
        (Placement(512, n_ubatch=1024), "n_ubatch"),
        (Placement(512, n_rs_seq=1000), "n_rs_seq"),
    ],
)
def test_placements_out_of_bounds_are_refused(
    tmp_path: Path, probe: FootprintProbe, placement: Placement, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        probe.measure(str(write_llama(tmp_path / "model.gguf")), placement)


def test_what_llama_cpp_refuses_is_a_failure_in_words(tmp_path: Path, probe: FootprintProbe) -> None:
    path = str(write_llama(tmp_path / "model.gguf"))
    with pytest.raises(ModelLoadError, match="would make no context"):
        probe.measure(path, Placement(512, type_v="q8_0", flash_attn=False))
    with pytest.raises(ModelFileError, match="no file"):
        probe.measure(str(tmp_path / "missing.gguf"), PLACEMENT)
    assert probe.measure(path, PLACEMENT).target.is_exact


async def ask(client: EngineClient, path: Path) -> Event:
    return await last_event(client, MeasureFootprint(client.next_id(), str(path), PLACEMENT))


def test_refusals_name_the_model_and_the_cause(tmp_path: Path, probe: FootprintProbe) -> None:
    model = tmp_path / "odd heads.gguf"
    write_llama(model, n_embd=68)
    for _ in range(2):
        with pytest.raises(ModelLoadError) as caught:
            probe.measure(str(model), Placement(512, type_k="q8_0", type_v="q8_0"))
        assert str(model) in caught.value.message and "stubs" not in caught.value.message
        assert "q8_0" in caught.value.message and "f16" in caught.value.hint and "smaller" not in caught.value.hint
    with pytest.raises(ModelLoadError) as caught:
        probe.measure(str(model), Placement(512, type_v="q8_0", flash_attn=False))
    assert str(model) in caught.value.message and "flash attention" in caught.value.hint


async def test_a_process_with_hypothetical_devices_loads_nothing(tmp_path: Path) -> None:
    client = EngineClient(tmp_path / "engine.log")
    path = write_llama(tmp_path / "model.gguf", n_embd=128)
    try:
        await last_event(client, RegisterDevices(client.next_id(), (HypotheticalDevice("a card", 8 << 30),)))
        measured = await ask(client, path)
        with pytest.raises(UsageError, match="nothing can run"):
            await last_event(client, LoadModels(client.next_id(), str(path)))
    finally:
        await client.close()
    assert isinstance(measured, FootprintMeasured)
    placed = {row.device: row for row in measured.footprint.target.rows}
    assert placed["HYPO0"].kv_bytes and placed["HYPO0"].compute_bytes
    assert placed["CPU"].output_bytes and not placed["CPU"].kv_bytes
    assert list(placed) == ["HYPO0", "CPU"]


async def test_a_probe_that_aborts_is_a_failure_and_the_next_one_answers(tmp_path: Path) -> None:
    client = EngineClient(tmp_path / "engine.log", command=[sys.executable, "-c", ABORTS_AT_666])
    path = write_llama(tmp_path / "model.gguf", n_embd=128)
    try:
        assert isinstance(await ask(client, path), FootprintMeasured)
        request = MeasureFootprint(client.next_id(), str(path), Placement(666))
        died = [event async for event in client.stream(request)][-1]
        assert isinstance(died, EngineFailed)
        assert died.is_fatal and died.kind == "EngineDiedError" and died.exit_code
        assert any("GGML_ASSERT(it is 666) failed" in line for line in died.log_tail)
        assert isinstance(await ask(client, path), FootprintMeasured)
    finally:
        await client.close()
