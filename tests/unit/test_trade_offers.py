"""Offers of a plan: what they bring, what they cost, and that they hold."""

from __future__ import annotations

from dataclasses import replace

from localspec.planning.footprint import Placement
from localspec.planning.plan import MAX_MEASURES, DraftAlternative, Wishes, make_plan
from tests.plan_kit import (
    DRAFT,
    MIB,
    MIXTURE,
    TARGET,
    Measuring,
    gpu,
    host,
    offers_of,
    planned,
    wishes_for,
)


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


async def test_what_host_memory_bounds_is_offered_with_room_to_sway() -> None:
    wishes = wishes_for(draft=False)
    plan, measuring = await planned([host(7)], wishes, with_offers=True)
    assert plan.verdict == "FITS_WITH_LESS_CONTEXT"
    offers = offers_of(plan)
    for code in ("less_context", "kv_q8_0"):
        assert f"about {offers[code].n_ctx}" in offers[code].text
    assert offers["less_context"].n_ctx < plan.n_ctx < offers["kv_q8_0"].n_ctx
    # A moment later something else has taken 200 MiB.
    (now,) = plan.devices
    later = (replace(now, free_bytes=now.free_bytes - 200 * MIB),)
    for offer in offers.values():
        again = await make_plan(later, measuring, offer.wishes, with_offers=False)
        assert (again.verdict, again.n_ctx) == ("FITS", offer.n_ctx), offer


async def test_what_a_described_machine_bounds_is_exact() -> None:
    described = replace(host(7), is_hypothetical=True)
    plan, _ = await planned([described], wishes_for(draft=False), with_offers=True)
    assert offers_of(plan)["less_context"].n_ctx == plan.n_ctx
    assert not any("about" in offer.text for offer in plan.offers)


async def test_a_dense_model_has_no_experts_to_keep() -> None:
    wishes = Wishes(Placement(8192, experts_on_cpu=True), None)
    plan, _ = await planned([gpu(24), host()], wishes)
    assert plan.verdict == "FITS" and any("no experts" in note for note in plan.notes)
    partial, _ = await planned([gpu(4), host()], wishes)
    assert partial.verdict == "FITS_WITH_PARTIAL_OFFLOAD" and "experts" not in partial.sentence
    mixture, _ = await planned([gpu(24), host()], wishes, MIXTURE)
    assert not any("experts" in note for note in mixture.notes)
