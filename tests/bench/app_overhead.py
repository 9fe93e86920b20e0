"""What the terminal app costs the engine: decode tokens per second through the chat, against the same engine alone.

Both sides run on the same worker with the same models, prompt and text, in turns (A B B A). Alone, the app
has no focus and draws nothing; the events are read by the bare client.
"""

from __future__ import annotations

from time import perf_counter, process_time

import numpy as np
import psutil

from localspec.engine.requests import Generate
from localspec.engine.values import SamplingSettings, SpeculationSettings
from localspec.metrics.statistics import estimate_ratio
from localspec.session.trial import run_trial
from tests.bench.app_kit import OpenApp, open_app
from tests.bench.prompts import conversations
from tests.bench.setting import Json, Outcome, Setting, Spread

WANTED = 0.97
_QUESTION = conversations("story")[0][-1]
_METHODS = (SpeculationSettings("off"), SpeculationSettings("draft", n_max=4))


async def app_overhead(setting: Setting) -> Outcome:
    """Compare, without drafts and with them."""
    lines: list[str] = []
    numbers: dict[str, Json] = {"load_before": psutil.getloadavg()[0]}
    for speculation in _METHODS:
        folder = setting.folder / f"overhead-{speculation.method}"
        async with open_app(setting, folder, speculation, max_tokens=setting.num_tokens) as opened:
            # The first answer loads the models and imports what answers need.
            await _through_app(opened)
            found = await _in_turns(opened, setting)
        lines += [f"{speculation.method}: {line}" for line in found.lines]
        numbers[speculation.method] = found.numbers
    numbers["load_after"] = psutil.getloadavg()[0]
    lines.append(f"load average {numbers['load_before']:.2f} before, {numbers['load_after']:.2f} after")
    return Outcome(tuple(lines), numbers)


async def _in_turns(opened: OpenApp, setting: Setting) -> Outcome:
    alone: list[float] = []
    through: list[float] = []
    shares: list[float] = []
    for pair in range(2 * setting.pairs):
        sides = (False, True) if pair % 2 == 0 else (True, False)
        for is_app in sides:
            if not is_app:
                alone.append(await _alone(opened, setting))
                continue
            rate, share = await _through_app(opened)
            through.append(rate)
            shares.append(share)
    ratio = estimate_ratio([app / bare for app, bare in zip(through, alone, strict=True)], np.random.default_rng(1))
    low, high = ratio.low or ratio.median, ratio.high or ratio.median
    taken = Spread.of([100.0 * value for value in shares])
    return Outcome(
        (
            f"{ratio.median:.3f} of the engine's decode_tps ({low:.3f} to {high:.3f}, {ratio.pairs} pairs), "
            f"wanted at least {WANTED}",
            f"alone {Spread.of(alone).words(1)}, through the app {Spread.of(through).words(1)} tokens/s; "
            f"the app takes {taken.words(1, ' %')} of a core",
        ),
        {
            "ratio": {"median": ratio.median, "low": low, "high": high, "pairs": ratio.pairs},
            "alone_tps": Spread.of(alone).json,
            "app_tps": Spread.of(through).json,
            "app_share_of_core_percent": taken.json,
        },
    )


async def _alone(opened: OpenApp, setting: Setting) -> float:
    opened.app.screen.set_focus(None)
    request = Generate(
        opened.engine.next_id(),
        messages=(_QUESTION,),
        sampling=SamplingSettings(),
        max_tokens=setting.num_tokens,
    )
    async with opened.app.room.occupied("measuring") as engine:
        trial = await run_trial(engine, request, "alone", 0, 0, "", lambda _: None)
    assert trial.decode_tps is not None
    return trial.decode_tps


async def _through_app(opened: OpenApp) -> tuple[float, float]:
    """Return decode tokens per second, and the share of a core that this process took while they came."""
    await opened.chat.action_new_chat()
    opened.chat.prompt.focus()
    await opened.ask(_QUESTION.content)
    await opened.until(lambda: opened.chat.live.stats.num_tokens or not opened.chat.is_working, "the first token")
    began_s, cpu_s = perf_counter(), process_time()
    await opened.until(lambda: not opened.chat.is_working, "the answer", look_s=0.25)
    share = (process_time() - cpu_s) / (perf_counter() - began_s)
    rate = opened.chat.turns[-1].figures.decode_tps
    assert rate is not None
    return rate, share
