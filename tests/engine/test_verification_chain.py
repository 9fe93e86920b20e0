"""Distributions are what llama.cpp's own chain draws from, however few candidates it was given."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import llama_cpp.llama_cpp as C
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.engine.distribution import Distribution
from localspec.engine.llama.candidates import Candidates, Logits, likely_ids
from localspec.engine.llama.loading import LoadedModel
from localspec.engine.llama.sampler import LlamaSampler, new_filters
from localspec.engine.values import SamplingSettings
from tests.verification_kit import Text, chi_square_p

WARM = SamplingSettings(temperature=0.8)
OPEN = SamplingSettings(temperature=1.3, top_k=0, top_p=1.0, min_p=0.0)


def row_of(n_vocab: int, seed: int, spread: float, step: float) -> Logits:
    """A row of logits; with a step, many are equal."""
    logits = np.random.default_rng(seed).standard_normal(n_vocab) * spread
    return (np.round(logits / step) * step if step else logits).astype(np.float32)


@given(
    n_vocab=st.sampled_from([1, 2, 63, 700, 5000]),
    seed=st.integers(0, 999),
    step=st.sampled_from([0.0, 0.01, 0.5]),
    count=st.integers(1, 300),
    num_banned=st.integers(0, 60),
)
def test_the_likely_ids_hold_all_of_the_largest(
    n_vocab: int, seed: int, step: float, count: int, num_banned: int
) -> None:
    logits = row_of(n_vocab, seed, 2.0, step)
    logits[:num_banned] = -np.inf
    ids = likely_ids(logits, count)
    bound = np.sort(logits)[-min(count, n_vocab)]
    assert set(np.flatnonzero(logits >= bound)) <= set(ids.tolist())
    assert ids.tolist() == sorted(set(ids.tolist()))


def test_few_ids_are_likely() -> None:
    assert len(likely_ids(row_of(152_064, 1, 2.0, 0.0), 40)) < 80


@given(
    n_vocab=st.sampled_from([700, 5000]),
    seed=st.integers(0, 999),
    spread=st.sampled_from([0.3, 2.0, 6.0]),
    step=st.sampled_from([0.0, 0.01, 0.5]),
    top_k=st.sampled_from([1, 5, 40, 80]),
    top_p=st.sampled_from([0.0, 0.5, 0.95, 1.0]),
    min_p=st.sampled_from([0.0, 0.05, 0.4, 1.0]),
    temperature=st.sampled_from([0.2, 0.8, 1.5]),
)
def test_a_part_of_the_candidates_gives_what_all_of_them_give(
    n_vocab: int, seed: int, spread: float, step: float, top_k: int, top_p: float, min_p: float, temperature: float
) -> None:
    logits = row_of(n_vocab, seed, spread, step)
    filters = new_filters(SamplingSettings(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p))
    try:
        candidates = Candidates(n_vocab)
        part = candidates.distribution(None, filters, logits, likely_ids(logits, top_k))
        whole = candidates.distribution(None, filters, logits)
        drawn = drawn_from(filters, logits)
    finally:
        C.llama_sampler_free(filters)
    assert whole is not None
    assert dict(zip(whole.ids.tolist(), whole.probabilities.tolist(), strict=True)) == pytest.approx(drawn, rel=1e-5)
    assert whole.ids.tolist() == sorted(whole.ids.tolist())
    assert whole.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert step or part is not None
    if part is not None:
        assert_equal(part, whole)


def drawn_from(filters: Any, logits: Logits) -> dict[int, float]:
    """What llama.cpp's draw says itself of the probabilities that it has drawn with."""
    array_type = C.llama_token_data * logits.size
    data = array_type(*((token, float(logit), 0.0) for token, logit in enumerate(logits)))
    array = C.llama_token_data_array(ctypes.cast(data, C.llama_token_data_p), logits.size, -1, False)
    dist = C.llama_sampler_init_dist(1)
    for link in (filters, dist):
        C.llama_sampler_apply(link, ctypes.byref(array))
    C.llama_sampler_free(dist)
    return {data[place].id: data[place].p for place in range(array.size) if data[place].p > 0.0}


def assert_equal(one: Distribution, other: Distribution) -> None:
    assert one.ids.tolist() == other.ids.tolist()
    assert one.probabilities.tolist() == other.probabilities.tolist()


HOT = 4.0
"""The tiny model's logits lie far apart."""
SAMPLINGS = [
    SamplingSettings(HOT),
    SamplingSettings(HOT, top_k=0, top_p=1.0, min_p=0.0),
    SamplingSettings(HOT, top_k=0),
    SamplingSettings(HOT, top_k=0, top_p=1.0, min_p=0.02),
    SamplingSettings(HOT, top_k=7, min_p=0.0, repeat_penalty=1.4, repeat_last_n=6),
    SamplingSettings(HOT, top_k=5, min_p=0.0, repeat_penalty=0.6, repeat_last_n=-1),
    SamplingSettings(HOT, top_k=12, min_p=0.0, frequency_penalty=0.7, presence_penalty=-1.5),
    SamplingSettings(HOT, top_k=9, min_p=0.0, presence_penalty=3.0, repeat_last_n=0),
    SamplingSettings(HOT, min_p=0.0, grammar="root ::= [a-f]{20}"),
    SamplingSettings(HOT, min_p=0.0, top_k=4, grammar='root ::= ("ab" | "cd" | "ee ")+', repeat_penalty=1.3),
]
TEXT = (40, 41, 42, 43, 41)


