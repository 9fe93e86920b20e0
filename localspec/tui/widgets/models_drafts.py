"""What may draft for the highlighted model, with reasons, and what may not, with refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from localspec.session.figures import bytes_text, percent_text
from localspec.session.plain_text import one_line
from localspec.tui.model_library import Drafts

if TYPE_CHECKING:
    from localspec.catalog.pairing import PairStatus
    from localspec.session.candidates import Candidate

VERDICTS: dict[PairStatus, str] = {
    "PAIR": "✓ pair",
    "PAIR_WITH_NOTE": "✓ pair, with a note",
    "NO_PAIR": "✗ no pair",
    "UNKNOWN": "? cannot be said",
}
_COLOURS: dict[PairStatus, str] = {
    "PAIR": "$text-success",
    "PAIR_WITH_NOTE": "$text-success",
    "NO_PAIR": "$text-error",
    "UNKNOWN": "$text-warning",
}


class ModelsDrafts(OptionList):
    """A list of candidates; Enter takes one."""

    drafts: reactive[Drafts] = reactive(Drafts, init=False)
    """What is to be shown."""

    class Taken(Message):
        """A candidate was taken."""

        def __init__(self, candidate: Candidate) -> None:
            """Take the candidate."""
            super().__init__()
            self.candidate = candidate

    def watch_drafts(self, drafts: Drafts) -> None:
        """Show the candidates, and what is to be said of the search."""
        place = self.highlighted
        self.clear_options()
        if drafts.activity:
            self.add_option(_said(f"{drafts.activity} …"))
        if drafts.failure:
            self.add_option(_said(drafts.failure))
        for index, candidate in enumerate(drafts.candidates):
            self.add_option(Option(candidate_content(candidate), id=str(index)))
        for note in drafts.notes:
            self.add_option(_said(note))
        if place is not None and place < len(drafts.candidates):
            self.highlighted = place

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Tell which candidate was taken."""
        event.stop()
        if event.option_id is not None:
            self.post_message(self.Taken(self.drafts.candidates[int(event.option_id)]))


def candidate_content(candidate: Candidate) -> Content:
    """Return a candidate in two paragraphs: what it is, and why it has its rank or is none."""
    # The first paint of the app does not need what ranking stands on.
    from localspec.session.ranking import share_text

    facts: list[str] = []
    if candidate.size_bytes:
        facts.append(bytes_text(candidate.size_bytes))
    if candidate.cost_ratio is not None and candidate.method != "ngram":
        facts.append(f"cost {share_text(candidate.cost_ratio)}")
    if candidate.break_even is not None and candidate.method != "ngram":
        facts.append(f"pays from {percent_text(candidate.break_even)}")
    if candidate.download is not None and candidate.path is not None:
        facts.append("to be fetched")
    head = Content.assemble((one_line(candidate.label), "bold" if not candidate.refusal else "dim"))
    status = _status(candidate)
    why = candidate.refusal or candidate.reason
    lines = [head, Content.assemble(status, *([("  ", ""), ("  ".join(facts), "")] if facts else []))]
    if why:
        lines.append(Content.styled(one_line(why), "dim"))
    if candidate.notes:
        lines.append(Content.styled(one_line(candidate.notes), "dim"))
    return Content("\n").join(lines)


def _status(candidate: Candidate) -> tuple[str, str]:
    verdict = candidate.verdict
    if verdict is not None and not (candidate.refusal and verdict.status in ("PAIR", "PAIR_WITH_NOTE")):
        return VERDICTS[verdict.status], _COLOURS[verdict.status]
    if verdict is not None:
        # A pair all the same, which d takes: only too dear, or of the wrong kind.
        return "! not advised", "$text-warning"
    return ("✗ refused", "$text-error") if candidate.refusal else (f"✓ {candidate.method}", "$text-success")


def _said(text: str) -> Option:
    return Option(Content.styled(one_line(text), "dim"), disabled=True)
