"""The plan, over models made up in closed form: what is claimed is checked against the form itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.errors import LocalspecError
from localspec.planning.devices import PlanDevice, check, used_bytes
from localspec.planning.fitting import Fitting, at_context, padded, placements, plan_rows
from localspec.planning.footprint import Footprint, MemoryRow, PairFootprint, Placement
from localspec.planning.plan import MAX_MEASURES, DraftAlternative, MemoryPlan, TradeOffer, Wishes, make_plan
from localspec.planning.search import Sample, largest, predicted_largest

MIB = 1 << 20
GIB = 1 << 30

RANKS = {
    verdict: rank
    for rank, verdict in enumerate(
        ("DOES_NOT_FIT", "FITS_WITHOUT_DRAFT", "FITS_WITH_PARTIAL_OFFLOAD", "FITS_WITH_LESS_CONTEXT", "FITS")
    )
}


@dataclass(frozen=True)
class MadeUpModel:
    """A model whose needs are linear in pieces, as llama.cpp's are."""

    num_blocks: int = 36
    block_bytes: int = 120 * MIB
    expert_bytes: int = 0
    """Of a block's weights."""
    output_bytes: int = 500 * MIB
    embedding_bytes: int = 350 * MIB
    kv_bytes: int = 4096
    """Of a position in one block, F16."""
    window: int = 0
    """Positions that half of the blocks keep; 0 for all."""
    recurrent_bytes: int = 0
    compute_bytes: int = 100 * MIB
    n_ctx_train: int = 32768

    def rows(self, placement: Placement, gpus: Sequence[PlanDevice]) -> tuple[MemoryRow, ...]:
        n_ctx = padded(placement.n_ctx)
        layers = self.num_blocks + 1
        wanted = layers if placement.n_gpu_layers < 0 else min(layers, placement.n_gpu_layers)
        on_gpus = wanted if gpus else 0
        shares = split(on_gpus, gpus)
        place = ["CPU"] * (layers - on_gpus) + [
            gpu.name for gpu, num in zip(gpus, shares, strict=True) for _ in range(num)
        ]
        weights = dict.fromkeys(["CPU", *(gpu.name for gpu in gpus)], 0)
        kv, recurrent = dict(weights), dict(weights)
        weights["CPU"] += self.embedding_bytes
        share = 34 / 64 if placement.type_k == "q8_0" else 1.0
        for block, device in enumerate(place[:-1]):
            experts = self.expert_bytes if placement.experts_on_cpu else 0
            weights[device] += self.block_bytes - experts
            weights["CPU"] += experts
            positions = min(n_ctx, self.window + 512) if self.window and block % 2 else n_ctx
            kv[device] += int(self.kv_bytes * share) * positions
            recurrent[device] += self.recurrent_bytes
        weights[place[-1]] += self.output_bytes
        scratch = 2 * self.kv_bytes * n_ctx if share < 1 else 0
        partly = 11 * MIB if 0 < on_gpus < layers else 0
        compute = max(self.compute_bytes, 48 * MIB + 1024 * n_ctx + scratch) + partly
        found = [
            MemoryRow(name, name, weights[name], kv[name], recurrent[name], compute, 0)
            for name in weights
            if name != "CPU"
        ]
        host_compute = compute if not gpus else 8 * MIB + 1024 * n_ctx
        found.append(MemoryRow("CPU", "CPU", weights["CPU"], kv["CPU"], recurrent["CPU"], host_compute, 0))
        # Pinned memory is a buffer of its own in the same memory.
        found.append(MemoryRow("CUDA_Host", "CPU", 0, 0, 0, 0, 4 * MIB))
        return tuple(found)


def split(num: int, gpus: Sequence[PlanDevice]) -> list[int]:
    """Return how many layers each GPU takes, by free memory."""
    total = sum(gpu.free_bytes for gpu in gpus) or 1
    ends = [round(num * sum(gpu.free_bytes for gpu in gpus[: index + 1]) / total) for index in range(len(gpus))]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


@dataclass
class Measuring:
    """Answers as the engine does, and keeps what it was asked."""

    devices: tuple[PlanDevice, ...]
    target: MadeUpModel
    draft: MadeUpModel | None = None
    asked: list[tuple[Placement, Placement | None]] = field(default_factory=list)
    refuses_q8_0: bool = False

    async def __call__(self, target: Placement, draft: Placement | None) -> PairFootprint:
        self.asked.append((target, draft))
        if self.refuses_q8_0 and target.type_k == "q8_0":
            raise LocalspecError("a head of 80 has no q8_0")
        return self.footprint(target, draft)

    def footprint(self, target: Placement, draft: Placement | None) -> PairFootprint:
        gpus = [device for device in self.devices if device.kind == "gpu"]

        def one(model: MadeUpModel, placement: Placement) -> Footprint:
            assert placement.n_ctx > 0
            return Footprint(
                placement,
                model.rows(placement, gpus),
                padded(placement.n_ctx),
                model.n_ctx_train,
                model.num_blocks + 1,
                8 if model.expert_bytes else 0,
                True,
            )

        return PairFootprint(
            one(self.target, target), one(self.draft, draft) if self.draft is not None and draft is not None else None
        )

    def fits(self, wishes: Wishes) -> bool:
        return not check(plan_rows(self.footprint(*placements(wishes)), self.devices), self.devices)


