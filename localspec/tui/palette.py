"""Everything that the app can do, found by typing, with its key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.actions import parse
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.style import Style
from textual.theme import ThemeProvider
from textual.widget import Widget

from localspec.engine.values import Method
from localspec.errors import LocalspecError, UsageError
from localspec.methods import WORDS, needs_draft
from localspec.tui.configured import AUTO
from localspec.tui.key_names import key_text
from localspec.tui.keyed import keyed
from localspec.tui.plain import MUTED, plain_line

if TYPE_CHECKING:
    from localspec.catalog.found_model import FoundModel
    from localspec.settings import Settings
    from localspec.tui.app import LocalspecApp
    from localspec.tui.key_map import KeyedAction

SCREENS = (
    ("models", "Models", "Which are here, and which the Hub has"),
    ("fit", "Fit", "Do they fit into memory?"),
    ("chat", "Chat", "Talk with the target"),
    ("compare", "Compare", "Off against on, paired"),
    ("runs", "Runs", "What was measured"),
)

METHODS: tuple[tuple[Method, str], ...] = (
    ("off", "Speculation off"),
    ("auto", "Draft by whatever pays (auto)"),
    ("draft", "Draft with the draft model"),
    ("ngram", "Draft with n-grams"),
    ("suffix", "Draft with suffixes"),
    ("cascade", "Draft with suffixes, then the draft model (cascade)"),
)


_TOLD = {f"mode.{mode}" for mode, _, _ in SCREENS} | {
    "app.compare",
    "app.help",
    "app.palette",
    "app.quit",
    "app.settings",
    "app.unload",
    "chat.load",
    "chat.new",
    "compare.tune",
    "models.demo",
}
"""What has a command of its own above the keys'."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    title: str
    help: str
    run: Callable[[], object]
    is_shown: bool = True
    """Before anything is typed."""
    id: str = ""
    """Of the key that does the same; empty if none does."""


