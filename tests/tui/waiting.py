"""Waiting for what is to come, and not for a time: a machine may be slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.css.query import NoMatches
from textual.pilot import Pilot

PATIENCE_S = 30.0
"""Until a test gives up."""


async def until(pilot: Pilot[int], is_so: Callable[[], object]) -> None:
    """Wait for something, and until it is shown; fail if it does not come."""
    async with asyncio.timeout(PATIENCE_S):
        # Not before what was asked for has begun.
        await pilot.pause()
        while not _holds(is_so):
            await asyncio.sleep(0.005)
            await pilot.pause()
    await pilot.pause()


async def until_briefly(is_so: Callable[[], object]) -> None:
    """Wait for something that does not last, and so for nothing else."""
    async with asyncio.timeout(PATIENCE_S):
        while not _holds(is_so):
            await asyncio.sleep(0.005)


async def quiet(pilot: Pilot[int]) -> None:
    """Wait until no worker of the app is at it, and until everything is shown."""
    await pilot.pause()
    async with asyncio.timeout(PATIENCE_S):
        while any(worker.is_running for worker in pilot.app.workers):
            await asyncio.sleep(0.005)
            await pilot.pause()
    await pilot.pause()


def _holds(is_so: Callable[[], object]) -> bool:
    try:
        return bool(is_so())
    except NoMatches:
        return False
