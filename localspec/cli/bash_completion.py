"""Completion in bash of names with colons, such as OWNER/NAME:QUANT.

bash breaks words at the characters of COMP_WORDBREAKS, `:` and `@` among them, and puts what is chosen behind the last
break. So the pieces are joined before names are looked for, and what stands before the cursor's piece is not repeated.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from click.shell_completion import BashComplete, CompletionItem, split_arg_string

_BREAKS = frozenset(":@")


def joined_words(words: Sequence[str], index: int) -> tuple[list[str], str, str]:
    """Join what bash broke at a colon or an at sign.

    Args:
        words: as bash has them, the command first.
        index: of the word at the cursor; after the last one if nothing is typed of it yet.

    Returns:
        The whole words before the cursor without the command; the word at the cursor as far as it is typed; and how
        that begins where bash's own piece of it does not.
    """
    pieces = [*words[: index + 1], *([""] if index >= len(words) else [])]
    whole: list[str] = []
    before = ""
    is_glued = False
    for piece in pieces:
        is_break = bool(piece) and set(piece) <= _BREAKS
        if whole and piece and (is_break or is_glued):
            # Behind a break bash's piece is empty.
            before = whole[-1] + (piece if is_break else "")
            whole[-1] += piece
        else:
            before = ""
            whole.append(piece)
        is_glued = is_break
    return whole[1:-1], whole[-1] if len(whole) > 1 else "", before


class ColonComplete(BashComplete):
    """Click's completion for bash, for names with colons."""

    _before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the one at it."""
        words = split_arg_string(os.environ["COMP_WORDS"])
        before, word, self._before = joined_words(words, int(os.environ["COMP_CWORD"]))
        return before, word

    def format_completion(self, item: CompletionItem) -> str:
        """Return a line for the shell's script: what comes in place of bash's piece."""
        value = str(item.value)
        if item.type == "plain" and value.casefold().startswith(self._before.casefold()):
            value = value[len(self._before) :]
        return f"{item.type},{value}"
