from __future__ import annotations

import pytest
from textual.widgets._toast import Toast

from localspec.tui.app import LocalspecApp
from localspec.tui.state import EngineState
from localspec.tui.widgets.chat_prompt import ChatPrompt
from localspec.tui.widgets.status_line import StatusLine, status_parts


@pytest.mark.parametrize(
    ("key", "mode"), [("f2", "models"), ("f3", "fit"), ("f4", "chat"), ("f5", "compare"), ("f6", "runs")]
)
async def test_each_screen_has_a_key(app: LocalspecApp, key: str, mode: str) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
        await pilot.pause()
        assert app.current_mode == mode
        assert app.screen.query_one(StatusLine).is_attached


async def test_hostile_text_in_the_status_line_stays_text(app: LocalspecApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        app.engine_state = EngineState(failure="[/] [bold \x1b[31m")
        await pilot.pause()
        assert "[/] [bold [31m" in "".join(text for text, _ in status_parts(app.workbench, app.engine_state, 80))


async def test_a_notice_hides_neither_status_nor_prompt(app: LocalspecApp) -> None:
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("f4")
        await pilot.pause()
        app.notify("word " * 30)
        await pilot.pause()
        notice = app.screen.query_one(Toast).region
        assert notice.height > 2
        assert not notice.overlaps(app.screen.query_one(StatusLine).region)
        assert not notice.overlaps(app.screen.query_one(ChatPrompt).region)


async def test_quitting_ends_with_0(app: LocalspecApp) -> None:
    async with app.run_test() as pilot:
        await pilot.press("ctrl+q")
    assert app.return_value == 0
