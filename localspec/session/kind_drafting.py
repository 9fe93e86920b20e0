"""A conversation that drafts as its profile says for each kind of text; each question is classified first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from localspec.engine.values import SpeculationSettings
from localspec.session.conversation import Conversation
from localspec.session.workload_kind import classify
from localspec.settings import DraftGroup

_NUM_EARLIER = 2
"""Messages before a prompt that it may refer to: the last question with its answer."""


def drafting_of(group: DraftGroup) -> SpeculationSettings:
    """Return a draft group as the engine takes it, without how the draft model is loaded."""
    names = {field.name for field in fields(SpeculationSettings)}
    return SpeculationSettings(**group.model_dump(include=names))


def settings_by_kind(by_workload: Mapping[str, DraftGroup]) -> dict[str, SpeculationSettings]:
    """Return a profile's settings by kind as the engine takes them."""
    return {kind: drafting_of(group) for kind, group in by_workload.items()}


def wanted_for(
    by_kind: Mapping[str, SpeculationSettings], question: str, earlier: Sequence[str], usual: SpeculationSettings
) -> tuple[str, SpeculationSettings]:
    """Return the kind of a question, and how to draft for it.

    Args:
        by_kind: what to use for which kind of text.
        question: just asked.
        earlier: messages before it, the last one at the end.
        usual: for kinds that have no setting of their own.
    """
    kind = classify(question, earlier="\n".join(earlier[-_NUM_EARLIER:])).kind
    # Whether answers are kept is the person's choice, and no part of a way of drafting.
    return kind, replace(by_kind.get(kind, usual), remembers=usual.remembers)


class KindDrafting:
    """Switches a conversation's way of drafting before each answer.

    Args:
        by_kind: what to use for which kind of text; empty switches nothing.
    """

    def __init__(self, by_kind: Mapping[str, SpeculationSettings]) -> None:
        self._by_kind = dict(by_kind)
        self._in_force: SpeculationSettings | None = None
        self._is_known = True
        self.kind = ""
        """Of the last question; empty where nothing depends on it."""

    @property
    def is_used(self) -> bool:
        """Whether anything depends on the kind of text."""
        return bool(self._by_kind)

    def forget(self) -> None:
        """Take note that what is usual is in force: the models were loaded anew, or somebody has put it there."""
        self._in_force, self._is_known = None, True

    def give_up(self) -> None:
        """Switch nothing any more: a person has chosen how to draft."""
        self._by_kind, self.kind = {}, ""

    async def prepare(self, conversation: Conversation, text: str, usual: SpeculationSettings) -> str:
        """Put in force what is best for a question, and note its kind.

        Args:
            conversation: that it will be asked in.
            text: the question.
            usual: for kinds that have no setting of their own.

        Returns:
            Why the setting for this kind could not be used, once; empty if it is. What was in force is so still.

        Raises:
            LocalspecError: the engine refused to switch at all.
        """
        if not self._by_kind:
            return ""
        earlier = [message.content for message in conversation.messages]
        self.kind, wanted = wanted_for(self._by_kind, text, earlier, usual)
        before = self._in_force or usual
        if wanted == before and self._is_known:
            return ""
        # Whoever breaks this off leaves open which one is in force.
        self._is_known = False
        _, refused = await conversation.try_out(wanted, before)
        if refused:
            self._by_kind[self.kind] = usual
        self._in_force, self._is_known = before if refused else wanted, True
        return refused
