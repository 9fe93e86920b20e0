"""Turns of a chat for tests."""

from __future__ import annotations

from localspec.session.answer_line import AnswerFigures
from localspec.tui.chat_fold import ChatTurn


def turn_of(text: str, question: str = "?") -> ChatTurn:
    """Return a question that was answered with a text."""
    return ChatTurn(question, text, AnswerFigures())
