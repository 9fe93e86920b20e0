"""The plan, over models made up in closed form: what is claimed is checked against the form itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localspec.errors import LocalspecError
from localspec.planning.devices import check, used_bytes
from localspec.planning.fitting import at_context, plan_rows
from localspec.planning.footprint import Footprint, MemoryRow, PairFootprint, Placement
from localspec.planning.plan import Wishes, make_plan
from tests.plan_kit import (
    DRAFT,
    GIB,
    MIB,
    MIXTURE,
    TARGET,
    Measuring,
    gib_up,
    gpu,
    host,
    offers_of,
    planned,
    wishes_for,
)


async def test_all_fits() -> None:
    plan, measuring = await planned([gpu(24), host()], wishes_for())
    assert plan.verdict == "FITS" and plan.fits
    assert (plan.n_ctx, plan.max_n_ctx) == (16384, 32768)
    assert plan.target == Placement(16384) and plan.draft == Placement(16384)
    assert len(measuring.asked) == 2
    used = used_bytes(plan.rows, plan.devices)
    assert plan.sentence == (
        f"Fits: {used['HYPO0'] / GIB:.1f} of 23.0 GiB on RTX 4070 (HYPO0), {used['CPU'] / GIB:.1f} of 31.0 GiB in host "
        "memory; up to 32768 positions."
    )


async def test_context_is_cut_before_layers_are_moved() -> None:
    wishes = wishes_for()
    plan, measuring = await planned([gpu(8.5), host()], wishes)
    assert plan.verdict == "FITS_WITH_LESS_CONTEXT"
    assert 4096 <= plan.n_ctx == plan.max_n_ctx < 16384 and plan.n_ctx % 256 == 0
    assert measuring.fits(at_context(wishes, plan.n_ctx))
    assert not measuring.fits(at_context(wishes, plan.n_ctx + 256))
    assert plan.target.n_gpu_layers == -1
    assert f"{plan.n_ctx} positions instead of 16384" in plan.sentence
    assert len(measuring.asked) <= 6


async def test_a_context_below_the_least_is_no_plan() -> None:
    plan, _ = await planned([gpu(8.5), host()], wishes_for(min_ctx=16384))
    assert plan.verdict == "FITS_WITH_PARTIAL_OFFLOAD" and plan.n_ctx == 16384


async def test_draft_goes_to_the_gpu_before_the_last_layers_of_the_target() -> None:
    plan, measuring = await planned([gpu(5), host()], wishes_for(8192))
    assert plan.verdict == "FITS_WITH_PARTIAL_OFFLOAD"
    assert plan.draft is not None and plan.draft.n_gpu_layers == -1
    layers = plan.target.n_gpu_layers
    assert 0 < layers < 37
    as_planned = Wishes(plan.target, plan.draft)
    assert measuring.fits(as_planned)
    assert not measuring.fits(replace(as_planned, target=replace(plan.target, n_gpu_layers=layers + 1)))
    assert f"{layers} of 37 layers of the target and the whole draft on the GPU" in plan.sentence
    assert len(measuring.asked) <= 12


async def test_even_the_draft_is_split_on_a_tiny_gpu() -> None:
    plan, _ = await planned([gpu(1.65), host()], wishes_for(4096))
    assert plan.verdict == "FITS_WITH_PARTIAL_OFFLOAD"
    assert plan.target.n_gpu_layers == 0
    assert plan.draft is not None and 0 < plan.draft.n_gpu_layers < 29


async def test_experts_leave_the_gpu_before_whole_layers() -> None:
    plan, _ = await planned([gpu(6), host()], wishes_for(8192), MIXTURE)
    assert plan.verdict == "FITS_WITH_PARTIAL_OFFLOAD"
    assert plan.target.experts_on_cpu and plan.target.n_gpu_layers == -1
    assert "all of the target" not in plan.sentence and "the whole target but its experts" in plan.sentence


async def test_layers_stay_where_the_host_cannot_hold_the_experts() -> None:
    plan, _ = await planned([gpu(9), host(7)], wishes_for(8192), MIXTURE)
    assert plan.verdict == "FITS_WITH_PARTIAL_OFFLOAD"
    assert not plan.target.experts_on_cpu and 0 < plan.target.n_gpu_layers < 25


async def test_partial_offload_cuts_context_where_the_host_is_small() -> None:
    wishes = wishes_for(32768)
    plan, measuring = await planned([gpu(4), host(7.5)], wishes)
    assert plan.verdict == "FITS_WITH_PARTIAL_OFFLOAD"
    assert 4096 <= plan.n_ctx < 32768 and plan.max_n_ctx == plan.n_ctx
    assert measuring.fits(Wishes(plan.target, plan.draft))
    assert "instead of 32768" in plan.sentence


async def test_without_the_draft_if_nothing_else_helps() -> None:
    big = replace(DRAFT, block_bytes=100 * MIB)
    plan, _ = await planned([host(7)], wishes_for(4096), draft=big)
    assert plan.verdict == "FITS_WITHOUT_DRAFT" and plan.draft is None
    assert {row.model for row in plan.rows} == {"target"}
    assert "only without the draft" in plan.sentence


async def test_what_is_missing_is_said() -> None:
    plan, measuring = await planned([gpu(2), host(3)], wishes_for(), with_offers=True)
    assert plan.verdict == "DOES_NOT_FIT" and not plan.fits and plan.max_n_ctx == 0
    assert plan.rows == plan_rows(measuring.footprint(Placement(16384), Placement(16384)), plan.devices)
    over = {overrun.device: overrun.over_bytes for overrun in check(plan.rows, plan.devices)}
    assert f"{gib_up(over['HYPO0'])} too much on RTX 4070 (HYPO0)" in plan.sentence
    least = measuring.footprint(Placement(4096, n_gpu_layers=0), None).target.rows
    short = sum(row.total_bytes - row.compute_bytes for row in least) - 3 * GIB
    assert plan.sentence.endswith(
        f"even without the draft and with 4096 positions all memories together are {gib_up(short)} too small."
    )
    assert plan.offers == ()


async def test_what_is_missing_for_layers_in_host_memory_is_said() -> None:
    plan, _ = await planned([gpu(1.05), host(32)], wishes_for(4096))
    assert plan.verdict == "DOES_NOT_FIT"
    assert "even without the draft and with layers in host memory it is 49 MiB too much on RTX 4070" in plan.sentence


async def test_what_is_missing_of_host_memory_alone_is_said() -> None:
    plan, measuring = await planned([host(4)], wishes_for(4096, draft=False))
    (over,) = check(plan.rows, plan.devices)
    assert plan.sentence == (
        f"Does not fit: with 4096 positions it is {gib_up(over.over_bytes)} too much in host memory."
    )
    assert len(measuring.asked) == 1


async def test_host_only_has_no_layers_to_move() -> None:
    plan, measuring = await planned([host(8.5)], wishes_for())
    assert plan.verdict == "FITS_WITH_LESS_CONTEXT"
    assert {target.n_gpu_layers for target, _ in measuring.asked} == {-1}


async def test_most_context_is_found_up_to_what_the_target_was_trained_for() -> None:
    wide, _ = await planned([gpu(24), host()], wishes_for(0))
    assert (wide.verdict, wide.n_ctx, wide.max_n_ctx) == ("FITS", 32768, 32768)
    narrow, measuring = await planned([gpu(8.5), host()], wishes_for(0))
    assert narrow.verdict == "FITS" and narrow.n_ctx == narrow.max_n_ctx < 32768
    assert not measuring.fits(at_context(wishes_for(0), narrow.n_ctx + 256))
    assert narrow.target.n_ctx == narrow.n_ctx and narrow.draft == Placement(narrow.n_ctx)


async def test_context_past_the_trained_one_is_allowed_with_a_note() -> None:
    plan, _ = await planned([gpu(64), host()], wishes_for(65536))
    assert (plan.verdict, plan.n_ctx, plan.max_n_ctx) == ("FITS", 65536, 65536)
    assert [note for note in plan.notes if "trained on texts of up to 32768" in note and note.startswith("The target")]
    within, _ = await planned([gpu(64), host()], wishes_for(32768))
    assert within.notes == ()


async def test_a_trained_context_below_the_least() -> None:
    plan, _ = await planned([gpu(24), host()], wishes_for(0), replace(TARGET, n_ctx_train=1000))
    assert (plan.verdict, plan.n_ctx, plan.max_n_ctx) == ("FITS", 1024, 1024)


async def test_a_context_that_llama_cpp_pads() -> None:
    plan, _ = await planned([gpu(24), host()], wishes_for(300))
    assert plan.verdict == "FITS" and plan.n_ctx == 512 and plan.target.n_ctx == 300


async def test_draft_context_asked_for_stays() -> None:
    wishes = Wishes(Placement(16384), Placement(2048))
    plan, measuring = await planned([gpu(24), host()], wishes)
    assert plan.draft == Placement(2048)
    assert {draft.n_ctx for _, draft in measuring.asked if draft is not None} == {2048}


async def test_layers_asked_for_stay() -> None:
    wishes = Wishes(Placement(8192, n_gpu_layers=30), None)
    plan, measuring = await planned([gpu(4), host()], wishes, with_offers=True)
    assert plan.verdict == "DOES_NOT_FIT"
    rescue = offers_of(plan)["target_layers"]
    assert rescue.wishes.target.n_gpu_layers == -1
    again = await make_plan(plan.devices, measuring, rescue.wishes)
    assert again.verdict == "FITS_WITH_PARTIAL_OFFLOAD" and again.target.n_gpu_layers < 30


async def test_unified_memory_counts_on_both_sides() -> None:
    shared = gpu(24, shares_host_memory=True)
    plan, _ = await planned([shared, host(8.5)], wishes_for())
    assert plan.verdict == "FITS_WITH_LESS_CONTEXT"
    used = used_bytes(plan.rows, plan.devices)
    assert used["CPU"] == sum(row.total_bytes for row in plan.rows) <= plan.devices[1].budget_bytes


async def test_two_gpus_hold_what_one_does_not() -> None:
    one, _ = await planned([gpu(6), host()], wishes_for(8192))
    two, _ = await planned([gpu(6), gpu(6, "HYPO1"), host()], wishes_for(8192))
    assert one.verdict == "FITS_WITH_PARTIAL_OFFLOAD" and two.verdict == "FITS"
    assert {row.device for row in two.rows} == {"HYPO0", "HYPO1", "CPU"}


async def test_a_failure_to_measure_the_wishes_is_told() -> None:
    devices = (gpu(8), host())
    wishes = Wishes(Placement(4096, type_k="q8_0", type_v="q8_0"), None)
    with pytest.raises(LocalspecError, match="head of 80"):
        await make_plan(devices, Measuring(devices, TARGET, refuses_q8_0=True), wishes)


async def test_rows_of_an_unknown_device_are_counted() -> None:
    devices = (host(),)
    footprint = Footprint(Placement(256), (MemoryRow("X", "X", 5, 0, 0, 0, 0),), 256, 256, 2, 0, True)
    rows = plan_rows(PairFootprint(footprint, None), devices)
    assert [(row.device, row.total_bytes) for row in rows] == [("X", 5)]
    assert check(rows, devices)
