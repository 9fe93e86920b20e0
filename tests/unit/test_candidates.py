"""Who may draft for a target, in which order, and why not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from localspec.catalog.hub.values import Offer, RepoListing
from localspec.catalog.pairing import PairVerdict
from localspec.errors import AccessError, HubError, ModelFileError, OfflineError
from localspec.session.candidates import CandidateTarget, SearchExtent, find_candidates
from localspec.session.ranking import break_even
from tests.candidate_kit import TARGET, FakeHub, as_hub, curated, engine, entry, facts, fetch, hit, labels, one
from tests.scripted_engine import ScriptedEngine

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub


async def test_no_model_at_all_leaves_ngrams() -> None:
    [only] = await find_candidates(engine(), TARGET)
    assert (only.source, only.method, only.size_bytes, only.verdict) == ("built in", "ngram", 0, None)
    assert only.is_runnable and "needs no second model" in only.reason.lower()


async def test_local_models_are_ranked_by_status_kin_and_cost() -> None:
    local = [
        entry("Qwen3-1.7B-Q4", facts("Qwen3 1.7B", 800)),
        entry("Qwen3-0.6B-Q4", facts("Qwen3 0.6B", 300)),
        entry("Foreign-1B", facts("Foreign", 100)),
        entry("Qwen3.5-0.8B", facts("Qwen3.5 0.8B", 200)),
        entry("Qwen3-0.6B-padded", facts("Qwen3 0.6B", 100)),
        entry("Qwen3-0.6B-strange", facts("Qwen3 0.6B", 50)),
        entry("Unrelated-1B", facts("Unrelated", 100, vocabulary="w" * 32)),
    ]
    verdicts = {
        "padded": PairVerdict("PAIR_WITH_NOTE", "", ("The draft has 128 tokens more.",)),
        "strange": PairVerdict("UNKNOWN", "llama.cpp cannot load its vocabulary."),
    }
    found = await find_candidates(engine(verdicts=verdicts), TARGET, local=local)
    assert labels(found) == [
        "Qwen3-0.6B-Q4",
        "Qwen3-1.7B-Q4",
        "Qwen3.5-0.8B",
        "Foreign-1B",
        "Qwen3-0.6B-padded",
        "Qwen3-0.6B-strange",
        "n-grams of the text",
    ]
    best = found[0]
    assert best.cost_ratio == pytest.approx(300 / 4000)
    assert best.break_even == break_even(300 / 4000)
    assert best.path == Path("/models/Qwen3-0.6B-Q4.gguf")
    # What holds for all of them is not said of each.
    assert best.reason == (
        "Same family, version and kind as the target; a token reads 300 MiB, the target's 4,000 MiB."
    )
    assert "llama.cpp cannot load its vocabulary." in one(found, "Qwen3-0.6B-strange").reason


async def test_refusals_come_last_and_say_why() -> None:
    local = [
        entry("Qwen3-4B-Q4", facts("Qwen3 4B", 1900)),
        entry("Qwen3-0.6B-other", facts("Qwen3 0.6B", 300)),
        entry("Qwen3-Embedding-0.6B", facts("Qwen3 Embedding 0.6B", 300)),
        entry("Qwen3-0.6B-split", facts("Qwen3 0.6B", 300), missing=("Qwen3-0.6B-split-00002-of-00002.gguf",)),
        entry("Qwen3-0.6B-damaged", None, failure="It is damaged at byte 17."),
        entry("Qwen3-0.6B-deadly", facts("Qwen3 0.6B", 300)),
        entry("Qwen3-0.6B-good", facts("Qwen3 0.6B", 300)),
    ]
    verdicts = {"other": PairVerdict("NO_PAIR", "token 5: the target says 'a', the draft says 'b'")}
    found = await find_candidates(engine(verdicts=verdicts), TARGET, local=local)
    assert labels(found) == ["Qwen3-0.6B-good", "n-grams of the text"]
    assert {each.label: each.refusal for each in found[2:]} == {
        "Qwen3-4B-Q4": "too dear to pay: it reads 0.47 of what a target step reads; a quarter or less is worth trying",
        "Qwen3-0.6B-other": "token 5: the target says 'a', the draft says 'b'",
        "Qwen3-Embedding-0.6B": "an embedding model writes no text",
        "Qwen3-0.6B-split": "Qwen3-0.6B-split-00002-of-00002.gguf is missing",
        "Qwen3-0.6B-damaged": "It is damaged at byte 17.",
        "Qwen3-0.6B-deadly": "The engine died",
    }
    assert all(each.reason == "" and not each.is_runnable for each in found[2:])


async def test_neither_the_target_nor_larger_models_are_candidates() -> None:
    local = [
        entry("Qwen3-8B-Q4_K_M", facts()),
        entry("Qwen3-8B-Q8_0", facts("Qwen3 8B", 8000)),
        entry("Qwen3-32B", facts("Qwen3 32B", 18000)),
    ]
    scripted = engine()
    found = await find_candidates(scripted, TARGET, local=local)
    assert [each.method for each in found] == ["ngram"]
    assert not scripted.requests


async def test_what_was_looked_at_and_passed_over_is_told() -> None:
    local = [
        entry("Qwen3-8B-Q4_K_M", facts()),
        entry("Qwen3-0.6B-Q4", facts("Qwen3 0.6B", 300)),
        *(entry(f"Other-{number}", facts("Other", 100, vocabulary="w" * 32)) for number in range(7)),
        entry("Qwen3-14B", facts("Qwen3 14B", 9000)),
        entry("broken", None, failure="Broken."),
        entry("toy", facts("Toy", 10), place="demo"),
    ]
    told: list[SearchExtent] = []
    found = await find_candidates(engine(), TARGET, local=local, on_extent=told.append)
    assert labels(found) == ["Qwen3-0.6B-Q4", "n-grams of the text"]
    assert told[0].passed_over == (
        "7 other local models have another vocabulary; 1 reads as much per token as the target; 1 cannot be read; "
        "1 belongs to the demo."
    )
    assert told[0].searched == "Looked at: the curated list and 11 other models on this machine."
    hub = FakeHub()
    await find_candidates(engine(), TARGET, hub=as_hub(hub), fetch=fetch, on_extent=told.append)
    assert told[1].searched == "Looked at: the curated list, no other models on this machine and the Hub (qwen3)."
    assert told[1].passed_over == ""


async def test_the_demos_copies_draft_for_the_demos_target() -> None:
    local = [entry("Qwen3-8B-Q4_K_M", facts(), place="demo"), entry("toy", facts("Toy", 10), place="demo")]
    assert labels(await find_candidates(engine(), TARGET, local=local)) == ["toy", "n-grams of the text"]
    assert labels(await find_candidates(engine(), TARGET, local=local[1:])) == ["n-grams of the text"]


async def test_the_same_content_is_one_candidate_with_all_its_names() -> None:
    local = [
        entry("a/Qwen3-0.6B-Q4", facts("Qwen3 0.6B", 300)),
        entry("b/Qwen3-0.6B-Q4", facts("Qwen3 0.6B", 300)),
        entry("Qwen3-0.6B-Q8", facts("Qwen3 0.6B", 600)),
    ]
    found = await find_candidates(engine(), TARGET, local=local)
    assert labels(found) == ["a/Qwen3-0.6B-Q4", "Qwen3-0.6B-Q8", "n-grams of the text"]
    assert [each.other_names for each in found] == [("b/Qwen3-0.6B-Q4",), (), ()]


async def test_curated_pairs_go_first_and_a_local_copy_stands_for_the_repository() -> None:
    local = [
        entry("unsloth/Qwen3-0.6B-GGUF:Q8_0", facts("Qwen3 0.6B", 600), repo="unsloth/Qwen3-0.6B-GGUF"),
        entry("Qwen3-0.6B-Q4", facts("Qwen3 0.6B", 300)),
    ]
    pairs = [curated("unsloth/Qwen3-0.6B-GGUF"), replace(curated("a/b"), target_base="Qwen/Qwen3-32B")]
    hub = FakeHub()
    found = await find_candidates(engine(), TARGET, curated=pairs, local=local, hub=as_hub(hub), fetch=fetch)
    assert [(each.source, each.label) for each in found] == [
        ("curated", "unsloth/Qwen3-0.6B-GGUF:Q8_0"),
        ("local", "Qwen3-0.6B-Q4"),
        ("built in", "n-grams of the text"),
    ]
    assert found[0].reason.startswith("On the curated list (not measured with localspec), same family")
    assert found[0].notes == "(https://example.org/pairs)"
    assert hub.listed == ["Qwen/Qwen3-8B-GGUF"]


async def test_a_curated_pair_may_be_less_than_four_times_smaller_but_comes_after_smaller_ones() -> None:
    pairs = [curated("Qwen/Qwen3-4B-GGUF"), curated("Qwen/Qwen3-14B-GGUF", draft_base="Qwen/Qwen3-14B")]
    local = [entry("Qwen3-0.6B-Q4", facts("Qwen3 0.6B", 300))]
    hub = FakeHub()
    found = await find_candidates(
        engine({"4B-GGUF/Qwen3-4B": 2000, "14B": 7000}),
        TARGET,
        curated=pairs,
        local=local,
        hub=as_hub(hub),
        fetch=fetch,
    )
    assert labels(found) == ["Qwen3-0.6B-Q4", "Qwen/Qwen3-4B-GGUF:Q4_K_M", "n-grams of the text"]
    assert found[1].reason.endswith("a token reads 2,000 MiB, the target's 4,000 MiB, which is over a quarter.")
    refusal = one(found, "Qwen/Qwen3-14B-GGUF:Q4_K_M").refusal
    assert refusal.startswith("too dear to pay: it reads 1.75 times what a target step reads;")


async def test_what_the_engine_cannot_draft_with_comes_after_what_it_can() -> None:
    pairs = [curated("someone/Qwen3-8B-EAGLE3-GGUF", "eagle3", notes="A head.")]
    local = [entry("Foreign-1B", facts("Foreign", 900))]
    verdicts = {"EAGLE3": PairVerdict("PAIR", "", (), "eagle3")}
    found = await find_candidates(
        engine(verdicts=verdicts), TARGET, curated=pairs, local=local, hub=as_hub(FakeHub()), fetch=fetch
    )
    assert labels(found) == ["Foreign-1B", "someone/Qwen3-8B-EAGLE3-GGUF:Q4_K_M (eagle3)", "n-grams of the text"]
    assert found[1].method == "eagle3"
    assert not found[1].is_runnable
    assert "localspec cannot draft with eagle3 heads yet" in found[1].reason
    assert found[1].notes == "A head. (https://example.org/pairs)"


async def test_heads_on_this_machine_that_fit_the_target() -> None:
    head = replace(facts("head", 200, vocabulary=""), draft_only="eagle3", target_hidden_size=4096)
    local = [
        entry("a-head", head),
        entry("a-head-for-another", replace(head, target_hidden_size=2048)),
    ]
    found = await find_candidates(
        engine(verdicts={"a-head": PairVerdict("PAIR", "", (), "eagle3")}), TARGET, local=local
    )
    assert [(each.label, each.method) for each in found] == [("a-head", "eagle3"), ("n-grams of the text", "ngram")]


async def test_mtp_heads_inside_the_target_need_no_download() -> None:
    target = replace(TARGET, facts=replace(facts(), num_mtp_layers=1))
    pairs = [curated("", "mtp", notes="Inside the file."), curated("", "ngram", notes="Try 3.")]
    found = await find_candidates(engine(), target, curated=pairs)
    assert [each.method for each in found] == ["mtp", "ngram"]
    assert "one layer for multi-token prediction: nothing to download." in found[0].reason
    assert found[0].notes == "Inside the file."
    assert found[1].notes == "Try 3."


async def test_the_hub_is_searched_for_smaller_siblings() -> None:
    hub = FakeHub(
        [
            hit("bartowski/Qwen3-0.6B-GGUF", 10),
            hit("unsloth/Qwen3-0.6B-GGUF", 20),
            hit("Qwen/Qwen3-4B-GGUF", 90),
            hit("Qwen/Qwen3-1.7B-GGUF", 5),
            hit("Qwen/Qwen3-8B-GGUF", 99),
            hit("Qwen/Qwen3-Embedding-0.6B-GGUF", 70, ("Qwen/Qwen3-0.6B-Base",)),
            hit("someone/Llama-3.2-1B-GGUF", 500),
            hit("broken/Qwen3-1B-GGUF", 1),
            hit("gated/Qwen3-0.5B-GGUF", 1),
        ],
        {"gated/Qwen3-0.5B-GGUF": AccessError("gated/Qwen3-0.5B-GGUF wants a token.", "Log in.")},
    )
    said: list[float] = []
    found = await find_candidates(
        engine({"0.6B": 300, "1.7B": 900}),
        TARGET,
        hub=as_hub(hub),
        fetch=fetch,
        on_progress=lambda text, fraction: said.append(fraction),
    )
    assert hub.searched == ["qwen3"]
    assert labels(found) == ["unsloth/Qwen3-0.6B-GGUF:Q4_K_M", "Qwen/Qwen3-1.7B-GGUF:Q4_K_M", "n-grams of the text"]
    assert found[0].source == "hub" and found[0].path is None and found[0].size_bytes == 1000
    assert found[0].download is not None and found[0].download[0].repo == "unsloth/Qwen3-0.6B-GGUF"
    assert {each.label: each.refusal for each in found if each.refusal} == {
        "broken/Qwen3-1B-GGUF:Q4_K_M": "broken/Qwen3-1B-GGUF is no GGUF",
        "gated/Qwen3-0.5B-GGUF": "gated/Qwen3-0.5B-GGUF wants a token",
    }
    assert said == sorted(said) and said[-1] == 1.0


async def test_the_number_of_repositories_is_bounded() -> None:
    hub = FakeHub([hit(f"o/Qwen3-0.{number}B-GGUF") for number in range(1, 40)])
    await find_candidates(engine(), TARGET, hub=as_hub(hub), fetch=fetch, max_repos=5)
    assert len(hub.listed) == 6  # the target's own repository, and five more


async def test_a_model_that_is_here_is_not_looked_for_on_the_hub() -> None:
    local = [entry("Qwen3-0.6B-Q4_K_M", facts("Qwen3 0.6B", 300)), entry("Qwen3-0.5B", None, failure="Broken.")]
    hub = FakeHub([hit("bartowski/Qwen3-0.6B-GGUF"), hit("bartowski/Qwen3-0.5B-GGUF")])
    found = await find_candidates(engine(), TARGET, local=local, hub=as_hub(hub), fetch=fetch)
    assert labels(found) == ["Qwen3-0.6B-Q4_K_M", "bartowski/Qwen3-0.5B-GGUF:Q4_K_M", "n-grams of the text"]


async def test_heads_beside_the_target_are_found() -> None:
    hub = FakeHub()
    hub.files["Qwen/Qwen3-8B-GGUF"] = ("Qwen3-8B-Q4_K_M.gguf", "eagle3-Qwen3-8B-Q8_0.gguf")
    verdicts = {"eagle3": PairVerdict("PAIR", "", (), "eagle3")}
    found = await find_candidates(engine(verdicts=verdicts), TARGET, hub=as_hub(hub), fetch=fetch)
    assert labels(found) == ["Qwen/Qwen3-8B-GGUF:Q8_0 (eagle3)", "n-grams of the text"]


async def test_offline_from_the_start_leaves_this_machine_and_the_list() -> None:
    offline = OfflineError("There is no network.", "Go on without.")
    hub = FakeHub(failures={"search": offline, "Qwen/Qwen3-8B-GGUF": offline, "unsloth/Qwen3-0.6B-GGUF": offline})
    notes: list[str] = []
    found = await find_candidates(
        engine(),
        TARGET,
        curated=[curated("unsloth/Qwen3-0.6B-GGUF")],
        local=[entry("Qwen3-0.6B-Q4", facts("Qwen3 0.6B", 300))],
        hub=as_hub(hub),
        fetch=fetch,
        on_note=notes.append,
    )
    assert labels(found) == ["Qwen3-0.6B-Q4", "unsloth/Qwen3-0.6B-GGUF", "n-grams of the text"]
    assert "the Hub is out of reach" in found[1].reason
    assert found[1].verdict is not None and found[1].verdict.status == "UNKNOWN"
    assert notes == ["Only this machine was searched: There is no network."]
    assert hub.listed == ["unsloth/Qwen3-0.6B-GGUF"]  # asked once, and then no more


async def test_offline_in_mid_way_refuses_what_was_not_read() -> None:
    offline = OfflineError("There is no network.", "Go on without.")
    hub = FakeHub([hit("o/Qwen3-0.6B-GGUF")], {"o/Qwen3-0.6B-GGUF": offline})
    found = await find_candidates(engine(), TARGET, hub=as_hub(hub), fetch=fetch)
    assert one(found, "o/Qwen3-0.6B-GGUF").refusal == "There is no network"
    hub = FakeHub(failures={"search": HubError("The Hub answers nonsense.", "Wait.")})
    notes: list[str] = []
    found = await find_candidates(engine(), TARGET, hub=as_hub(hub), fetch=fetch, on_note=notes.append)
    assert labels(found) == ["n-grams of the text"]
    assert notes == ["The Hub was not searched to the end: The Hub answers nonsense."]


async def test_a_curated_draft_without_a_known_conversion_is_looked_for() -> None:
    pairs = [curated("", draft_base="Qwen/Qwen3-0.6B"), curated("", "eagle3", draft_base="x/head")]
    hub = FakeHub([hit("a/small-GGUF", 5, ("Qwen/Qwen3-0.6B",)), hit("b/small-GGUF", 9, ("qwen/qwen3-0.6b",))])
    found = await find_candidates(engine(), TARGET, curated=pairs, hub=as_hub(hub), fetch=fetch)
    assert found[0].source == "curated" and found[0].label == "b/small-GGUF:Q4_K_M"
    assert one(found, "x/head").refusal == "no GGUF of x/head was found: it has to be converted first"


async def test_without_a_hub_curated_drafts_stay_unread() -> None:
    [first, _] = await find_candidates(engine(), TARGET, curated=[curated("o/draft-GGUF")])
    assert (first.label, first.cost_ratio, first.break_even) == ("o/draft-GGUF", None, None)
    assert "the Hub was not asked" in first.reason
    assert "what a draft step costs is unknown." in first.reason


async def test_a_target_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ModelFileError, match="no such file"):
        await find_candidates(ScriptedEngine(), replace(TARGET, facts=None))


async def test_names_that_tell_nothing_search_nothing() -> None:
    hub, notes = FakeHub(), list[str]()
    target = CandidateTarget(Path("/models/8.gguf"), "8", facts=facts(title=""))
    await find_candidates(engine(), target, hub=as_hub(hub), fetch=fetch, on_note=notes.append)
    assert hub.searched == []
    assert notes == ["The target's names tell no family, so the Hub was not searched for smaller models of it."]


async def test_one_slow_repository_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow_for_one(hub: Hub, listing: RepoListing, offer: Offer) -> Path:
        if listing.repo.startswith("slow/"):
            await asyncio.Event().wait()
        return await fetch(hub, listing, offer)

    monkeypatch.setattr("localspec.session.nominations.PATIENCE_S", 0.05)
    hub = FakeHub([hit("slow/Qwen3-0.6B-GGUF"), hit("o/Qwen3-1.7B-GGUF")])
    found = await find_candidates(engine(), TARGET, hub=as_hub(hub), fetch=slow_for_one)
    assert labels(found) == ["o/Qwen3-1.7B-GGUF:Q4_K_M", "n-grams of the text"]
    assert "did not come within" in one(found, "slow/Qwen3-0.6B-GGUF:Q4_K_M").refusal


async def test_cancelling_ends_the_search() -> None:
    started = asyncio.Event()

    async def never(hub: Hub, listing: RepoListing, offer: Offer) -> Path:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    hub = FakeHub([hit("o/Qwen3-0.6B-GGUF")])
    search = asyncio.create_task(find_candidates(engine(), TARGET, hub=as_hub(hub), fetch=never))
    await started.wait()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