class AppCommands(Provider):
    """Screens, models, methods, and what the engine is to do."""

    _models: tuple[FoundModel, ...] = ()
    _actions: tuple[KeyedAction, ...] = ()
    _keys: Mapping[str, str] = {}

    @property
    def host(self) -> LocalspecApp:
        """The app, by its own type."""
        return cast("LocalspecApp", self.app)

    async def startup(self) -> None:
        """Look at which models are here, and at everything that has a key."""
        self._models, actions = await asyncio.to_thread(_look, self.host.services.settings)
        self._actions = tuple(action for action in actions if not action.is_in_dialog)
        keyed = ((action.id, ",".join(action.keys)) for action in self._actions)
        self._keys = {**dict(keyed), **self.host.key_map}

    async def discover(self) -> Hits:
        """Yield what is offered before anything is typed."""
        for command in self._commands():
            if command.is_shown:
                title = self._with_key(plain_line(command.title), command)
                yield DiscoveryHit(title, command.run, text=command.title, help=command.help)

    async def search(self, query: str) -> Hits:
        """Yield what matches."""
        matcher = self.matcher(query)
        for command in self._commands():
            score, offsets = matcher.fuzzy_search.match(query, command.title)
            if score > 0:
                title = self._with_key(_marked(command.title, offsets, matcher.match_style), command)
                yield Hit(score, title, command.run, text=command.title, help=command.help)

    def _commands(self) -> Iterator[Command]:
        host = self.host
        for mode, title, words in SCREENS:
            yield Command(f"Go to {title}", words, partial(self._go, mode), id=f"mode.{mode}")
        load = partial(self._go, "chat", "load")
        yield Command("Load the models", "Now, and not with the first answer", load, id="chat.load")
        yield Command("Unload the models", "Give back their memory", host.action_unload, id="app.unload")
        new_chat = partial(self._go, "chat", "new_chat")
        yield Command("New chat", "Begin another one; this one is kept", new_chat, id="chat.new")
        yield Command("Start the comparison", "Off against on, paired", host.action_compare_now, id="app.compare")
        yield Command("Tune", "Search the best settings within a time", host.action_tune, id="compare.tune")
        for method, title in METHODS:
            words = f"The method {method}: {WORDS[method]}"
            yield Command(title, words, partial(self._draft_by, method))
        yield Command("Prepare the demo", "Embedded models; no download", host.prepare_demo, id="models.demo")
        yield Command("Settings", "Everything in settings.toml", host.action_settings, id="app.settings")
        yield Command("Keys", "Give other keys to what they do", self._show_keys)
        yield Command("Theme", "Colours; the choice is kept", self._choose_theme)
        yield Command("Welcome", "Three ways to begin", host.action_welcome)
        yield Command("Keys of this screen", "Help", host.action_help, id="app.help")
        yield Command("Quit localspec", "And end its engine", host.action_quit, id="app.quit")
        told: set[str] = set()
        for action in self._actions:
            title = f"{action.place}: {action.words[0].lower()}{action.words[1:]}"
            # Two widgets of one screen may do the same.
            if action.id not in _TOLD and title not in told and self._can_be_reached(action):
                told.add(title)
                run = partial(self._carry_out, action)
                yield Command(title, action.name, run, self._is_here(action), action.id)
        for found in self._models:
            name = plain_line(found.name).plain
            yield Command(f"Target {name}", "Choose this model", partial(host.choose_target, found), is_shown=False)

    def _can_be_reached(self, action: KeyedAction) -> bool:
        """Say whether an action is on this screen or on the main one of a mode: others have to be opened first."""
        is_screen = issubclass(action.owner, Screen)
        return not is_screen or isinstance(self.screen, action.owner) or action.owner.__module__.endswith(action.mode)

    def _is_here(self, action: KeyedAction) -> bool:
        """Say whether an action belongs to the screen below, and is no mere movement."""
        return action.owner is type(self.screen) and self._is_possible(action, self.screen)

    def _is_possible(self, action: KeyedAction, node: DOMNode) -> bool:
        _, name, parameters = parse(action.action)
        return bool(node.check_action(name, parameters))

    async def _carry_out(self, action: KeyedAction) -> None:
        """Go where an action is, and carry it out there."""
        if action.mode and action.owner is not type(self.host.screen):
            await self.host.switch_mode(action.mode)
        screen = self.host.screen
        node: DOMNode | None = self.host if issubclass(self.host.__class__, action.owner) else None
        if isinstance(screen, action.owner):
            node = screen
        elif node is None and issubclass(action.owner, Widget):
            found = [widget for widget in screen.query(action.owner) if widget.display]
            node = found[0] if found else None
            if node is not None and node.focusable:
                node.focus()
        if node is None or not await self.host.run_action(action.action, node):
            self.host.notify(str(plain_line(f"That is not possible now: {action.words}.")), markup=False)

    def _show_keys(self) -> None:
        from localspec.tui.screens.keys import KeysScreen

        self.host.push_screen(KeysScreen())

    def _with_key(self, title: Content, command: Command) -> Content:
        if command.id not in self._keys:
            return title
        return Content.assemble(title, "  ", (key_text(self._keys, command.id, ""), MUTED))

    async def _go(self, mode: str, action: str = "") -> None:
        await self.host.switch_mode(mode)
        if action:
            await self.host.run_action(action, self.host.screen)

    def _choose_theme(self) -> None:
        self.host.push_screen(CommandPalette(providers=[Themes], placeholder="Search for themes…"))

    def _draft_by(self, method: Method) -> None:
        bench = self.host.workbench
        if needs_draft((method,)) and bench.draft is None:
            self.host.show_failure(
                UsageError("No draft model is chosen.", keyed("Choose one on the Models screen ({mode.models})."))
            )
            return
        self.host.workbench = replace(bench, speculation=replace(bench.speculation, method=method))


class Themes(ThemeProvider):
    """All themes, and the one that follows the terminal."""

    @property
    def commands(self) -> list[tuple[str, Callable[[], None]]]:
        """Return names with what chooses them."""
        return [(AUTO, self._follow_terminal), *super().commands]

    def _follow_terminal(self) -> None:
        host = cast("LocalspecApp", self.app)
        host.show_theme(AUTO)
        if host.services.memory_file is not None:
            host.write_theme(AUTO)


def _look(settings: Settings) -> tuple[tuple[FoundModel, ...], tuple[KeyedAction, ...]]:
    """Return the models here and what has a key. Blocks, and imports all screens."""
    from localspec.session.library import local_models
    from localspec.tui.key_map import keyed_actions

    try:
        return local_models(settings), keyed_actions()
    except LocalspecError:
        # The Models screen says why; everything else can be commanded all the same.
        return (), keyed_actions()


def _marked(title: str, offsets: object, style: Style | None) -> Content:
    """Return a title with the letters that matched. Textual's own highlighting would read it as markup."""
    content = plain_line(title)
    for offset in cast("tuple[int, ...]", offsets):
        if style is not None and offset < len(content) and not content.plain[offset].isspace():
            content = content.stylize(style, offset, offset + 1)
    return content
