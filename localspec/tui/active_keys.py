"""What can be pressed now, in the order in which the screens have it, whatever the settings make of the keys."""

from __future__ import annotations

from functools import cache

from textual.binding import ActiveBinding
from textual.dom import DOMNode
from textual.screen import Screen


def keys_in_order(screen: Screen[object]) -> list[ActiveBinding]:
    """Return the keys of focus, screen and app; Textual puts those that the settings gave behind all others."""
    found = list(screen.active_bindings.values())

    def place(active: ActiveBinding) -> tuple[int, int]:
        name = active.binding.id or active.binding.action
        return -len(active.node.ancestors), _places(type(active.node)).get(name, len(found))

    return sorted(found, key=place)


@cache
def _places(kind: type[DOMNode]) -> dict[str, int]:
    """Return where each binding stands before other keys are given to it."""
    usual = kind._merged_bindings
    places: dict[str, int] = {}
    for bindings in [] if usual is None else usual.key_to_bindings.values():
        for binding in bindings:
            places.setdefault(binding.id or binding.action, len(places))
    return places