def gpu(gib: float, name: str = "HYPO0", shares_host_memory: bool = False) -> PlanDevice:
    return PlanDevice(name, "RTX 4070", "gpu", int(gib * GIB), int(gib * GIB), GIB, shares_host_memory)


def host(gib: float = 32) -> PlanDevice:
    return PlanDevice("CPU", "", "host", int(gib * GIB), int(gib * GIB), GIB)


TARGET = MadeUpModel()
DRAFT = MadeUpModel(28, 10 * MIB, output_bytes=120 * MIB, embedding_bytes=120 * MIB, compute_bytes=60 * MIB)
MIXTURE = MadeUpModel(24, 480 * MIB, expert_bytes=440 * MIB)


def gib_up(size_bytes: int) -> str:
    return f"{-(-size_bytes * 10 // GIB) / 10:.1f} GiB"


def wishes_for(n_ctx: int = 16384, draft: bool = True, **more: int) -> Wishes:
    return Wishes(Placement(n_ctx), Placement(0) if draft else None, **more)


async def planned(
    devices: Sequence[PlanDevice],
    wishes: Wishes,
    target: MadeUpModel = TARGET,
    draft: MadeUpModel | None = DRAFT,
    with_offers: bool = False,
    alternatives: Sequence[DraftAlternative] = (),
) -> tuple[MemoryPlan, Measuring]:
    measuring = Measuring(tuple(devices), target, draft if wishes.draft is not None else None)
    plan = await make_plan(devices, measuring, wishes, with_offers=with_offers, alternatives=alternatives)
    assert len(set(measuring.asked)) == len(measuring.asked), "measured twice"
    return plan, measuring


def offers_of(plan: MemoryPlan) -> dict[str, TradeOffer]:
    assert len({offer.code for offer in plan.offers}) == len(plan.offers)
    return {offer.code: offer for offer in plan.offers}


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


async def test_offers_for_a_context_that_does_not_fit() -> None:
    alternatives = [DraftAlternative("Q2_K", 200 * MIB), DraftAlternative("Q8_0", 900 * MIB)]
    plan, measuring = await planned([gpu(8.5), host()], wishes_for(), with_offers=True, alternatives=alternatives)
    offers = offers_of(plan)
    assert set(offers) >= {
        "less_context", "kv_q8_0", "draft_kv_q8_0", "draft_context", "without_draft", "draft_layers", "target_layers",
        "smaller_draft",
    }  # fmt: skip
    assert len(measuring.asked) <= MAX_MEASURES
    assert offers["less_context"].n_ctx == plan.n_ctx
    assert (
        f"KV q8_0: context {offers['kv_q8_0'].n_ctx} instead of {plan.n_ctx}; rounds a little" in offers["kv_q8_0"].text
    )
    assert "n-gram drafting costs nothing" in offers["without_draft"].text
    assert "falls silent" in offers["draft_context"].text
    assert (
        offers["smaller_draft"].is_estimate
        and "about" in offers["smaller_draft"].text
        and "Q2_K" in offers["smaller_draft"].text
    )
    assert offers["target_layers"].n_ctx == 16384
    for offer in plan.offers:
        if not offer.is_estimate:
            again = await make_plan(plan.devices, measuring, offer.wishes, with_offers=False)
            assert (again.verdict, again.n_ctx) == ("FITS", offer.n_ctx), offer.code


async def test_kv_q8_0_names_its_side_effects() -> None:
    wishes = Wishes(Placement(16384, flash_attn=False), None)
    heavy = replace(TARGET, kv_bytes=16384)
    plan, _ = await planned([gpu(9), host()], wishes, heavy, with_offers=True)
    offer = offers_of(plan)["kv_q8_0"]
    assert "more to compute" in offer.text and "needs flash attention" in offer.text
    assert offer.wishes.target.flash_attn and offer.wishes.target.type_v == "q8_0"


async def test_what_llama_cpp_refuses_is_no_offer() -> None:
    devices = (gpu(8.5), host())
    measuring = Measuring(devices, TARGET, DRAFT, refuses_q8_0=True)
    plan = await make_plan(devices, measuring, wishes_for())
    assert "kv_q8_0" not in offers_of(plan) and "without_draft" in offers_of(plan)


async def test_a_plan_with_room_to_spare_has_nothing_to_offer() -> None:
    plan, measuring = await planned([gpu(40), host()], wishes_for(), with_offers=True)
    assert plan.offers == () and len(measuring.asked) == 2


async def test_offers_for_a_partial_plan_bring_layers_back() -> None:
    plan, measuring = await planned([gpu(5), host()], wishes_for(8192), with_offers=True)
    offers = offers_of(plan)
    alone = offers["without_draft"]
    assert alone.wishes.target.n_gpu_layers > plan.target.n_gpu_layers
    assert f"instead of {plan.target.n_gpu_layers} of 37 layers" in alone.text
    assert len(measuring.asked) <= MAX_MEASURES


async def test_layers_are_offered_in_the_place_of_experts() -> None:
    plan, _ = await planned([gpu(9), host()], wishes_for(8192), MIXTURE, with_offers=True)
    offer = offers_of(plan)["target_layers"]
    assert not offer.wishes.target.experts_on_cpu and 0 < offer.wishes.target.n_gpu_layers < 25


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
