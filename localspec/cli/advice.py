"""Commands that a person is advised to run next."""

from __future__ import annotations

import shlex
import unicodedata

from localspec.session.plain_text import one_line

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode's categories of what moves the cursor, shows nothing or ends a line."""


def command_line(*words: str) -> str:
    """Return a command as it can be copied into a shell: names are foreign, and a shell would carry out some.

    Where a word holds what cannot be shown, there is no such command, and that is what it says.
    """
    hidden = [word for word in words if not _is_shown(word)]
    if hidden:
        return f"(no command to copy: {one_line(hidden[0])} holds characters that cannot be shown)"
    return " ".join(shlex.quote(word) for word in words)


def _is_shown(word: str) -> bool:
    """Whether every character of a word is displayed as what it is."""
    return not any(unicodedata.category(character) in _HIDDEN for character in word)