@pytest.fixture
def row(tiny_target: LoadedModel) -> Iterator[LoadedModel]:
    tiny_target.context.clear()
    tiny_target.context.prefill(TEXT)
    yield tiny_target
    tiny_target.context.clear()


def sampler_of(
    loaded: LoadedModel, sampling: SamplingSettings, prompt: Sequence[int] = TEXT, banned: Sequence[int] = ()
) -> LlamaSampler:
    return LlamaSampler(loaded.context, sampling, prompt, banned)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_prefix_counts_like_emitted_tokens_and_changes_nothing(
    row: LoadedModel, sampling: SamplingSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead, behind = sampler_of(row, sampling), sampler_of(row, sampling)
    with monkeypatch.context() as patch:
        patch.setattr(LlamaSampler, "_possible_ids", lambda *_: None)
        before = ahead.distribution(0, ())
    prefix: list[int] = []
    for place in range(6):
        found = ahead.distribution(0, prefix)
        assert_equal(found, behind.distribution(0, ()))
        with monkeypatch.context() as patch:
            patch.setattr(LlamaSampler, "_possible_ids", lambda *_: None)
            assert_equal(found, ahead.distribution(0, prefix))
        token = int(found.ids[(3 * place) % found.ids.size])
        prefix.append(token)
        behind.accept(token)
    # Out of order, and from the start again.
    for length in (2, 5, 1, 0):
        fresh = sampler_of(row, sampling)
        for token in prefix[:length]:
            fresh.accept(token)
        assert_equal(ahead.distribution(0, prefix[:length]), fresh.distribution(0, ()))
        fresh.close()
    assert_equal(ahead.distribution(0, ()), before)
    ahead.close()
    behind.close()


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_draws_come_as_often_as_the_distribution_says(row: LoadedModel, sampling: SamplingSettings) -> None:
    asked = sampler_of(row, SamplingSettings(HOT, top_k=4, min_p=0.0))
    prompt = (*TEXT, *asked.distribution(0, ()).ids.tolist())
    asked.close()
    asked = sampler_of(row, sampling, prompt)
    found = asked.distribution(0, ())
    asked.close()
    counts: dict[Text, int] = {}
    for seed in range(400):
        drawing = sampler_of(row, replace(sampling, seed=seed), prompt)
        token = drawing.sample(0)
        drawing.close()
        counts[token,] = counts.get((token,), 0) + 1
    shares = zip(found.ids.tolist(), found.probabilities.tolist(), strict=True)
    wanted: dict[Text, float] = {(token,): share for token, share in shares}
    assert sum(wanted.values()) == pytest.approx(1.0)
    assert len(wanted) > 1
    assert chi_square_p(counts, wanted) > 1e-6


def test_penalties_forget_what_lies_too_far_back(row: LoadedModel) -> None:
    strong = SamplingSettings(temperature=1.0, top_k=3, min_p=0.0, presence_penalty=50.0, repeat_last_n=2)
    plain = sampler_of(row, SamplingSettings(temperature=1.0, top_k=3, min_p=0.0)).distribution(0, ())
    best = int(plain.ids[plain.probabilities.argmax()])
    sampler = sampler_of(row, strong, prompt=())
    assert best in sampler.distribution(0, ()).ids
    assert best not in sampler.distribution(0, (best,)).ids
    assert best not in sampler.distribution(0, (best, 5)).ids
    assert best in sampler.distribution(0, (best, 5, 6)).ids
    sampler.close()


@pytest.mark.parametrize("sampling", [WARM, OPEN, SamplingSettings(temperature=0.8, repeat_penalty=1.2)])
def test_banned_ids_have_no_probability(row: LoadedModel, sampling: SamplingSettings) -> None:
    free = sampler_of(row, sampling)
    likely = free.distribution(0, ()).ids[:3].tolist()
    free.close()
    sampler = sampler_of(row, sampling, banned=likely)
    found = sampler.distribution(0, ())
    assert found.ids.size and not set(likely) & set(found.ids.tolist())
    sampler.close()


def test_equal_logits_at_a_border_are_left_to_the_whole_chain(row: LoadedModel) -> None:
    logits = row.context.logits(0)
    logits[:] = 0.0
    logits[100:110] = 1.0
    sampling = SamplingSettings(temperature=1.0, top_k=4, top_p=1.0, min_p=0.0)
    filters = new_filters(sampling)
    candidates = Candidates(row.context.n_vocab)
    assert candidates.distribution(None, filters, logits, likely_ids(logits, 4)) is None
    whole = candidates.distribution(None, filters, logits)
    sampler = sampler_of(row, sampling)
    assert whole is not None
    assert_equal(sampler.distribution(0, ()), whole)
    drawn = set()
    for seed in range(60):
        one = sampler_of(row, replace(sampling, seed=seed))
        drawn.add(one.sample(0))
        one.close()
    assert drawn == set(whole.ids.tolist())
    sampler.close()
    C.llama_sampler_free(filters)
