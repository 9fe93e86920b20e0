"""What adaptive drafting shows, the search for the best settings and the probe as pictures, on made-up engines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localspec.engine.events import RoundFinished
from localspec.engine.values import Beliefs, SpeculationSettings
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.probe import ProbeScreen
from localspec.tui.screens.tune import TuneScreen
from localspec.tui.state import ChosenModel, Launch, Workbench
from localspec.tui.tune_choice import TuneChoice
from tests.probe_kit import ProbeEngine
from tests.replay_scenes import Look
from tests.scripted_engine import EchoEngine
from tests.tui.snapshot_kit import LARGE, SMALL, keep_still, looks, shown
from tests.tui.tune_scenes import DONE, OUTCOME, RUNNING

QUESTION = "the same words come again and again, as the same words do, " * 6


class PacedEngine(EchoEngine):
    """Drafts by two drafters, as adaptive pacing would have it."""

    def _round(self, *given: Any) -> RoundFinished:
        made = super()._round(*given)
        name = "suffix" if made.index % 3 else "draft small Q4_0"
        beliefs = Beliefs(name, len(made.drafted), 2.4, 0.0142, 0.01, 0.31 + 0.002 * made.index, 0.58)
        resting = replace(beliefs, limit=0, is_resting=True) if made.index > 12 else beliefs
        match = 7 if name == "suffix" else 0
        return replace(made, drafter=name, match_length=match, total_s=0.0123, beliefs=resting)


def bench_in(folder: Path, method: str) -> Launch:
    for name in ("big.gguf", "small.gguf"):
        (folder / name).write_bytes(b"GGUF")
    speculation = replace(SpeculationSettings(), method=method)  # type: ignore[arg-type]
    models = (ChosenModel("big", folder / "big.gguf"), ChosenModel("small", folder / "small.gguf"))
    return Launch(workbench=Workbench(*models, speculation), screen="chat")


def with_engine(app: LocalspecApp, engine: EchoEngine) -> None:
    # The other one, which reads headers, must not take it.
    app.room._engine = engine


@looks(SMALL, LARGE)
async def test_an_adaptive_answer(look: Look, tmp_path: Path) -> None:
    async with shown(look, EchoEngine, tmp_path, bench_in(tmp_path, "auto")) as (app, pilot):
        with_engine(app, PacedEngine())
        chat = app.screen
        assert isinstance(chat, ChatScreen)
        chat.prompt.put(QUESTION)
        await pilot.press("enter")
        if look == SMALL:
            await pilot.press("ctrl+l")
        await keep_still("chat-adaptive", look, pilot, lambda: not chat.is_working and bool(chat.turns))
        await pilot.press("ctrl+t", *["right"] * 5)
        await keep_still("chat-adaptive-xray", look, pilot)


@looks(SMALL)
async def test_the_drawer_of_auto(look: Look, tmp_path: Path) -> None:
    async with shown(look, EchoEngine, tmp_path, bench_in(tmp_path, "auto")) as (_, pilot):
        await pilot.press("ctrl+s")
        await keep_still("chat-settings-auto", look, pilot)


@looks(SMALL, LARGE)
async def test_a_search(look: Look, tmp_path: Path) -> None:
    async with shown(look, EchoEngine, tmp_path, bench_in(tmp_path, "auto")) as (app, pilot):
        await app.action_tune()
        screen = app.screen
        assert isinstance(screen, TuneScreen)
        screen.choice = TuneChoice(budget="5m")
        screen.is_at_work, screen.snapshot = True, RUNNING
        await keep_still("tune-running", look, pilot)
        screen.is_at_work, screen.snapshot, screen.outcome = False, DONE, OUTCOME
        await keep_still("tune-found", look, pilot)


@looks(SMALL, LARGE)
async def test_a_probe(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.tui.probe_run.condition_sentences", lambda report: ())
    async with shown(look, EchoEngine, tmp_path, bench_in(tmp_path, "draft")) as (app, pilot):
        with_engine(app, ProbeEngine())
        bench = app.workbench
        assert bench.target is not None
        screen = ProbeScreen(bench.target)
        await app.push_screen(screen)
        await keep_still("probe", look, pilot, lambda: screen.snapshot.is_done and not screen.is_at_work)
