"""The app as a program for tests that kill it: `python -m tests.slow_app MODEL [LOG [STALL]]`, then it shows the chat.

With a LOG the engine is a scripted one that says twenty words a second and writes each into LOG, with the time; after
STALL words it says no more. Without, the engine is the real one.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NoReturn

from localspec.engine.events import RoundFinished
from localspec.engine.values import ContextSettings
from localspec.settings import Settings
from localspec.tui.app import run_app
from localspec.tui.services import AppServices, memory_file
from localspec.tui.state import ChosenModel, Launch, Workbench
from tests.scripted_engine import EchoEngine, ScriptedEngine

PAUSE_S = 0.05


def _scripted(log: Path, num_words: int) -> EchoEngine:
    num_said = 0

    def note(engine: ScriptedEngine, event: RoundFinished) -> None:
        nonlocal num_said
        with log.open("a", encoding="utf-8") as file:
            # The clock is the same in all processes of a machine.
            file.write("".join(f"{time.monotonic()} {part.text.strip()}\n" for part in event.emitted))
        num_said += len(event.emitted)
        if num_said >= num_words:
            engine.pause_s = 1000.0

    engine = EchoEngine(pause_s=PAUSE_S)
    engine.on_round = note
    return engine


def main() -> NoReturn:
    """Run the app on the command line's model, and exit as it does."""
    model, *more = sys.argv[1:]
    services = AppServices(Settings(), memory_file=memory_file)
    if more:
        log, num_words = Path(more[0]), int(more[1]) if more[1:] else sys.maxsize
        services = AppServices(Settings(), lambda: _scripted(log, num_words), memory_file=memory_file)
    bench = Workbench(
        target=ChosenModel(Path(model).stem, Path(model)),
        context=ContextSettings(n_ctx=32768, n_threads=1),
        max_tokens=30000,
    )
    sys.exit(run_app(services, Launch(workbench=bench, screen="chat")))


if __name__ == "__main__":
    main()
