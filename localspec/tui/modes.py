"""The app's screens, each imported when it is first shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.screen import Screen

if TYPE_CHECKING:
    from textual.command import Provider


def _models() -> Screen[None]:
    from localspec.tui.screens.models import ModelsScreen

    return ModelsScreen()


def _fit() -> Screen[None]:
    from localspec.tui.screens.fit import FitScreen

    return FitScreen()


def _chat() -> Screen[None]:
    from localspec.tui.screens.chat import ChatScreen

    return ChatScreen()


def _compare() -> Screen[None]:
    from localspec.tui.screens.compare import CompareScreen

    return CompareScreen()


def _runs() -> Screen[None]:
    from localspec.tui.screens.runs import RunsScreen

    return RunsScreen()


def app_commands() -> type[Provider]:
    """Return what the palette offers everywhere."""
    from localspec.tui.palette import AppCommands

    return AppCommands


MODES: dict[str, Callable[[], Screen[None]]] = {
    "models": _models,
    "fit": _fit,
    "chat": _chat,
    "compare": _compare,
    "runs": _runs,
}
"""A maker for each mode, in the order of their keys."""
