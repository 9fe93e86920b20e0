from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.hardware.profile import Device, read_profile
from localspec.planning.notes import (
    GIB,
    MachineFacts,
    context_note,
    cpu_features,
    feature_names,
    machine_facts,
    notes_on,
)

WORKSTATION = MachineFacts(
    architecture="x86_64",
    physical_cores=16,
    logical_cores=16,
    machine_logical_cores=16,
    memory_total_bytes=64 * GIB,
    memory_available_bytes=48 * GIB,
    load_average=0.2,
    is_on_battery=None,
    supports_gpu_offload=True,
    gpus=("CUDA0",),
    integrated_gpus=(),
    cpu_features=frozenset({"AVX2", "AVX512", "FMA"}),
)


def codes(facts: MachineFacts) -> set[str]:
    return {note.code for note in notes_on(facts)}


def test_a_good_machine_has_no_notes() -> None:
    assert notes_on(WORKSTATION) == ()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"gpus": (), "physical_cores": 4, "logical_cores": 4}, "few_cores"),
        ({"gpus": (), "supports_gpu_offload": False}, "no_gpu_offload"),
        ({"gpus": ()}, "no_gpu_device"),
        ({"gpus": (), "integrated_gpus": ("Vulkan0",)}, "integrated_gpu"),
        ({"load_average": 8.0}, "high_load"),
        ({"is_on_battery": True}, "on_battery"),
        ({"logical_cores": 32}, "smt"),
        ({"memory_available_bytes": GIB // 2}, "low_memory"),
        ({"gpus": (), "integrated_gpus": ("x",), "cpu_features": frozenset({"SSE3"})}, "no_avx2"),
        ({"gpus": (), "integrated_gpus": ("x",), "cpu_features": frozenset({"AVX2"})}, "no_avx512"),
        ({"gpus": (), "architecture": "aarch64", "cpu_features": frozenset({"NEON"})}, "no_dotprod"),
    ],
)
def test_each_fact_gives_its_note(change: dict[str, object], code: str) -> None:
    assert code not in codes(WORKSTATION)
    facts = replace(WORKSTATION, **change)  # type: ignore[arg-type]
    assert code in codes(facts)
    note = next(note for note in notes_on(facts) if note.code == code)
    assert note.advice.endswith(".")


def test_a_gpu_makes_few_cores_unimportant() -> None:
    assert "few_cores" not in codes(replace(WORKSTATION, physical_cores=2, logical_cores=2))


def test_serious_notes_come_first() -> None:
    facts = replace(WORKSTATION, gpus=(), physical_cores=2, is_on_battery=True)
    severities = [note.severity for note in notes_on(facts)]
    assert severities[0] == "serious"
    assert severities == sorted(severities, key=["serious", "warning", "info"].index)


def test_the_load_is_the_whole_machines() -> None:
    container = replace(WORKSTATION, physical_cores=2, logical_cores=2, machine_logical_cores=64, load_average=8.0)
    assert "high_load" not in codes(container)


def test_facts_come_from_the_profile() -> None:
    gpu = Device("CUDA0", "a GPU", "gpu", "CUDA", GIB, 2 * GIB)
    profile = read_profile((gpu,))
    facts = machine_facts(profile, True, "CPU : AVX2 = 1")
    assert facts.gpus == ("CUDA0",)
    assert facts.integrated_gpus == ()
    assert facts.physical_cores == profile.host.physical_cores
    assert facts.cpu_features == frozenset({"AVX2"})


def test_unknown_facts_give_no_note() -> None:
    facts = replace(WORKSTATION, gpus=(), load_average=None, is_on_battery=None, cpu_features=None)
    assert codes(facts) == {"no_gpu_device"}


def test_features_are_read_from_the_info_line() -> None:
    line = "CPU : SSE3 = 1 | AVX2 = 1 | AVX512 = 0 | F16C = 1 | LLAMAFILE = 1 | "
    assert cpu_features(line) == frozenset({"SSE3", "AVX2", "F16C", "LLAMAFILE"})
    assert feature_names(line) == ("SSE3", "AVX2", "F16C", "LLAMAFILE")
    assert cpu_features("") is None


def test_load_is_put_in_cores() -> None:
    (note,) = notes_on(replace(WORKSTATION, load_average=8.0))
    assert note.text.startswith("Other programs are using 8.0 of 16 cores right now")
    (note,) = notes_on(replace(WORKSTATION, load_average=40.0))
    assert note.text.startswith("Other programs are using all of 16 cores right now")


@pytest.mark.parametrize(
    ("n_ctx", "n_ctx_train", "is_noted"),
    [(4096, 2048, True), (2048, 2048, False), (2048, 2000, False), (4096, 0, False)],
)
def test_a_context_over_the_trained_length(n_ctx: int, n_ctx_train: int, is_noted: bool) -> None:
    note = context_note("draft", n_ctx, n_ctx_train)
    assert (note is not None) == is_noted
    if note is not None:
        assert "The draft was trained on texts of up to 2048 tokens" in note.text


@given(
    cores=st.integers(1, 256),
    load=st.none() | st.floats(0, 1000),
    free=st.integers(0, 2**42),
    total=st.integers(0, 2**42),
)
def test_any_numbers_give_distinct_notes(cores: int, load: float | None, free: int, total: int) -> None:
    facts = replace(
        WORKSTATION,
        gpus=(),
        physical_cores=cores,
        machine_logical_cores=cores,
        load_average=load,
        memory_available_bytes=free,
        memory_total_bytes=total,
    )
    found = [note.code for note in notes_on(facts)]
    assert len(found) == len(set(found))
    assert ("high_load" in found) == (load is not None and load >= max(0.5, 0.25 * cores))
