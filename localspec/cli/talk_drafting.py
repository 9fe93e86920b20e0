"""How a chat drafts: what its commands may change, and what is learnt meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from localspec.engine.values import Method, SpeculationSettings
from localspec.methods import METHODS, PACINGS, VERIFICATIONS
from localspec.session.loading import speculation_settings
from localspec.settings import Settings

CHOICES: Mapping[str, tuple[str, ...]] = {"method": METHODS, "pacing": PACINGS, "verification": VERIFICATIONS}
"""What each command takes."""

HELP = """\
/on           draft again, in the way that was last in use
/off          draft nothing
/method NAME  off, draft, ngram, suffix, cascade or auto
/pacing KIND  fixed: n_max tokens in each round; adaptive: as many as pay
/verification RULE  exact, rejection or block: which drafts stay at a temperature
/forget       what adaptive drafting has learnt with these models"""


class DraftingChoice:
    """The way of drafting that a chat has chosen, and the one to go back to after /off."""

    def __init__(self, settings: Settings, method: Method) -> None:
        self.settings = settings
        self.method = method
        self.last_method: Method = method if method != "off" else "auto"

    @property
    def speculation(self) -> SpeculationSettings:
        """As the engine takes it."""
        return speculation_settings(self.settings, self.method)

    def changed(self, what: str, value: str) -> DraftingChoice:
        """Return the choice with a method, a pacing or a verification changed; the value is one of CHOICES."""
        other = DraftingChoice(self.settings, self.method)
        other.last_method = self.last_method
        if what == "method":
            other.method = next(method for method in METHODS if method == value)
        else:
            draft = self.settings.draft.model_copy(update={what: value})
            other.settings = self.settings.model_copy(update={"draft": draft})
        if other.method != "off":
            other.last_method = other.method
        return other

    def now(self, what: str) -> str:
        """Return what is chosen now."""
        return self.method if what == "method" else str(getattr(self.settings.draft, what))


def remark(what: str, choice: DraftingChoice) -> str:
    """Return why a choice that was just made makes no difference; empty where it makes one."""
    if what == "pacing":
        return paced_remark((choice.method,), choice.settings.draft.pacing)
    is_certain = choice.settings.sampling.temperature <= 0.0
    if what == "verification" and choice.settings.draft.verification != "exact" and is_certain:
        return f"At temperature 0, {choice.settings.draft.verification} makes no difference."
    return ""


def paced_remark(methods: Iterable[str], pacing: object) -> str:
    """Return that `auto` takes no notice of fixed pacing; empty where that does not matter."""
    return "auto is always adaptive." if pacing == "fixed" and "auto" in methods else ""


def usage(what: str, now: str) -> str:
    """Return what a command takes."""
    *first, last = CHOICES[what]
    return f"/{what} takes {', '.join(first)} or {last}; now it is {now}."
