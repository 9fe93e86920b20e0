"""Whether speculation is on is seen on every screen, from the engine's state, however little room there is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localspec.engine.values import SpeculationSettings, SpeculationState
from localspec.session.figures import DASH
from localspec.tui.app import LocalspecApp
from localspec.tui.services import AppServices
from localspec.tui.state import EngineState, Launch, Workbench
from localspec.tui.widgets.speculation_badge import badge_wordings
from localspec.tui.widgets.status_line import status_parts

ON = SpeculationState(True, "draft", "draft SmolLM2-135M Q4_0", "", SpeculationSettings(method="draft"))
OFF = SpeculationState(False, "draft", "", "the draft cannot be rolled back", SpeculationSettings(method="draft"))


def test_a_badge_gives_up_words_and_never_on_or_off() -> None:
    on = [words for words, _ in badge_wordings(ON)]
    assert on[0] == "● speculation ON (draft SmolLM2-135M Q4_0, n_max 4)"
    assert on[-2:] == ["● ON draft 4", "● ON"]
    assert [len(words) for words in on] == sorted((len(words) for words in on), reverse=True)
    assert [words for words, _ in badge_wordings(OFF)] == [
        "○ speculation OFF (the draft cannot be rolled back)",
        "○ speculation OFF",
        "○ OFF",
    ]
    assert [words for words, _ in badge_wordings(None)] == [f"speculation {DASH}", DASH]


@pytest.mark.parametrize("drafter", ["x" * 10_000, "長い名前" * 100, "\x1b[31m[/]" * 50])
def test_a_long_drafter_hides_no_n_max(drafter: str) -> None:
    state = EngineState(speculation=replace(ON, drafter=drafter))
    words, _ = status_parts(Workbench(), state, 58)[0]
    assert words.startswith("speculation ON (")
    assert words.endswith("…, n_max 4)")
    assert "\x1b" not in words


def lines(app: LocalspecApp) -> list[str]:
    """Return the screen as text."""
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["models", "fit", "chat", "compare", "runs"])
async def test_every_screen_tells_it_at_60_columns(services: AppServices, mode: str) -> None:
    app = LocalspecApp(services, Launch(screen=mode))
    async with app.run_test(size=(60, 20)) as pilot:
        app.engine_state = EngineState(speculation=ON)
        await pilot.pause()
        assert lines(app)[0].rstrip().endswith("● ON draft 4")
        assert any("speculation ON (draft SmolLM2-135M Q4_0, n_max 4)" in line for line in lines(app))
        app.engine_state = EngineState(speculation=OFF)
        await pilot.pause()
        assert lines(app)[0].rstrip().endswith("○ OFF")
        assert any("speculation OFF (the draft cannot be rolled back)" in line for line in lines(app))
        await pilot.resize_terminal(130, 40)
        assert lines(app)[0].rstrip().endswith("○ speculation OFF (the draft cannot be rolled back)")
