"""An answer on its way to the screen: first how far the prompt is read, then the text as it comes."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console

from localspec.cli.wrapping import WordWrap
from localspec.session.plain_text import printable

PREFILL_PATIENCE_S = 0.5
"""How long a prompt is read before that is worth a line."""


class AnswerStream:
    """Writes one answer.

    Args:
        output: takes the text.
        notices: takes the line on the prompt, if it is a terminal.
        width: columns at which to break the text; None for no breaks, as in a file or pipe.
    """

    def __init__(self, output: TextIO, notices: Console, width: int | None) -> None:
        self._output = output
        self._notices = notices
        self._wrap = None if width is None else WordWrap(width)
        self._prefill = (0, 0)
        self._has_text = False
        self._is_line_wanted = False
        self._is_line_shown = False

    def show(self, piece: str) -> None:
        """Write a piece of the answer."""
        self._hide_line()
        self._has_text = True
        safe = printable(piece)
        self._write(safe if self._wrap is None else self._wrap.feed(safe))

    def note_prefill(self, num_done: int, num_total: int) -> None:
        """Take how far the prompt is read."""
        self._prefill = (num_done, num_total)
        if self._is_line_wanted:
            self.show_prefill()

    def show_prefill(self) -> None:
        """Show how far the prompt is read, from now on until there is text; on terminals only."""
        num_done, num_total = self._prefill
        self._is_line_wanted = True
        if self._has_text or not num_total or not self._notices.is_terminal:
            return
        line = f"reading the prompt {num_done} of {num_total}"
        self._notices.file.write(f"\r{line[: self._notices.width - 1]}\x1b[K")
        self._notices.file.flush()
        self._is_line_shown = True

    def close(self) -> None:
        """Write what was held back, and end the line."""
        self._hide_line()
        if self._wrap is not None:
            self._write(self._wrap.flush())
        self._write("\n")

    def _hide_line(self) -> None:
        if self._is_line_shown:
            self._notices.file.write("\r\x1b[K")
            self._notices.file.flush()
            self._is_line_shown = False

    def _write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()
