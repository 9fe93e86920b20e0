"""Measures of a text: how much of it is code, and how much of it stands in another one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

RUN: Final = 4
"""Words in a row that count as copied. Shorter runs are shared by any two texts on one matter."""

_WORD = re.compile(
    "[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]"  # scripts without spaces: each character counts as a word
    "|[^\\W\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+|[^\\w\\s]"
)
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)\s*([\w+#.-]*)")
_PROSE_FENCES = frozenset({"text", "txt", "plain", "plaintext", "markdown", "md"})
_DATA_FENCES = frozenset({"json", "jsonl", "yaml", "yml", "csv", "tsv", "xml", "toml"})
_TABLE_ROW = re.compile(r"\s*\|.*\|\s*$")

_KEYWORDS = (
    "def|class|import|from|return|if|elif|else|for|while|try|except|with|async|public|private|protected|static|const|"
    "let|var|function|func|fn|struct|enum|impl|using|namespace|package|export"
)
_CODE_LINE = re.compile(
    r"\s*(?:"
    rf"(?:{_KEYWORDS})\b.*[:;{{(,)]$"
    r"|.*[;{}]$"
    r"|(?:import|from|#include|using)\s+[\w.<\"/]+(?:\s+import\s.*)?$"
    r"|(?:SELECT|INSERT|UPDATE|CREATE|DELETE|WITH|FROM|WHERE|JOIN|GROUP BY|ORDER BY)\s.*"
    r"|[A-Za-z_][\w.\[\]\"']*\s*(?:: [\w\[\], |.]+)?\s*[-+*/|&]?=\s\S.*"
    r"|[A-Za-z_][\w.]*\(.*\)$"
    r"|</?[A-Za-z][^>]*>.*"
    r"|[)\]}@].*"
    r"|(?:return|yield|raise|await|throw)\s+\S+$"
    r")"
)


def words_of(text: str) -> list[str]:
    """Return the words and single symbols of a text; where a script has no spaces, its characters."""
    return _WORD.findall(text)


def num_words(text: str) -> int:
    """Return how many words a text has, symbols left out."""
    return sum(word[0].isalnum() for word in words_of(text))


def copied_share(source: str, text: str, run: int = RUN) -> float:
    """Return the share of a text's words, from 0 to 1, that lie in a run of words which the source has too.

    Args:
        source: what may have been copied from.
        text: what may be a copy; 0 for one without words.
        run: words in a row that it takes.
    """
    there, words = words_of(source), words_of(text)
    if not words:
        return 0.0
    known = {tuple(there[at : at + run]) for at in range(len(there) - run + 1)}
    num_copied = end = 0
    for at in range(len(words) - run + 1):
        if tuple(words[at : at + run]) in known:
            num_copied += at + run - max(at, end)
            end = at + run
    return num_copied / len(words)


def borrowed_share(source: str, text: str) -> float:
    """Return the share of a text's words and numbers that the source has anywhere; symbols do not count."""
    known = {word.casefold() for word in words_of(source)}
    words = [word.casefold() for word in words_of(text) if word[0].isalnum()]
    return sum(word in known for word in words) / len(words) if words else 0.0


def code_share(text: str) -> float:
    """Return the share of a text's lines, blank ones left out, that are code.

    In a fence that names a language all are; elsewhere a line is if it looks like it.
    """
    lines = [is_code for line, is_code in _judged_lines(text) if line]
    return sum(lines) / len(lines) if lines else 0.0


def has_code(text: str) -> bool:
    """Return whether a text holds some lines of code."""
    num_code = sum(is_code for line, is_code in _judged_lines(text) if line)
    return num_code >= 2 and (num_code >= 4 or code_share(text) >= 0.3)


def without_code(text: str) -> str:
    """Return a text's lines that are not code."""
    return "\n".join(line for line, is_code in _judged_lines(text) if not is_code)


def is_structured(text: str) -> bool:
    """Return whether a text is JSON or other data, or a table, with at most a few words around it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    bare = [line for line in lines if not _FENCE.match(line)]
    if bare and _is_json_like(bare):
        return True
    language, num_data = "", 0
    is_inside = False
    for line in lines:
        if fence := _FENCE.match(line):
            is_inside = not is_inside
            language = fence.group(1).casefold()
        elif (is_inside and language in _DATA_FENCES) or (not is_inside and _TABLE_ROW.match(line)):
            num_data += 1
    return num_data * 2 >= len(bare) and num_data >= 2


def _is_json_like(lines: list[str]) -> bool:
    # A list of Markdown links begins with a bracket as well, but does not end with one.
    first, last = lines[0], lines[-1]
    has_strings = sum('"' in line for line in lines) * 3 >= len(lines)
    return has_strings and (first[0], last[-1]) in {("{", "}"), ("[", "]")}


def _judged_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, stripped at its end, with whether it is code. Fences themselves are left out."""
    is_inside, language = False, ""
    for line in map(str.rstrip, text.splitlines()):
        if fence := _FENCE.match(line):
            is_inside = not is_inside
            language = fence.group(1).casefold() if is_inside else ""
        elif is_inside and language:
            yield line, bool(line) and language not in _PROSE_FENCES | _DATA_FENCES
        else:
            # Longer lines are paragraphs, and no pattern need read them.
            yield line, len(line) <= 200 and bool(_CODE_LINE.match(line))
