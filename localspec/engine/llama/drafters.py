"""Which drafter the settings name, with what is loaded, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from localspec.engine.adaptive_pacing import is_adaptive
from localspec.engine.drafting.cascade import CascadeDrafter
from localspec.engine.drafting.draft_model import DraftModelDrafter
from localspec.engine.drafting.drafter import Drafter
from localspec.engine.drafting.ngram import NgramDrafter
from localspec.engine.drafting.remembered import AT_ONCE, RememberedAnswers, answers_file
from localspec.engine.drafting.suffix import SuffixDrafter
from localspec.engine.llama.drawn_draft import DrawnDraft
from localspec.engine.llama.loading import LoadedModel
from localspec.engine.values import Method, SpeculationSettings

_USE_SUFFIXES: tuple[Method, ...] = ("suffix", "cascade", "auto")
_USE_DRAFT: tuple[Method, ...] = ("draft", "cascade", "auto")
_AUTO_P_MIN = 0.1
"""Adaptive pacing cuts drafts where they stop paying here, so they should not end much before."""
_LONGEST_WAIT_S = 0.3
"""For the index of earlier answers."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """A drafter and those of its parts that are told of more than tokens."""

    drafter: Drafter | None = None
    reason: str = ""
    """Why there is none; empty when there is one."""
    drawn_draft: DrawnDraft | None = None
    suffix: SuffixDrafter | None = None

    @property
    def name(self) -> str:
        """The drafter's; empty where there is none."""
        return self.drafter.name if self.drafter is not None else ""

    def end_answer(self) -> None:
        """Hear that an answer is complete."""
        if self.suffix is not None:
            self.suffix.keep_answer()

    def close(self) -> None:
        """Close the drafter; its models stay."""
        if self.drafter is not None:
            self.drafter.close()


class EarlierAnswers:
    """Opens the answers of a vocabulary, and keeps the last ones open.

    Many are indexed beside what goes on. A start waits for that a little, so that what is measured next is measured in
    quiet, but no longer.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        """Take where the folder is looked for."""
        self._folder = folder
        self._path: Path | None = None
        self._answers: RememberedAnswers | None = None

    def of(self, vocabulary_fingerprint: str) -> RememberedAnswers | None:
        """Return the answers of a vocabulary, or None for one without a fingerprint."""
        path = answers_file(self._folder(), vocabulary_fingerprint)
        if path is None:
            return None
        if self._answers is None or path != self._path:
            self._path, self._answers = path, RememberedAnswers(path, at_once=AT_ONCE)
            self._answers.wait(_LONGEST_WAIT_S)
        return self._answers


def choose_drafter(
    settings: SpeculationSettings,
    target: LoadedModel,
    draft: LoadedModel | None,
    draft_failure: str,
    earlier: EarlierAnswers,
) -> Drafting:
    """Make the drafter that the settings name, or say why there is none.

    Args:
        settings: method and its values.
        target: what is drafted for.
        draft: a draft model that goes with it.
        draft_failure: why a wanted draft model is not there.
        earlier: where answers are kept, if the settings ask for that.
    """
    method = settings.method
    if method == "off":
        return Drafting(reason="switched off")
    if not target.can_roll_back:
        return Drafting(
            reason=f"{target.model.name} cannot take back rejected tokens: its memory is recurrent "
            "and holds no earlier state"
        )
    if method == "ngram":
        return Drafting(NgramDrafter(settings.ngram_min, settings.ngram_max))
    if draft is None and method in ("draft", "cascade"):
        return Drafting(reason=draft_failure or "no draft model is loaded")
    suffix = _suffix(settings, target, earlier) if method in _USE_SUFFIXES else None
    drawn = _drawn(settings, draft) if draft is not None and method in _USE_DRAFT else None
    if suffix is None:
        return Drafting(drawn.drafter if drawn is not None else None, drawn_draft=drawn)
    if drawn is None:
        return Drafting(suffix, suffix=suffix)
    members = (suffix, drawn.drafter)
    cascade = CascadeDrafter(members, settings.n_min, keeps_record=not is_adaptive(settings))
    return Drafting(cascade, drawn_draft=drawn, suffix=suffix)


def _suffix(settings: SpeculationSettings, target: LoadedModel, earlier: EarlierAnswers) -> SuffixDrafter:
    if settings.method == "auto" or settings.pacing == "adaptive":
        settings = replace(settings, suffix_p_min=min(settings.suffix_p_min, _AUTO_P_MIN))
    answers = earlier.of(target.model.header.vocabulary_fingerprint) if settings.remembers else None
    return SuffixDrafter(settings.suffix_factor, settings.suffix_p_min, answers)


def _drawn(settings: SpeculationSettings, draft: LoadedModel) -> DrawnDraft:
    # The file's name: general.name is often long, and the same for every quantisation.
    name = f"draft {Path(draft.model.header.path).stem}"
    return DrawnDraft(DraftModelDrafter(draft.context, name, settings.p_min), draft.context)
