"""One round in words: what was guessed, what of it stood, and how long it took."""

from __future__ import annotations

from textual.content import Content

from localspec.engine.events import RoundFinished
from localspec.engine.values import Beliefs, DraftStop
from localspec.session.figures import milliseconds_text
from localspec.session.plain_text import printable
from localspec.tui.token_marks import Mark, drafter_mark

_STOPS: dict[DraftStop, str] = {
    "n_max": "n_max reached",
    "p_min": "below p_min",
    "n_min": "shorter than n_min",
    "no_match": "nothing to copy from",
    "room": "no room left",
    "silent": "the drafter had no more",
    "not_worth": "the next token was not worth its time",
    "unproven": "the drafter has not proven enough yet for what it could lose",
    "measuring": "a plain step, to measure it",
    "resting": "drafting does not pay now",
    "off": "",
}

_NAMES: dict[Mark, str] = {"draft": "by the draft model", "suffix": "by suffix", "n-gram": "by n-gram"}

_MAX_WORD = 24


def round_words(round_: RoundFinished, num_rounds: int) -> Content:
    """Return a round in three lines. Texts of tokens are foreign."""
    lines = [_head(round_, num_rounds), _drafted(round_), _times(round_)]
    if round_.beliefs is not None:
        lines.append(_beliefs(round_.beliefs, round_))
    return Content("\n").join(lines)


def _head(round_: RoundFinished, num_rounds: int) -> Content:
    num_drafted = len(round_.drafted)
    notes: list[str] = []
    if num_drafted:
        what = f"{round_.num_accepted} of {num_drafted} drafted tokens accepted"
        notes.append(_NAMES[drafter_mark(round_.drafter)])
        if round_.match_length:
            notes.append(f"{round_.match_length} match")
    elif round_.index == 0:
        what = "the first token, from the prompt's last row"
    else:
        what = "a plain step, nothing was drafted"
    if stop := _STOPS[round_.draft_stop]:
        notes.append(stop)
    emitted = " ".join(_word(token.text) for token in round_.emitted)
    why = f" ({', '.join(notes)})" if notes else ""
    return Content.assemble(
        (f"round {round_.index + 1} of {num_rounds}", "bold"),
        f": {what}{why}, wrote ",
        emitted,
    )


def _drafted(round_: RoundFinished) -> Content:
    if not round_.drafted:
        return Content.styled("no draft", "dim")
    parts: list[Content | tuple[str, str] | str] = [("guessed ", "dim")]
    texts = round_.drafted_texts or tuple(f"#{token}" for token in round_.drafted)
    for place, text in enumerate(texts):
        is_accepted = place < round_.num_accepted
        mark, style = ("✓", "$text-success underline") if is_accepted else ("✗", "$text-error")
        parts += [(_word(text), style), (f"{mark} ", "dim")]
    if round_.num_accepted < len(round_.drafted) and round_.emitted:
        parts += [("instead ", "dim"), (_word(round_.emitted[-1].text), "bold")]
    return Content.assemble(*parts)


def _beliefs(beliefs: Beliefs, round_: RoundFinished) -> Content:
    """Return what adaptive pacing expected, beside what came."""
    why = "resting" if beliefs.is_resting else "exploring" if beliefs.is_exploring else f"asked for {beliefs.limit}"
    rates = f"acceptance {beliefs.acceptance:.2f}, needs {beliefs.needed:.2f}"
    came = f"{len(round_.emitted)} in {milliseconds_text(round_.total_s)}"
    expected = f"expected {beliefs.expected_tokens:.1f} tokens in {milliseconds_text(beliefs.expected_s)}, came {came}"
    return Content.styled(f"{why}: {rates}; {expected}", "dim")


def _times(round_: RoundFinished) -> Content:
    own_s = max(0.0, round_.total_s - round_.draft_s - round_.verify_s - round_.sample_s)
    times = (("draft", round_.draft_s), ("verify", round_.verify_s), ("sample", round_.sample_s), ("own", own_s))
    words = ", ".join(f"{name} {milliseconds_text(seconds)}" for name, seconds in times)
    return Content.styled(f"{milliseconds_text(round_.total_s)}: {words}", "dim")


def _word(text: str) -> str:
    """Return a token's text in quotes that show its spaces, never without end; one that ends an answer has none."""
    if not text:
        return "(no text)"
    shown = printable(text).replace("\n", "⏎").replace("\t", "→")
    return f'"{shown if len(shown) <= _MAX_WORD else f"{shown[: _MAX_WORD - 1]}…"}"'
