"""The pictures of a run: what each says, the numbers behind it, and how it is drawn. Where there are too few, why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from localspec.session.records import Record
from localspec.session.reporting import findings, round_charts, speed_charts
from localspec.session.reporting.figures import (
    DASH,
    count,
    milliseconds,
    rate,
    rate_with_interval,
    share,
    times_with_interval,
)
from localspec.session.reporting.palette import ArmColour
from localspec.session.reporting.rate_traces import rate_traces
from localspec.session.reporting.reading import name, objects
from localspec.session.reporting.series import (
    MIN_ROUNDS,
    accepted_lengths,
    arm_speeds,
    position_acceptance,
    time_splits,
    verify_costs,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICT_WORDS: Final = {
    "faster": "faster",
    "slower": "slower",
    "no_clear_difference": "no clear difference",
    "too_little_to_judge": "too little to judge",
}

_INTERVALS: Final = "Medians of paired runs; bars are 95 % intervals, and one that reaches 1 shows no difference."


@dataclass(frozen=True, slots=True)
class NumberTable:
    """The numbers of a picture."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture, or the reason why there is none."""

    slug: str
    """Names it within its run; letters and digits with hyphens."""
    title: str
    """States the finding; without a picture, what it would have shown."""
    subtitle: str
    numbers: NumberTable | None
    draw: Callable[[], Figure] | None
    absence: str = ""
    """Why it is not drawn; empty if it is."""


def overall_pictures(document: Record, colours: Mapping[str, ArmColour]) -> tuple[Picture, ...]:
    """Return the pictures of all workloads together."""
    workloads = objects(document, "workloads")
    return _speedup(workloads, colours), _verify(workloads, colours)


def workload_pictures(workload: Record, colours: Mapping[str, ArmColour]) -> tuple[Picture, ...]:
    """Return one workload's pictures."""
    return tuple(make(workload, name(workload, "name"), colours) for make in (_rate, _time, _acceptance, _lengths))


def arm_names(documents: Sequence[Record]) -> list[str]:
    """Return the names of all arms in some documents, in the order in which they come."""
    found = (
        name(arm, "name")
        for document in documents
        for workload in objects(document, "workloads")
        for arm in objects(workload, "arms")
    )
    return list(dict.fromkeys(found))


def _speedup(workloads: Sequence[Record], colours: Mapping[str, ArmColour]) -> Picture:
    speeds = [speed for workload in workloads for speed in arm_speeds(workload)]
    if not any(speed.speedup for speed in speeds):
        return _absent("speedup", "Speedup", "No pair of runs with and without drafts is complete.")
    title = findings.speedup_finding(speeds)
    rows = tuple(
        (
            speed.workload,
            speed.arm,
            rate_with_interval(speed.tps),
            times_with_interval(speed.speedup),
            VERDICT_WORDS.get(speed.verdict, DASH),
        )
        for speed in speeds
    )
    numbers = NumberTable(("workload", "arm", "decode tokens per second", "speedup", "verdict"), rows)
    draw = partial(speed_charts.speedup_chart, title, _INTERVALS, speeds, colours)
    return Picture("speedup", title, _INTERVALS, numbers, draw)


def _verify(workloads: Sequence[Record], colours: Mapping[str, ArmColour]) -> Picture:
    points = verify_costs(workloads)
    if len(points) < 2:
        why = f"There are fewer than {MIN_ROUNDS} timed passes of each width, or no plain steps to compare them with."
        return _absent("verify-cost", "What checking drafts costs", why)
    title = findings.verify_finding(points)
    passes = sum(point.num_rounds for point in points if point.num_checked)
    subtitle = (
        f"Median of {passes} passes over all workloads; bars hold the middle half. A pass of each width counts from "
        f"{MIN_ROUNDS} on. Under the dotted line checking is cheaper than generating."
    )
    rows = tuple(
        (count(point.num_checked), f"{point.cost:.2f}", f"{point.low:.2f} to {point.high:.2f}", count(point.num_rounds))
        for point in points
    )
    numbers = NumberTable(("draft tokens checked", "plain steps, median", "middle half", "passes"), rows)
    colour = next((colour for arm, colour in colours.items() if arm == "draft"), None)
    colour = colour or next(reversed(list(colours.values())))
    return Picture(
        "verify-cost", title, subtitle, numbers, partial(round_charts.verify_chart, title, subtitle, points, colour)
    )


