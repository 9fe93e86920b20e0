"""Drafted and accepted tokens are those of llama.cpp's own server, but where the draft has two candidates in a tie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from localspec.engine.drafting.draft_model import DraftModelDrafter
from localspec.engine.pacing import FixedPacing
from localspec.engine.speculative import Round, speculate
from localspec.engine.values import SpeculationSettings
from localspec.hardware.cores import read_cores
from localspec.session.demo import DemoModels
from tests.bench.counts import Parting, Result, find_ties, num_common_tokens, own_rounds, walk
from tests.bench.in_process import InProcessPair
from tests.bench.redecoding import RedecodingDrafter
from tests.engine_kit import PAIR_N_CTX
from tests.reference_server import (
    Chunk,
    DraftRound,
    ReferenceServer,
    ServerError,
    ServerSettings,
    ServerUnavailableError,
    rebuild_rounds,
)
from tests.toys import ToyModel, ToySampler

QUESTIONS = (
    "Explain how a bicycle stays upright, in three sentences.",
    "Write a Python function that reverses a list.",
    "Repeat exactly: The quick brown fox jumps over the lazy dog near the river bank at dawn.",
    "List five fruits and a colour of each.",
)
FEW = QUESTIONS[2:]
NUM_TOKENS = 40


def check_ties(pair: InProcessPair, result: Result, other_build: ReferenceServer | None) -> None:
    """Fail unless rounding explains every place where a prompt's rounds part; show them all."""
    for tie in find_ties(pair.draft, result, other_build):
        words = (
            f"{tie.parting.ours}, theirs {tie.parting.theirs}: token {tie.parting.place} is {spell(pair, tie.token)}, "
            f"the gap is {tie.gap:.3f} and the noise {tie.noise:.3f}; our draft thinks {describe(pair, tie.ours)}"
        )
        if tie.theirs:
            words += f", the other build's {describe(pair, tie.theirs)}"
        print(f"  tie: {words}")
        assert tie.is_explained, words


def spell(pair: InProcessPair, token: int) -> str:
    """Return a token's text in quotes."""
    return repr(pair.draft.model.vocabulary.piece(token, with_special=True).decode("utf-8", "replace"))


def describe(pair: InProcessPair, candidates: Mapping[int, float]) -> str:
    """Return the three best candidates in words."""
    return ", ".join(f"{spell(pair, token)} {value:.3f}" for token, value in list(candidates.items())[:3])


def check_counts(results: Sequence[Result]) -> None:
    """Require equal totals of prompts that never part, few partings, and that most rounds could be compared."""
    num_compared = num_rounds = num_partings = num_equal = 0
    for result in results:
        ours, found = own_rounds(result.run), result.walk
        num_compared += found.num_compared
        num_rounds += found.num_rounds
        num_partings += len(found.partings)
        totals = [
            (sum(r.num_drafted for r in side), sum(r.num_accepted for r in side)) for side in (ours, result.theirs)
        ]
        print(f"drafted and accepted: {totals}, {found.num_compared} of {found.num_rounds} rounds compared")
        if result.num_common == len(result.run.tokens) and not found.partings:
            assert totals[0] == totals[1]
            num_equal += 1
    assert num_compared >= 0.5 * num_rounds > 0, f"only {num_compared} of {num_rounds} rounds could be compared"
    assert num_partings <= 0.2 * num_compared, f"{num_partings} of {num_compared} rounds differ"
    assert num_equal > 0, "no prompt had equal totals"


@pytest.mark.model
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("n_max", "questions"),
    [(2, FEW), *(pytest.param(n_max, QUESTIONS, marks=pytest.mark.slow) for n_max in (2, 4, 8))],
    ids=["2, two questions", "2", "4", "8"],
)
def test_counts_are_those_of_llama_cpps_server(
    pair: InProcessPair, models: DemoModels, n_max: int, questions: Sequence[str]
) -> None:
    settings = ServerSettings(str(models.target), PAIR_N_CTX, read_cores().physical, str(models.draft), n_max)
    runs = [
        pair.run(pair.draft_model_drafter(), n_max, pair.chat_tokens(question), NUM_TOKENS) for question in questions
    ]
    try:
        with ReferenceServer(settings) as server:
            answers = [server.complete(run.prompt, NUM_TOKENS, is_streamed=True) for run in runs]
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    results = []
    for run, answer in zip(runs, answers, strict=True):
        assert sum(round_.num_drafted for round_ in answer.rounds) == answer.num_drafted
        assert sum(round_.num_accepted for round_ in answer.rounds) == answer.num_accepted
        results.append(Result(run, answer.rounds, num_common_tokens(run, answer)))
    check_counts(results)
    if any(result.walk.partings for result in results):
        with ReferenceServer(ServerSettings(str(models.draft), PAIR_N_CTX, settings.n_threads)) as draft_alone:
            for result in results:
                if result.walk.partings:
                    check_ties(pair, result, draft_alone)


