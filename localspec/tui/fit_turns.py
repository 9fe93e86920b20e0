"""What turning a knob, or giving it a value, makes of all knobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from localspec.planning.notes import CONTEXT_PADDING
from localspec.planning.sizes import parse_size
from localspec.tui.fit_knobs import (
    KV_TYPES,
    NO_DRAFT,
    PRESETS,
    RESERVE_STEP_BYTES,
    FitKnobs,
    Machine,
    read_layers,
    read_machine,
    read_positions,
    stepped_context,
    stepped_kv,
    stepped_layers,
)
from localspec.tui.widgets.fit_dialog import ChoiceDialog, EntryDialog

if TYPE_CHECKING:
    from localspec.planning.footprint import ModelRole
    from localspec.tui.fit_planner import FitAnswer
    from localspec.tui.state import ChosenModel

_DESCRIBE = "Another machine …"

Turn = Callable[[FitKnobs], FitKnobs]
"""From the knobs as they are to the knobs as they are to be."""


@dataclass(frozen=True, slots=True)
class Around:
    """What besides the knobs decides how far they can be turned."""

    answer: FitAnswer | None
    """The last plan for this target."""
    drafts: tuple[ChosenModel, ...]
    """What else may draft."""
    shown_context: int
    """Positions that the slider shows; 0 while they are not known."""


@dataclass(frozen=True, slots=True)
class Question:
    """A dialog, and what its answer does."""

    dialog: EntryDialog | ChoiceDialog
    take: Callable[[str | int], Turn | Question]
    """Another question may follow."""


def role_of(knob: str) -> ModelRole:
    """Return whose knob it is."""
    return "draft" if knob.startswith("draft-") else "target"


def drafts_for(knobs: FitKnobs, drafts: Sequence[ChosenModel]) -> list[ChosenModel | None]:
    """Return what the draft can be, none first."""
    return list(dict.fromkeys((None, *([] if knobs.draft is None else [knobs.draft]), *drafts)))


def machines_for(knobs: FitKnobs) -> list[Machine]:
    """Return the machines to choose from, the one in force among them."""
    return list(dict.fromkeys((*PRESETS, knobs.machine)))


def stepped(knob: str, steps: int, knobs: FitKnobs, around: Around) -> FitKnobs:
    """Return the knobs with one of them turned by some steps; as they were where it cannot be."""
    role, answer = role_of(knob), around.answer
    match knob:
        case "context" if around.shown_context:
            return knobs.with_context(stepped_context(around.shown_context, steps))
        case "kv" | "draft-kv":
            return knobs.with_kv(role, stepped_kv(knobs.of(role), steps))
        case "layers" | "draft-layers" if answer is not None:
            num_layers = answer.num_layers if role == "target" else answer.num_draft_layers
            return knobs.with_layers(role, stepped_layers(knobs.of(role).n_gpu_layers, steps, num_layers))
        case "draft-context" if own := knobs.draft_placement.n_ctx or around.shown_context:
            return knobs.placed("draft", replace(knobs.draft_placement, n_ctx=stepped_context(own, steps)))
        case "experts":
            moved = not knobs.placement.experts_on_cpu
            return knobs.placed("target", replace(knobs.placement, experts_on_cpu=moved))
        case "reserve":
            return knobs.with_reserve(knobs.reserve_bytes + steps * RESERVE_STEP_BYTES)
        case "draft":
            drafts = drafts_for(knobs, around.drafts)
            return replace(knobs, draft=drafts[(drafts.index(knobs.draft) + steps) % len(drafts)])
        case "machine":
            machines = machines_for(knobs)
            return replace(knobs, machine=machines[(machines.index(knobs.machine) + steps) % len(machines)])
    return knobs


def doubled_context(direction: int, knobs: FitKnobs, around: Around) -> FitKnobs:
    """Return the knobs with twice the context, or half of it."""
    shown = around.shown_context
    if not shown:
        return knobs
    return knobs.with_context(shown * 2 if direction > 0 else max(CONTEXT_PADDING, shown // 2))


def question(knob: str, knobs: FitKnobs, around: Around, hint: str = "") -> Question | None:
    """Return what to ask for a knob's value; None where there is nothing to ask.

    Args:
        knob: which.
        knobs: where they stand.
        around: what there is to choose from.
        hint: said below a choice of drafts.
    """
    role = role_of(knob)
    match knob:
        case "context":
            text = "max" if knobs.placement.n_ctx == 0 else str(knobs.placement.n_ctx)
            return _entry("Context", "Positions such as 8192 or 32k, or max.", text, _context)
        case "draft-context":
            words = "Positions such as 4096; max for as many as the target has."
            text = str(knobs.draft_placement.n_ctx or "max")
            return _entry("Context of the draft", words, text, _draft_context)
        case "kv" | "draft-kv":
            current = KV_TYPES.index(knobs.of(role).type_k)
            return _choice(f"KV type of the {role}", KV_TYPES, current, lambda at: _kv(role, at))
        case "layers" | "draft-layers":
            wished = knobs.of(role).n_gpu_layers
            words = "Layers on the GPU, 0 for none, or auto for as many as fit."
            text = "auto" if wished < 0 else str(wished)
            return _entry(f"GPU layers of the {role}", words, text, lambda text: _layers(role, text))
        case "reserve":
            words = "Kept free on each device, such as 512MiB or 1.5GiB."
            return _entry("Reserve", words, f"{knobs.reserve_bytes >> 20}MiB", _reserve)
        case "draft":
            drafts = drafts_for(knobs, around.drafts)
            names = [NO_DRAFT if draft is None else draft.name for draft in drafts]
            return _choice("Draft", names, drafts.index(knobs.draft), lambda at: _draft(drafts[at]), hint)
        case "machine":
            machines = machines_for(knobs)
            names = [*(machine.title for machine in machines), _DESCRIBE]
            return _choice("Machine", names, machines.index(knobs.machine), lambda at: _machine(machines, at))
    return None


def _entry(title: str, hint: str, text: str, read: Callable[[str], Turn]) -> Question:
    return Question(EntryDialog(title, hint, text, read), lambda answer: read(str(answer)))


def _choice(
    title: str, names: Sequence[str], current: int, take: Callable[[int], Turn | Question], hint: str = ""
) -> Question:
    return Question(ChoiceDialog(title, names, current, hint), lambda answer: take(int(answer)))


def _context(text: str) -> Turn:
    n_ctx = read_positions(text)
    return lambda knobs: knobs.with_context(n_ctx)


def _draft_context(text: str) -> Turn:
    n_ctx = read_positions(text)
    return lambda knobs: knobs.placed("draft", replace(knobs.draft_placement, n_ctx=n_ctx))


def _kv(role: ModelRole, place: int) -> Turn:
    return lambda knobs: knobs.with_kv(role, KV_TYPES[place])


def _layers(role: ModelRole, text: str) -> Turn:
    layers = read_layers(text)
    return lambda knobs: knobs.with_layers(role, layers)


def _reserve(text: str) -> Turn:
    size_bytes = parse_size(text)
    return lambda knobs: knobs.with_reserve(size_bytes)


def _draft(draft: ChosenModel | None) -> Turn:
    return lambda knobs: replace(knobs, draft=draft)


def _machine(machines: Sequence[Machine], place: int) -> Turn | Question:
    if place < len(machines):
        return lambda knobs: replace(knobs, machine=machines[place])
    words = 'NAME:SIZE, such as RTX 4070:12GiB, or M3 Pro:36GiB,unified; several cards parted by ";".'
    return _entry("Another machine", words, "", _described)


def _described(text: str) -> Turn:
    machine = read_machine(text)
    return lambda knobs: replace(knobs, machine=machine)
