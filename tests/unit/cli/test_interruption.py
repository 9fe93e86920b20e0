from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.cli.interruption import Interruptions
from tests.tiny_gguf import CHATML, write_llama

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals to another process work differently on Windows")


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    earlier = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, earlier)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def partial_work(num_presses: int, stopping_s: float = 0.02) -> str:
    """Be interrupted, take a while to stop, and return what there is."""
    try:
        for _ in range(num_presses):
            press()
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        press()
        await asyncio.sleep(stopping_s)
        press()
        return "partial"
    return "whole"


@pytest.mark.parametrize("num_presses", [1, 2, 5])
def test_only_the_first_counts(num_presses: int) -> None:
    said: list[str] = []
    with Interruptions(said.append) as interruptions:
        assert interruptions.run(partial_work(num_presses)) == "partial"
        press()
    press()
    assert said == ["Stopping."]


def test_a_slow_end_is_announced() -> None:
    said: list[str] = []
    with Interruptions(said.append, notice_s=0.01) as interruptions:
        assert interruptions.run(partial_work(1, stopping_s=0.2)) == "partial"
    assert "Waiting for the engine to stop." in said


def test_work_that_brings_nothing_is_a_keyboard_interrupt() -> None:
    async def work() -> None:
        press()
        await asyncio.sleep(10)

    with Interruptions(lambda text: None) as interruptions:
        with pytest.raises(KeyboardInterrupt):
            interruptions.run(work())
        # The next run begins anew.
        assert interruptions.run(asyncio.sleep(0, "fine")) == "fine"


def test_until_the_first_run_it_ends_the_program_as_usual() -> None:
    with Interruptions(lambda text: None), pytest.raises(KeyboardInterrupt):
        press()
        time.sleep(1)


def test_closing_is_not_broken_off() -> None:
    async def close() -> str:
        press()
        press()
        await asyncio.sleep(0.02)
        return "closed"

    with Interruptions(lambda text: None) as interruptions:
        assert interruptions.run(close(), is_stoppable=False) == "closed"


def test_a_prompt_hears_of_it() -> None:
    with Interruptions(lambda text: None) as interruptions:
        interruptions.run(asyncio.sleep(0))
        press()
        with interruptions.allowed(), pytest.raises(KeyboardInterrupt):
            press()
            time.sleep(1)
        press()


@pytest.mark.parametrize("gap_s", [0.005, 0.03, 0.2])
def test_a_bench_prints_what_it_has_after_any_number_of_interrupts(gap_s: float, tmp_path: Path) -> None:
    model = write_llama(tmp_path / "tiny.gguf", template=CHATML, can_end=False)
    command = [sys.executable, "-m", "localspec", "bench", str(model), "--method", "ngram", "--workload", "chat"]
    command += ["--n-ctx", "448", "--threads", "1", "--max-tokens", "8", "--pairs", "1000", "--json"]
    environment = {**os.environ, "LOCALSPEC_LOG": str(tmp_path), "LOCALSPEC_CACHE": str(tmp_path)}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[3],
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        notices = []
        for line in process.stderr:
            notices.append(line)
            if "pair 3 of" in line:
                break
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(gap_s)
        out, error = process.communicate(timeout=30)
    assert process.returncode == 130, "".join(notices) + error
    document = json.loads(out.splitlines()[-1])
    assert document["interrupted"] is True and document["failure"] is None
    assert document["workloads"][0]["speedup"]["pairs"] >= 2
    assert "Traceback" not in error