def _rate(workload: Record, label: str, colours: Mapping[str, ArmColour]) -> Picture:
    found = rate_traces(workload)
    if found is None:
        return _absent("rate", "Tokens per second over time", "The answers were too short to have a course.")
    title = findings.rate_finding(label, found)
    most = max(trace.num_trials for trace in found.traces)
    answers = "one answer" if most == 1 else f"up to {most} answers"
    subtitle = (
        f"Rolling mean over {found.window_s:.2g} s, median of {answers} an arm; dashed: median speed of whole answers."
    )
    rows = tuple(
        (trace.arm, rate(trace.median_tps), rate(min(trace.tps)), rate(max(trace.tps)), count(trace.num_trials))
        for trace in found.traces
    )
    numbers = NumberTable(
        ("arm", "decode tokens per second", "slowest window", "fastest window", "answers"),
        rows,
    )
    return Picture("rate", title, subtitle, numbers, partial(speed_charts.rate_chart, title, subtitle, found, colours))


def _time(workload: Record, label: str, colours: Mapping[str, ArmColour]) -> Picture:
    splits = time_splits(workload)
    if not splits:
        return _absent("time", "Where the time of a token goes", "No rounds were timed.")
    title = findings.time_finding(label, splits)
    subtitle = "From left: verify (the target's passes), draft, sample, and own (neither a model nor the sampler)."
    rows = tuple(
        (split.arm, *(milliseconds(part) for part in (split.verify_s, split.draft_s, split.sample_s, split.own_s)))
        for split in splits
    )
    numbers = NumberTable(("arm", "verify", "draft", "sample", "own"), rows)
    return Picture("time", title, subtitle, numbers, partial(speed_charts.time_chart, title, subtitle, splits, colours))


def _acceptance(workload: Record, label: str, colours: Mapping[str, ArmColour]) -> Picture:
    found = position_acceptance(workload)
    if not found:
        return _absent("acceptance", "Acceptance by position", "No draft token was checked.")
    title = findings.acceptance_finding(label, found)
    subtitle = "Share of drafted tokens that the target would have written itself, by their place in the draft."
    if any(not arm.is_sure(place) for arm in found for place in range(len(arm.given_earlier))):
        subtitle += f" Hollow points rest on fewer than {MIN_ROUNDS} rounds."
    rows = tuple(
        (arm.arm, str(place), share(of_all), share(given), count(reached))
        for arm in found
        for place, (of_all, given, reached) in enumerate(
            zip_longest(arm.of_all_rounds, arm.given_earlier, arm.num_reached), start=1
        )
    )
    headers = (
        "arm",
        "position",
        "of all rounds with drafts",
        "if all before it were accepted",
        "rounds that got there",
    )
    numbers = NumberTable(headers, rows)
    return Picture(
        "acceptance",
        title,
        subtitle,
        numbers,
        partial(round_charts.acceptance_chart, title, subtitle, found, colours),
    )


def _lengths(workload: Record, label: str, colours: Mapping[str, ArmColour]) -> Picture:
    found = accepted_lengths(workload)
    if not found:
        return _absent("accepted-lengths", "Tokens accepted in a round", "No draft token was checked.")
    title = findings.length_finding(label, found)
    subtitle = (
        "How many drafted tokens a round accepted. With the target's own one that is tau tokens a round on average."
    )
    rows = tuple(
        (arm.arm, str(length), count(number), share(number / arm.num_rounds))
        for arm in found
        for length, number in enumerate(arm.counts)
    )
    numbers = NumberTable(("arm", "tokens accepted", "rounds", "share"), rows)
    return Picture(
        "accepted-lengths",
        title,
        subtitle,
        numbers,
        partial(round_charts.length_chart, title, subtitle, found, colours),
    )


def _absent(slug: str, title: str, why: str) -> Picture:
    return Picture(slug, title, "", None, None, why)
