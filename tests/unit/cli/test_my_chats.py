from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localspec.cli.main import run
from localspec.cli.my_chats import own_texts
from localspec.cli.services import Services
from localspec.cli.tune import TuneChoice
from localspec.cli.tune_profile import keep_winner
from localspec.engine.requests import Generate
from localspec.engine.values import ContextSettings, SpeculationSettings
from localspec.session.profiles import read_profile
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.profiles import Profiles
from localspec.store.runs import Runs
from tests.scripted_engine import EchoEngine
from tests.tuning_kit import SpeedyEngine, plan_of, tuned

PLAIN = "Ferns and ivy like shade, and so do most of the plants that grow under trees in cool and quiet places."
CODE = (
    "```python\ndef double(value):\n    return 2 * value\n\n\ndef half(value):\n    return value / 2\n```\nThat is all."
)
BENCH = ("--method", "ngram", "--max-tokens", "12", "--pairs", "3")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "store.sqlite3"
    with Database(path) as opened:
        chats = Chats(opened)
        for number in range(4):
            chat_id = chats.start("t", {"target": {"name": "tiny"}})
            for question, answer in ((f"Secret wish {number}?", PLAIN), (f"Double {number} numbers", CODE)):
                chats.add_message(chat_id, "user", question)
                chats.add_message(chat_id, "assistant", answer, "stop")
    yield path


def carried_out(path: Path, *arguments: str | Path) -> tuple[int, EchoEngine]:
    engine = EchoEngine()
    services = Services(make_engine=lambda: engine, open_database=lambda: Database(path))
    return run([*map(str, arguments)], services), engine


def asked(engine: EchoEngine) -> set[str]:
    return {request.messages[-1].content for request in engine.requests if isinstance(request, Generate)}


def document_of(out: str) -> dict[str, Any]:
    document = json.loads(out.splitlines()[-1])
    assert isinstance(document, dict)
    return document


def test_own_prompts_are_measured_by_kind(model: Path, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, engine = carried_out(database, "bench", model, "--my-chats", *BENCH, "--json")
    captured = capsys.readouterr()
    assert code == 0
    document = document_of(captured.out)
    assert {workload["name"] for workload in document["workloads"]} == {"my_chat", "my_code"}
    assert "8 prompts of your own in 4 chats: chat 4, code 4." in " ".join(captured.err.split())
    assert set(document["by_kind"]) == {"chat", "code"}
    assert document["by_kind"]["code"]["arm"] == "ngram"
    assert document["by_kind"]["code"]["pays"] is True
    assert "In your chats drafting pays for" in " ".join(captured.err.split())
    assert {"Secret wish 3?", "Double 3 numbers"} <= asked(engine)
    follow_up = next(
        item for item in engine.requests if isinstance(item, Generate) and "Double" in item.messages[-1].content
    )
    assert [message.role for message in follow_up.messages] == ["user", "assistant", "user"]


def test_no_word_of_them_is_printed_or_kept_with_the_run(
    model: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carried_out(database, "bench", model, "--my-chats", *BENCH, "--json")[0] == 0
    captured = capsys.readouterr()
    assert "Secret" not in captured.out + captured.err
    with Database(database) as opened:
        stored = Runs(opened).get(1)
    assert stored.request["workloads"][0]["prompts"][0]["source"] is not None
    assert "Secret" not in json.dumps([stored.request, stored.document])


def test_a_run_on_own_chats_can_be_measured_again(
    model: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carried_out(database, "bench", model, "--my-chats", *BENCH)[0] == 0
    code, engine = carried_out(database, "runs", "rerun", "last")
    assert code == 0
    assert {"Secret wish 3?", "Double 3 numbers"} <= asked(engine)
    with Database(database) as opened:
        Chats(opened).delete(4)
    capsys.readouterr()
    code, engine = carried_out(database, "runs", "rerun", "1")
    assert code == 2 and not asked(engine)
    assert "it was in chat 4" in " ".join(capsys.readouterr().err.split())


def test_they_stand_beside_workloads_that_are_named(model: Path, database: Path) -> None:
    code, engine = carried_out(database, "bench", model, "--my-chats", "--workload", "story", *BENCH)
    assert code == 0
    assert any("clockmaker" in question for question in asked(engine))
    assert "Secret wish 3?" in asked(engine)


def test_too_few_chats(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, engine = carried_out(tmp_path / "empty.sqlite3", "bench", model, "--my-chats", *BENCH)
    assert code == 2 and not engine.requests
    assert "Too few chats: 0 answered prompts" in " ".join(capsys.readouterr().err.split())


def test_a_profile_of_own_chats_shows_each_kind(
    model: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carried_out(database, "bench", model, "--my-chats", *BENCH)[0] == 0
    assert carried_out(database, "profile", "save", "mine")[0] == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "drafting for chat ngram n_max 4" in out and "drafting for code ngram n_max 4" in out


def test_the_suite_has_texts_of_its_own(model: Path, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert carried_out(database, "bench", model, "--my-chats", "--suite", "auto")[0] == 2
    assert "leave --my-chats out" in " ".join(capsys.readouterr().err.split())


def own_speeds(settings: SpeculationSettings, prompt: str) -> float:
    """Drafts pay for code and cost much else."""
    if settings.method == "auto":
        return 1.0
    return 1.5 if "Double" in prompt else 0.4


async def test_tuning_keeps_a_setting_for_each_kind(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services = Services(open_database=lambda: Database(database))
    own = own_texts(services, ContextSettings(), 128)
    plan = plan_of(tmp_path, workloads=own, budget_s=900.0, methods=("ngram",))
    result = await tuned(SpeedyEngine(truth=own_speeds), plan)
    assert result.failure is None and result.winner is None and result.confirmed
    choice = TuneChoice(
        str(plan.target), (), (), None, "15m", (), (), "mine", False, True, False, False, (), is_own=True
    )
    run_id, name = keep_winner(services, choice, result)
    assert name == "mine" and run_id is not None
    with Database(database) as opened:
        document = read_profile(Profiles(opened).get("mine")).document
    assert document.speculation.method == "off"
    assert {kind: group.method for kind, group in document.by_workload.items()} == {"code": "ngram", "chat": "off"}
    assert keep_winner(services, replace(choice, is_own=False), result)[1] == ""
