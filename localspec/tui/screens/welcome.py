"""The first start: what this is, and three ways to begin."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localspec.errors import LocalspecError, OfflineError
from localspec.session.plain_text import one_line
from localspec.tui.first_start import Beginnings, look_around
from localspec.tui.key_names import key_text
from localspec.tui.plain import MUTED, plain_line

if TYPE_CHECKING:
    from localspec.tui.app import LocalspecApp

Choice = Literal["demo", "models", "hub", "fit", "chat", "compare", "runs", ""]
"""What to begin with; empty for nothing."""

ABOUT = (
    "Does speculative decoding pay on this machine, with your models and your kind of text? localspec measures it, "
    "off against on, and then you chat with the winner; nothing leaves this machine."
)
PATIENCE_S = 10.0
"""For the Hub to answer at all."""

_WIDTH, _INDENT = 72, 5
"""Of the panel, and of what is said under a title."""
_FRAME = 6 + _INDENT + 2
_MOST_LINES = 5
"""Said under a title."""

_USUAL = {"demo": "d", "models": "m", "hub": "h"}


class WelcomeScreen(ModalScreen[Choice]):
    """Gives the choice. The Hub is asked whether it is in reach only when it is chosen."""

    CSS_PATH = "welcome.tcss"
    AUTO_FOCUS = "#welcome-choices"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "choose('demo')", "Demo", id="welcome.demo", tooltip="Try it with the embedded demo models"),
        Binding("m", "choose('models')", "Models", id="welcome.models", tooltip="Choose a model that is here"),
        Binding("h", "choose('hub')", "Hub", id="welcome.hub", tooltip="Find a model on the Hub"),
        Binding("escape,q", "leave", "Leave", id="welcome.leave", tooltip="Begin without any of these"),
        *(
            Binding(
                key, f"go('{mode}')", mode.title(), id=f"mode.{mode}", tooltip="Leave this, and go there", show=False
            )
            for key, mode in (("f2", "models"), ("f3", "fit"), ("f4", "chat"), ("f5", "compare"), ("f6", "runs"))
        ),
    ]

    def __init__(self) -> None:
        """Begin without knowing what is here."""
        super().__init__()
        self._beginnings: Beginnings | None = None
        self._hub_words = "Needs the network, which is not used before."

    @property
    def host(self) -> LocalspecApp:
        """The app, by its own type."""
        return cast("LocalspecApp", self.app)

    def compose(self) -> ComposeResult:
        """Yield what this is, and the choices."""
        panel = Vertical(id="welcome", classes="panel")
        panel.border_title = "Welcome to localspec"
        with panel, VerticalScroll(can_focus=False, id="welcome-body"):
            yield Static(ABOUT, id="welcome-about", markup=False)
            yield OptionList(id="welcome-choices", compact=True)
            palette, leave = self._key("app.palette", "ctrl+p"), self._key("welcome.leave", "escape")
            yield Static(
                plain_line(f"{leave} goes on without. {palette}, “Welcome” brings it back."),
                classes="muted",
                markup=False,
            )

    def on_mount(self) -> None:
        """Show the choices, and look what is here."""
        self._show()
        self.look()

    def on_resize(self) -> None:
        """Break the lines anew."""
        self._show()

    @work(exclusive=True, group="welcome")
    async def look(self) -> None:
        """Look what is here."""
        self._beginnings = await asyncio.to_thread(look_around, self.host.services.settings)
        self._show()

    def _key(self, name: str, usual: str) -> str:
        return key_text(self.host.key_map, name, usual)

    def _show(self) -> None:
        if not self.is_mounted:
            return
        choices = self.query_one(OptionList)
        place = choices.highlighted
        rows = choice_rows(self._beginnings, self._hub_words)
        width = max(20, min(_WIDTH, self.app.size.width) - _FRAME)
        keys = {name: self._key(f"welcome.{name}", usual) for name, usual in _USUAL.items()}
        choices.clear_options()
        choices.add_options(
            [
                Option(_row(keys[name], title, words, width), id=name, disabled=not is_open)
                for name, title, words, is_open in rows
            ]
        )
        enabled = [index for index, row in enumerate(rows) if row[3]]
        choices.highlighted = place if place in enabled else enabled[0]

    @on(OptionList.OptionSelected)
    def _take(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_choose(event.option.id or "")

    def action_choose(self, name: str) -> None:
        """Begin with something, if it can be had."""
        if name == "hub":
            self.reach_hub()
        elif name != "demo" or not (self._beginnings is None or self._beginnings.demo_refusal):
            self.dismiss(cast("Choice", name))

    @work(exclusive=True, group="reach", exit_on_error=False)
    async def reach_hub(self) -> None:
        """Ask the Hub for anything at all; without an answer the other choices are still there."""
        self._tell("asking the Hub …")
        try:
            async with asyncio.timeout(PATIENCE_S):
                hub = await asyncio.to_thread(self.host.services.open_hub)
                try:
                    await hub.search("gguf", 1)
                finally:
                    await hub.close()
        except (OfflineError, TimeoutError) as error:
            words = f"{error.message} {error.hint}" if isinstance(error, LocalspecError) else "The Hub does not answer."
            self._tell(f"! {words}")
            return
        except LocalspecError:
            # It is in reach; what it has to say is said where it is asked.
            pass
        self.dismiss("hub")

    def _tell(self, words: str) -> None:
        self._hub_words = words
        self._show()

    def action_go(self, mode: str) -> None:
        """Leave for a screen."""
        self.dismiss(cast("Choice", mode))

    def action_leave(self) -> None:
        """Begin without."""
        self.dismiss("")


def choice_rows(beginnings: Beginnings | None, hub_words: str) -> list[tuple[str, str, str, bool]]:
    """Return the choices: name, title, words, and whether it can be chosen.

    Args:
        beginnings: what is here; None while it is being looked for.
        hub_words: what there is to say of the Hub.
    """
    demo = "Made once of a small model; no download."
    models = "looking …"
    if beginnings is not None:
        demo = beginnings.demo_refusal or demo
        models = beginnings.note or _models_words(beginnings)
    return [
        ("demo", "Try it with the demo models", demo, not (beginnings and beginnings.demo_refusal)),
        ("models", "Choose a model that is here", models, True),
        ("hub", "Find a model on the Hub", hub_words, True),
    ]


def _models_words(beginnings: Beginnings) -> str:
    if not beginnings.num_models:
        return "None found yet; folders go into the settings."
    num_more = len(beginnings.folders) - 1
    more = f" and {num_more} more folder{'' if num_more == 1 else 's'}" if num_more > 0 else ""
    where = f" in {beginnings.folders[0]}{more}" if beginnings.folders else ""
    return f"{beginnings.num_models} found{where}."


def _row(key: str, title: str, words: str, width: int) -> Content:
    lines = Content(one_line(words)).truncate(_MOST_LINES * width, ellipsis=True).wrap(width)
    below = [Content.assemble(" " * _INDENT, (line.plain, MUTED)) for line in lines]
    head = Content.assemble((f" {one_line(key)}".ljust(_INDENT), "bold"), (one_line(title), "bold"))
    return Content("\n").join([head, *below, Content("")])
