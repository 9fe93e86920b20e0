"""What is to be known before anything is fetched: terms, whether it fits, which draft goes with it."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.figures import bytes_text
from localspec.session.plain_text import one_line
from localspec.tui.hub_browsing import BADGES, Browsing, OfferRow, PlannedFetch
from localspec.tui.keyed import keyed

START = "Type a family and a size, such as qwen3 4b, and press Enter. Nothing is asked before that."


class HubDetails(Widget):
    """Renders the highlighted offer and its repository, or what Enter would fetch."""

    DEFAULT_CSS = """
    HubDetails { height: auto; }
    """

    browsing: reactive[Browsing] = reactive(Browsing, layout=True)
    """What is known."""
    row: reactive[OfferRow | None] = reactive[OfferRow | None](None, layout=True)
    """The highlighted offer; None if there is none."""

    def render(self) -> Content:
        """Return the lines."""
        return Content("\n").join(hub_lines(self.browsing, self.row))


def hub_lines(browsing: Browsing, row: OfferRow | None) -> list[Content]:
    """Return what is to be said, the most urgent first."""
    lines: list[Content] = []
    if browsing.failure:
        lines.append(Content.assemble(("! ", "bold $text-error"), one_line(browsing.failure)))
        if browsing.hint:
            lines.append(Content.styled(one_line(browsing.hint), "dim"))
    if browsing.activity:
        lines.append(Content.styled(f"{one_line(browsing.activity)} …", "$text-accent"))
    if browsing.told:
        lines.append(Content.styled(f"✓ {one_line(browsing.told)}", "$text-success"))
    if browsing.planned is not None:
        return [*lines, *_planned(browsing.planned)]
    if row is not None:
        lines += _fit(row)
    if browsing.listing is not None:
        lines += _terms(browsing)
    elif not lines:
        none = f"The Hub has no GGUF model for {browsing.words!r}. Try fewer words, such as a family and a size."
        text = none if browsing.words and not browsing.hits else "" if browsing.hits else START
        lines.append(Content.styled(one_line(text), "dim"))
    return lines


def _fit(row: OfferRow) -> list[Content]:
    if row.failure:
        return [Content(one_line(f"Whether it fits cannot be said: {row.failure}"))]
    if row.fit is None:
        return []
    badge, colour = BADGES[row.fit.verdict]
    return [Content.assemble((badge, colour), "  ", one_line(row.fit.sentence))]


def _terms(browsing: Browsing) -> list[Content]:
    listing = browsing.listing
    assert listing is not None
    parts = [f"licence: {listing.licence or 'not stated'}"]
    if listing.is_gated:
        parts.append("gated: its terms have to be accepted on its page, and a token is needed")
    if listing.base_models:
        parts.append(f"made from {', '.join(listing.base_models[:3])}")
    lines = [Content.styled(one_line(listing.repo), "bold"), Content(one_line("; ".join(parts)))]
    if listing.num_unsafe:
        lines.append(Content(f"{listing.num_unsafe} files are left out for the sake of their names."))
    if listing.num_surplus:
        lines.append(Content(f"{listing.num_surplus} more files were not looked at: there are too many."))
    if not browsing.rows:
        lines.append(Content("It has no GGUF model to download."))
    return lines


def _planned(planned: PlannedFetch) -> list[Content]:
    plan = planned.plan
    lines = []
    for role, part in zip(("target", "draft"), plan.parts, strict=False):
        missing = f"{bytes_text(part.missing_bytes)} to fetch" if part.missing_bytes else "all here"
        lines.append(Content.assemble((f"{role:<7}", "dim"), (one_line(part.label), "bold"), f"  {missing}"))
    if plan.draft_here:
        lines.append(Content.assemble(("draft  ", "dim"), (one_line(plan.draft_here), "bold"), "  here already"))
    if planned.fit is not None:
        badge, colour = BADGES[planned.fit.verdict]
        lines.append(Content.assemble((badge, colour), "  ", one_line(planned.fit.sentence)))
    if plan.verdict is not None:
        lines += [Content(one_line(f"note: {note}")) for note in plan.verdict.notes]
    if plan.remark:
        lines.append(Content.styled(one_line(plan.remark), "dim"))
    lines += [Content.styled(one_line(f"note: {note}"), "dim") for note in planned.notes]
    both = "Enter fetches both, {hub.target} only the target, {hub.back} neither."
    words = keyed(both if plan.draft is not None else "Enter fetches it, {hub.back} does not.")
    return [Content.styled(words, "bold"), *lines]
