"""Chats in a store of the test's own, and who types at the command line."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localspec.engine.requests import Generate
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import StoredChat
from tests.scripted_engine import EchoEngine

HOSTILE = "[/] [bold]x[/bold] \x1b[31mred \u202eabc \ud83d \x00 end"


Command = Callable[..., tuple[int, str, str]]


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


def put(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def kept(store: Path, chat_id: int = 1) -> StoredChat:
    with Database(store) as database:
        return Chats(database).get(chat_id)


def put_chat(store: Path, *contents: str, title: str = "title", models: dict[str, Any] | None = None) -> int:
    """Keep a chat of questions and answers by turns, as if it had been had."""
    with Database(store) as database:
        chats = Chats(database)
        chat_id = chats.start(title, {"target": {"name": title}, **(models or {})})
        for index, content in enumerate(contents):
            if index % 2:
                figures = {"tokens": 3, "decode_tps": 12.5, "ttft_s": 0.25, "is_on": False, "reason": title}
                chats.add_message(chat_id, "assistant", content, "cancelled", figures)
            else:
                chats.add_message(chat_id, "user", content)
        return chat_id


def asked(engine: EchoEngine) -> list[list[str]]:
    return [
        [message.content for message in request.messages]
        for request in engine.requests
        if isinstance(request, Generate)
    ]
