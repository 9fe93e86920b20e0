"""What is kept of a chat beside its words: title, models and settings, and figures of each answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from localspec.catalog.found_model import FoundModel
from localspec.engine.values import Message, Method
from localspec.session.conversation import Answer
from localspec.session.hashing import remembered_sha256
from localspec.session.trial_record import drafters_record
from localspec.settings import Flags, Settings
from localspec.store.values import ChatSummary, Record, StoredChat, StoredMessage

MAX_TITLE = 60
"""Characters of a title that is made of a question."""

MAX_OWN_TITLE = 200

_GROUPS = ("draft", "sampling", "context")
_NOT_OF_A_CHAT = ("method", "remembers")


def title_of(question: str) -> str:
    """Return the first question as a title: one line of at most MAX_TITLE characters, whatever they are."""
    line = " ".join(question.split())
    if len(line) <= MAX_TITLE:
        return line
    cut = line[: MAX_TITLE - 1]
    words = cut.rpartition(" ")[0]
    # A cut between words reads better, unless it costs most of the title.
    return f"{(words if len(words) > MAX_TITLE // 2 else cut).rstrip()}…"


def tidy_title(title: str) -> str:
    """Return a title that a person chose, on one line and not without end."""
    return " ".join(title.split())[:MAX_OWN_TITLE]


def models_record(
    target: FoundModel, draft: FoundModel | None, settings: Settings, method: Method, system: str, max_tokens: int
) -> Record:
    """Return models and settings of a chat, enough to load them again.

    Keys target and draft ({name, path, sha256, repo, quantisation, size_bytes} or null; sha256 only if it was known
    already), method, settings (the groups draft, sampling and context as wished for), system, max_tokens.
    """
    groups: Record = {name: getattr(settings, name).model_dump(mode="json") for name in _GROUPS}
    # The way of drafting is a matter of the chat, which may switch it at any time; what is kept for later, of the user.
    for name in _NOT_OF_A_CHAT:
        del groups["draft"][name]
    return {
        "target": _model_record(target),
        "draft": None if draft is None else _model_record(draft),
        "method": method,
        "settings": groups,
        "system": system,
        "max_tokens": max_tokens,
    }


def kept_flags(models: Record) -> Flags:
    """Return the settings of a chat's record as the flags that bring them back, but for those of other versions."""
    kept = models.get("settings")
    groups = kept if isinstance(kept, dict) else {}
    flags: dict[str, dict[str, object]] = {}
    for name in _GROUPS:
        group = groups.get(name)
        known = type(Settings.model_fields[name].default).model_fields
        values = group.items() if isinstance(group, dict) else ()
        flags[name] = {key: value for key, value in values if key in known and key not in _NOT_OF_A_CHAT}
    return flags


def merged_flags(first: Flags, second: Flags) -> Flags:
    """Return flags in which the first wins wherever it says something."""
    names = dict.fromkeys((*first, *second))
    return {
        name: {
            **second.get(name, {}),
            **{key: value for key, value in first.get(name, {}).items() if value is not None},
        }
        for name in names
    }


def figures_record(answer: Answer) -> Record:
    """Return an answer's figures: counts, rates per second, times in seconds; null where there is none."""
    stats, state = answer.stats, answer.speculation
    return {
        "tokens": stats.num_tokens,
        "decode_tps": answer.latency.decode_tps,
        "ttft_s": answer.latency.ttft_s,
        "acceptance_rate": stats.acceptance_rate,
        "mean_accepted_length": stats.mean_accepted_length,
        "is_on": None if state is None else state.is_on,
        "method": None if state is None else state.method,
        "drafter": None if state is None else state.drafter,
        "n_max": None if state is None else state.settings.n_max,
        "pacing": None if state is None else state.settings.pacing,
        "verification": None if state is None else state.settings.verification,
        "resting_share": stats.pacing.resting_share,
        "by_drafter": drafters_record(stats),
        "reason": None if state is None else state.reason,
    }


def turns_of(messages: Sequence[StoredMessage]) -> tuple[Message, ...]:
    """Return the questions that were answered, with their answers: what a conversation goes on with.

    Chat templates want the two by turns, so a question without an answer is left out.
    """
    turns: list[Message] = []
    question: StoredMessage | None = None
    for message in messages:
        if message.role == "user":
            question = message
        elif message.role == "assistant" and question is not None and message.content:
            turns += [Message("user", question.content), Message("assistant", message.content)]
            question = None
    return tuple(turns)


def unkept_chat(models: Record, messages: Sequence[Message]) -> StoredChat:
    """Return a conversation that is not in the store as a chat: without number, times and figures."""
    turns = [message for message in messages if message.role != "system"]
    title = title_of(turns[0].content) if turns else ""
    target = models["target"]["name"]
    return StoredChat(
        summary=ChatSummary(0, title, "", "", target, len(turns)),
        models=models,
        messages=tuple(StoredMessage(0, message.role, message.content, "", "", None) for message in turns),
    )


def _model_record(found: FoundModel) -> Record:
    return {
        "name": found.name,
        "path": os.path.abspath(found.path),
        "sha256": remembered_sha256(Path(found.path)) or None,
        "repo": found.repo or None,
        "quantisation": found.quantisation or None,
        "size_bytes": found.file_bytes,
    }
