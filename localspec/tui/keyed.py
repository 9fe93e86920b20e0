"""Prose that names keys: each as it is now, since the settings may give another one to what it does."""

from __future__ import annotations

import re
from collections.abc import Mapping

from textual._context import active_app

from localspec.tui.key_names import spelt

_NAMED = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)+)\}")

USUAL = {
    "app.compare": "ctrl+g",
    "app.help": "f1",
    "app.quit": "ctrl+q",
    "app.settings": "f9,ctrl+comma",
    "chat.list": "ctrl+o",
    "chat.load": "ctrl+k",
    "chat.new_line": "ctrl+j,shift+enter,alt+enter",
    "chat.probe": "ctrl+b",
    "chat.send": "enter",
    "chat.settings": "ctrl+s",
    "chat.stop": "escape",
    "chat.xray": "ctrl+t",
    "chats.delete": "x,delete",
    "chats.delete_no": "n",
    "chats.delete_yes": "y",
    "chats.leave": "escape",
    "chats.list": "down",
    "chats.rename": "e",
    "compare.dialog.accept": "ctrl+s",
    "compare.extent": "e",
    "compare.left": "a",
    "compare.profile": "p",
    "compare.right": "b",
    "compare.run": "r",
    "compare.stop": "escape",
    "compare.text": "t",
    "demo.stop": "escape",
    "downloads.cancel": "x,delete",
    "downloads.pause": "p,space",
    "fit.context.less": "left,minus",
    "fit.context.more": "right,plus",
    "fit.measure": "r",
    "fit.models": "enter",
    "help.keys": "k",
    "help.leave": "escape,f1,q",
    "hub.back": "escape",
    "hub.target": "o",
    "keys.leave": "escape",
    "keys.reset": "delete,backspace",
    "keys.search": "slash",
    "mode.chat": "f4,alt+3",
    "mode.compare": "f5,alt+4",
    "mode.fit": "f3,alt+2",
    "mode.models": "f2,alt+1",
    "mode.runs": "f6,alt+5",
    "models.demo": "g",
    "models.draft": "d",
    "models.force": "D",
    "models.hub": "h",
    "models.pairs": "p",
    "models.refresh": "r,ctrl+r",
    "models.stop": "escape",
    "models.target": "t",
    "probe.deep": "d",
    "probe.run": "r",
    "prompt.cancel": "escape",
    "question.no": "n,escape",
    "question.yes": "y",
    "runs.back": "escape",
    "runs.compare": "c",
    "runs.mark": "space",
    "runs.open": "o",
    "runs.report": "p",
    "runs.save": "s",
    "runs.switch": "v",
    "save.leave": "escape",
    "tune.edit": "e",
    "tune.profile": "p",
    "tune.run": "r",
    "tune.stop": "escape",
    "tune.use": "w",
}
"""What prose speaks of, and the keys that it has without settings: the bindings' own, which are in their screens."""


def keyed(words: str) -> str:
    """Return words with a key in place of each name in braces: `{chat.load} loads now` becomes `ctrl+k loads now`.

    Only for our own words: whatever is foreign is put beside them afterwards. What says it for longer than a moment
    says it anew when the keys change (`ModeScreen.show_keys`, `ConfiguredApp.watch_key_map`).
    """
    return _NAMED.sub(lambda found: spelt(keys_of(found[1])[0]), words)


def keys_of(name: str) -> tuple[str, ...]:
    """Return the keys that something has now, by Textual's names, the one that is shown first."""
    usual = USUAL[name]
    return tuple(_in_force().get(name, usual).split(","))


def _in_force() -> Mapping[str, str]:
    """Return the keys that are not the usual ones in the app that runs here; none where none does."""
    keys: Mapping[str, str] = getattr(active_app.get(None), "key_map", {})
    return keys
