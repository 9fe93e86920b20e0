"""The app as a program that talks for a long time: `python -m tests.soak_app FOLDER TURNS EVERY`.

It asks TURNS questions of a scripted engine, every twentieth of them for a long answer. After every EVERY turns it
writes one JSON line: turns so far, resident bytes of this process, and widgets that are mounted. What it keeps lies
in FOLDER.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import psutil

from localspec.engine.values import SpeculationSettings
from localspec.errors import OfflineError
from localspec.settings import Settings
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench
from tests.scripted_engine import EchoEngine

LONG, SHORT = 2000, 60
_PARTS = (
    "The sea was calm,",
    "and **nobody** spoke.",
    "- an item",
    "- and one more",
    "```\nx = [1]\n```",
    "`code` [/]",
)


def _text(_: int, index: int) -> str:
    part = _PARTS[index // 12 % len(_PARTS)]
    return f"{part}\n\n" if index % 12 == 11 else f"{part.split()[0]} "


def _offline() -> object:
    raise OfflineError("There is no network.", "Everything local works without it.")


async def soak(folder: Path, num_turns: int, every: int) -> None:
    """Talk, and tell how large this process is."""
    engine = EchoEngine()
    engine.echoes = False
    engine._text = _text  # type: ignore[method-assign, assignment]
    for name in ("big", "small"):
        (folder / f"{name}.gguf").write_bytes(b"GGUF")
    bench = Workbench(
        ChosenModel("big", folder / "big.gguf"),
        ChosenModel("small", folder / "small.gguf"),
        SpeculationSettings("draft", n_max=4),
        max_tokens=SHORT,
    )
    services = AppServices(
        Settings(),
        make_engine=EchoEngine,
        open_hub=_offline,  # type: ignore[arg-type]
        open_database=lambda: Database(folder / "soak.sqlite3"),
    )
    app = LocalspecApp(services, Launch(workbench=bench, screen="chat"))
    app.room._engine = engine
    process = psutil.Process()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        for turn in range(1, num_turns + 1):
            await _ask(app, f"Question {turn}", LONG if turn % 20 == 0 else SHORT)
            # Engines that are scripted note all that they were asked, which is not the app's.
            engine.requests.clear()
            engine.generated.clear()
            if turn % every == 0:
                await pilot.pause()
                gc.collect()
                num_widgets = len(app.screen.query("*"))
                record = {"turns": turn, "rss_bytes": process.memory_info().rss, "widgets": num_widgets}
                print(json.dumps(record), flush=True)


async def _ask(app: LocalspecApp, question: str, max_tokens: int) -> None:
    screen = cast(ChatScreen, app.screen)
    app.workbench = replace(app.workbench, max_tokens=max_tokens)
    num_before = len(screen.turns)
    screen.prompt.put(question)
    screen.prompt.action_send()
    while screen.is_working or len(screen.turns) == num_before:
        await asyncio.sleep(0.002)


if __name__ == "__main__":
    asyncio.run(soak(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
