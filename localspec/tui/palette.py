"""The app's own commands, found by typing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.style import Style

from localspec.engine.values import Method
from localspec.errors import LocalspecError, UsageError
from localspec.tui.plain import plain_line

if TYPE_CHECKING:
    from localspec.catalog.found_model import FoundModel
    from localspec.tui.app import LocalspecApp

SCREENS = (
    ("models", "Models", "Which are here, and which the Hub has"),
    ("fit", "Fit", "Do they fit into memory?"),
    ("chat", "Chat", "Talk with the target"),
    ("compare", "Compare", "Off against on, paired"),
    ("runs", "Runs", "What was measured"),
)

METHODS: tuple[tuple[Method, str], ...] = (
    ("off", "Speculation off"),
    ("draft", "Draft with the draft model"),
    ("ngram", "Draft with n-grams"),
)


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    title: str
    help: str
    run: Callable[[], object]
    is_shown: bool = True
    """Before anything is typed."""


class AppCommands(Provider):
    """Screens, models, methods, and what the engine is to do."""

    _models: tuple[FoundModel, ...] = ()

    @property
    def host(self) -> LocalspecApp:
        """The app, by its own type."""
        return cast("LocalspecApp", self.app)

    async def startup(self) -> None:
        """Look at which models are here."""
        from localspec.session.library import local_models

        try:
            self._models = await asyncio.to_thread(local_models, self.host.services.settings)
        except LocalspecError:
            # The Models screen says why; everything else can be commanded all the same.
            self._models = ()

    async def discover(self) -> Hits:
        """Yield what is offered before anything is typed."""
        for command in self._commands():
            if command.is_shown:
                yield DiscoveryHit(plain_line(command.title), command.run, text=command.title, help=command.help)

    async def search(self, query: str) -> Hits:
        """Yield what matches."""
        matcher = self.matcher(query)
        for command in self._commands():
            score, offsets = matcher.fuzzy_search.match(query, command.title)
            if score > 0:
                title = _marked(command.title, offsets, matcher.match_style)
                yield Hit(score, title, command.run, text=command.title, help=command.help)

    def _commands(self) -> Iterator[Command]:
        host = self.host
        for mode, title, words in SCREENS:
            yield Command(f"Go to {title}", words, partial(self._go, mode))
        yield Command("Load the models", "Now, and not with the first answer", partial(self._go, "chat", "load"))
        yield Command("Unload the models", "Give back their memory", host.action_unload)
        yield Command("New chat", "Begin another one; this one is kept", partial(self._go, "chat", "new_chat"))
        yield Command("Start the comparison", "Off against on, paired", partial(self._go, "compare", "run"))
        for method, title in METHODS:
            yield Command(title, f"The method {method}, from the next answer on", partial(self._draft_by, method))
        yield Command("Prepare the demo", "Embedded models; no download", host.prepare_demo)
        yield Command("Settings", "Everything in settings.toml", host.action_settings)
        yield Command("Theme", "Colours; the choice is remembered", host.action_change_theme)
        yield Command("Keys of this screen", "Help", host.action_help)
        yield Command("Quit localspec", "And end its engine", host.action_quit)
        for found in self._models:
            name = plain_line(found.name).plain
            yield Command(f"Target {name}", "Choose this model", partial(host.choose_target, found), is_shown=False)

    async def _go(self, mode: str, action: str = "") -> None:
        await self.host.switch_mode(mode)
        if action:
            await self.host.run_action(action, self.host.screen)

    def _draft_by(self, method: Method) -> None:
        bench = self.host.workbench
        if method == "draft" and bench.draft is None:
            self.host.show_failure(UsageError("No draft model is chosen.", "Choose one on the Models screen (F2)."))
            return
        self.host.workbench = replace(bench, speculation=replace(bench.speculation, method=method))


def _marked(title: str, offsets: object, style: Style | None) -> Content:
    """Return a title with the letters that matched. Textual's own highlighting would read it as markup."""
    content = plain_line(title)
    for offset in cast("tuple[int, ...]", offsets):
        if style is not None and offset < len(content) and not content.plain[offset].isspace():
            content = content.stylize(style, offset, offset + 1)
    return content
