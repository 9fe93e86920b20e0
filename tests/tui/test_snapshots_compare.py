"""The comparison as pictures, on the recorded session."""

from __future__ import annotations

from tests.replay_scenes import Look, replayed
from tests.tui.snapshot_kit import LARGE, SMALL, TURNED, check, looks

SECOND_OF_FIRST_PAIR = (4, 10)
"""Two runs to warm up, then the first arm; and so many rounds of the other one."""


@looks(SMALL, LARGE, quick=SMALL)
async def test_before_the_race(look: Look) -> None:
    async with replayed(look) as stage:
        await stage.press("f5")
        check("compare-before", look, await stage.picture())


@looks(SMALL, LARGE)
async def test_the_ghost_race(look: Look) -> None:
    async with replayed(look, hold=SECOND_OF_FIRST_PAIR) as stage:
        await stage.race()
        check("compare-racing", look, await stage.picture())


@looks(SMALL, LARGE, *TURNED)
async def test_the_card_of_the_result(look: Look) -> None:
    async with replayed(look) as stage:
        await stage.race()
        check("compare-result", look, await stage.picture())


@looks(SMALL)
async def test_how_an_arm_drafts(look: Look) -> None:
    async with replayed(look) as stage:
        await stage.press("f5")
        await stage.press("b")
        check("compare-arm", look, await stage.picture())
