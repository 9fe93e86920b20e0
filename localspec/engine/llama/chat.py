"""Conversations in the model's own format."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import jinja2
import llama_cpp.llama_cpp as C
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.limit import OutOfTime, run_limited
from localspec.engine.llama.vocabulary import Vocabulary
from localspec.engine.model import Cancelled
from localspec.engine.values import Message
from localspec.errors import TemplateError, UsageError

_LIMIT_S = 2.0
_OTHER_FILE = "Use another file of this model, or bench it with raw text (--prompt)."
_FALLBACK_ROLES = {"system": "System", "user": "User", "assistant": "Assistant"}


class ChatFormat:
    """The file's Jinja template, run in Jinja's immutable sandbox; or a plain transcript when it has none.

    The fallback writes `User: ...` and `Assistant: ...` paragraphs and leaves the last one open. It is stated in
    ModelInfo.template, since a model without a template was most likely not trained for conversations.
    """

    def __init__(self, model: Any, vocabulary: Vocabulary, abort: AbortFlag) -> None:
        """Read the template of a loaded model.

        Args:
            model: llama.cpp's model pointer.
            vocabulary: the model's.
            abort: stops a template that runs on and on.

        Raises:
            TemplateError: it is not Jinja.
        """
        template = (C.llama_model_chat_template(model, None) or b"").decode("utf-8", "replace")
        self.source: Literal["file", "fallback"] = "file" if template.strip() else "fallback"
        self._bos_text = _special_text(vocabulary, vocabulary.bos)
        self._abort = abort
        self._formatter: Any = None
        if self.source == "file":
            try:
                self._formatter = Jinja2ChatFormatter(
                    template=template, bos_token=self._bos_text, eos_token=_special_text(vocabulary, vocabulary.eos)
                )
            except (jinja2.TemplateError, RecursionError, MemoryError) as error:
                raise TemplateError(
                    f"The model file's chat template is not valid: {error}",
                    _OTHER_FILE,
                ) from None

    @property
    def stop(self) -> tuple[str, ...]:
        """Strings that end an answer besides end tokens: with the fallback, the model playing the user."""
        return () if self.source == "file" else ("\nUser:",)

    def render(self, messages: Sequence[Message]) -> str:
        """Return the prompt of a conversation, open for the assistant's answer.

        Raises:
            UsageError: the conversation is empty.
            TemplateError: the template objects, for example to a system message or to two user turns in a row, or
                does not come to an end.
            Cancelled: an abort was asked for.
        """
        if not messages:
            raise UsageError("The conversation is empty.", "Give at least one message.")
        if self._formatter is None:
            turns = [f"{_FALLBACK_ROLES[message.role]}: {message.content.strip()}\n\n" for message in messages]
            return "".join(turns) + "Assistant:"
        plain = [{"role": message.role, "content": message.content} for message in messages]
        try:
            return run_limited(lambda: str(self._formatter(messages=plain).prompt), _LIMIT_S, self._abort)
        except OutOfTime:
            raise TemplateError(
                f"The model's chat template has not come to an end within {_LIMIT_S:g} seconds.", _OTHER_FILE
            ) from None
        except MemoryError:
            raise TemplateError("The model's chat template wants more memory than there is.", _OTHER_FILE) from None
        except Exception as error:
            # A template is foreign code: whatever it raises is its own failure, and Cancelled is no failure.
            if isinstance(error, Cancelled):
                raise
            reason = str(error) or type(error).__name__
            raise TemplateError(f"The model's chat template objects: {reason}", _hint(reason, messages)) from None

    def tokenize(self, vocabulary: Vocabulary, text: str) -> list[int]:
        """Return the ids of a rendered prompt; BOS is added unless the template has written it."""
        has_bos = bool(self._bos_text) and text.startswith(self._bos_text)
        return vocabulary.tokenize(text, add_special=not has_bos, parse_special=True)


def _special_text(vocabulary: Vocabulary, token: int) -> str:
    return vocabulary.token_text(token).decode("utf-8", "replace") if token >= 0 else ""


def _hint(reason: str, messages: Sequence[Message]) -> str:
    lowered = reason.lower()
    roles = [message.role for message in messages]
    if "system" in lowered:
        return "This model takes no system message: leave it out, or put it at the head of the first question."
    if "altern" in lowered or any(left == right for left, right in pairwise(roles)):
        return "This model wants user and assistant turns in strict alternation, beginning with the user."
    return "Try without a system message, with user and assistant turns in alternation."
