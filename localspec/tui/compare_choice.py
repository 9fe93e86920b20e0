"""What is to be compared: texts, two arms and how long; and the plan that this makes with what is on the bench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from localspec.engine.values import SpeculationSettings
from localspec.errors import UsageError
from localspec.methods import DRAFTING_SETTINGS, needs_draft, settings_read_by
from localspec.session.verdict import settings_phrase
from localspec.settings import DraftGroup, Settings, check_draft
from localspec.tui.keyed import keyed
from localspec.tui.own_texts import texts_words
from localspec.tui.state import Workbench

if TYPE_CHECKING:
    from localspec.catalog.workloads import Workload
    from localspec.session.arms import Arm
    from localspec.session.measurement import MeasurementPlan

OWN_PROMPT = "own"
"""Name of the workload that a typed prompt makes."""

MAX_PAIRS = 12
DEFAULT_WORKLOADS = ("edit", "chat")


@dataclass(frozen=True, slots=True)
class CompareChoice:
    """What the user chose."""

    workloads: tuple[str, ...] = DEFAULT_WORKLOADS
    """Names; not looked at if there is a prompt, and likewise the next."""
    is_own: bool = False
    """The user's own chats, too."""
    prompt: str = ""
    """A text of the user's own."""
    left: SpeculationSettings = field(default_factory=SpeculationSettings)
    right: SpeculationSettings | None = None
    """None follows the bench."""
    max_tokens: int = 128
    num_pairs: int = MAX_PAIRS
    """At most so many."""
    percent: float = 5.0
    """Enough when half of every speedup's interval is at most so many percent of it; 0 runs all pairs."""


def rival(bench: Workbench) -> SpeculationSettings:
    """Return the bench's way of drafting, or the nearest thing to it if that is off."""
    if bench.speculation.method != "off":
        return bench.speculation
    return replace(bench.speculation, method="ngram" if bench.draft is None else "draft")


def arms_of(choice: CompareChoice, bench: Workbench) -> tuple[SpeculationSettings, SpeculationSettings]:
    """Return how the left and the right arm draft, without what does not matter to them."""
    return _relevant(choice.left), _relevant(rival(bench) if choice.right is None else choice.right)


def arm_words(settings: SpeculationSettings) -> str:
    """Return how an arm drafts, such as `draft n_max 4, p_min 0.5`."""
    if settings.method == "off":
        return "off"
    words = settings_phrase(settings)
    if settings.method == "ngram":
        words += f", {settings.ngram_min} to {settings.ngram_max} tokens"
    return words


def text_words(choice: CompareChoice) -> str:
    """Return what is generated from, in a few words."""
    return " ".join(choice.prompt.split()) if choice.prompt.strip() else texts_words(choice.workloads, choice.is_own)


def extent_words(choice: CompareChoice) -> str:
    """Return how much is measured."""
    pairs = f"{choice.num_pairs} pair{'s' if choice.num_pairs > 1 else ''}"
    return f"{choice.max_tokens} tokens, " + (
        f"\N{PLUS-MINUS SIGN}{choice.percent:g} % or {pairs}" if choice.percent else pairs
    )


def obstacle(choice: CompareChoice, bench: Workbench) -> UsageError | None:
    """Return why this cannot be compared; None if it can."""
    if bench.target is None:
        return UsageError("No target model is chosen.", keyed("Choose one on the Models screen ({mode.models})."))
    if not (choice.prompt.strip() or choice.workloads or choice.is_own):
        return UsageError(
            "There is no text to generate from.", keyed("Choose a workload, or write a prompt ({compare.text}).")
        )
    left, right = arms_of(choice, bench)
    if left == right:
        return UsageError("Both arms are the same.", keyed("Change one of them ({compare.left} or {compare.right})."))
    if bench.draft is None and needs_draft((left.method, right.method)):
        return UsageError(
            "An arm drafts with a model, and no draft model is chosen.",
            "Choose one on the Models screen, or use suffix, ngram or auto.",
        )
    return None


def make_plan(
    choice: CompareChoice,
    bench: Workbench,
    settings: Settings,
    workloads: Sequence[Workload],
    own: Sequence[Workload] = (),
) -> tuple[MeasurementPlan, tuple[Arm, Arm]]:
    """Return the plan, and which of its arms run in the left and the right lane.

    A baseline runs along even if neither lane is off, since every speedup is against it.

    Args:
        choice: the user's.
        bench: the models, and how they are loaded.
        settings: in force.
        workloads: all that come with localspec.
        own: made of the user's chats.

    Raises:
        UsageError: this cannot be compared.
        SettingsError: an arm's settings do not go together.
    """
    from localspec.session.arms import arms_from_settings
    from localspec.session.comparison import check_extent
    from localspec.session.loading import reserve_bytes
    from localspec.session.measurement import MeasurementPlan

    refusal = obstacle(choice, bench)
    if refusal is not None:
        raise refusal
    if bench.target is None:
        raise UsageError("No target model is chosen.")
    check_extent(choice.num_pairs, choice.max_tokens)
    pair = arms_of(choice, bench)
    for one in pair:
        check_arm(one, bench)
    arms = arms_from_settings(pair)
    by_settings = {arm.speculation: arm for arm in arms}
    plan = MeasurementPlan(
        target=bench.target.path,
        draft=None if bench.draft is None else bench.draft.path,
        context=bench.context,
        arms=arms,
        workloads=_texts(choice, workloads, own),
        sampling=bench.sampling,
        is_temperature_fixed=bench.sampling.temperature != settings.sampling.temperature,
        max_tokens=choice.max_tokens,
        num_pairs=choice.num_pairs,
        warmup_tokens=settings.bench.warmup,
        with_hashes=True,
        draft_context=bench.draft_context,
        reserve_bytes=reserve_bytes(settings),
        is_forced=bench.is_forced,
        half_width=choice.percent / 100.0 if choice.percent > 0.0 else None,
    )
    return plan, (by_settings[pair[0]], by_settings[pair[1]])


def check_arm(settings: SpeculationSettings, bench: Workbench) -> None:
    """Refuse settings that do not go together.

    Raises:
        SettingsError: with the values and what to do.
    """
    values = asdict(settings)
    group = DraftGroup(**{name: value for name, value in values.items() if name in DraftGroup.model_fields})
    check_draft(group, n_ctx=bench.context.n_ctx, n_batch=bench.context.n_batch)


def _texts(choice: CompareChoice, workloads: Sequence[Workload], own: Sequence[Workload]) -> tuple[Workload, ...]:
    from localspec.catalog.workloads import Prompt, Workload, find_workload

    if choice.prompt.strip():
        prompt = Prompt(OWN_PROMPT, "", choice.prompt.strip())
        return (Workload(OWN_PROMPT, "A prompt of your own", "", False, None, (prompt,)),)
    return (*(find_workload(name, tuple(workloads)) for name in choice.workloads), *own)


def _relevant(settings: SpeculationSettings) -> SpeculationSettings:
    plain = SpeculationSettings()
    read = settings_read_by(settings.method, settings.verification)
    # Earlier answers are never copied from while arms are compared: those of the runs before would be the same ones.
    unread = {name: getattr(plain, name) for name in DRAFTING_SETTINGS if name not in read or name == "remembers"}
    return replace(settings, **unread)
