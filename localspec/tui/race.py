"""Two arms side by side, as a fold over a comparison's progress. Nothing here knows Textual.

They never run at once: while one runs, the other's newest run of the same prompt is replayed beside it on its recorded
time line. That one is the ghost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from localspec.tui.race_track import RaceTrack

if TYPE_CHECKING:
    from localspec.engine.events import Event
    from localspec.metrics.statistics import Estimate
    from localspec.session.arms import Arm
    from localspec.session.comparison import ComparisonProgress

LaneState = Literal["waiting", "warming_up", "reading", "live", "replayed", "done", "not_run"]
"""reading: its prompt is read, nothing is out yet."""

Prompt = tuple[str, int]
"""A workload's name and the place of one of its prompts."""


@dataclass(frozen=True, slots=True)
class LaneSnapshot:
    """One arm as it is shown."""

    name: str = ""
    """The arm's, as results call it."""
    title: str = ""
    """How it drafts, in a few words."""
    state: LaneState = "waiting"
    text: str = ""
    num_tokens: int = 0
    max_tokens: int = 1
    decode_tps: float | None = None
    """Of what is shown: so far, or of the whole run if it is done."""
    pair: int = 0
    """In which pair it was run, from 0."""
    reason: str = ""
    """Why it does not run; empty if it does."""


@dataclass(frozen=True, slots=True)
class Lead:
    """How far the ghost was ahead when the live lane's newest round ended."""

    num_tokens: int
    """Negative: the ghost is behind."""
    seconds: float | None
    """How much earlier it had as many tokens as the live lane has; None if it never had."""


@dataclass(frozen=True, slots=True)
class RaceSnapshot:
    """All that the screen shows of a comparison that is under way, or of one that has just ended."""

    lanes: tuple[LaneSnapshot, LaneSnapshot] = (LaneSnapshot(), LaneSnapshot())
    stage: str = ""
    """What is going on, in a few words; empty before it begins."""
    fraction: float = 0.0
    """Of the whole comparison."""
    lead: Lead | None = None
    """None while there is no ghost beside a live lane."""
    speedups: tuple[tuple[str, Estimate], ...] = ()
    """What the whole pairs say by now, by the name of the arm."""


