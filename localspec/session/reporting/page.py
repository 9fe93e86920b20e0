"""The page: one HTML file that needs nothing else, not even a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from localspec.session.drafting_lines import drafting_lines
from localspec.session.records import Record
from localspec.session.reporting.canvas import svg_of
from localspec.session.reporting.palette import ArmColour, arm_colours, style_rules
from localspec.session.reporting.pictures import (
    NumberTable,
    Picture,
    arm_names,
    overall_pictures,
    workload_pictures,
)
from localspec.session.reporting.reading import clean, name, objects, part
from localspec.session.reporting.receipt import Receipt, build_text, device_text, make_receipt, model_text
from localspec.session.reporting.words import (
    OverviewLine,
    Sentence,
    arm_grid,
    overview,
    run_warnings,
    sentences,
    without_doubtful_claims,
    workload_notes,
)
from localspec.session.reporting.writing import GENERATOR
from localspec.session.suite_result import suite_sentences

DEFAULT_TITLE: Final = "localspec report"


@dataclass(frozen=True, slots=True)
class ReportRun:
    """A kept run, as a report takes it."""

    id: int
    created_at: str
    """In ISO 8601; empty if not known."""
    state: str
    profile: str
    """Empty for none."""
    document: Record
    """Of `bench --json`."""


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture with its SVG, empty where there is none."""

    picture: Picture
    svg: Markup


@dataclass(frozen=True, slots=True)
class WorkloadSection:
    """What the page says of one workload."""

    label: str
    sentences: tuple[Sentence, ...]
    notes: tuple[str, ...]
    arms: NumberTable
    drafting: tuple[str, ...]
    """Who drafted what, and what adaptive drafting chose."""
    pictures: tuple[ShownPicture, ...]


@dataclass(frozen=True, slots=True)
class RunSection:
    """What the page says of one run."""

    id: int
    models: str
    device: str
    build: str
    created_at: str
    profile: str
    warnings: tuple[str, ...]
    promises: tuple[str, ...]
    """What a suite says of each; empty for another run."""
    overview: tuple[OverviewLine, ...]
    overall: tuple[ShownPicture, ...]
    workloads: tuple[WorkloadSection, ...]
    receipt: Receipt


def make_page(
    runs: Sequence[ReportRun], title: str, home: str, on_picture: Callable[[float], None] = lambda fraction: None
) -> str:
    """Return the page.

    Args:
        runs: in the order of their sections; at least one.
        title: of the page; empty for the default.
        home: the user's home folder, which texts then call `~`; empty to leave it.
        on_picture: called after each section with the fraction that is done.
    """
    runs = [replace(run, document=without_doubtful_claims(run.document)) for run in runs]
    colours = arm_colours(arm_names([run.document for run in runs]))
    sections = []
    for place, run in enumerate(runs):
        sections.append(_run_section(run, colours))
        on_picture((place + 1) / len(runs))
    environment = Environment(
        loader=PackageLoader("localspec.session.reporting", ""),
        autoescape=True,
        undefined=StrictUndefined,
        # Every text goes through this before it is escaped.
        finalize=lambda found: _without_home(found, home),
    )
    light, dark = style_rules()
    page = environment.get_template("report.html.jinja").render(
        title=clean(title) or DEFAULT_TITLE,
        generator=GENERATOR,
        # Our own declarations; nothing foreign is in them.
        colours=Markup(f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"),
        runs=sections,
    )
    return "\n".join(line.rstrip() for line in page.splitlines() if line.strip()) + "\n"


def pictures_of(runs: Sequence[ReportRun]) -> tuple[tuple[str, Picture], ...]:
    """Return every picture that can be drawn, each with the name of a file without its ending."""
    runs = [replace(run, document=without_doubtful_claims(run.document)) for run in runs]
    colours = arm_colours(arm_names([run.document for run in runs]))
    found: list[tuple[str, Picture]] = []
    for run in runs:
        found += [(f"run-{run.id}-{picture.slug}", picture) for picture in overall_pictures(run.document, colours)]
        taken: set[str] = set()
        for place, workload in enumerate(objects(run.document, "workloads"), start=1):
            word = _file_word(name(workload, "name"))
            word = word if word and word not in taken else f"{word}-{place}".strip("-")
            taken.add(word)
            found += [
                (f"run-{run.id}-{word}-{picture.slug}", picture) for picture in workload_pictures(workload, colours)
            ]
    return tuple((file, picture) for file, picture in found if picture.draw is not None)


def _run_section(run: ReportRun, colours: Mapping[str, ArmColour]) -> RunSection:
    document, prefix = run.document, f"r{run.id}"
    draft = model_text(part(document, "draft"))
    target = model_text(part(document, "target")) or "unknown target"
    return RunSection(
        id=run.id,
        models=f"{target}, drafts from {draft}" if draft else target,
        device=device_text(document),
        build=build_text(document),
        created_at=clean(run.created_at)[:16].replace("T", " ") + (" UTC" if run.created_at else ""),
        profile=clean(run.profile),
        warnings=run_warnings(document, run.state),
        promises=tuple(map(clean, suite_sentences(document))),
        overview=overview(document),
        overall=_shown(overall_pictures(document, colours), prefix),
        workloads=tuple(
            WorkloadSection(
                label=name(workload, "name") or "workload",
                sentences=sentences(workload),
                notes=workload_notes(workload),
                arms=arm_grid(workload),
                drafting=tuple(map(clean, drafting_lines(workload))),
                pictures=_shown(workload_pictures(workload, colours), f"{prefix}w{place}"),
            )
            for place, workload in enumerate(objects(document, "workloads"))
        ),
        receipt=make_receipt(document),
    )


def _shown(pictures: Sequence[Picture], prefix: str) -> tuple[ShownPicture, ...]:
    return tuple(
        ShownPicture(
            picture,
            # matplotlib has escaped the texts in it.
            Markup("" if picture.draw is None else svg_of(picture.draw, f"{prefix}-{picture.slug}")),
        )
        for picture in pictures
    )


def _without_home(found: object, home: str) -> object:
    if not isinstance(found, str) or isinstance(found, Markup) or len(home) < 2:
        return found
    return found.replace(home, "~")


def _file_word(words: str) -> str:
    kept = "".join(character if character.isascii() and character.isalnum() else "-" for character in words.lower())
    return "-".join(part for part in kept.split("-") if part)[:40]
