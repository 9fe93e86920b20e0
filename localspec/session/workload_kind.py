"""Which workload a prompt belongs to, by rules that can be told: no model is asked, and nothing leaves the machine.

With the answer at hand, what counts is how much of it stands in the prompt already, word for word, and whether it is
code: that is what makes drafts pay or not. Words of the question, such as "sum up", only break ties. Before there is an
answer, they and the shape of the question are all there is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

from localspec.session.figures import percent_text
from localspec.session.text_shape import (
    borrowed_share,
    code_share,
    copied_share,
    has_code,
    is_structured,
    num_words,
    without_code,
)

Kind = Literal["chat", "code", "edit", "extract", "quote", "story", "summary"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""As the prompts that come with localspec are called."""

COPY_HEAVY: Final[frozenset[Kind]] = frozenset({"edit", "extract", "quote", "summary"})
"""Kinds whose answers repeat much of the prompt."""

LEAST_MATERIAL: Final = 50
"""Words from which a question is taken to hold a text to work on."""

LEAST_ANSWER: Final = 12
"""Words from which an answer says something of its kind."""

MOSTLY_COPIED: Final = 0.6
PARTLY_COPIED: Final = 0.2
COPIED_CODE: Final = 0.4
"""Share of an answer's words that stand in the prompt. A change of code breaks more runs of words than one of prose."""

MOSTLY_CODE: Final = 0.5
PARTLY_CODE: Final = 0.2
"""Share of an answer's lines that are code."""

MOSTLY_BORROWED: Final = 0.5
"""Share of the words in a table or JSON, each for itself, that the prompt has too."""

_INSTRUCTION_WORDS: Final = 40
_MAX_TEXT: Final = 100_000
"""Characters of a text that are looked at."""


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})", re.IGNORECASE)


_LANGUAGES = (
    r"python|javascript|typescript|java\b|kotlin|swift\b|rust\b|golang|c\+\+|c#|ruby|php\b|bash\b|sql\b|html\b|css\b"
)

_WORDS: Final[dict[Kind, re.Pattern[str]]] = {
    "summary": _any_of(
        r"summar", r"sum (?:\w+ ){0,2}up\b", r"tl;?dr", r"key points", r"in a nutshell", r"in your own words",
        r"zusammenfass", r"fass\w* .{0,60}zusammen\b", r"résum", r"resum[ei]",
    ),
    "extract": _any_of(
        r"extract", r"json\b", r"csv\b", r"yaml\b", r"as a table", r"into a table", r"list (?:every|all|each)\b",
        r"find (?:every|all|each)\b", r"extrahier", r"als tabelle", r"extrai",
    ),
    "quote": _any_of(
        r"repeat\b", r"verbatim", r"word for word", r"quote\b", r"copy (?:out|this|the)\b", r"wiederhole", r"wörtlich",
        r"répète", r"mot à mot", r"repite", r"textualmente",
    ),
    "edit": _any_of(
        r"rename", r"refactor", r"replac", r"rewrit", r"proofread", r"correct\b", r"fix\b", r"chang", r"convert",
        r"improv", r"simplif", r"remov", r"add\b", r"make (?:it|this|the|them)\b", r"annotate", r"reformat",
        r"clean (?:\w+ )?up", r"translate (?:it|this) to (?:" + _LANGUAGES + ")",
        r"korrigier", r"ersetze", r"änder", r"ergänz", r"corrig", r"remplac", r"reempla", r"cambia",
    ),
    "story": _any_of(
        r"(?:short |bedtime |fairy )stor(?:y|ies)\b", r"(?:a|the|another) (?:\w+ ){0,2}story\b(?! point)",
        r"fairy tale", r"poem", r"sonnet", r"limerick", r"haiku", r"lyrics",
        r"write (?:\w+ ){0,3}(?:scene|chapter|dialogue)\b",
        r"eine (?:\w+ )?geschichte\b", r"gedicht", r"märchen", r"une (?:\w+ )?histoire\b", r"poème",
        r"un cuento", r"poema",
    ),
    "code": _any_of(
        _LANGUAGES,
        r"(?:write|implement|create|generate|give|schreib|écri|escrib)\w* .{0,60}(?:function|class\b|script|"
        r"program\b|query|regex|unit ?tests?|tests?\b|method\b|api\b|funktion|programm|fonction|función)",
        r"regular expression", r"regex", r"shell command", r"dockerfile", r"makefile",
    ),
}  # fmt: skip

