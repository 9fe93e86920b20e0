"""What a comparison found, as the texts of its card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from localspec.hardware.throttling import was_throttled
from localspec.session.figures import (
    DASH,
    milliseconds_number,
    milliseconds_text,
    number_text,
    percent_text,
    rate_text,
    speed_unit,
)
from localspec.session.head_to_head import head_to_head_sentence
from localspec.session.kind_outcome import outcome_line, outcomes_of
from localspec.session.measurement import measurement_record
from localspec.session.my_chats import has_own
from localspec.session.outcome import ArmResult, ComparisonResult
from localspec.session.verdict import (
    best_arm,
    is_reliable,
    same_text_sentence,
    speedup_phrase,
    verdict_sentences,
)
from localspec.tui.result_card import ResultCard, TextCard, Tone

if TYPE_CHECKING:
    from localspec.catalog.workloads import Workload
    from localspec.session.measurement import Measurement

_POWER = {"mains": "mains", "battery": "battery", "no_battery": "no battery"}


def make_card(measurement: Measurement, run_id: int | None, title: str, lanes: tuple[str, str]) -> ResultCard:
    """Return the card of a measurement.

    Args:
        measurement: complete, or ended early.
        run_id: the number that it is kept under; None if it is not.
        title: what was compared, in a few words.
        lanes: names of the arms that raced.
    """
    plan = measurement.plan
    begun = [result for result in measurement.results if any(arm.has_run for arm in result.arms)]
    by_name = {workload.name: workload for workload in plan.workloads}
    ran = dict.fromkeys(arm.arm.name for result in begun for arm in result.arms if arm.has_run)
    best = best_arm(begun)
    kinds = outcomes_of(measurement_record(measurement)) if has_own(plan.workloads) else ()
    said = (outcome_line(kinds),) if kinds else ()
    return ResultCard(
        title=title,
        texts=tuple(_text(result, by_name[result.workload_name], plan.half_width, lanes) for result in begun),
        notes=(*said, *_notes(measurement, len(begun))),
        run_id=run_id,
        arms=tuple(ran),
        best=plan.arms[0].name if best is None else best.name,
        has_kinds=any(kind.pays for kind in kinds),
    )


def _text(result: ComparisonResult, workload: Workload, half_width: float | None, lanes: tuple[str, str]) -> TextCard:
    raced = [arm for arm in result.speculative if arm.arm.name in lanes and arm.has_run]
    leading = max(raced, key=_median, default=None)
    tone: Tone = "unknown"
    headline = "no speed to compare"
    if leading is not None and leading.speedup is not None:
        headline = speedup_phrase(leading.speedup)
        if len(raced) > 1:
            headline += f" {leading.arm.name}"
        if not is_reliable(result):
            tone = "unusable"
        elif leading.verdict is not None and leading.verdict != "too_little_to_judge":
            tone = leading.verdict
    sentences = [*verdict_sentences(result)]
    arms = {arm.arm.name: arm for arm in result.arms}
    if "off" not in lanes and all(arms[name].has_run for name in lanes if name in arms):
        sentences.append(head_to_head_sentence(arms[lanes[0]], arms[lanes[1]]))
    for arm in result.speculative:
        said = same_text_sentence(arm.same_text)
        sentences.append(f"{arm.arm.name}: {said}" if said and len(result.speculative) > 1 else said)
    return TextCard(
        title=f"{workload.title} ({workload.name}), temperature {result.sampling.temperature:g}",
        tone=tone,
        headline=headline,
        arms=tuple(arm.arm.name for arm in result.arms),
        rows=tuple(
            (label, tuple(cell(arm) if arm.has_run else DASH for arm in result.arms))
            for label, cell in ((speed_unit(), _rate), *_ROWS)
        ),
        sentences=tuple(sentence for sentence in sentences if sentence),
        remarks=_remarks(result, half_width),
    )


def _median(arm: ArmResult) -> float:
    return 0.0 if arm.speedup is None else arm.speedup.median


def _remarks(result: ComparisonResult, half_width: float | None) -> tuple[str, ...]:
    remarks = [*result.notes]
    if result.is_interrupted:
        remarks.append("Ended early: only the runs that were complete are counted.")
    elif half_width is not None:
        widths = [arm.speedup.half_width for arm in result.speculative if arm.speedup is not None]
        wide = [width for width in widths if width is None or width > half_width]
        if wide:
            wished = f"\N{PLUS-MINUS SIGN}{percent_text(half_width)}"
            remarks.append(f"After {result.num_pairs} pairs the interval is still wider than {wished}.")
    return tuple(remarks)


def _notes(measurement: Measurement, num_begun: int) -> tuple[str, ...]:
    notes: list[str] = []
    if measurement.failure is not None:
        notes.append(f"It broke off: {measurement.failure.message}")
    missing = measurement.plan.workloads[num_begun:]
    if missing:
        notes.append(f"Not measured: {', '.join(workload.name for workload in missing)}.")
    power = _POWER.get(measurement.examination.profile.host.power, "unknown")
    throttled = {None: "not told by this system", True: "the hardware slowed itself down", False: "none"}
    notes.append(f"Power: {power}. Throttling: {throttled[was_throttled(*measurement.clocks)]}.")
    serious = [note for note in measurement.examination.notes if note.severity != "info"]
    notes += [f"{note.text} {note.advice}" for note in (*serious, *measurement.context_notes)]
    return (*notes, *measurement.memory_notes)


def _percentiles(arm: ArmResult) -> str:
    return f"{milliseconds_number(arm.gap_percentile('p50'))} / {milliseconds_text(arm.gap_percentile('p95'))}"


def _rate(arm: ArmResult) -> str:
    return rate_text(None if arm.decode_tps is None else arm.decode_tps.median)


def _speedup(arm: ArmResult) -> str:
    if arm.arm.is_baseline:
        return DASH
    return DASH if arm.speedup is None else number_text(arm.speedup.median) + "x"


def _same_text(arm: ArmResult) -> str:
    answer = arm.same_text
    if answer is None:
        return DASH
    return "yes" if answer.identical else f"{answer.kind or 'no'}, token {(answer.first_difference or 0) + 1}"


_ROWS: Sequence[tuple[str, Callable[[ArmResult], str]]] = (
    ("speedup", _speedup),
    ("acceptance", lambda arm: percent_text(arm.stats.acceptance_rate)),
    ("tau", lambda arm: number_text(arm.stats.mean_accepted_length)),
    ("TTFT", lambda arm: milliseconds_text(arm.ttft_s)),
    ("p50 / p95", _percentiles),
    ("same text?", _same_text),
    ("runs", lambda arm: str(len(arm.trials))),
)
