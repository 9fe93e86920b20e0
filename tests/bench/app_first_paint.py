"""How long a person waits for the terminal app: from the start of its process to its first full screen.

The app begins on the screen that it was left on, so that each of the five may be the first.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from tests.bench.setting import Json, Outcome, Setting, Spread

NUM_STARTS = 10
SCREENS = ("models", "fit", "chat", "compare", "runs")
WANTED_S = 0.5

_FULL = (b"localspec", b"Models", b"speculation", b"Palette")
"""Words of the first line, of the status line and of the keys below: with all of them a screen is whole."""
_PATIENCE_S = 20.0


async def first_paint(setting: Setting) -> Outcome:
    """Start the app ten times on each screen, on a terminal of 120 x 40 and in a folder of its own."""
    home = setting.folder / "first-paint"
    # The first start makes the folders and the compiled files; people have it once.
    warm_up_s = start_and_paint(home)
    lines: list[str] = []
    numbers: dict[str, Json] = {"first_start_s": warm_up_s}
    for screen in SCREENS:
        leave_on(home, screen)
        start_and_paint(home)
        spread = Spread.of([start_and_paint(home) for _ in range(NUM_STARTS)])
        lines.append(f"{screen}: first full screen after {spread.words(3, ' s')}")
        numbers[screen] = {"first_paint_s": spread.json}
    bare = Spread.of([_time_of_python() for _ in range(5)])
    lines.append(f"median, least and greatest of {NUM_STARTS} starts each; wanted at most {WANTED_S} s")
    lines.append(
        f"(the start before those took {warm_up_s:.3f} s; Python with an empty program takes {bare.words(3, ' s')})"
    )
    return Outcome(tuple(lines), {**numbers, "empty_python_s": bare.json})


def leave_on(home: Path, screen: str) -> None:
    """Have the next start begin on a screen."""
    place = _data(home)
    place.mkdir(parents=True, exist_ok=True)
    (place / "app.json").write_text(json.dumps({"screen": screen}))


def _data(home: Path) -> Path:
    return home / "data"


def start_and_paint(home: Path, arguments: tuple[str, ...] = ()) -> float:
    """Start the app and end it as soon as its first screen is whole; return the seconds until then.

    Args:
        home: home folder of the process, made if need be.
        arguments: of localspec.

    Raises:
        RuntimeError: it never came to that.
    """
    home.mkdir(parents=True, exist_ok=True)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    began_s = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "localspec", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=_environment(home),
        start_new_session=True,
    )
    os.close(slave)
    output = b""
    try:
        while not all(word in output for word in _FULL):
            ready, _, _ = select.select([master], [], [], _PATIENCE_S)
            piece = os.read(master, 65536) if ready else b""
            if not piece:
                raise RuntimeError(f"no full screen came: {output[-500:]!r}")
            output += piece
        return perf_counter() - began_s
    finally:
        _end(process, master)


def _end(process: subprocess.Popen[bytes], master: int) -> None:
    process.terminate()
    # What it still writes has to go somewhere, or it would wait for its terminal for ever.
    with suppress(OSError):
        while process.poll() is None:
            if select.select([master], [], [], 0.05)[0]:
                os.read(master, 65536)
    process.wait(_PATIENCE_S)
    os.close(master)


def _time_of_python() -> float:
    began_s = perf_counter()
    subprocess.run([sys.executable, "-c", ""], check=True)
    return perf_counter() - began_s


def _environment(home: Path) -> dict[str, str]:
    """Return an environment in which nothing is the user's, and Python keeps what it compiles as it does for users."""
    left_out = ("LOCALSPEC_", "XDG_", "HF_", "PYTHON", "TEXTUAL", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    own = {"HOME": str(home), "LOCALSPEC_DATA": str(_data(home)), "PYTHONPYCACHEPREFIX": str(home / "compiled")}
    root = str(Path(__file__).parents[2])
    return kept | own | {"PYTHONPATH": root, "TERM": "xterm-256color", "COLORTERM": "truecolor", "HF_HUB_OFFLINE": "1"}