_EXPLAINING = _any_of(
    r"explain", r"why\b", r"what (?:does|is|do)\b", r"how does", r"erklär", r"warum", r"expli", r"pourquoi"
)
_NEW_CODE = _any_of(r"(?:write|generate|create|add|implement)\w* .{0,40}tests?\b", r"write (?:a|an|another|the)\b")


@dataclass(frozen=True, slots=True)
class Classified:
    """What a prompt is, and why."""

    kind: Kind
    why: str
    """A phrase for people, such as `82 % of the answer stands in the prompt`; it quotes a few words of the question."""
    copied: float | None = None
    """Share of the answer that stands in the prompt, from 0 to 1; None without an answer to judge by."""


def classify(question: str, answer: str = "", earlier: str = "") -> Classified:
    """Return the workload that a question belongs to. Any text will do; the work is linear in its length.

    Args:
        question: what was asked.
        answer: what came of it; empty if that is not known, or nothing did.
        earlier: what the conversation held before: the answer may copy from there, and "make it shorter" means it.
    """
    question, answer, earlier = question[-_MAX_TEXT:], answer[:_MAX_TEXT], earlier[-_MAX_TEXT:]
    if num_words(answer) < LEAST_ANSWER:
        return _of_question(question, earlier)
    return _of_answer(question, answer, earlier)


def _of_answer(question: str, answer: str, earlier: str) -> Classified:
    source = f"{earlier}\n{question}"
    copied = copied_share(source, answer)
    share = f"{percent_text(copied)} of the answer stands in the prompt"
    if is_structured(answer):
        borrowed = borrowed_share(source, answer)
        if borrowed >= MOSTLY_BORROWED and num_words(source) >= LEAST_MATERIAL // 2:
            return Classified(
                "extract", f"a table or JSON with {percent_text(borrowed)} of its words from the prompt", copied
            )
        return Classified("code", f"a table or JSON with {percent_text(borrowed)} of its words from the prompt", copied)
    code = code_share(answer)
    word = _first_word(question)
    if code >= MOSTLY_CODE or (code >= PARTLY_CODE and word[0] in ("code", "edit")):
        kind: Kind = "edit" if copied >= COPIED_CODE and has_code(source) else "code"
        return Classified(kind, f"{percent_text(code)} of the lines are code, and {share}", copied)
    if copied >= MOSTLY_COPIED:
        return Classified("edit" if word[0] == "edit" else "quote", share, copied)
    if copied >= PARTLY_COPIED:
        return Classified("extract" if word[0] == "extract" else "summary", share, copied)
    if word[0] == "story" or (word[0] == "summary" and num_words(source) >= LEAST_MATERIAL):
        return Classified(word[0], f"{share}, and the question says {word[1]!r}", copied)
    return Classified("chat", share, copied)


def _of_question(question: str, earlier: str) -> Classified:
    kind, word = _first_word(question)
    said = f"the question says {word!r}"
    if has_code(question):
        prose = without_code(question)
        if _NEW_CODE.search(prose):
            return Classified("code", "the question holds code and asks for more")
        if kind != "edit" and (found := _EXPLAINING.search(prose)):
            return Classified("chat", f"the question holds code and says {found.group()!r}")
        return Classified("edit", "the question holds code")
    if kind in ("story", "code"):
        return Classified(kind, said)
    if kind is not None and num_words(question) >= LEAST_MATERIAL:
        return Classified(kind, f"{said} and holds a text")
    if kind == "edit" and has_code(earlier):
        return Classified("edit", f"{said}, and there was code before")
    if kind is not None and num_words(earlier) >= LEAST_MATERIAL:
        return Classified(kind, f"{said}, and there is a text before")
    return Classified("chat", "nothing in the question speaks for another kind")


def _first_word(question: str) -> tuple[Kind | None, str]:
    """Return the kind whose word comes first in the question's instruction, with that word; None and empty if none."""
    instruction = _instruction(question)
    found = [
        (match.start(), kind, match.group()) for kind, words in _WORDS.items() if (match := words.search(instruction))
    ]
    if not found:
        return None, ""
    _, kind, word = min(found)
    first, *rest = word.split()
    return kind, f"{first} … {rest[-1]}" if len(rest) > 2 else word


def _instruction(question: str) -> str:
    """Return the beginning and the end of a question: what stands between is the text to work on."""
    words = without_code(question).split()
    if len(words) <= 2 * _INSTRUCTION_WORDS:
        return " ".join(words)
    return " ".join((*words[:_INSTRUCTION_WORDS], "\n", *words[-_INSTRUCTION_WORDS // 2 :]))
