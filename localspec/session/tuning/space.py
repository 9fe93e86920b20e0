"""Which ways of drafting there are to try, how they follow from what an optimiser chooses, and which are simpler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, TypeVar

from localspec.engine.values import Method, PacingKind, SpeculationSettings, Verification
from localspec.methods import AUTO_N_MAX, needs_draft, takes_draft
from localspec.session.drafting_text import settings_phrase
from localspec.session.tuning.values import HeatCell, TuningTrial, WarmSetting

N_MAX: Final = (1, 2, 3, 4, 6, 8, 12, 16)
P_MIN: Final = (0.0, 0.3, 0.5, 0.7, 0.85)
_ORDER: Final[tuple[Method, ...]] = ("auto", "draft", "suffix", "ngram", "cascade")
_PACINGS: Final[tuple[PacingKind, ...]] = ("fixed", "adaptive")
_VERIFICATIONS: Final[tuple[Verification, ...]] = ("exact", "rejection", "block")


_Name = TypeVar("_Name", bound=str)


class Chooser(Protocol):
    """What chooses a value by name; an optimiser's trial."""

    def suggest_int(self, name: str, low: int, high: int) -> int:
        """Return a whole number from low to high."""

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """Return one of the choices."""


@dataclass(frozen=True, slots=True)
class Space:
    """All ways of drafting that are to be searched."""

    drafts: tuple[Path, ...]
    is_hot: bool
    """At a temperature ways of verification differ."""
    base: SpeculationSettings
    """For what is not searched."""
    wanted: tuple[Method, ...] = ()
    """Empty for all."""

    @property
    def methods(self) -> tuple[Method, ...]:
        """What can be searched here; `auto` is always among it."""
        possible = [name for name in _ORDER if self.drafts or not needs_draft((name,))]
        return tuple(name for name in possible if not self.wanted or name in self.wanted or name == "auto")

    def choose(self, chooser: Chooser) -> WarmSetting:
        """Return the setting that a chooser's values make up."""
        method = _named(self.methods, chooser.suggest_categorical("method", self.methods))
        draft, verification = self._draft(method, chooser), self._verification(method, chooser)
        if method == "auto":
            return self._made(method, draft, verification, AUTO_N_MAX, 0.0, "fixed")
        pacing = _named(_PACINGS, chooser.suggest_categorical(f"{method}.pacing", _PACINGS))
        if pacing == "adaptive":
            return self._made(method, draft, verification, AUTO_N_MAX, 0.0, pacing)
        n_max = N_MAX[chooser.suggest_int(f"{method}.n_max", 0, len(N_MAX) - 1)]
        p_min = 0.0
        if takes_draft((method,)):
            p_min = P_MIN[chooser.suggest_int(f"{method}.p_min", 0, len(P_MIN) - 1)]
        return self._made(method, draft, verification, n_max, p_min, pacing)

    def values_of(self, setting: WarmSetting) -> dict[str, int | str]:
        """Return the values that make a chooser choose a setting."""
        given, method = setting.speculation, setting.speculation.method
        values: dict[str, int | str] = {"method": method}
        if setting.draft is not None:
            if len(self.drafts) > 1:
                values["draft"] = self.drafts.index(setting.draft)
            if self.is_hot:
                values[f"{method}.verification"] = given.verification
        if method != "auto":
            values[f"{method}.pacing"] = given.pacing
            if given.pacing == "fixed":
                values[f"{method}.n_max"] = N_MAX.index(given.n_max)
                if takes_draft((method,)):
                    values[f"{method}.p_min"] = P_MIN.index(given.p_min)
        return values

    def seeds(self, best_length: int) -> tuple[WarmSetting, ...]:
        """Return what is tried first, likely winners before others.

        Args:
            best_length: of a model's draft, as what steps cost here would have it; taken to the next in N_MAX.
        """
        length = min(N_MAX, key=lambda n: abs(n - best_length))
        usual = self._usual(length)
        first = [settings[0] for settings in usual.values()]
        rest = [setting for settings in usual.values() for setting in settings[1:]]
        return tuple(dict.fromkeys([*first, *rest]))

    def _usual(self, length: int) -> dict[Method, list[WarmSetting]]:
        first = self.drafts[0] if self.drafts else None
        verification: Verification = "block" if self.is_hot and self.drafts else self.base.verification
        made: dict[Method, list[WarmSetting]] = {}
        for method in self.methods:
            if method == "auto":
                made[method] = [
                    self._made(method, draft, verification, AUTO_N_MAX, 0.0, "fixed")
                    for draft in self.drafts or (None,)
                ]
            elif method in ("ngram", "suffix"):
                lengths = (8, 4) if method == "suffix" else (4, 8)
                made[method] = [self._made(method, None, "exact", n, 0.0, "fixed") for n in lengths]
            else:
                made[method] = [
                    self._made(method, draft, verification, length, 0.0, "fixed") for draft in self.drafts
                ] + [
                    self._made(method, first, verification, min(2 * length, 16) if length != 6 else 12, 0.5, "fixed"),
                    self._made(method, first, "exact", max(1, length // 2) if length != 6 else 3, 0.0, "fixed"),
                    self._made(method, first, verification, AUTO_N_MAX, 0.0, "adaptive"),
                ]
        return made

    def _draft(self, method: Method, chooser: Chooser) -> Path | None:
        if not self.drafts or not takes_draft((method,)):
            return None
        return self.drafts[chooser.suggest_int("draft", 0, len(self.drafts) - 1)] if self.drafts[1:] else self.drafts[0]

    def _verification(self, method: Method, chooser: Chooser) -> Verification:
        if not self.is_hot or not self.drafts or not takes_draft((method,)):
            return "exact"
        return _named(_VERIFICATIONS, chooser.suggest_categorical(f"{method}.verification", _VERIFICATIONS))

    def _made(
        self,
        method: Method,
        draft: Path | None,
        verification: Verification,
        n_max: int,
        p_min: float,
        pacing: PacingKind,
    ) -> WarmSetting:
        made = replace(
            self.base,
            method=method,
            n_max=n_max,
            n_min=min(self.base.n_min, n_max),
            p_min=p_min,
            pacing=pacing,
            verification=verification if draft is not None else "exact",
            remembers=False,
        )
        return WarmSetting(made, draft)


def complexity(setting: WarmSetting) -> tuple[int, ...]:
    """Return what simpler settings have less of: a model to load, then another text, then numbers that fit this text
    only, then what is drafted in vain."""
    given = setting.speculation
    return (
        int(setting.draft is not None),
        int(given.verification != "exact"),
        int(given.method != "auto"),
        int(given.method == "cascade"),
        int(given.p_min > 0.0),
        int(given.pacing == "adaptive"),
        given.n_max,
    )


def setting_name(setting: WarmSetting, drafts: Sequence[Path] = ()) -> str:
    """Return a setting in words, such as `draft n_max 4, p_min 0.5`, with the draft's file where there are several.

    File names are not markup, and may hold anything.
    """
    phrase = settings_phrase(setting.speculation)
    return f"{phrase}, {setting.draft.name}" if setting.draft is not None and len(drafts) > 1 else phrase


def heat_cells(trials: Sequence[TuningTrial]) -> tuple[HeatCell, ...]:
    """Return the map n_max x p_min: the best that drafting with a model at fixed length has reached in each cell."""
    cells: dict[tuple[int, float], HeatCell] = {}
    for trial in trials:
        given, ratio = trial.setting.speculation, trial.ratio
        if given.method != "draft" or given.pacing != "fixed" or ratio is None:
            continue
        place = (given.n_max, given.p_min)
        if place not in cells or ratio > cells[place].ratio:
            cells[place] = HeatCell(*place, ratio, trial.num_pairs)
    return tuple(cells[place] for place in sorted(cells))


def _named(names: Sequence[_Name], name: str) -> _Name:
    return next(one for one in names if one == name)