class RaceFold:
    """Takes a comparison's progress, and gives what is to be shown at any moment."""

    def __init__(
        self,
        arms: tuple[Arm, Arm],
        titles: tuple[str, str],
        max_tokens: int,
        num_prompts: Mapping[str, int],
        clock: Callable[[], float],
    ) -> None:
        """Prepare two lanes.

        Args:
            arms: what runs in them; other arms show in the stage only.
            titles: how they draft, in a few words.
            max_tokens: cap of each run.
            num_prompts: of each workload, by its name.
            clock: seconds that pass evenly; it moves the ghost between the live lane's rounds.
        """
        self._names = (arms[0].name, arms[1].name)
        self._titles = titles
        self._max_tokens = max_tokens
        self._num_prompts = dict(num_prompts)
        self._clock = clock
        self._tracks: tuple[dict[Prompt, RaceTrack], dict[Prompt, RaceTrack]] = ({}, {})
        self._prompt: Prompt | None = None
        self._live: int | None = None
        self._track: RaceTrack | None = None
        self._started_s = 0.0
        self._warming: int | None = None
        self._reasons: dict[str, str] = {}
        self._stage = ""
        self._fraction = 0.0
        self._speedups: tuple[tuple[str, Estimate], ...] = ()

    def note_stage(self, stage: str, fraction: float) -> None:
        """Say what is going on before or after the comparison itself."""
        self._end_run()
        self._stage, self._fraction = stage, fraction

    def observe(self, progress: ComparisonProgress, fraction: float) -> None:
        """Take one piece of progress; `fraction` is how much of the whole is done."""
        self._stage, self._fraction = stage_words(progress), fraction
        lane = self._lane_of(progress.arm.name)
        prompt = (progress.workload_name, progress.pair % self._num_prompts.get(progress.workload_name, 1))
        if progress.so_far is not None:
            results = progress.so_far.speculative
            self._reasons = {result.arm.name: result.reason for result in results if not result.has_run}
            self._speedups = tuple(
                (result.arm.name, result.speedup) for result in results if result.speedup is not None
            )
        if progress.phase != "trial":
            self._end_run()
            self._warming = lane if progress.phase == "warm_up" else None
            self._prompt = prompt if self._prompt is None or progress.phase == "replay" else self._prompt
        elif progress.trial is not None or progress.so_far is not None:
            self._end_run()
        elif progress.event is None:
            self._begin_run(lane, prompt, progress.pair)
        elif self._track is not None:
            self._take(self._track, progress.event)

    def snapshot(self) -> RaceSnapshot:
        """Return what is to be shown now."""
        lead = None
        ghost = None if self._live is None else self._newest(1 - self._live)
        if self._track is not None and ghost is not None and self._track.num_tokens:
            lead = lead_of(ghost, self._track)
        return RaceSnapshot(
            lanes=(self._lane(0), self._lane(1)),
            stage=self._stage,
            fraction=self._fraction,
            lead=lead,
            speedups=self._speedups,
        )

    def _lane_of(self, name: str) -> int | None:
        return self._names.index(name) if name in self._names else None

    def _begin_run(self, lane: int | None, prompt: Prompt, pair: int) -> None:
        if self._prompt is not None and self._prompt[0] != prompt[0]:
            # Another workload: what was said of the one before does not hold for it.
            self._speedups = ()
        self._warming, self._prompt, self._live = None, prompt, lane
        self._track = None if lane is None else RaceTrack(pair)
        self._started_s = self._clock()

    def _end_run(self) -> None:
        if self._live is not None and self._track is not None and self._prompt is not None and self._track.num_tokens:
            self._tracks[self._live][self._prompt] = self._track
        self._live = self._track = None

    def _take(self, track: RaceTrack, event: Event) -> None:
        if event.type in ("generation_started", "prefill_progress"):
            self._started_s = self._clock() - event.at_s
        track.observe(event)

    def _newest(self, lane: int) -> RaceTrack | None:
        return None if self._prompt is None else self._tracks[lane].get(self._prompt)

    def _lane(self, lane: int) -> LaneSnapshot:
        name, title = self._names[lane], self._titles[lane]
        if reason := self._reasons.get(name, ""):
            return LaneSnapshot(name, title, "not_run", max_tokens=self._max_tokens, reason=reason)
        if lane == self._live and self._track is not None:
            state: LaneState = "live" if self._track.num_tokens else "reading"
            return self._shown(lane, state, self._track, self._track.num_rounds)
        track = self._newest(lane)
        if track is None:
            state = "warming_up" if lane == self._warming else "waiting"
            return LaneSnapshot(name, title, state, max_tokens=self._max_tokens)
        if self._live is None or self._track is None:
            return self._shown(lane, "done", track, track.num_rounds)
        elapsed_s = max(self._clock() - self._started_s, self._track.last_s)
        return self._shown(lane, "replayed", track, track.rounds_until(elapsed_s))

    def _shown(self, lane: int, state: LaneState, track: RaceTrack, num_rounds: int) -> LaneSnapshot:
        return LaneSnapshot(
            name=self._names[lane],
            title=self._titles[lane],
            state=state,
            text=track.text_after(num_rounds),
            num_tokens=track.tokens_after(num_rounds),
            max_tokens=self._max_tokens,
            decode_tps=track.rate_after(num_rounds),
            pair=track.pair,
        )


def lead_of(ghost: RaceTrack, live: RaceTrack) -> Lead:
    """Return how far a recorded run was ahead of one that is under way, at the end of that one's newest round."""
    reached_s = ghost.time_of(live.num_tokens)
    return Lead(
        num_tokens=ghost.tokens_after(ghost.rounds_until(live.last_s)) - live.num_tokens,
        seconds=None if reached_s is None else live.last_s - reached_s,
    )


def stage_words(progress: ComparisonProgress) -> str:
    """Return what a comparison is doing, in a few words."""
    if progress.phase == "warm_up":
        return f"{progress.workload_name}: warming up {progress.arm.name}, not counted"
    pair = f"pair {progress.pair + 1} of at most {progress.num_pairs}"
    if progress.phase == "replay":
        return f"{progress.workload_name}: finding out why the text of {progress.arm.name} differs"
    return f"{progress.workload_name}: {pair}, {progress.arm.name} runs"


def lead_words(lead: Lead) -> str:
    """Return a lead as `ghost is 12 tokens / 0.4 s ahead`."""
    if lead.num_tokens == 0:
        return "ghost is level"
    count = abs(lead.num_tokens)
    parts = [f"{count} token{'s' if count > 1 else ''}"]
    if lead.seconds is not None and abs(lead.seconds) >= 0.05:
        parts.append(f"{abs(lead.seconds):.1f} s")
    return f"ghost is {' / '.join(parts)} {'ahead' if lead.num_tokens > 0 else 'behind'}"
