"""Write the README's pictures, from the recorded session: python -m tests.screenshots [FOLDER]."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.replay_scenes import Look, Stage, replayed

ASSETS = Path(__file__).parents[1] / "assets"
DARK, LIGHT = Look(120, 36), Look(120, 36, "light")
HOME = Path("/tmp/localspec-tour")
"""Where the models seem to lie; it must not be there."""

NAMES = ("chat", "xray", "compare", "runs", "fit", "models")
PAUSE_S = 0.3
"""Toasts and what is timed are gone by then, or there."""


@asynccontextmanager
async def opened(look: Look) -> AsyncIterator[Stage]:
    """Open the app with its models in a folder of a fixed name."""
    HOME.mkdir()
    try:
        async with replayed(look, folder=HOME) as stage:
            yield stage
    finally:
        shutil.rmtree(HOME, ignore_errors=True)


async def take(write: Callable[[str, str], None]) -> None:
    """Play the session and take all pictures on the way.

    Args:
        write: takes a picture's name and its SVG.
    """
    async with opened(DARK) as stage:

        async def picture(name: str) -> None:
            await stage.pilot.pause(PAUSE_S)
            write(name, await stage.picture("localspec"))

        await stage.probe(await stage.chat(3))
        await picture("chat")
        await stage.press("ctrl+t", *["right"] * 5)
        await picture("xray")
        await stage.press("escape")
        await stage.race()
        await picture("compare")
        await stage.fit()
        await picture("fit")
        await stage.models()
        await picture("models")
    async with opened(LIGHT) as stage:
        for _ in range(3):
            await stage.race()
            stage.clock.advance(hours=26)
        await stage.runs()
        write("runs", await stage.picture("localspec"))


def write_all(folder: Path) -> tuple[Path, ...]:
    """Write all pictures into a folder, and return their files."""
    written: list[Path] = []

    def write(name: str, picture: str) -> None:
        file = folder / f"screenshot-{name}.svg"
        file.write_text(picture, "utf-8")
        written.append(file)

    asyncio.run(take(write))
    return tuple(written)


if __name__ == "__main__":
    for file in write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else ASSETS):
        print(file)
