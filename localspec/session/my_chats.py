"""A person's own prompts as workloads: taken from the kept chats, sorted by kind, and never copied anywhere.

A prompt comes with the conversation before it, since "now with types" means nothing alone and answers copy from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from localspec.catalog.workloads import Prompt, Workload
from localspec.engine.values import ContextSettings
from localspec.errors import UsageError
from localspec.session.workload_kind import COPY_HEAVY, KINDS, Classified, Kind, classify
from localspec.store.chats import Chats
from localspec.store.values import StoredChat

PER_KIND: Final = 12
"""Most prompts of a kind that are measured."""

LEAST: Final = 3
"""Fewest prompts that say something about a kind."""

MAX_CHATS: Final = 300
"""The newest ones, so that reading them takes no time to speak of."""

_PREFIX: Final = "my_"
_BYTES_PER_TOKEN: Final = 2
"""Fewer than texts have, so that what is taken fits into the context."""


@dataclass(frozen=True, slots=True)
class OwnPrompt:
    """A question that was asked in a chat."""

    prompt: Prompt
    asked_at: str
    """UTC in ISO 8601."""
    classified: Classified

    @property
    def kind(self) -> Kind:
        """Its workload."""
        return self.classified.kind

    @property
    def chat_id(self) -> int:
        """The chat that it was asked in."""
        return 0 if self.prompt.source is None else self.prompt.source[0]


@dataclass(frozen=True, slots=True)
class OwnPrompts:
    """What the kept chats hold."""

    num_chats: int
    """That were looked at."""
    prompts: tuple[OwnPrompt, ...]
    """That were answered, the newest first, each question once."""
    num_too_long: int = 0
    """Left out since they would not fit into the context."""

    def of_kind(self, kind: Kind) -> tuple[OwnPrompt, ...]:
        """Return the prompts of a kind, the newest first."""
        return tuple(prompt for prompt in self.prompts if prompt.kind == kind)

    @property
    def counts(self) -> dict[Kind, int]:
        """How many there are of each kind that there is, the most frequent first."""
        counts = {kind: len(self.of_kind(kind)) for kind in KINDS}
        return {kind: counts[kind] for kind in sorted(KINDS, key=lambda kind: -counts[kind]) if counts[kind]}


def find_prompts(chats: Chats, context: ContextSettings, max_tokens: int) -> OwnPrompts:
    """Return the prompts of the kept chats, as many turns before each as the context has room for.

    Args:
        chats: the store's.
        context: that they are to fit into.
        max_tokens: of an answer.

    Raises:
        StoreError: the chats cannot be read.
    """
    room = _room(context, max_tokens)
    found: dict[str, OwnPrompt] = {}
    num_too_long = 0
    summaries = chats.summaries(MAX_CHATS)
    for summary in summaries:
        for own in _prompts_of(chats.get(summary.id), room):
            if own is None:
                num_too_long += 1
            elif (known := found.get(own.prompt.user)) is None or known.asked_at < own.asked_at:
                found[own.prompt.user] = own
    newest_first = sorted(found.values(), key=lambda own: (own.asked_at, own.prompt.source), reverse=True)
    return OwnPrompts(len(summaries), tuple(newest_first), num_too_long)


def sampled(prompts: Sequence[OwnPrompt], limit: int = PER_KIND) -> tuple[OwnPrompt, ...]:
    """Return at most `limit` prompts, such that few of them are a fair choice too.

    The chats take turns, so that a long one does not stand for all. Half are the newest; the others are spread evenly
    over what is older, and stand in between, so that every other one of them is a fair choice, too.

    Args:
        prompts: the newest first.
        limit: most to return.
    """
    mixed = _by_turns(prompts)
    if len(mixed) <= limit:
        return tuple(mixed)
    num_newest = math.ceil(limit / 2)
    newest, older = mixed[:num_newest], mixed[num_newest:]
    num_older = limit - num_newest
    spread = [older[at * len(older) // num_older] for at in range(num_older)]
    taken: list[OwnPrompt] = []
    for at in range(num_newest):
        two = (newest[at], *spread[at : at + 1])
        # Turned each time: whoever takes every other prompt gets some of both.
        taken += two if at % 2 == 0 else two[::-1]
    return tuple(taken)


def own_workloads(found: OwnPrompts, per_kind: int = PER_KIND, least: int = LEAST) -> tuple[Workload, ...]:
    """Return a workload for each kind with enough prompts, the most frequent first.

    Raises:
        UsageError: no kind has enough.
    """
    kinds = [kind for kind, count in found.counts.items() if count >= least]
    if not kinds:
        num_prompts = len(found.prompts)
        too_long = f" {found.num_too_long} more are too long for the context." if found.num_too_long else ""
        raise UsageError(
            f"Too few chats: {num_prompts} answered prompt{'' if num_prompts == 1 else 's'} of your own "
            f"{'was' if num_prompts == 1 else 'were'} found, and {least} of one kind are needed.{too_long}",
            "Chat more (what is said with --no-keep is not there), or take one that comes with localspec: --workload.",
        )
    return tuple(
        Workload(
            name=f"{_PREFIX}{kind}",
            title=f"Own chats: {kind}",
            description="Prompts of your own.",
            is_copy_heavy=kind in COPY_HEAVY,
            temperature=None,
            prompts=tuple(own.prompt for own in sampled(found.of_kind(kind), per_kind)),
        )
        for kind in kinds
    )


def found_lines(found: OwnPrompts, workloads: Sequence[Workload]) -> tuple[str, ...]:
    """Return what was found, before anything is measured: how many of each kind, and how many of them are used."""
    used = {kind_of(workload.name): len(workload.prompts) for workload in workloads}
    parts = [f"{kind} {_use(count, used.get(kind, 0))}" for kind, count in found.counts.items()]
    where = f"in {found.num_chats} chat{'' if found.num_chats == 1 else 's'}"
    lines = [f"{len(found.prompts)} prompts of your own {where}: {', '.join(parts)}."]
    if found.num_too_long:
        lines.append(f"{found.num_too_long} more are too long for the context.")
    lines.append("They stay on this machine, and their words are not kept with the run.")
    return tuple(lines)


def kind_of(workload_name: str) -> Kind | None:
    """Return the kind of text that a workload, own or not, is about; None for a prompt from a file."""
    name = workload_name.removeprefix(_PREFIX)
    return next((kind for kind in KINDS if kind == name), None)


def is_own(workload_name: str) -> bool:
    """Return whether a workload is made of a person's own chats."""
    return workload_name.startswith(_PREFIX) and kind_of(workload_name) is not None


