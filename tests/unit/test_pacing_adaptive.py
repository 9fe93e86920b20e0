"""Adaptive pacing in the real loop, on made-up machines and texts."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from localspec.engine.adaptive_pacing import AdaptivePacing, is_adaptive
from localspec.engine.distribution import Distribution
from localspec.engine.drafting.drafter import Draft, GoOn
from localspec.engine.pacing import Outcome
from localspec.engine.speculative import Round, speculate
from localspec.engine.values import Beliefs, PacingKind, SpeculationSettings
from tests.simulation.compare import CAP, Setting, ours
from tests.simulation.machines import CPU_Q4_K, GPU, METAL, Clock, Machine
from tests.simulation.play import MadeUpCopier, MadeUpDraftModel, MadeUpSampler, MadeUpTarget, play
from tests.simulation.texts import COPYING_TEXTS, MODEL_TEXTS, Text, model_text
from tests.toys import ToyModel, ToySampler, always_wrong, oracle, silent


def rounds_of(text: Text, setting: Setting, pacing: AdaptivePacing, clock: Clock) -> list[Round]:
    drafter = setting.drafter(text, clock)
    drafter.begin((1,))
    pacing.begin()
    target = MadeUpTarget(setting.machine, clock, text.length)
    return list(speculate(target, MadeUpSampler(clock), drafter, pacing, text.length, lambda token: None, clock=clock))


def beliefs_of(done: Round) -> Beliefs:
    assert done.beliefs is not None
    return done.beliefs


@pytest.mark.parametrize("seed", range(6))
def test_any_drafter_leaves_the_text_as_it_is(seed: int) -> None:
    target = ToyModel(seed=seed)
    drafters = (oracle(target, noise=0.3, seed=seed), always_wrong(target), silent())
    for drafter in drafters:
        texts = []
        for choice in (None, drafter):
            target.clear()
            target.prefill((1, 2, 3))
            if choice is not None:
                choice.begin((1, 2, 3))
            pacing = AdaptivePacing(SpeculationSettings(method="ngram", n_max=8, pacing="adaptive"))
            rounds = speculate(target, ToySampler(target, seed), choice, pacing, 60, lambda token: None)
            texts.append([token for done in rounds for token in done.emitted])
        assert texts[0] == texts[1]
        assert len(texts[1]) == 60


def test_it_begins_with_plain_steps_and_then_drafts() -> None:
    clock = Clock(0)
    text = MODEL_TEXTS["steady 0.8"](200, 0)
    rounds = rounds_of(text, Setting(GPU, 0.05), ours(clock), clock)
    assert [len(done.drafted) for done in rounds[1:3]] == [0, 0]
    assert any(done.drafted for done in rounds[3:8])
    assert sum(len(done.drafted) >= 2 for done in rounds[20:]) > 0.7 * len(rounds[20:])


@pytest.mark.parametrize("machine", [GPU, METAL, CPU_Q4_K], ids=lambda machine: machine.name)
@pytest.mark.parametrize("step", [0.05, 0.15])
def test_a_draft_that_is_sure_and_always_wrong_is_switched_off_with_the_reason(machine: Machine, step: float) -> None:
    clock = Clock(1)
    rounds = rounds_of(MODEL_TEXTS["always wrong"](128, 0), Setting(machine, step), ours(clock), clock)
    beliefs = beliefs_of(rounds[60])
    assert beliefs.is_resting and beliefs.drafter == "draft" and beliefs.limit == 0
    assert beliefs.acceptance < beliefs.needed <= 1.0
    assert rounds[60].draft_stop in ("resting", "not_worth")
    assert clock.spent < 128 * 1.03


def test_nothing_is_tried_where_even_a_good_draft_could_not_pay() -> None:
    clock = Clock(0, noise=0.0, outliers=0.0)
    setting = Setting(CPU_Q4_K, 1.0)
    text = MODEL_TEXTS["steady 0.8"](300, 0)
    drafter = setting.drafter(text, clock)
    assert isinstance(drafter, MadeUpDraftModel)
    play(text, CPU_Q4_K, drafter, ours(clock), clock)
    assert drafter.num_steps <= 3


@pytest.mark.parametrize("step", [0.05, 0.15])
def test_a_change_of_text_is_noticed_within_32_tokens(step: float) -> None:
    noticed = []
    for seed in range(16):
        clock = Clock(seed)
        text = model_text("prose, code", [(0.15, 160), (0.92, 160)], 320, seed, 0.0)
        rounds = rounds_of(text, Setting(GPU, step), ours(clock), clock)
        noticed.append(next(done.n_past - 160 for done in rounds if done.n_past > 160 and len(done.drafted) >= 2))
    noticed.sort()
    assert noticed[len(noticed) // 2] <= 32
    assert noticed[-1] <= 96


@pytest.mark.parametrize("seed", range(5))
def test_a_change_for_the_worse_ends_drafting_within_32_tokens(seed: int) -> None:
    clock = Clock(seed)
    text = model_text("code, prose", [(0.92, 200), (0.1, 200)], 400, seed, 0.0)
    rounds = rounds_of(text, Setting(METAL, 0.1), ours(clock), clock)
    during = [done for done in rounds if 100 < done.n_past <= 200]
    after = [done for done in rounds if 232 < done.n_past <= 400]
    assert sum(len(done.drafted) for done in during) > 1.5 * len(during)
    assert sum(len(done.drafted) for done in after) < 0.2 * len(after)


def test_a_free_drafter_is_cut_where_its_copies_break_off_and_heard_while_it_is_silent() -> None:
    clock = Clock(2)
    text = COPYING_TEXTS["copy, open, copy"](520, 2)
    rounds = rounds_of(text, Setting(METAL, 0.1, has_copier=True, has_model=False), ours(clock), clock)
    copying = [done for done in rounds if 60 < done.n_past <= 160]
    open_text = [done for done in rounds if 200 < done.n_past <= 360]
    again = [done for done in rounds if 392 < done.n_past <= 520]
    assert sum(len(done.emitted) for done in copying) > 2 * len(copying)
    assert sum(len(done.drafted) for done in open_text) < 0.3 * len(open_text)
    assert sum(len(done.emitted) for done in again) > 2 * len(again)
    assert all(done.num_discarded == 0 for done in rounds)


def test_of_a_cascade_the_speaker_is_named() -> None:
    clock = Clock(2)
    text = COPYING_TEXTS["copying"](300, 0)
    rounds = rounds_of(text, Setting(GPU, 0.05, has_copier=True), ours(clock), clock)
    names = {done.drafter for done in rounds if done.drafted}
    assert names == {"copier", "draft"}


def test_beliefs_come_true() -> None:
    clock = Clock(3)
    rounds = rounds_of(MODEL_TEXTS["steady 0.8"](600, 1), Setting(GPU, 0.05), ours(clock), clock)[-120:]
    spoken = [done for done in rounds if done.drafted]
    assert sum(len(done.emitted) for done in spoken) == pytest.approx(
        sum(beliefs_of(done).expected_tokens for done in spoken), rel=0.2
    )
    times = sorted(done.total_s / beliefs_of(done).expected_s for done in spoken)
    assert times[len(times) // 2] == pytest.approx(1.0, abs=0.2)
    assert beliefs_of(rounds[-1]).plain_s == pytest.approx(0.05, rel=0.15)
    assert beliefs_of(rounds[-1]).acceptance == pytest.approx(0.8, abs=0.15)


def test_plain_steps_are_measured_again_now_and_then() -> None:
    clock = Clock(0)
    rounds = rounds_of(MODEL_TEXTS["steady 0.8"](1500, 0), Setting(GPU, 0.0), ours(clock), clock)
    plain = [done for done in rounds[10:] if not done.drafted]
    assert 3 <= len(plain) < 0.06 * len(rounds)
    assert any(beliefs_of(done).is_exploring for done in plain)


def test_a_machine_that_grows_slower_does_not_look_like_a_reason() -> None:
    clock = Clock(0, drift=0.002)
    rounds = rounds_of(MODEL_TEXTS["steady 0.8"](500, 0), Setting(METAL, 0.05), ours(clock), clock)
    late = rounds[len(rounds) // 2 :]
    assert clock.slowness > 1.9
    assert sum(bool(done.drafted) for done in late) > 0.7 * len(late)
    plain_s = beliefs_of(rounds[-1]).plain_s
    assert plain_s == pytest.approx(0.05 * clock.slowness, rel=0.2)


def test_the_second_start_begins_tuned() -> None:
    clock = Clock(0)
    setting = Setting(GPU, 0.05)
    first = ours(clock)
    play(
        MODEL_TEXTS["steady 0.8"](400, 0), GPU, setting.drafter(MODEL_TEXTS["steady 0.8"](400, 0), clock), first, clock
    )
    clock = Clock(1)
    rounds = rounds_of(MODEL_TEXTS["steady 0.8"](100, 1), setting, ours(clock, first.state), clock)
    assert all(len(done.drafted) >= 2 for done in rounds[1:5])


@pytest.mark.parametrize("state", ["", "{", '{"version":1}', "null", '{"version":9,"step_s":{},"drafters":{}}'])
def test_a_state_that_is_none_is_ignored(state: str) -> None:
    clock = Clock(0)
    assert ours(clock, state).state == ours(clock).state


def test_a_state_of_drafters_that_are_not_loaded_now_is_passed_on() -> None:
    clock = Clock(0)
    first = ours(clock)
    text = MODEL_TEXTS["steady 0.8"](100, 0)
    play(text, GPU, MadeUpDraftModel(text, clock, 0.05, 0.01), first, clock)
    second = ours(clock, first.state)
    play(COPYING_TEXTS["copying"](100, 0), GPU, MadeUpCopier(COPYING_TEXTS["copying"](100, 0)), second, clock)
    assert '"draft"' in second.state and '"copier"' in second.state


class DrawnDrafter(MadeUpDraftModel):
    """Says that its tokens were drawn."""

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        draft = super().draft(limit, go_on)
        nothing = Distribution.__new__(Distribution)
        return replace(draft, distributions=(nothing,) * len(draft.tokens))


def test_a_drawn_draft_is_never_cut_by_what_was_drawn() -> None:
    clock = Clock(0)
    text = MODEL_TEXTS["steady 0.55, telling"](400, 0)
    drafter = DrawnDrafter(text, clock, 0.05, 0.01)
    drafter.begin((1,))
    pacing = ours(clock)
    lengths = []
    for _ in range(60):
        draft = pacing.propose(drafter, 30)
        lengths.append(len(draft.tokens))
        assert draft.num_discarded == 0
        emitted = (0,)
        pacing.learn(Outcome(draft, 0, 1, False, 0.0, 0.05, 0.0, 0.05, 1, emitted))
        drafter.observe(emitted, 0)
    assert any(lengths)


def test_n_max_is_the_cap_but_auto_may_go_to_sixteen() -> None:
    text = replace(MODEL_TEXTS["steady 0.8"](400, 0), is_right=(True,) * 400, confidence=(0.999,) * 400)
    kinds: tuple[tuple[SpeculationSettings, int], ...] = (
        (SpeculationSettings(method="draft", n_max=3, pacing="adaptive"), 3),
        (SpeculationSettings(method="auto", n_max=4), 16),
        (SpeculationSettings(method="auto", n_max=24), 24),
    )
    flat = Machine("flat", ((1, 1.0), (33, 1.05)), 0.01)
    for settings, cap in kinds:
        clock = Clock(0)
        pacing = AdaptivePacing(settings, clock)
        rounds = rounds_of(text, Setting(flat, 0.001), pacing, clock)
        assert max(len(done.drafted) for done in rounds) == cap


def test_room_and_n_min_are_kept() -> None:
    clock = Clock(0)
    rng = random.Random(0)
    text = MODEL_TEXTS["steady 0.8, telling"](400, 0)
    drafter = MadeUpDraftModel(text, clock, 0.02, 0.002)
    drafter.begin((1,))
    pacing = AdaptivePacing(SpeculationSettings(method="draft", n_min=2, n_max=CAP, pacing="adaptive"), clock)
    for _ in range(100):
        room = rng.randint(-1, 6)
        draft = pacing.propose(drafter, room)
        count = len(draft.tokens)
        assert count <= max(room, 0)
        assert count == 0 or count >= 2 or beliefs_of_pacing(pacing).is_exploring
        if room < 2:
            assert draft.stop == "room"
        num_right = next((index for index, token in enumerate(draft.tokens) if token == 0), count)
        emitted = (*draft.tokens[:num_right], 3)
        pacing.learn(Outcome(draft, num_right, num_right + 1, False, 0.0, 0.05, 0.0, 0.05, 1, emitted))
        drafter.observe(emitted, num_right)


def beliefs_of_pacing(pacing: AdaptivePacing) -> Beliefs:
    assert pacing.beliefs is not None
    return pacing.beliefs


@pytest.mark.parametrize(
    ("method", "pacing", "expected"), [("auto", "fixed", True), ("draft", "adaptive", True), ("draft", "fixed", False)]
)
def test_who_is_adaptive(method: str, pacing: PacingKind, expected: bool) -> None:
    settings = SpeculationSettings(method="auto" if method == "auto" else "draft", pacing=pacing)
    assert is_adaptive(settings) is expected
