"""From the key Esc to the moment when nothing goes on any more, on the real worker.

In a prompt that is read, in an answer and in a comparison. It counts from the key being read to the worker of the
screen being done: the engine has ended the answer, and what came is kept and marked. Beside it stands the longest time
for which the app's event loop did not come round meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import perf_counter
from typing import cast

from localspec.engine.values import SpeculationSettings
from localspec.tui.screens.compare import CompareScreen
from tests.bench.app_kit import OpenApp, open_app
from tests.bench.setting import Json, Outcome, Setting, Spread

WANTED_S = 0.2
_TIMES = 5
_LONG_PROMPT = "Tell what happens in this text. " + "The sea was calm and the boat lay still in the sun. " * 120


async def escape(setting: Setting) -> Outcome:
    """Press Esc in a prompt that is read, in an answer that comes, and in a comparison that runs."""
    draft = SpeculationSettings("draft", n_max=4)
    roomy = replace(setting, n_ctx=4096)
    found: dict[str, list[tuple[float, float]]] = {}
    async with open_app(roomy, setting.folder / "escape", draft) as opened:
        found["prefill"] = await _often(opened, _in_prompt)
        found["generation"] = await _often(opened, _in_answer)
    async with open_app(roomy, setting.folder / "escape-compare", draft, "compare") as opened:
        found["comparison"] = await _often(opened, _in_race)
    lines: list[str] = []
    numbers: dict[str, Json] = {}
    for name, values in found.items():
        stopped, halts = Spread.of([value for value, _ in values]), Spread.of([halt for _, halt in values])
        lines.append(f"{name}: stopped after {stopped.words(3, ' s')}, longest halt of the app {halts.words(3, ' s')}")
        numbers[name] = {"stopped_s": stopped.json, "halt_s": halts.json}
    return Outcome((*lines, f"wanted at most {WANTED_S} s"), numbers)


async def _often(opened: OpenApp, once: Callable[[OpenApp], Awaitable[None]]) -> list[tuple[float, float]]:
    values = []
    for _ in range(_TIMES):
        await once(opened)
        values.append(await _stop(opened))
    return values


async def _in_prompt(opened: OpenApp) -> None:
    await opened.ask(_LONG_PROMPT)
    await opened.until(lambda: opened.chat.live.num_prompt or opened.app.engine_state.busy == "answering", "reading")
    await opened.until(lambda: opened.app.engine_state.loaded is not None, "the models")
    await asyncio.sleep(0.3)


async def _in_answer(opened: OpenApp) -> None:
    await opened.chat.action_new_chat()
    await opened.ask("Write a long story about a lighthouse.")
    await opened.until(lambda: opened.chat.live.stats.num_tokens > 30, "thirty tokens")


async def _in_race(opened: OpenApp) -> None:
    screen = cast(CompareScreen, opened.app.screen)
    screen.choice = replace(screen.choice, prompt="Write a long story about a lighthouse.", max_tokens=32)
    screen.action_run()
    # In the second pair: then there is something to keep.
    await opened.until(lambda: any(lane.pair >= 1 and lane.num_tokens > 4 for lane in screen.race.lanes), "a pair")


def _is_stopped(opened: OpenApp) -> bool:
    screen = opened.app.screen
    is_working = screen.is_at_work if isinstance(screen, CompareScreen) else opened.chat.is_working
    return not is_working and not opened.app.engine_state.busy


async def _stop(opened: OpenApp) -> tuple[float, float]:
    """Press Esc; return the seconds until all is still, and the longest halt of the loop."""
    if _is_stopped(opened):
        raise RuntimeError("it was over before Esc was pressed")
    opened.heart.start()
    began_s = perf_counter()
    opened.app.simulate_key("escape")
    await opened.until(lambda: _is_stopped(opened), "stopping", 0.001)
    elapsed_s = perf_counter() - began_s
    await opened.heart.stop()
    return elapsed_s, opened.heart.read()