def has_own(workloads: Sequence[Workload]) -> bool:
    """Return whether any of the prompts is from a person's chats."""
    return any(prompt.source is not None for workload in workloads for prompt in workload.prompts)


def restored(
    workloads: Sequence[Workload], chats: Chats, context: ContextSettings, max_tokens: int
) -> tuple[Workload, ...]:
    """Return workloads of a kept run with the words of own prompts, which it keeps by number only.

    Raises:
        UsageError: a chat, or a prompt in it, has been deleted.
        StoreError: the chats cannot be read.
    """
    room = _room(context, max_tokens)
    return tuple(
        replace(workload, prompts=tuple(_restored(prompt, chats, room) for prompt in workload.prompts))
        for workload in workloads
    )


def _restored(prompt: Prompt, chats: Chats, room: int) -> Prompt:
    if prompt.source is None:
        return prompt
    chat_id, _ = prompt.source
    try:
        found = [own.prompt for own in _prompts_of(chats.get(chat_id), room) if own is not None]
        return next(item for item in found if item.source == prompt.source)
    except (UsageError, StopIteration):
        raise UsageError(
            f"A prompt of that run is gone: it was in chat {chat_id}.",
            "Measure what is there now, with --my-chats.",
        ) from None


def _prompts_of(chat: StoredChat, room: int) -> Iterator[OwnPrompt | None]:
    """Yield the answered questions of a chat; None for each that is too long."""
    system = chat.models.get("system")
    system = system if isinstance(system, str) else ""
    turns: list[str] = []
    question = None
    for message in chat.messages:
        if message.role == "user":
            question = message
        elif message.role == "assistant" and question is not None and message.content.strip():
            text = question.content.strip()
            left = room - _size(system) - _size(text)
            if text and left >= 0:
                earlier = _latest(turns, left)
                name = f"chat_{chat.summary.id}_{question.id}"
                prompt = Prompt(name, system, text, earlier, (chat.summary.id, question.id))
                classified = classify(text, message.content, "\n".join(earlier))
                yield OwnPrompt(prompt, question.created_at, classified)
            elif text:
                yield None
            turns += [question.content, message.content]
            question = None


def _latest(turns: Sequence[str], room: int) -> tuple[str, ...]:
    """Return the last whole turns, question and answer, that take at most `room` bytes together."""
    start = len(turns)
    while start >= 2 and (size := _size(turns[start - 1]) + _size(turns[start - 2])) <= room:
        room -= size
        start -= 2
    return tuple(turns[start:])


def _by_turns(prompts: Sequence[OwnPrompt]) -> list[OwnPrompt]:
    """Return the prompts such that each chat gives one before any gives two."""
    seen: dict[int, int] = {}
    places = []
    for own in prompts:
        seen[own.chat_id] = place = seen.get(own.chat_id, -1) + 1
        places.append(place)
    # Sorting keeps the order of those with the same place.
    return [own for _, own in sorted(zip(places, prompts, strict=True), key=lambda pair: pair[0])]


def _room(context: ContextSettings, max_tokens: int) -> int:
    """Return how many bytes a prompt may have."""
    return max(0, (context.n_ctx or ContextSettings().n_ctx) - max_tokens) * _BYTES_PER_TOKEN


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _use(count: int, num_used: int) -> str:
    if not num_used:
        return f"{count} (too few)"
    return f"{count}" if num_used == count else f"{count} ({num_used} taken)"
