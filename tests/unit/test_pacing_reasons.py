"""Why adaptive pacing drafts nothing, and what it never tries."""

from __future__ import annotations

import pytest

from localspec.engine.adaptive_pacing import AdaptivePacing
from localspec.engine.drafting.cascade import CascadeDrafter
from localspec.engine.drafting.drafter import Draft
from localspec.engine.pacing import Outcome
from localspec.engine.pacing_state import DrafterState, PacingState, to_text
from localspec.engine.speculative import Round
from localspec.engine.values import SpeculationSettings
from tests.simulation.compare import Setting, ours
from tests.simulation.machines import CPU_Q4_0, CPU_Q4_K, GPU, METAL, Clock, Machine
from tests.simulation.texts import COPYING_TEXTS, MODEL_TEXTS, Text
from tests.toys import ScriptedDrafter, ToyModel, always_wrong, oracle
from tests.unit.test_pacing_adaptive import beliefs_of, rounds_of

NOTHING = ("no_match", "not_worth", "unproven", "measuring", "resting", "room")


@pytest.mark.parametrize("machine", [GPU, METAL, CPU_Q4_0, CPU_Q4_K], ids=lambda machine: machine.name)
@pytest.mark.parametrize("text", ["steady 0.55, telling", "always wrong", "copy, open, copy"])
def test_what_rests_is_below_what_is_needed_and_says_so_in_both_places(machine: Machine, text: str) -> None:
    made: Text = (COPYING_TEXTS if text in COPYING_TEXTS else MODEL_TEXTS)[text](300, 1)
    setting = Setting(machine, 0.15, has_copier=text in COPYING_TEXTS)
    clock = Clock(1)
    rounds: list[Round] = rounds_of(made, setting, ours(clock), clock)[1:]
    for done in rounds:
        if done.drafted or done.num_discarded:
            continue
        assert done.draft_stop in NOTHING
        if done.draft_stop == "room":
            continue
        beliefs = beliefs_of(done)
        assert beliefs.is_resting == (done.draft_stop == "resting")
        assert beliefs.limit == 0
        assert not beliefs.is_resting or beliefs.acceptance < beliefs.needed
    if text == "always wrong":
        assert sum(done.draft_stop == "resting" for done in rounds) > 0.5 * len(rounds)


def pacing_with(step_s: dict[int, float], drafters: dict[str, DrafterState] | None = None) -> AdaptivePacing:
    settings = SpeculationSettings(method="auto")
    return AdaptivePacing(settings, lambda: 0.0, to_text(PacingState(step_s, drafters or {})))


def test_a_long_draft_that_would_pay_waits_until_its_drafter_has_proven_enough() -> None:
    # Two positions cost more than two tokens, eight hardly more: only a long draft pays, and it could lose much.
    pacing = pacing_with({1: 0.01, 2: 0.024, 4: 0.03, 8: 0.04, 16: 0.06, 17: 0.062})
    model = ToyModel()
    source = oracle(model)

    def propose(text: list[int], limit: int) -> Draft:
        return Draft(source._propose(text, limit).tokens, "n_max", (0.99,) * limit, match_length=40)

    drafter = ScriptedDrafter(propose, "copier")
    text = [1, 2, 3]
    drafter.begin(text)
    stops = []
    for _ in range(30):
        draft = pacing.propose(drafter, 30)
        stops.append("" if draft.tokens else draft.stop)
        emitted: list[int] = []
        for _ in range(len(draft.tokens) + 1):
            emitted.append(model.following([*text, *emitted]))
        text += emitted
        width_s = {1: 0.01}.get(len(emitted), 0.02 + 0.0026 * len(emitted))
        outcome = Outcome(draft, len(draft.tokens), len(emitted), False, 0.0, width_s, 0.0, width_s, 1, tuple(emitted))
        pacing.learn(outcome)
        drafter.observe(emitted, len(draft.tokens))
    assert "unproven" in stops[:12] and stops.index("") > stops.index("unproven")
    assert stops[15:].count("") > 10


class Lagging(ScriptedDrafter):
    """A model that has not read the last 200 tokens."""

    num_asked = 0

    @property
    def is_free(self) -> bool:
        return False

    @property
    def num_unseen(self) -> int:
        return 200

    def draft(self, limit: int, go_on: object = None) -> Draft:
        self.num_asked += 1
        return Draft((1,), "n_max", (0.5,))


@pytest.mark.parametrize(("catch_up", "is_asked"), [(0.05, False), (0.001, True)])
def test_a_draft_that_lags_far_behind_is_not_read_up_to_date_only_to_try_it(catch_up: float, is_asked: bool) -> None:
    costs = {1: 0.01, 2: 0.0105, 4: 0.011, 8: 0.012, 16: 0.014}
    pacing = pacing_with(costs, {"draft": DrafterState(False, (), 0.5, catch_up)})
    drafter = Lagging(lambda text, limit: Draft((), "silent"), "draft")
    drafter.begin([1])
    for _ in range(40):
        draft = pacing.propose(drafter, 30)
        pacing.learn(Outcome(draft, 0, 1, False, 0.0, 0.01, 0.0, 0.01, 1, (0,)))
    assert (drafter.num_asked > 0) == is_asked


def test_members_without_records_still_hear_how_much_of_their_own_proposal_came_true() -> None:
    model = ToyModel()
    right, wrong = oracle(model), always_wrong(model)
    cascade = CascadeDrafter((right, wrong), keeps_record=False)
    cascade.begin((1, 2, 3))
    for member in cascade.members:
        member.draft(3)
    text = [1, 2, 3]
    for _ in range(3):
        text.append(model.following(text))
    cascade.observe(text[3:], 0)
    assert [drafter.observed for drafter in (right, wrong)] == [[(tuple(text[3:]), 3)], [(tuple(text[3:]), 0)]]
    assert all(counts.num_rounds == 0 for counts in cascade.counts)
