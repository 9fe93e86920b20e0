"""The race as a fold: lanes, ghost and lead, on an engine and a clock that are made up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localspec.engine.events import EmittedToken, GenerationFinished, RoundFinished
from localspec.engine.values import SamplingSettings, SpeculationSettings, SpeculationState
from localspec.session.arms import Arm, PromptCase, arms_from_settings
from localspec.session.comparison import ComparisonProgress, run_comparison
from localspec.tui.race import Lead, RaceFold, RaceSnapshot, lead_of, lead_words
from localspec.tui.race_track import RaceTrack
from tests.scripted_engine import ArmScript, FakeClock, ScriptedEngine

DRAFT = SpeculationSettings("draft", n_max=4)
OFF = SpeculationSettings()


def round_at(at_s: float, *texts: str) -> RoundFinished:
    emitted = tuple(EmittedToken(1, text, "bonus") for text in texts)
    return RoundFinished(1, 0, "", (), 0, 0, emitted, 0, "off", 0.0, 0.0, 0.0, 0.0, at_s, 0)


def track(*rounds: RoundFinished) -> RaceTrack:
    made = RaceTrack(0)
    for round_ in rounds:
        made.observe(round_)
    return made


async def race(
    engine: ScriptedEngine,
    look: Callable[[RaceFold, ComparisonProgress], None],
    settings: tuple[SpeculationSettings, SpeculationSettings] = (OFF, DRAFT),
    num_prompts: int = 1,
    num_pairs: int = 2,
) -> RaceFold:
    arms = arms_from_settings(settings)
    by_settings: dict[SpeculationSettings, Arm] = {arm.speculation: arm for arm in arms}
    lanes = (by_settings[settings[0]], by_settings[settings[1]])
    fold = RaceFold(lanes, ("one", "other"), 20, {"chat": num_prompts}, engine.clock)

    def observe(progress: ComparisonProgress) -> None:
        fold.observe(progress, progress.num_done / progress.num_total)
        look(fold, progress)

    prompts = [PromptCase(f"p{number}", text="Go.") for number in range(num_prompts)]
    await run_comparison(
        engine, "chat", prompts, arms, SamplingSettings(), 20, observe, num_pairs=num_pairs, half_width=0.001
    )
    return fold


def test_a_track_gives_what_was_there_after_any_round() -> None:
    made = track(round_at(0.1, "a"), round_at(0.3, "b", "c"))
    assert (made.num_rounds, made.num_tokens, made.last_s) == (2, 3, 0.3)
    assert [made.text_after(count) for count in range(3)] == ["", "a", "abc"]
    assert [made.tokens_after(count) for count in range(3)] == [0, 1, 3]
    assert [made.rounds_until(at_s) for at_s in (0.0, 0.1, 0.2, 0.3, 9.0)] == [0, 1, 1, 2, 2]
    assert [made.time_of(count) for count in (1, 2, 3, 4)] == [0.1, 0.3, 0.3, None]
    assert made.rate_after(1) is None
    assert made.rate_after(2) == pytest.approx(10.0)


def test_text_held_back_until_the_end_belongs_to_the_last_round() -> None:
    made = track(round_at(0.1, "a"), round_at(0.2, "b"))
    state = SpeculationState(False, "off", "", "", OFF)
    made.observe(GenerationFinished(1, "stop", "!", state, 0.0, 0, 0, 0, 0.2))
    assert (made.text_after(1), made.text_after(2)) == ("a", "ab!")


def test_a_lead_is_told_at_the_live_lanes_newest_round() -> None:
    ghost = track(*(round_at(0.1 * number, "x") for number in range(1, 11)))
    ahead = lead_of(ghost, track(round_at(0.55, "y", "y")))
    assert ahead.num_tokens == 3 and ahead.seconds == pytest.approx(0.35)
    behind = lead_of(ghost, track(round_at(0.25, "y", "y", "y", "y")))
    assert behind.num_tokens == -2 and behind.seconds == pytest.approx(-0.15)
    assert lead_of(track(round_at(0.1, "x")), track(round_at(0.2, "y", "y"))) == Lead(-1, None)


@pytest.mark.parametrize(
    ("lead", "words"),
    [
        (Lead(12, 0.4), "ghost is 12 tokens / 0.4 s ahead"),
        (Lead(-1, -0.25), "ghost is 1 token / 0.2 s behind"),
        (Lead(-3, None), "ghost is 3 tokens behind"),
        (Lead(0, 0.0), "ghost is level"),
    ],
)
def test_a_lead_in_words(lead: Lead, words: str) -> None:
    assert lead_words(lead) == words


async def test_the_first_is_replayed_on_its_time_line_while_the_second_runs() -> None:
    engine = ScriptedEngine(scripts={"draft": ArmScript(accepted=(2,), draft_step_s=0.001, verify_cost=1.2)})
    shots: list[RaceSnapshot] = []

    def look(fold: RaceFold, progress: ComparisonProgress) -> None:
        if progress.phase == "trial" and progress.pair == 0 and isinstance(progress.event, RoundFinished):
            shots.append(fold.snapshot())

    await race(engine, look)
    first = [shot for shot in shots if shot.lanes[0].state == "live"]
    second = [shot for shot in shots if shot.lanes[1].state == "live"]
    assert {shot.lanes[1].state for shot in first[:10]} == {"waiting"}
    assert first[0].lead is None
    assert {shot.lanes[0].state for shot in second} == {"replayed"}
    # Never both at once, and the ghost at the same moment of its own run.
    for shot in second[1:-1]:
        assert 0 < shot.lanes[0].num_tokens < shot.lanes[1].num_tokens
        assert shot.lead is not None and shot.lead.num_tokens < 0
    assert second[-1].lanes[1].num_tokens == 20
    assert second[-1].lanes[1].text.split()[0] == second[-1].lanes[0].text.split()[0]
    assert all(shot.lanes[0].max_tokens == 20 for shot in shots)


async def test_the_ghost_moves_between_the_live_lanes_rounds() -> None:
    clock = FakeClock()
    engine = ScriptedEngine(clock=clock)
    seen: list[tuple[int, int]] = []

    def look(fold: RaceFold, progress: ComparisonProgress) -> None:
        is_second = progress.arm.name == "draft" and progress.phase == "trial" and progress.pair == 0
        if is_second and isinstance(progress.event, RoundFinished) and progress.event.index == 1:
            before = fold.snapshot().lanes[0].num_tokens
            clock.now_s += 0.05
            seen.append((before, fold.snapshot().lanes[0].num_tokens))
            clock.now_s -= 0.05

    await race(engine, look)
    assert len(seen) == 1
    assert seen[0][1] == seen[0][0] + 5


async def test_only_a_run_of_the_same_prompt_is_a_ghost() -> None:
    states: set[str] = set()

    def look(fold: RaceFold, progress: ComparisonProgress) -> None:
        # Pair 1 begins with the draft, on another prompt than pair 0.
        if progress.phase == "trial" and progress.pair == 1 and progress.arm.name == "draft" and progress.event:
            states.add(fold.snapshot().lanes[0].state)

    await race(ScriptedEngine(), look, num_prompts=2)
    assert states == {"waiting"}
    states.clear()
    await race(ScriptedEngine(), look, num_prompts=1)
    assert states == {"replayed"}


async def test_warm_ups_are_not_shown_as_runs_and_pairs_give_speedups() -> None:
    warm: list[RaceSnapshot] = []

    def look(fold: RaceFold, progress: ComparisonProgress) -> None:
        if progress.phase == "warm_up" and progress.arm.name == "off":
            warm.append(fold.snapshot())

    fold = await race(ScriptedEngine(), look, num_pairs=3)
    assert {(shot.lanes[0].state, shot.lanes[1].state) for shot in warm} == {("warming_up", "waiting")}
    assert {shot.lanes[0].text for shot in warm} == {""}
    assert "not counted" in warm[0].stage
    end = fold.snapshot()
    assert [lane.state for lane in end.lanes] == ["done", "done"]
    assert end.lead is None
    ((name, speedup),) = end.speedups
    assert name == "draft" and speedup.pairs == 3 and speedup.median > 1.0


async def test_a_baseline_that_runs_along_is_in_no_lane() -> None:
    shown: set[tuple[str, str]] = set()

    def look(fold: RaceFold, progress: ComparisonProgress) -> None:
        if progress.phase == "trial" and progress.arm.name == "off" and progress.event is not None:
            shown.add((fold.snapshot().lanes[0].state, fold.snapshot().lanes[1].state))

    longer = SpeculationSettings("draft", n_max=8)
    fold = await race(ScriptedEngine(), look, settings=(DRAFT, longer))
    assert not any("live" in states for states in shown)
    assert [name for name, _ in fold.snapshot().speedups] == ["draft n_max 4", "draft n_max 8"]


async def test_an_arm_that_cannot_be_switched_on_says_why() -> None:
    engine = ScriptedEngine(scripts={"draft": ArmScript(off_reason="[/] no draft")})
    fold = await race(engine, lambda fold, progress: None)
    lane = fold.snapshot().lanes[1]
    assert (lane.state, lane.reason) == ("not_run", "[/] no draft")
