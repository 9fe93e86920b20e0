"""Words and comments for shells. Names in them are foreign: none may end a quotation or a comment."""

from __future__ import annotations

import re
import shlex
import unicodedata
from typing import Literal

from localspec.errors import UsageError

Shell = Literal["sh", "powershell"]

SHELLS: tuple[Shell, ...] = ("sh", "powershell")

# PowerShell takes the typographic single quotation marks for the plain one, and reads two of a kind as one.
_POWERSHELL_QUOTES = re.compile("(['\N{LEFT SINGLE QUOTATION MARK}-\N{SINGLE HIGH-REVERSED-9 QUOTATION MARK}])")
_POWERSHELL_PLAIN = re.compile(r"[A-Za-z0-9_./\\][A-Za-z0-9_./:\\-]*")
_OPTION = re.compile(r"-{1,2}[a-z][a-z0-9-]*")

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of what moves the cursor, reorders what is displayed, ends a line, or is half a character."""


def quote(word: str, shell: Shell) -> str:
    """Return a word as one argument in a shell.

    sh: as shlex quotes it. PowerShell: between single quotes, with those inside doubled; nothing else is special
    there (about_Quoting_Rules).
    """
    if shell == "sh":
        return shlex.quote(word)
    if _POWERSHELL_PLAIN.fullmatch(word) or _OPTION.fullmatch(word):
        return word
    return "'" + _POWERSHELL_QUOTES.sub(r"\1\1", word) + "'"


def comment(text: str) -> str:
    """Return a line that sh, PowerShell, YAML and Modelfiles pass over, whatever the text holds."""
    return "# " + plain_line(text)


def plain_line(text: str) -> str:
    """Return a text in one line, without characters that a terminal or a parser would act on."""
    return " ".join("".join(" " if unicodedata.category(one) in _UNSAFE else one for one in text).split())


def check_path(path: str, role: str) -> str:
    """Return a path that can be written into a command or file and looked at, as it is.

    Raises:
        UsageError: it holds control characters, marks that reorder what is displayed, or what is no valid text.
    """
    if any(unicodedata.category(one) in _UNSAFE for one in path):
        raise UsageError(
            f"The path of the {role} holds characters that do not show, so no command line is made of it: "
            f"{plain_line(path)}",
            "Rename the file or its folder, and make the profile again.",
        )
    return path


def command_lines(program: str, options: tuple[tuple[str, ...], ...], shell: Shell) -> str:
    """Return a command over several lines, one option with its value in each.

    Args:
        program: plain words.
        options: each with the words that belong to it.
        shell: whose quotes and whose mark of a line that goes on.
    """
    end = " \\\n  " if shell == "sh" else " `\n  "
    return end.join([program, *(" ".join(quote(word, shell) for word in option) for option in options)])