@pytest.mark.model
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "questions", [FEW, pytest.param(QUESTIONS, marks=pytest.mark.slow)], ids=["two questions", "all questions"]
)
def test_counts_are_those_of_a_draft_that_decodes_the_verified_batch_again(
    pair: InProcessPair, questions: Sequence[str]
) -> None:
    results = []
    for question in questions:
        prompt = pair.chat_tokens(question)
        ours = pair.run(pair.draft_model_drafter(), 4, prompt, NUM_TOKENS)
        theirs = pair.run(RedecodingDrafter(pair.draft), 4, prompt, NUM_TOKENS)
        assert theirs.tokens == ours.tokens
        results.append(Result(ours, own_rounds(theirs), NUM_TOKENS))
    check_counts(results)
    for result in results:
        if result.walk.partings:
            check_ties(pair, result, None)


@pytest.mark.parametrize("n_max", [1, 3, 8])
@pytest.mark.parametrize("seed", [None, 7])
def test_the_redecoding_drafter_drafts_what_ours_does_and_decodes_more(n_max: int, seed: int | None) -> None:
    prompt = [1, 2, 3, 4]
    found: list[tuple[list[Round], int]] = []
    for make in (lambda model: DraftModelDrafter(model, "draft", 0.0), RedecodingDrafter):
        target, draft = ToyModel(seed=3), ToyModel(seed=3)
        target.prefill(prompt)
        drafter = make(draft)
        drafter.begin(prompt)
        pacing = FixedPacing(SpeculationSettings("draft", n_max=n_max))
        rounds = list(speculate(target, ToySampler(target, seed), drafter, pacing, 60, lambda _: None))
        assert list(draft.tokens) == list(target.tokens)[: len(draft.tokens)]
        found.append((rounds, draft.num_decoded))
    (ours, our_cost), (theirs, their_cost) = found
    assert [(r.drafted, r.num_accepted, r.emitted) for r in ours] == [
        (r.drafted, r.num_accepted, r.emitted) for r in theirs
    ]
    assert their_cost > our_cost


def test_rounds_are_rebuilt_from_cumulative_counts() -> None:
    counts = [(1, 0, 0), (2, 4, 2), (3, 4, 2), (4, 4, 2), (5, 8, 2), (6, 9, 3), (7, 9, 3), (8, 9, 3), (8, 9, 3)]
    chunks = [Chunk("x", *item) for item in counts]
    assert rebuild_rounds(chunks) == (DraftRound(1, 4, 2), DraftRound(4, 4, 0), DraftRound(5, 1, 1))


def test_a_round_that_was_not_sent_is_noticed() -> None:
    chunks = [Chunk("x", 1, 0, 0), Chunk("x", 5, 8, 2), Chunk("x", 6, 12, 2)]
    with pytest.raises(ServerError, match="should begin after 4 tokens"):
        rebuild_rounds(chunks)


def test_rounds_are_compared_where_both_begin() -> None:
    ours = [DraftRound(1, 2, 2), DraftRound(4, 2, 0), DraftRound(5, 2, 2), DraftRound(8, 2, 1)]
    theirs = [DraftRound(1, 2, 2), DraftRound(4, 2, 1), DraftRound(6, 2, 1), DraftRound(8, 2, 1)]
    found = walk(ours, theirs, 20)
    assert (found.num_compared, found.num_rounds) == (3, 4)
    assert found.partings == (Parting(4, ours[1], theirs[1]),)
    assert found.partings[0].place == 4
    assert walk(ours, theirs, 5).num_rounds == 2
