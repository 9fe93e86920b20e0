"""A chat as a Markdown document or as JSON, to carry it elsewhere."""

from __future__ import annotations

import re

from localspec.session.figures import DASH
from localspec.session.kept_answer import kept_line
from localspec.session.plain_text import one_line, printable
from localspec.store.values import Record, StoredChat, StoredMessage

SCHEMA = 1

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def chat_markdown(chat: StoredChat) -> str:
    """Return a chat as Markdown. What was said stands there as it is, code blocks included.

    Left out are control characters and marks that reorder text, since such a file is shown by anything.
    """
    summary = chat.summary
    parts = [f"# {_escaped(summary.title) or DASH}", _facts(chat)]
    system = chat.models.get("system")
    if isinstance(system, str) and system:
        parts += ["## System", _closed(printable(system))]
    for message in chat.messages:
        parts += [f"## {_speaker(message)}", _closed(printable(message.content))]
        if line := kept_line(message) if message.role == "assistant" else "":
            parts.append(f"*{_escaped(line)}*")
    return "\n\n".join(part for part in parts if part) + "\n"


def chat_record(chat: StoredChat) -> Record:
    """Return a chat as JSON has it: everything as it is kept, figures included."""
    summary = chat.summary
    return {
        "schema": SCHEMA,
        "id": summary.id,
        "title": summary.title,
        "created_at": summary.created_at,
        "updated_at": summary.updated_at,
        "models": chat.models,
        "messages": [
            {
                "role": message.role,
                "content": message.content,
                "created_at": message.created_at,
                "finish_reason": message.finish_reason or None,
                "figures": message.figures,
            }
            for message in chat.messages
        ],
    }


def model_names(chat: StoredChat) -> tuple[str, str]:
    """Return the names of target and draft; empty for none."""
    names = []
    for role in ("target", "draft"):
        entry = chat.models.get(role)
        names.append(one_line(str(entry.get("name") or "")) if isinstance(entry, dict) else "")
    return names[0], names[1]


def _facts(chat: StoredChat) -> str:
    target, draft = model_names(chat)
    lines = []
    if chat.summary.created_at:
        lines.append(f"- Begun: {_escaped(chat.summary.created_at)}")
    if target:
        lines.append(f"- Target: {_escaped(target)}")
    if draft:
        lines.append(f"- Draft: {_escaped(draft)}")
    return "\n".join(lines)


def _speaker(message: StoredMessage) -> str:
    return {"user": "Question", "assistant": "Answer"}.get(message.role, "System")


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|!~&])", r"\\\1", one_line(text))


def _closed(text: str) -> str:
    """Return a text whose last code block is closed: one that was cut short would swallow what follows."""
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.fullmatch(line)
        if match is None:
            continue
        marks, rest = match.groups()
        if not fence:
            # Behind backticks that open a block there are no others.
            fence = marks if marks[0] == "~" or "`" not in rest else ""
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip():
            fence = ""
    return f"{text.rstrip()}\n{fence}" if fence else text.rstrip()
