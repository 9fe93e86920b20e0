"""Record a session of the terminal app on the demo's models, for `localspec --replay`.

Run on a quiet machine: python -m tests.record_session FILE. A chat of two turns with drafts, then off against on.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from textual.pilot import Pilot

from localspec.engine.client import EngineClient
from localspec.session.demo import DemoModels, prepare_demo_models
from localspec.settings import Settings
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.bench_settings import bench_of
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.compare import CompareScreen
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench

QUESTIONS = ("Write three short sentences about the sea.", "Repeat the first one word for word.")

TICK_S = 0.2


async def prepare() -> DemoModels:
    """Return the demo's models."""
    engine = EngineClient()
    try:
        return await prepare_demo_models(engine, lambda _: None)
    finally:
        await engine.close()


def bench_with(models: DemoModels) -> Workbench:
    """Return a workbench for short answers."""
    bench = bench_of(Settings())
    return replace(
        bench,
        target=ChosenModel(models.target.stem, models.target),
        draft=ChosenModel(models.draft.stem, models.draft),
        speculation=replace(bench.speculation, method="draft"),
        context=replace(bench.context, n_ctx=2048),
        draft_context=replace(bench.draft_context, n_ctx=2048),
        max_tokens=64,
    )


async def play(app: LocalspecApp, pilot: Pilot[int]) -> None:
    """Do what is to be recorded."""
    await pilot.pause()
    chat = app.screen
    assert isinstance(chat, ChatScreen)
    for question in QUESTIONS:
        chat.prompt.put(question)
        await pilot.press("enter")
        await pilot.pause(TICK_S)
        while chat.is_working:
            await pilot.pause(TICK_S)
    await pilot.press("f5")
    await pilot.pause()
    compare = app.screen
    assert isinstance(compare, CompareScreen)
    compare.choice = replace(compare.choice, max_tokens=32, num_pairs=1, percent=0.0, workloads=("edit", "chat"))
    compare.action_run()
    while compare.is_racing:
        await pilot.pause(TICK_S)
    await pilot.press("ctrl+q")


async def record(file: Path) -> None:
    """Write the recording."""
    models = await prepare()
    with TemporaryDirectory() as name:
        folder = Path(name)
        parts: Iterator[Path] = (folder / f"{number}.jsonl" for number in range(10))
        services = AppServices(
            make_engine=lambda: EngineClient(record_path=next(parts)),
            open_database=lambda: Database(folder / "kept.sqlite3"),
        )
        app = LocalspecApp(services, Launch(workbench=bench_with(models), screen="chat"))
        async with app.run_test(size=(140, 40)) as pilot:
            await play(app, pilot)
        text = "".join(part.read_text("utf-8") for part in sorted(folder.glob("*.jsonl")))
    file.write_text(text.replace(str(models.target.parent), "/models"), "utf-8")


if __name__ == "__main__":
    asyncio.run(record(Path(sys.argv[1])))
