"""What is to be tuned: texts, draft models and time; and the plan that this makes with what is on the bench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from localspec.errors import UsageError
from localspec.settings import Settings
from localspec.tui.keyed import keyed
from localspec.tui.state import ChosenModel, Workbench

if TYPE_CHECKING:
    from localspec.catalog.workloads import Workload
    from localspec.session.tuning.values import TuningPlan

DEFAULT_WORKLOADS = ("edit", "chat")
DEFAULT_BUDGET = "5m"


@dataclass(frozen=True, slots=True)
class TuneChoice:
    """What the user chose."""

    workloads: tuple[str, ...] = DEFAULT_WORKLOADS
    is_own: bool = False
    """The user's own chats, too."""
    budget: str = DEFAULT_BUDGET
    """Loading included, such as `5m`."""
    drafts: tuple[ChosenModel, ...] | None = None
    """Each is a candidate; None takes the bench's."""


def drafts_of(choice: TuneChoice, bench: Workbench) -> tuple[ChosenModel, ...]:
    """Return the draft models that are candidates."""
    if choice.drafts is not None:
        return choice.drafts
    return () if bench.draft is None else (bench.draft,)


def drafts_words(choice: TuneChoice, bench: Workbench) -> str:
    """Return which draft models are candidates; names may come from files."""
    drafts = drafts_of(choice, bench)
    return ", ".join(draft.name for draft in drafts) if drafts else "no draft model"


def obstacle(choice: TuneChoice, bench: Workbench) -> UsageError | None:
    """Return why this cannot be tuned; None if it can."""
    if bench.target is None:
        return UsageError("No target model is chosen.", keyed("Choose one on the Models screen ({mode.models})."))
    if not choice.workloads and not choice.is_own:
        return UsageError("There is no text to tune for.", keyed("Choose a workload ({tune.edit})."))
    return None


def make_plan(
    choice: TuneChoice,
    bench: Workbench,
    settings: Settings,
    workloads: Sequence[Workload],
    own: Sequence[Workload] = (),
) -> TuningPlan:
    """Return the plan.

    Args:
        choice: the user's.
        bench: the models, and how they are loaded.
        settings: in force.
        workloads: all that come with localspec.
        own: made of the user's chats.

    Raises:
        UsageError: this cannot be tuned, or the budget is no time.
    """
    from localspec.catalog.workloads import find_workload
    from localspec.session.loading import reserve_bytes
    from localspec.session.tuning.budget import parse_budget
    from localspec.session.tuning.values import TuningPlan

    refusal = obstacle(choice, bench)
    if refusal is not None:
        raise refusal
    if bench.target is None:
        raise UsageError("No target model is chosen.")
    return TuningPlan(
        target=bench.target.path,
        drafts=tuple(dict.fromkeys(draft.path for draft in drafts_of(choice, bench))),
        context=bench.context,
        draft_context=bench.draft_context,
        speculation=replace(bench.speculation, method="off", remembers=False),
        workloads=(*(find_workload(name, tuple(workloads)) for name in choice.workloads), *own),
        sampling=bench.sampling,
        budget_s=parse_budget(choice.budget),
        is_temperature_fixed=bench.sampling.temperature != settings.sampling.temperature,
        max_tokens=settings.bench.max_tokens,
        with_hashes=True,
        reserve_bytes=reserve_bytes(settings),
        is_forced=bench.is_forced,
    )
