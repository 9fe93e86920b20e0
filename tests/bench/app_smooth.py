"""How smoothly a fast answer appears in the chat, where cores are free: on a terminal, as a person sees it.

The app runs in a process of its own on a pseudo-terminal of 140 x 40, with an engine that follows a script: 300 tokens
a second in rounds of one to four, as Markdown of prose and code, for ten seconds. Every token is a word with a number,
so that what the app writes to the terminal tells which tokens are on the screen. The engine takes next to no time.

`python -m tests.bench.app_smooth MODEL FILE` is the app's process: it writes when each token came to FILE.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import monotonic, process_time
from typing import NoReturn

import psutil

from localspec.engine.events import RoundFinished
from localspec.engine.values import ContextSettings, SpeculationSettings
from localspec.settings import Settings
from localspec.tui.app import run_app
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench
from tests.bench.setting import Outcome, Setting
from tests.scripted_engine import ArmScript, ScriptedEngine
from tests.terminal_kit import Terminal, on_terminal, own_environment, used_before

WANTED_S = 0.1
"""At the 95th percentile, between two changes of the text."""

RATE = 300.0
SECONDS = 10.0
NUM_TOKENS = int(RATE * SECONDS)
SIZE = (140, 40)

_LOOK_S = 0.002
_CYCLE = 200
"""Tokens of prose, a list and code, over and over."""
_WORD = re.compile(rb"w(\d{4})")


async def smooth(setting: Setting) -> Outcome:
    """Answer once to warm up and once to be measured."""
    folder = setting.folder / "smooth"
    home = used_before(folder)
    model, record = folder / "model.gguf", folder / "record.json"
    model.touch()
    load = psutil.getloadavg()[0]
    command = (sys.executable, "-m", "tests.bench.app_smooth", str(model), str(record))
    with on_terminal(command, own_environment(home), SIZE) as terminal:
        await _until(lambda: b"loaded with your first" in terminal.said)
        for turn in range(2):
            record.unlink(missing_ok=True)
            terminal.keys("Go on\r")
            sights = await _watch(terminal, record, turn * NUM_TOKENS)
            # The line of figures is still to come, and the prompt to be ready.
            await asyncio.sleep(1.0)
        terminal.keys("\x11")
        terminal.wait()
    return _outcome(sights, json.loads(record.read_text()), load)


async def _until(is_so: Callable[[], bool], patience_s: float = 60.0) -> None:
    end_s = monotonic() + patience_s
    while not is_so():
        if monotonic() > end_s:
            raise RuntimeError("the app did not come that far")
        await asyncio.sleep(_LOOK_S)


@dataclass(frozen=True, slots=True)
class Sight:
    """The newest token on the screen, from a moment on."""

    at_s: float
    index: int


async def _watch(terminal: Terminal, record: Path, first: int) -> list[Sight]:
    """Return what came to be seen of the answer with that first word, until the app has recorded its end."""
    sights: list[Sight] = []
    newest, seen = first - 1, len(terminal.said)
    while not record.exists():
        await asyncio.sleep(_LOOK_S)
        now_s, said = monotonic(), terminal.said
        if len(said) == seen:
            continue
        # A word may have come in two pieces.
        found = [int(word) for word in _WORD.findall(said[max(0, seen - 8) :])]
        seen = len(said)
        if found and max(found) > newest:
            newest = max(found)
            sights.append(Sight(now_s, newest - first))
    return sights


def _outcome(sights: Sequence[Sight], record: dict[str, list[float]], load: float) -> Outcome:
    came_s, work_s = record["came_s"], record["work_s"]
    gaps_s = sorted(after.at_s - before.at_s for before, after in pairwise(sights))
    cuts = statistics.quantiles(gaps_s, n=20)
    median_s, p95_s, longest_s = statistics.median(gaps_s), cuts[18], gaps_s[-1]
    behind = max(bisect_right(came_s, after.at_s) - 1 - before.index for before, after in pairwise(sights))
    share = (work_s[1] - work_s[0]) / (came_s[-1] - came_s[0])
    rate = len(came_s) / (came_s[-1] - came_s[0])
    loads = load, psutil.getloadavg()[0]
    return Outcome(
        (
            f"{rate:.0f} tokens/s, {len(sights)} changes of the text: between two of them {1000 * median_s:.0f} ms "
            f"(median), {1000 * p95_s:.0f} ms (95th percentile), {1000 * longest_s:.0f} ms (longest); wanted at most "
            f"{1000 * WANTED_S:.0f} ms at the 95th percentile",
            f"at most {behind} tokens behind; the app takes {100 * share:.0f} % of a core",
            f"load average {loads[0]:.2f} before, {loads[1]:.2f} after",
        ),
        {
            "tokens_per_s": rate,
            "gap_s": {"median": median_s, "p95": p95_s, "max": longest_s},
            "num_changes": len(sights),
            "most_tokens_behind": behind,
            "app_share_of_core_percent": 100.0 * share,
            "load_before": loads[0],
            "load_after": loads[1],
        },
    )


# The app's process.


@dataclass
class SteadyEngine(ScriptedEngine):
    """Emits numbered words as Markdown, at a rate that is kept however late the app is."""

    record: Path = Path()
    _came_s: list[float] = field(default_factory=list)
    _began_work_s: float = 0.0
    _num_answers: int = 0

    def __post_init__(self) -> None:
        self.scripts = {"ngram": ArmScript(accepted=(3, 0, 2, 1, 1, 3))}
        self.on_round = self._keep_pace

    def _keep_pace(self, engine: ScriptedEngine, event: RoundFinished) -> None:
        now_s = monotonic()
        if event.index == 0:
            self._came_s, self._began_work_s = [], process_time()
        self._came_s += [now_s] * len(event.emitted)
        self.pause_s = max(0.0, self._came_s[0] + len(self._came_s) / RATE - now_s)
        if len(self._came_s) >= NUM_TOKENS:
            self._num_answers += 1
            text = json.dumps({"came_s": self._came_s, "work_s": [self._began_work_s, process_time()]})
            whole = self.record.with_suffix(".new")
            whole.write_text(text)
            whole.replace(self.record)

    def _text(self, token: int, index: int) -> str:
        # No word twice: those of earlier answers may be drawn again.
        return piece(index, self._num_answers * NUM_TOKENS + index)


def piece(index: int, number: int) -> str:
    """Return a token's text, a numbered word: two paragraphs, a list and a function, over and over."""
    word, place = f"w{number:04}", index % _CYCLE
    if place < 100:
        words = f"**{word}**" if place % 12 == 5 else word
        return f"{words}.\n\n" if place % 50 == 49 else f"{words} "
    if place < 120:
        start = "- " if place % 5 == 0 else ""
        end = "\n\n" if place == 119 else "\n" if place % 5 == 4 else " "
        return f"{start}{word}{end}"
    start = "```python\n" if place == 120 else "    " if place % 8 == 0 else ""
    end = "\n```\n\n" if place == _CYCLE - 1 else "\n" if place % 8 == 7 else " + " if place % 8 else " = "
    return f"{start}{word}{end}"


def main() -> NoReturn:
    """Run the app on an engine that takes no core."""
    model, record = Path(sys.argv[1]), Path(sys.argv[2])
    bench = Workbench(
        target=ChosenModel("steady", model),
        speculation=SpeculationSettings("ngram", n_max=3),
        context=ContextSettings(n_ctx=32768, n_threads=1),
        max_tokens=NUM_TOKENS,
    )
    services = AppServices(Settings(), lambda: SteadyEngine(record=record))
    sys.exit(run_app(services, Launch(workbench=bench, screen="chat")))


if __name__ == "__main__":
    main()
