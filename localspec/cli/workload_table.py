"""One workload of a run as a table, drawn from its document: for a run that has just ended and for one that is kept."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from localspec.cli.screen import DASH, fits, print_table, say, table
from localspec.metrics.statistics import Estimate
from localspec.session.drafting_lines import drafting_lines
from localspec.session.figures import milliseconds_number, number_text, percent_text, rate_span, speed_unit
from localspec.session.plain_text import one_line
from localspec.session.run_figures import estimate_of
from localspec.session.same_text import SameText
from localspec.session.verdict import same_text_sentence, speedup_phrase
from localspec.store.values import Record

NOTHING_MEASURED = "Nothing was measured."


def show_workload(workload: Record, console: Console) -> None:
    """Print a workload's record: a column for each arm, then what follows from it."""
    console.print()
    say(console, one_line(workload_title(workload)), style="bold")
    if not any(arm.get("has_run") for arm in workload["arms"]):
        say(console, NOTHING_MEASURED)
        return
    grids = [_grid(workload, narrowing) for narrowing in range(4)]
    print_table(console, next((grid for grid in grids if fits(console, grid)), grids[-1]))
    for sentence in workload.get("sentences") or ([workload["summary"]] if workload.get("summary") else []):
        say(console, one_line(sentence))
    for line in drafting_lines(workload):
        say(console, line, indent=2)
    for remark in remarks(workload):
        say(console, one_line(remark), indent=2)


def workload_title(workload: Record) -> str:
    """Return what a workload is called, and what kind of text it is, as far as that is known."""
    kind = "copy-heavy, " if workload.get("is_copy_heavy") else ""
    temperature = workload.get("temperature")
    about = workload["name"] if temperature is None else f"{workload['name']}: {kind}temperature {temperature:g}"
    return f"{workload.get('title') or workload['name']} ({about})"


def remarks(workload: Record) -> list[str]:
    """Return what else must be said: texts that differ, what makes the figures uncertain."""
    drafting = [arm for arm in workload["arms"] if arm["method"] != "off"]
    answers = ((arm["name"], same_text_of(arm)) for arm in drafting)
    found = [
        f"{name}: {same_text_sentence(answer)}"
        for name, answer in answers
        if answer is not None and not answer.identical
    ]
    if any(arm.get("has_run") for arm in drafting):
        found += workload.get("notes") or ()
    if workload.get("interrupted"):
        found.append("Ended early: only the runs that were complete are counted.")
    return found


def same_text_of(arm: Record) -> SameText | None:
    """Return an arm's answer to "same text?"; None if there is none."""
    answer = arm.get("same_text")
    if answer is None:
        return None
    return SameText(
        identical=bool(answer["identical"]),
        first_difference=answer.get("first_difference"),
        top2_gap=answer.get("top2_gap"),
        noise=answer.get("noise"),
        kind=answer.get("kind"),
        reason=str(answer.get("reason") or ""),
    )


def speed_title() -> str:
    """Return the name of decode_tps in a table: it is no rate where times are shown."""
    return "decode_tps" if speed_unit() == "tokens/s" else "decode"


def rates_text(estimate: Estimate | None) -> str:
    """Return a speed with its interval, in the unit in force."""
    return DASH if estimate is None else rate_span(estimate.median, estimate.low, estimate.high)


def below(text: str) -> str:
    """Return a figure with its interval on the next line, and broken nowhere else."""
    return text.replace(" (", "\n(").replace(", ", ",\n")


def _narrowed(text: str, narrowing: int) -> str:
    if not narrowing:
        return text
    return below(text).replace(" to ", " to\n") if narrowing > 2 else below(text)


def _grid(workload: Record, narrowing: int) -> Table:
    """Return the table; 1 breaks cells before intervals, 2 also the names of rows, 3 also the intervals."""
    arms: list[Record] = workload["arms"]
    grid = table("", *(one_line(arm["name"]) for arm in arms))
    rows = ((f"{speed_title()} ({speed_unit()})", _rate), *_ROWS)
    if len({arm.get("num_trials") for arm in arms if arm.get("has_run")}) > 1:
        rows = (("complete runs", lambda arm: str(arm.get("num_trials") or 0)), *rows)
    for name, cell in rows:
        cells = [cell(arm) if arm.get("has_run") else DASH for arm in arms]
        label = name.replace(" (", "\n(") if narrowing > 1 and len(name) > 14 else name
        grid.add_row(label, *(_narrowed(text, narrowing) for text in cells))
    return grid


def _rate(arm: Record) -> str:
    return rates_text(estimate_of(arm.get("decode_tps")))


def _speedup(arm: Record) -> str:
    speedup = estimate_of(arm.get("speedup"))
    return DASH if speedup is None else speedup_phrase(speedup)


def _percentiles(arm: Record) -> str:
    gaps = arm.get("tpot_s") or {}
    return f"{milliseconds_number(gaps.get('p50'))} / {milliseconds_number(gaps.get('p95'))}"


def _saved(arm: Record) -> str:
    saved, whole = arm.get("target_passes_saved"), arm.get("num_tokens")
    return DASH if arm["method"] == "off" or saved is None or whole is None else f"{saved} of {whole}"


def _same_text(arm: Record) -> str:
    answer = same_text_of(arm)
    if answer is None:
        return DASH
    if answer.identical:
        return "identical"
    return f"{answer.kind or 'differs'}, token {(answer.first_difference or 0) + 1}"


_ROWS: tuple[tuple[str, Callable[[Record], str]], ...] = (
    ("speedup", _speedup),
    ("acceptance", lambda arm: percent_text(arm.get("acceptance_rate"))),
    ("tau (tokens a round)", lambda arm: number_text(arm.get("mean_accepted_length"))),
    ("TTFT (ms)", lambda arm: milliseconds_number(arm.get("ttft_s"))),
    ("TPOT p50 / p95 (ms)", _percentiles),
    ("saved passes", _saved),
    ("same text?", _same_text),
)
