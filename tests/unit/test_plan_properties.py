"""What holds for every plan, over models and machines made up at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.planning.devices import PlanDevice, used_bytes
from localspec.planning.fitting import Fitting, at_context, padded, placements, plan_rows
from localspec.planning.footprint import Footprint, MemoryRow, PairFootprint, Placement
from localspec.planning.plan import MAX_MEASURES, DraftAlternative, Wishes, make_plan
from localspec.planning.search import Sample, largest, predicted_largest
from tests.plan_kit import (
    MIB,
    MIXTURE,
    TARGET,
    MadeUpModel,
    Measuring,
    gpu,
    host,
    offers_of,
    planned,
)

RANKS = {
    verdict: rank
    for rank, verdict in enumerate(
        ("DOES_NOT_FIT", "FITS_WITHOUT_DRAFT", "FITS_WITH_PARTIAL_OFFLOAD", "FITS_WITH_LESS_CONTEXT", "FITS")
    )
}


def test_a_line_through_equal_samples_predicts_the_top() -> None:
    same = Sample(1, ()), Sample(9, ())
    assert predicted_largest(*same, 2, 8, lambda rows: True) == 8
    assert predicted_largest(*same, 2, 8, lambda rows: False) == 2


@given(st.lists(st.integers(0, 50), min_size=2, max_size=200), st.integers(0, 3000))
async def test_largest_is_exact_for_whatever_never_falls(steps: list[int], budget: int) -> None:
    sums = [sum(steps[: index + 1]) for index in range(len(steps))]
    devices = (PlanDevice("CPU", "", "host", budget, budget, 0),)
    fitting = Fitting(devices, Measuring(devices, TARGET))
    sizes = [MemoryRow("CPU", "CPU", size, 0, 0, 0, 0) for size in sums]

    def rows(step: int) -> Sample:
        footprint = Footprint(Placement(256), (sizes[step],), 256, 256, 2, 0, True)
        return Sample(step, plan_rows(PairFootprint(footprint, None), devices))

    async def rows_at(step: int) -> Sequence[object]:
        return rows(step).rows

    last = len(sums) - 1
    if sums[0] > budget or sums[last] <= budget:
        return
    found = await largest(rows(0), rows(last), rows_at, fitting.fits)  # type: ignore[arg-type]
    assert sums[found] <= budget < sums[found + 1]


MODELS = st.builds(
    MadeUpModel,
    num_blocks=st.integers(1, 60),
    block_bytes=st.integers(1, 300).map(lambda mib: mib * MIB),
    output_bytes=st.integers(0, 1000).map(lambda mib: mib * MIB),
    embedding_bytes=st.integers(0, 1000).map(lambda mib: mib * MIB),
    kv_bytes=st.integers(0, 64).map(lambda kib: kib * 512),
    window=st.sampled_from([0, 512, 4096]),
    recurrent_bytes=st.sampled_from([0, MIB]),
    compute_bytes=st.integers(1, 500).map(lambda mib: mib * MIB),
    n_ctx_train=st.sampled_from([0, 512, 2048, 8192, 40960, 131072]),
) | st.integers(1, 40).map(lambda num: replace(MIXTURE, num_blocks=num))
GPUS = st.lists(st.integers(2, 48).map(lambda half: half / 2), max_size=2)
DEVICES = st.builds(
    lambda sizes, memory, shared: (
        *(gpu(size, f"HYPO{index}", shares_host_memory=shared) for index, size in enumerate(sizes)),
        host(memory),
    ),
    GPUS,
    st.integers(2, 64),
    st.booleans(),
)
WISHES = st.builds(
    Wishes,
    target=st.builds(
        Placement,
        n_ctx=st.sampled_from([0, 300, 2048, 4096, 16384, 65536]),
        n_gpu_layers=st.sampled_from([-1, -1, -1, 0, 7]),
    ),
    draft=st.none() | st.builds(Placement, n_ctx=st.sampled_from([0, 0, 4096])),
    min_ctx=st.sampled_from([256, 4096]),
)


@settings(max_examples=150, deadline=None)
@given(DEVICES, WISHES, MODELS, MODELS)
async def test_a_plan_keeps_its_word(
    devices: tuple[PlanDevice, ...], wishes: Wishes, target: MadeUpModel, draft: MadeUpModel
) -> None:
    plan, measuring = await planned(devices, wishes, target, draft)
    as_loaded = Wishes(plan.target, plan.draft)
    footprint = measuring.footprint(*placements(as_loaded))
    every = [row for model in (footprint.target, footprint.draft) if model is not None for row in model.rows]
    used = used_bytes(every, devices)
    assert used_bytes(plan.rows, devices) == used
    assert plan.fits == all(used[device.name] <= device.budget_bytes for device in devices)
    # Two GPUs that do not quite hold a mixture and its draft are the worst; the usual is 2 to 12.
    assert len(measuring.asked) <= (80 if len(devices) > 2 else 32)
    if not plan.fits:
        assert plan.max_n_ctx == 0
        return
    assert all(device.free_bytes - used[device.name] >= device.reserve_bytes for device in devices if used[device.name])
    asked = padded(wishes.target.n_ctx)
    cap = max(padded(target.n_ctx_train), asked, padded(wishes.min_ctx) if not asked and not target.n_ctx_train else 0)
    assert plan.n_ctx <= plan.max_n_ctx <= cap
    assert plan.n_ctx == asked or plan.n_ctx >= padded(
        min(wishes.min_ctx, asked or target.n_ctx_train or wishes.min_ctx)
    )
    follows = wishes.draft is not None and plan.draft is not None and wishes.draft.n_ctx == 0
    placed = replace(as_loaded, draft=replace(plan.draft, n_ctx=0) if follows and plan.draft else plan.draft)
    if plan.max_n_ctx > plan.n_ctx:
        assert measuring.fits(at_context(placed, plan.max_n_ctx))
    if plan.max_n_ctx < cap:
        assert not measuring.fits(at_context(placed, plan.max_n_ctx + 256))


@settings(max_examples=100, deadline=None)
@given(DEVICES, WISHES, MODELS, MODELS, st.integers(0, 2), st.integers(1, 8192))
async def test_more_memory_is_never_worse(
    devices: tuple[PlanDevice, ...],
    wishes: Wishes,
    target: MadeUpModel,
    draft: MadeUpModel,
    which: int,
    more_mib: int,
) -> None:
    if len(devices) > 2:
        # llama.cpp parts layers by free memory: with another share a layer may move to where there is no room.
        devices = devices[1:]
    index = which % len(devices)
    larger = replace(devices[index], free_bytes=devices[index].free_bytes + more_mib * MIB)
    before, _ = await planned(devices, wishes, target, draft)
    after, _ = await planned([*devices[:index], larger, *devices[index + 1 :]], wishes, target, draft)
    assert RANKS[after.verdict] >= RANKS[before.verdict]
    if before.verdict == after.verdict in ("FITS", "FITS_WITH_LESS_CONTEXT"):
        assert after.max_n_ctx >= before.max_n_ctx
        assert after.n_ctx >= before.n_ctx


@settings(max_examples=60, deadline=None)
@given(DEVICES, WISHES, MODELS, MODELS)
async def test_offers_keep_their_word(
    devices: tuple[PlanDevice, ...], wishes: Wishes, target: MadeUpModel, draft: MadeUpModel
) -> None:
    alternatives = [DraftAlternative("Q4_0", 10 * MIB)]
    plan, measuring = await planned(devices, wishes, target, draft, with_offers=True, alternatives=alternatives)
    alone, without_offers = await planned(devices, wishes, target, draft)
    assert replace(plan, offers=()) == alone
    assert len(measuring.asked) <= max(MAX_MEASURES, len(without_offers.asked))
    for offer in offers_of(plan).values():
        assert offer.n_ctx % 256 == 0 and offer.text
        if not offer.is_estimate:
            again = await make_plan(devices, measuring, offer.wishes, with_offers=False)
            assert again.fits and again.n_ctx == offer.n_ctx, offer


@given(MODELS, st.integers(1, 300), st.integers(1, 300))
def test_more_context_never_needs_less(model: MadeUpModel, first: int, second: int) -> None:
    devices = (gpu(8), host())
    measuring = Measuring(devices, model)
    few, many = sorted((first * 256, second * 256))
    less, more = (
        used_bytes(plan_rows(measuring.footprint(Placement(n_ctx), None), devices), devices) for n_ctx in (few, many)
    )
    assert all(less[name] <= more[name] for name in less)
