from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.requests import Configure, LoadModels
from localspec.engine.values import SamplingSettings, SpeculationSettings
from localspec.session.conversation import Conversation
from localspec.session.kind_drafting import KindDrafting, settings_by_kind
from localspec.settings import DraftGroup
from localspec.store.database import Database
from localspec.store.profiles import Profiles
from tests.profile_kit import drafting, model, profile_of
from tests.scripted_engine import EchoEngine

USUAL = SpeculationSettings(method="ngram", n_max=2)
CODE = SpeculationSettings(method="draft", n_max=4)
QUESTION = "Write a function in Python that finds primes"


def configured(engine: EchoEngine) -> list[tuple[str, int]]:
    asked = [request.speculation for request in engine.requests if isinstance(request, Configure)]
    return [(settings.method, settings.n_max) for settings in asked]


async def test_what_is_in_force_is_not_asked_for_again() -> None:
    engine = EchoEngine()
    conversation, kinds = Conversation(engine, SamplingSettings(), 20), KindDrafting({"code": SpeculationSettings()})
    for question in ("Hello", QUESTION, QUESTION, "Hello", "Hello"):
        assert await kinds.prepare(conversation, question, USUAL) == ""
    assert configured(engine) == [("off", 4), ("ngram", 2)]
    await kinds.prepare(conversation, QUESTION, USUAL)
    assert kinds.kind == "code"
    kinds.forget()
    await kinds.prepare(conversation, QUESTION, USUAL)
    assert len(configured(engine)) == 4


async def test_a_kind_of_text_does_not_change_whether_answers_are_kept() -> None:
    engine = EchoEngine()
    conversation, kinds = (
        Conversation(engine, SamplingSettings(), 20),
        KindDrafting({"code": replace(CODE, method="auto")}),
    )
    for usual in (replace(USUAL, remembers=True), USUAL):
        await kinds.prepare(conversation, QUESTION, usual)
    asked = [request.speculation.remembers for request in engine.requests if isinstance(request, Configure)]
    assert asked == [True, False]


async def test_a_refusal_is_told_once_and_what_was_in_force_stays() -> None:
    engine = EchoEngine()
    conversation, kinds = Conversation(engine, SamplingSettings(), 20), KindDrafting({"code": CODE})
    await conversation.configure(USUAL)
    assert await kinds.prepare(conversation, QUESTION, USUAL) != ""
    assert configured(engine)[-2:] == [("draft", 4), ("ngram", 2)]
    assert await kinds.prepare(conversation, QUESTION, USUAL) == ""
    assert len(configured(engine)) == 3


async def test_nothing_is_classified_without_settings_by_kind() -> None:
    engine = EchoEngine()
    kinds = KindDrafting({})
    assert await kinds.prepare(Conversation(engine, SamplingSettings(), 20), QUESTION, USUAL) == ""
    assert (kinds.kind, kinds.is_used, engine.requests) == ("", False, [])


async def test_a_person_who_chooses_goes_first() -> None:
    kinds = KindDrafting({"code": CODE})
    kinds.give_up()
    assert not kinds.is_used


def test_settings_as_the_engine_takes_them() -> None:
    assert settings_by_kind({"code": DraftGroup(method="draft", n_max=4)}) == {"code": CODE}


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LOCALSPEC_DATA", str(tmp_path / "data"))
    target, draft = tmp_path / "target.gguf", tmp_path / "draft.gguf"
    for path in (target, draft):
        path.write_bytes(b"GGUF" + bytes(100))
    kinds = {"code": drafting("draft", n_max=4), "story": drafting("off")}
    made = profile_of(
        "mine",
        target=model(str(target)),
        draft=model(str(draft)),
        speculation=drafting("ngram"),
        by_workload=kinds,
    )
    with Database() as database:
        Profiles(database).save(made)
    return "mine"


def chat(profile: str, text: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> EchoEngine:
    engine = EchoEngine()
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert run(["chat", "--profile", profile, *options], Services(make_engine=lambda: engine)) == 0
    return engine


def test_the_status_line_says_the_kind_and_what_it_drafts_with(
    profile: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = chat(profile, f"Hello\n{QUESTION}\nWrite a short story about rain\n", monkeypatch)
    err = " ".join(capsys.readouterr().err.split())
    assert "chat: speculation ON (ngram" in err
    assert "code: speculation ON (draft" in err and "n_max 4" in err
    assert "story: speculation OFF" in err
    (load,) = (request for request in engine.requests if isinstance(request, LoadModels))
    assert load.draft_path and load.speculation.method == "ngram"
    assert configured(engine)[-2:] == [("draft", 4), ("off", 5)]


def test_options_and_commands_go_first(
    profile: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = chat(profile, f"{QUESTION}\n", monkeypatch, "--n-max", "3")
    assert ("draft", 4) not in configured(engine)
    assert "code:" not in capsys.readouterr().err
    engine = chat(profile, f"/method ngram\n{QUESTION}\n", monkeypatch)
    assert ("draft", 4) not in configured(engine)
    assert "the profile's settings for kinds of text do not count" in " ".join(capsys.readouterr().err.split())
