"""Record a session of the terminal app on the demo's models, for `localspec --replay`, the tests and the pictures.

Run on a quiet machine: python -m tests.record_session FILE [THREADS]. Both models are looked into, some contexts
measured, questions answered with drafts and the baseline measured; then off against the draft, and against n-grams.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from textual.pilot import Pilot

from localspec.engine.client import EngineClient
from localspec.engine.values import SpeculationSettings
from localspec.session.demo import DemoModels, prepare_demo_models
from localspec.settings import Settings
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.bench_settings import bench_of
from localspec.tui.fit_knobs import FINE_STEP
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.compare import CompareScreen
from localspec.tui.screens.fit import FitScreen
from localspec.tui.screens.models import ModelsScreen
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench

QUESTIONS = (
    "Write three short sentences about the sea.",
    "Repeat the first one word for word.",
    "Write a Python function that reverses a string.",
)

ARMS: tuple[SpeculationSettings | None, ...] = (None, SpeculationSettings("ngram", n_max=8))
"""What races against off: the bench's own drafting, then n-grams."""

MOST_CONTEXT = 8192
"""All that the models were trained for."""

NUM_PAIRS = 3
TICK_S = 0.1
MOST_S = 180.0


async def prepare() -> DemoModels:
    """Return the demo's models."""
    engine = EngineClient()
    try:
        return await prepare_demo_models(engine, lambda _: None)
    finally:
        await engine.close()


def bench_with(models: DemoModels, n_threads: int) -> Workbench:
    """Return a workbench for answers of a few seconds; 0 threads leave their number to llama.cpp."""
    bench = bench_of(Settings())
    return replace(
        bench,
        target=ChosenModel(models.target.stem, models.target),
        draft=ChosenModel(models.draft.stem, models.draft),
        speculation=replace(bench.speculation, method="draft"),
        context=replace(bench.context, n_ctx=2048, n_threads=n_threads, n_threads_batch=n_threads),
        draft_context=replace(bench.draft_context, n_ctx=2048, n_threads=n_threads, n_threads_batch=n_threads),
        max_tokens=160,
    )


async def until(pilot: Pilot[int], is_so: Callable[[], bool]) -> None:
    """Wait for something, but not for ever."""
    async with asyncio.timeout(MOST_S):
        while not is_so():
            await pilot.pause(TICK_S)
    await pilot.pause()


async def look_into_models(app: LocalspecApp, pilot: Pilot[int]) -> None:
    """Have the headers of both read, and drafts looked for."""
    models = app.screen
    assert isinstance(models, ModelsScreen)
    for _ in range(2):
        await until(pilot, lambda: not models.library.activity and models.drafts.candidates != ())
        await pilot.press("down")
        await pilot.pause(0.5)


async def measure_contexts(app: LocalspecApp, pilot: Pilot[int]) -> None:
    """Have the memory of the usual contexts measured."""
    await pilot.press("f3")
    await pilot.pause()
    fit = app.screen
    assert isinstance(fit, FitScreen)
    knobs = fit.knobs
    assert knobs is not None
    for n_ctx in (*range(FINE_STEP, MOST_CONTEXT + 1, FINE_STEP), knobs.placement.n_ctx):
        fit.knobs = knobs.with_context(n_ctx)
        await pilot.pause(TICK_S)
        await until(pilot, lambda: not fit.is_measuring and fit.snapshot.drafts is not None)


async def talk(app: LocalspecApp, pilot: Pilot[int]) -> None:
    """Ask all questions, and measure the baseline of the last."""
    await pilot.press("f4")
    await pilot.pause()
    chat = app.screen
    assert isinstance(chat, ChatScreen)
    for question in QUESTIONS:
        chat.prompt.put(question)
        await pilot.press("enter")
        await pilot.pause(TICK_S)
        await until(pilot, lambda: not chat.is_working)
    chat.action_probe()
    await pilot.pause(TICK_S)
    await until(pilot, lambda: not chat.is_working)


async def race(app: LocalspecApp, pilot: Pilot[int]) -> None:
    """Compare off with each of the arms."""
    await pilot.press("f5")
    await pilot.pause()
    compare = app.screen
    assert isinstance(compare, CompareScreen)
    for arm in ARMS:
        compare.choice = replace(compare.choice, max_tokens=48, num_pairs=NUM_PAIRS, percent=0.0, right=arm)
        compare.action_run()
        await until(pilot, lambda: not compare.is_at_work)


async def record(file: Path, n_threads: int) -> None:
    """Write the recording."""
    models = await prepare()
    with TemporaryDirectory() as name:
        folder = Path(name)
        parts: Iterator[Path] = (folder / f"{number}.jsonl" for number in range(10))
        services = AppServices(
            make_engine=lambda: EngineClient(record_path=next(parts)),
            open_database=lambda: Database(folder / "kept.sqlite3"),
        )
        app = LocalspecApp(services, Launch(workbench=bench_with(models, n_threads)))
        async with app.run_test(size=(140, 40)) as pilot:
            await pilot.pause()
            for part in (look_into_models, measure_contexts, talk, race):
                await part(app, pilot)
            await pilot.press("ctrl+q")
        text = "".join(part.read_text("utf-8") for part in sorted(folder.glob("*.jsonl")))
    file.write_text(text.replace(str(models.target.parent), "/models"), "utf-8")


def main() -> None:
    """Record with nothing in the way: no models but the demo's, no headers that are known already."""
    with TemporaryDirectory() as name:
        for variable in ("LOCALSPEC_CONFIG", "LOCALSPEC_DATA", "LOCALSPEC_CACHE", "LOCALSPEC_LOG", "HF_HOME"):
            os.environ[variable] = str(Path(name) / variable.lower())
        asyncio.run(record(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))


if __name__ == "__main__":
    main()
