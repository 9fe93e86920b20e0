"""The chat as pictures, on the recorded session."""

from __future__ import annotations

from tests.replay_scenes import Look, replayed
from tests.tui.snapshot_kit import LARGE, SMALL, TURNED, check, looks


@looks(SMALL, LARGE, quick=SMALL)
async def test_an_empty_chat(look: Look) -> None:
    async with replayed(look) as stage:
        await stage.press("ctrl+a", "ctrl+k")
        check("chat-empty", look, await stage.picture())


@looks(SMALL, LARGE)
async def test_an_answer_that_comes(look: Look) -> None:
    async with replayed(look, hold=(3, 12)) as stage:
        await stage.chat(3)
        check("chat-streaming", look, await stage.picture())


@looks(SMALL, LARGE, *TURNED)
async def test_answers_with_their_figures(look: Look) -> None:
    async with replayed(look) as stage:
        await stage.probe(await stage.chat(3))
        check("chat-finished", look, await stage.picture())


@looks(SMALL, LARGE)
async def test_the_token_xray(look: Look) -> None:
    async with replayed(look) as stage:
        await stage.chat(3)
        await stage.press("ctrl+t", *["right"] * 5)
        check("chat-xray", look, await stage.picture())


@looks(SMALL)
async def test_the_token_xray_without_colours(look: Look) -> None:
    async with replayed(look, is_colourless=True) as stage:
        await stage.chat(3)
        await stage.press("ctrl+t", *["right"] * 5)
        check("chat-xray-colourless", look, await stage.picture())


@looks(SMALL, LARGE)
async def test_the_drawer_of_settings(look: Look) -> None:
    async with replayed(look) as stage:
        await stage.chat(1)
        await stage.press("ctrl+s")
        check("chat-settings", look, await stage.picture())


@looks(SMALL, LARGE)
async def test_the_list_of_chats(look: Look) -> None:
    async with replayed(look) as stage:
        for _ in range(2):
            await stage.chat(1)
            stage.clock.advance(hours=30)
            await stage.press("ctrl+n")
        await stage.press("ctrl+o")
        check("chat-list", look, await stage.picture())
