"""The probe with the real engine: real steps, a stop in the middle, and a model that cannot roll back."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.client import EngineClient
from localspec.engine.events import Event, StepsProgress
from localspec.engine.requests import Request

pytestmark = pytest.mark.usefixtures("quick_engines")

SMALL = ("--seconds", "1", "--depth", "32", "--n-ctx", "256", "--threads", "1")


class InterruptedClient(EngineClient):
    """Gets the user's Ctrl-C with the first report of steps."""

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        is_first = True
        async for event in super().stream(request):
            yield event
            if isinstance(event, StepsProgress) and is_first:
                is_first = False
                os.kill(os.getpid(), signal.SIGINT)


def test_steps_of_real_models_are_timed(tiny_files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["probe", str(tiny_files["target"]), "--draft", str(tiny_files["draft"]), *SMALL, "--json"]
    assert run(arguments) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    (depth,) = document["depths"]
    assert depth["depth"] == 32 and depth["is_complete"]
    assert [step["width"] for step in depth["steps"]] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16]
    assert len({step["num_steps"] for step in depth["steps"]}) == 1
    assert all(0.0 < step["low_s"] <= step["median_s"] <= step["high_s"] for step in depth["steps"])
    assert depth["draft"]["cost"] > 0.0 and depth["prefill_tps"] > 0.0
    assert document["settings"]["n_ctx"] == 256 and document["settings"]["n_threads"] == 1
    assert "timing steps of the draft" in captured.err and "acceptance needed" in captured.err


def test_a_model_that_cannot_roll_back_is_told(tiny_files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", str(tiny_files["mamba"]), *SMALL]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "cannot take back tokens" in captured.err
    assert "Speculation is not possible with it" in captured.err


@pytest.mark.skipif(os.name == "nt", reason="a signal to oneself ends the process on Windows")
def test_a_stop_prints_what_is_known(
    tiny_files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services = Services(make_engine=lambda: InterruptedClient(tmp_path / "engine.log"))
    arguments = ["probe", str(tiny_files["target"]), *SMALL, "--seconds", "60", "--json"]
    assert run(arguments, services) == 130
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["interrupted"] and not document["depths"][0]["is_complete"]
    assert document["depths"][0]["steps"][0]["median_s"] > 0.0
    assert "Interrupted." in captured.err
