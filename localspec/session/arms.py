"""What a comparison runs: arms, and prompts to run them on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from localspec.catalog.workloads import Prompt, Workload
from localspec.engine.requests import Generate
from localspec.engine.values import Message, Method, SamplingSettings, SpeculationSettings
from localspec.errors import UsageError
from localspec.methods import needs_draft, settings_read_by

BASELINE_NAME = "off"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of generating: without drafts (the baseline), or with a drafter and its settings."""

    name: str
    speculation: SpeculationSettings

    @property
    def is_baseline(self) -> bool:
        """Whether this arm drafts nothing."""
        return self.speculation.method == "off"


@dataclass(frozen=True, slots=True)
class PromptCase:
    """One prompt: a conversation, or a raw text, or token ids; the first that is given counts."""

    name: str
    messages: tuple[Message, ...] = ()
    text: str | None = None
    tokens: tuple[int, ...] | None = None

    def request(self, request_id: int, sampling: SamplingSettings, max_tokens: int, ignore_eog: bool) -> Generate:
        """Return the request that reads the whole prompt anew and answers it."""
        return Generate(
            id=request_id,
            messages=self.messages,
            text=self.text,
            tokens=self.tokens,
            sampling=sampling,
            max_tokens=max_tokens,
            ignore_eog=ignore_eog,
            is_fresh=True,
        )


def build_arms(methods: Sequence[Method], settings: SpeculationSettings) -> tuple[Arm, ...]:
    """Return the baseline and an arm for each other method, in the order given; one named twice counts once."""
    return arms_from_settings([replace(settings, method=method) for method in methods])


def arms_from_settings(settings: Sequence[SpeculationSettings]) -> tuple[Arm, ...]:
    """Return the baseline and an arm for each of the settings that drafts.

    Arms of one method are told apart by n_max in their names, and by whatever else differs where that does not do.
    """
    speculative = list(dict.fromkeys(item for item in settings if item.method != "off"))
    baseline = next((item for item in settings if item.method == "off"), SpeculationSettings(method="off"))
    arms = [Arm(BASELINE_NAME, baseline)]
    for item in speculative:
        rivals = [other for other in speculative if other.method == item.method and other != item]
        name: str = item.method
        if rivals:
            name += f" n_max {item.n_max}"
        if namesakes := [other for other in rivals if other.n_max == item.n_max]:
            name += _difference(item, namesakes)
        num_namesakes = sum(arm.name == name or arm.name.startswith(f"{name} #") for arm in arms)
        arms.append(Arm(f"{name} #{num_namesakes + 1}" if num_namesakes else name, item))
    return tuple(arms)


def _difference(item: SpeculationSettings, others: Sequence[SpeculationSettings]) -> str:
    names = [*settings_read_by(item.method, item.verification), "draft_temperature"]
    differing = [name for name in dict.fromkeys(names) if any(getattr(o, name) != getattr(item, name) for o in others)]
    return "".join(f" {_value(name, getattr(item, name))}" for name in differing)


def _value(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name} {value:g}" if isinstance(value, int | float) else f"{value}"


def prompt_case(prompt: Prompt) -> PromptCase:
    """Return a workload's prompt as a conversation."""
    system = (Message("system", prompt.system),) if prompt.system else ()
    earlier = (Message("assistant" if at % 2 else "user", text) for at, text in enumerate(prompt.earlier))
    return PromptCase(prompt.name, (*system, *earlier, Message("user", prompt.user)))


def prompt_cases(workload: Workload) -> tuple[PromptCase, ...]:
    """Return a workload's prompts as conversations."""
    return tuple(prompt_case(prompt) for prompt in workload.prompts)


def check_methods(methods: Sequence[str], draft: str | None) -> None:
    """Refuse methods that need a draft model where none is named.

    Raises:
        UsageError: with what to do.
    """
    if needs_draft(methods) and draft is None:
        which = "Drafting with a model" if "draft" in methods else "A cascade"
        raise UsageError(f"{which} needs a model.", "Give one with --draft MODEL, or use --method ngram.")


def check_arms(arms: Sequence[Arm]) -> None:
    """Refuse arms that cannot be compared.

    Raises:
        UsageError: there is not exactly one baseline, it is not first, or two arms have one name.
    """
    if not arms or not arms[0].is_baseline or sum(arm.is_baseline for arm in arms) != 1:
        raise UsageError("A comparison needs one arm with speculation off, and that one first.", "Add the method off.")
    names = [arm.name for arm in arms]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"Two arms are called {name!r}.", "Give each arm a name of its own.")
