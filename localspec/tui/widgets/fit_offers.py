"""What could be given up, each with the key that takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from localspec.session.plain_text import one_line

if TYPE_CHECKING:
    from localspec.planning.plan import TradeOffer

MAX_KEYS = 9


class FitOffers(OptionList):
    """The offers of a plan, in its order."""

    DEFAULT_CSS = """
    FitOffers { border: none; padding: 0; background: transparent; height: auto; }
    FitOffers:focus { border: none; }
    FitOffers:blur > .option-list--option-highlighted { background: transparent; text-style: none; }
    """

    offers: reactive[tuple[TradeOffer, ...]] = reactive(())
    """What is offered. Texts are foreign."""

    def watch_offers(self, offers: Sequence[TradeOffer]) -> None:
        """Show other offers."""
        self.clear_options()
        self.add_options([Option(offer_text(index, offer)) for index, offer in enumerate(offers, 1)])
        self.highlighted = 0 if offers else None


def offer_text(number: int, offer: TradeOffer) -> Content:
    """Return an offer: its key, what it brings, and dimmed what it costs."""
    gain, semicolon, price = one_line(offer.text).partition(";")
    key = (f" {number} ", "bold $text-accent") if number <= MAX_KEYS else ("   ", "")
    return Content.assemble(key, " ", gain, (f"{semicolon}{price}", "dim"))
