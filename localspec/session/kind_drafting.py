"""A conversation that drafts as its profile says for each kind of text; each question is classified first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from localspec.engine.values import SpeculationSettings
from localspec.session.conversation import Conversation
from localspec.session.workload_kind import classify
from localspec.settings import DraftGroup

_NUM_EARLIER = 2
"""Messages before a prompt that it may refer to: the last question with its answer."""


def settings_by_kind(by_workload: Mapping[str, DraftGroup]) -> dict[str, SpeculationSettings]:
    """Return a profile's settings by kind as the engine takes them."""
    placement = {"n_ctx", "n_gpu_layers", "type_k", "type_v"}
    return {kind: SpeculationSettings(**group.model_dump(exclude=placement)) for kind, group in by_workload.items()}


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
        earlier = "\n".join(message.content for message in conversation.messages[-_NUM_EARLIER:])
        self.kind = classify(text, earlier=earlier).kind
        # Whether answers are kept is the person's choice, and no part of a way of drafting.
        wanted = replace(self._by_kind.get(self.kind, usual), remembers=usual.remembers)
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
