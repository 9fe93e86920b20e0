"""One round in words: what was guessed, what of it stood, and how long it took."""

from __future__ import annotations

from textual.content import Content

from localspec.engine.events import RoundFinished
from localspec.engine.values import DraftStop
from localspec.session.figures import milliseconds_text
from localspec.session.plain_text import printable

_STOPS: dict[DraftStop, str] = {
    "n_max": "n_max reached",
    "p_min": "below p_min",
    "n_min": "shorter than n_min",
    "no_match": "nothing to copy from",
    "room": "no room left",
    "silent": "the drafter had no more",
    "off": "",
}

_MAX_WORD = 24


def round_words(round_: RoundFinished, num_rounds: int) -> Content:
    """Return a round in three lines. Texts of tokens are foreign."""
    lines = [_head(round_, num_rounds), _drafted(round_), _times(round_)]
    return Content("\n").join(lines)


def _head(round_: RoundFinished, num_rounds: int) -> Content:
    num_drafted = len(round_.drafted)
    if num_drafted:
        what = f"{round_.num_accepted} of {num_drafted} drafted tokens accepted"
    elif round_.index == 0:
        what = "the first token, from the prompt's last row"
    else:
        what = "a plain step, nothing was drafted"
    stop = _STOPS[round_.draft_stop]
    emitted = " ".join(_word(token.text) for token in round_.emitted)
    return Content.assemble(
        (f"round {round_.index + 1} of {num_rounds}", "bold"),
        f": {what}{f' ({stop})' if stop else ''}, wrote ",
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


def _times(round_: RoundFinished) -> Content:
    own_s = max(0.0, round_.total_s - round_.draft_s - round_.verify_s - round_.sample_s)
    times = (("draft", round_.draft_s), ("verify", round_.verify_s), ("sample", round_.sample_s), ("own", own_s))
    words = ", ".join(f"{name} {milliseconds_text(seconds)}" for name, seconds in times)
    return Content.styled(f"{milliseconds_text(round_.total_s)}: {words}", "dim")


def _word(text: str) -> str:
    """Return a token's text in quotes that show its spaces; never without end."""
    shown = printable(text).replace("\n", "⏎").replace("\t", "→")
    return f'"{shown if len(shown) <= _MAX_WORD else f"{shown[: _MAX_WORD - 1]}…"}"'
