"""What the knobs and the verdict of the fit screen say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from localspec.planning.fitting import padded
from localspec.session.figures import DASH, bytes_text
from localspec.session.memory_use import file_pages, used_lines
from localspec.session.plain_text import one_line

if TYPE_CHECKING:
    from localspec.engine.events import ModelsLoaded
    from localspec.engine.values import ContextSettings
    from localspec.planning.footprint import ModelRole
    from localspec.planning.plan import MemoryPlan
    from localspec.tui.fit_knobs import FitKnobs
    from localspec.tui.fit_planner import FitAnswer

_MARKS = {"FITS": ("✓", "bold $text-success"), "DOES_NOT_FIT": ("✗", "bold $text-error")}
_PARTLY = ("!", "bold $text-warning")


def verdict_text(plan: MemoryPlan) -> Content:
    """Return the plan's sentence behind a mark."""
    mark, style = _MARKS.get(plan.verdict, _PARTLY)
    return Content.assemble((mark, style), " ", (one_line(plan.sentence), "bold"))


def kv_words(knobs: FitKnobs, role: ModelRole) -> str:
    """Return the types of a model's cache."""
    if role == "draft" and knobs.draft is None:
        return DASH
    placement = knobs.of(role)
    same = placement.type_k == placement.type_v
    return placement.type_k if same else f"{placement.type_k}/{placement.type_v}"


def layers_words(knobs: FitKnobs, role: ModelRole, answer: FitAnswer | None) -> str:
    """Return how many layers of a model are to be on GPUs, and how many the plan puts there."""
    if role == "draft" and knobs.draft is None:
        return DASH
    wished = knobs.of(role).n_gpu_layers
    if answer is None:
        return "auto" if wished < 0 else str(wished)
    if not answer.has_gpu:
        return "no GPU"
    num_layers = answer.num_layers if role == "target" else answer.num_draft_layers
    placed = answer.plan.target if role == "target" else answer.plan.draft
    planned = wished if placed is None else placed.n_gpu_layers
    if not num_layers or (placed is None and wished < 0):
        return "auto" if wished < 0 else str(wished)
    on_gpu = num_layers if planned < 0 else min(planned, num_layers)
    return f"{'auto ' if wished < 0 else ''}{on_gpu}/{num_layers}"


def draft_context_words(knobs: FitKnobs) -> str:
    """Return the draft's context."""
    if knobs.draft is None:
        return DASH
    return str(knobs.draft_placement.n_ctx or "as the target")


def experts_words(knobs: FitKnobs, answer: FitAnswer | None) -> str:
    """Return where a mixture's experts are to be."""
    if answer is not None and not answer.num_experts:
        return "has none"
    if knobs.placement.experts_on_cpu:
        return "in host memory"
    moved = answer is not None and answer.plan.target.experts_on_cpu
    return "auto: in host memory" if moved else "auto: with their layers"


def reserve_words(knobs: FitKnobs, answer: FitAnswer | None) -> str:
    """Return what is kept free of each device: less than what was asked for of one that is small."""
    asked = bytes_text(knobs.reserve_bytes)
    if answer is None or answer.knobs.reserve_bytes != knobs.reserve_bytes:
        return f"{asked} on each device"
    kept = [bytes_text(row.reserve_bytes) for row in answer.plan.devices]
    if all(text == asked for text in kept):
        return f"{asked} on each device"
    return ", ".join(f"{text} on {one_line(row.name)}" for text, row in zip(kept, answer.plan.devices, strict=True))


def is_for_loaded(answer: FitAnswer, loaded: ModelsLoaded) -> bool:
    """Say whether a plan is for the models that are loaded, with the contexts that they have."""
    knobs, plan = answer.knobs, answer.plan
    if knobs.machine.devices or str(knobs.target.path) != loaded.target.path:
        return False
    draft = knobs.draft if plan.draft is not None else None
    if (None if draft is None else str(draft.path)) != (None if loaded.draft is None else loaded.draft.path):
        return False
    same_types = (plan.target.type_k, plan.target.type_v) == (loaded.target.type_k, loaded.target.type_v)
    return same_types and padded(plan.n_ctx) == padded(loaded.target.n_ctx)


def use_text(answer: FitAnswer | None, loaded: ModelsLoaded | None, context: ContextSettings) -> Content:
    """Return what the loaded models really take beside the plan; empty where the plan is for something else.

    Args:
        answer: the plan.
        loaded: what is loaded.
        context: the settings that it was loaded with.
    """
    if answer is None or loaded is None or loaded.footprint is None or not is_for_loaded(answer, loaded):
        return Content("")
    from localspec.session.load_plan import LoadPlan

    pages = file_pages(LoadPlan(context, context, answer.plan), loaded)
    lines = [Content.styled("Loaded now", "bold")]
    for name, planned, taken in used_lines(answer.plan, loaded):
        of_file = pages.get(name, 0)
        rest = f", {bytes_text(of_file)} of it pages of the mapped file" if of_file else ""
        lines.append(
            Content.assemble(
                f"{one_line(name)}: {bytes_text(taken)} really taken",
                (f", {bytes_text(planned)} planned{rest}", "dim"),
            )
        )
    return Content("\n").join(lines)
