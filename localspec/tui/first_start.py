"""What there is to begin with: the demo's model, models on this machine, and whether anything was done before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.errors import LocalspecError
from localspec.settings import Settings
from localspec.tui.keyed import keyed
from localspec.tui.services import AppServices

if TYPE_CHECKING:
    from localspec.tui.app import LocalspecApp


@dataclass(frozen=True, slots=True)
class Beginnings:
    """What a newcomer can choose from."""

    demo_refusal: str = ""
    """Why there is no demo, and how to get it; empty if it can be had."""
    num_models: int = 0
    folders: tuple[str, ...] = ()
    """Where those models lie."""
    note: str = ""
    """Why the models could not be looked for; empty if they were."""


def look_around(settings: Settings) -> Beginnings:
    """Return what there is. Opens no model, and uses no network. Blocks."""
    from localspec.catalog.embedded import find_smollm2
    from localspec.catalog.places import places
    from localspec.session.library import local_models

    refusal = ""
    try:
        find_smollm2()
    except LocalspecError as error:
        refusal = f"{error.message} {error.hint}"
    try:
        paths = [model.path for model in local_models(settings)]
    except LocalspecError as error:
        return Beginnings(refusal, note=f"{error.message} {error.hint}")
    folders = [place.folder for place in places(settings.models)]
    used = [folder for folder in folders if any(path.is_relative_to(folder) for path in paths)]
    return Beginnings(refusal, len(paths), tuple(map(shortened, used)))


def has_history(services: AppServices) -> bool:
    """Say whether there are chats or runs. Blocks.

    A database that cannot be opened counts as some, since no newcomer has one.

    Args:
        services: open the database.
    """
    from localspec.store.chats import Chats
    from localspec.store.runs import Runs

    try:
        with services.open_database() as database:
            return bool(Chats(database).summaries(1) or Runs(database).summaries(1))
    except LocalspecError:
        return True


def shortened(folder: Path) -> str:
    """Return a path with ~ for the home folder."""
    try:
        return f"~/{folder.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(folder)


async def welcome(host: LocalspecApp, is_first: bool) -> None:
    """Show the panel for newcomers, and begin what was chosen there.

    Args:
        host: the app.
        is_first: it was not asked for, so that it is shown to newcomers only.
    """
    from localspec.tui.screens.welcome import WelcomeScreen

    if is_first and await asyncio.to_thread(has_history, host.services):
        return
    choice = await host.push_screen_wait(WelcomeScreen())
    if choice == "demo":
        host.prepare_demo()
    elif choice in ("models", "hub"):
        await host.switch_mode("models")
        if choice == "hub":
            await host.run_action("find", host.screen)
    elif choice:
        await host.switch_mode(choice)


def after_demo() -> str:
    """Return what can be done once the demo's models are there."""
    return keyed(
        "The demo is ready: ask it something, or press {app.compare} for the first comparison, off against on."
    )
