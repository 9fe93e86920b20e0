from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.events import EngineFailed, Event, GenerationFinished, PacingReported, RoundFinished
from localspec.engine.pacing_state import PacingState, to_text
from localspec.engine.requests import Configure, Generate, LoadModels, Request
from localspec.engine.values import SamplingSettings
from localspec.session.conversation import Conversation
from localspec.session.pacing_memory import COLD
from tests.made_up_rounds import beliefs
from tests.scripted_engine import ArmScript, EchoEngine

Talk = Callable[..., tuple[int, str, str]]


@pytest.fixture
def talk(model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Talk:
    def talk(text: str, *options: str, engine: EchoEngine | None = None) -> tuple[int, str, str]:
        used = engine or EchoEngine()
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        code = run(["chat", str(model), *options], Services(make_engine=lambda: used))
        captured = capsys.readouterr()
        assert used.is_closed
        return code, captured.out, captured.err

    return talk


def test_a_pipe_is_answered_line_by_line(talk: Talk) -> None:
    code, out, err = talk("one two three\n\nfour\n")
    assert code == 0
    assert out == "one two three \nfour \n"
    assert "3 tokens" in err
    assert "speculation ON (auto: auto, up to 16)" in err


def test_what_is_loaded_is_named_by_its_files(talk: Talk, model: Path) -> None:
    draft = model.with_name("small.gguf")
    draft.write_bytes(b"GGUF")
    _, _, err = talk("", "--draft", str(draft), "--method", "draft")
    assert "target model.gguf (F16), draft small.gguf (F16), context 256 | speculation ON (draft" in err


def test_history_is_kept_and_cleared(talk: Talk) -> None:
    engine = EchoEngine()
    talk("a\nb\n/clear\nc\n", "--system", "Be kind.", engine=engine)
    asked = [
        [message.content for message in request.messages]
        for request in engine.requests
        if isinstance(request, Generate)
    ]
    assert asked == [["Be kind.", "a"], ["Be kind.", "a", "a ", "b"], ["Be kind.", "c"]]


def test_switching(talk: Talk, model: Path) -> None:
    engine = EchoEngine()
    code, _, err = talk(
        "/off\nhello\n/on\n/method ngram\n/method magic\n/quit\nnever\n", "--draft", str(model), engine=engine
    )
    assert code == 0
    assert [one.speculation.method for one in engine.requests if isinstance(one, LoadModels)] == ["auto"]
    methods = [request.speculation.method for request in engine.requests if isinstance(request, Configure)]
    assert methods == ["off", "auto", "ngram"]
    assert "speculation OFF (the method is off)" in err
    assert "/method takes off, draft, ngram, suffix, cascade or auto; now it is ngram." in err
    assert len([request for request in engine.requests if isinstance(request, Generate)]) == 1


@pytest.mark.parametrize("command", ["/method draft", "/off\n/method draft\n/on"])
def test_a_method_that_is_not_possible_changes_nothing(command: str, talk: Talk) -> None:
    engine = EchoEngine()
    _, _, err = talk(f"{command}\nhello\n", engine=engine)
    assert "draft is not possible: there is no draft model. A chat that begins with --draft MODEL has one." in err
    assert "It stays as it was: speculation O" in err
    assert [method for method, _ in engine.generated] == ["auto"]


def test_pacing_and_verification_change_between_answers(talk: Talk) -> None:
    engine = EchoEngine()
    said = "/pacing adaptive\n/verification block\n/pacing sometimes\n/method suffix\n/off\n/verification\n/on\nhello\n"
    _, _, err = talk(said, engine=engine)
    told = [request.speculation for request in engine.requests if isinstance(request, Configure)]
    assert [(one.method, one.pacing, one.verification) for one in told] == [
        ("auto", "adaptive", "exact"),
        ("auto", "adaptive", "block"),
        ("suffix", "adaptive", "block"),
        ("off", "adaptive", "block"),
        ("suffix", "adaptive", "block"),
    ]
    assert "/pacing takes fixed or adaptive; now it is adaptive." in err
    assert "/verification takes exact, rejection or block; now it is block." in err
    assert "speculation ON (suffix, adaptive up to 4, block at a temperature)" in err
    assert "At temperature 0, block makes no difference." in err
    assert [method for method, _ in engine.generated] == ["suffix"]


def test_fixed_pacing_is_none_of_autos(talk: Talk) -> None:
    said = "auto is always adaptive."
    assert said in talk("/pacing fixed\n")[2]
    assert said in talk("", "--pacing", "fixed")[2]
    assert said not in talk("/pacing fixed\n/pacing adaptive\n", "--method", "suffix", "--pacing", "fixed")[2]
    assert "makes no difference" not in talk("/verification block\n", "--temp", "0.5")[2]


class LearningEngine(EchoEngine):
    """Rests in the end, and reports what it has learnt."""

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        async for event in super().stream(request):
            if isinstance(event, RoundFinished) and event.index:
                resting = beliefs("draft X", 0, is_resting=True, acceptance=0.31, needed=0.58)
                yield replace(event, beliefs=resting)
                continue
            if isinstance(event, GenerationFinished):
                yield PacingReported(request.id, LEARNT)
            yield event


LEARNT = to_text(PacingState({1: 0.01, 2: 0.012}, {}))


def test_what_it_learns_is_there_at_the_next_start_until_it_is_forgotten(
    talk: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALSPEC_DATA", str(tmp_path / "data"))

    def told(said: str) -> list[str]:
        engine = LearningEngine()
        _, _, err = talk(said, "--no-keep", engine=engine)
        assert "resting: acceptance 0.31, needs 0.58 here" in err or "hello" not in said
        return [request.pacing_state for request in engine.requests if isinstance(request, Configure)]

    assert told("hello world\n") == []
    assert told("/off\n") == [LEARNT, ""]
    assert told("/forget\n") == [LEARNT, COLD]
    assert told("") == []


def test_answers_are_remembered_only_when_asked_for(talk: Talk) -> None:
    engine = EchoEngine()
    _, _, err = talk("hello\n", engine=engine)
    assert "Answers are kept" not in err
    asking = EchoEngine()
    _, _, err = talk("hello\n", "--remember", engine=asking)
    assert "Answers are kept on this machine" in err and "`localspec remove --answers` deletes it" in err
    loads = [request for one in (engine, asking) for request in one.requests if isinstance(request, LoadModels)]
    assert [load.speculation.remembers for load in loads] == [False, True]


def test_what_is_not_kept_is_not_remembered_either(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSPEC_DRAFT__REMEMBERS", "true")
    engine = EchoEngine()
    _, _, err = talk("hello\n", "--no-keep", engine=engine)
    assert "Answers are kept" not in err
    loads = [request for request in engine.requests if isinstance(request, LoadModels)]
    assert [load.speculation.remembers for load in loads] == [False]
    assert run(["chat", "model.gguf", "--no-keep", "--remember"]) == 2
    assert run(["history", "continue", "--no-keep", "--remember"]) == 2


@pytest.mark.parametrize("method", ["draft", "cascade"])
def test_a_method_that_needs_a_model_is_refused_at_once(talk: Talk, method: str) -> None:
    engine = EchoEngine()
    engine.is_closed = True
    code, _, err = talk("hello\n", "--method", method, engine=engine)
    assert code == 2 and "needs a model. " not in err and "--draft MODEL" in err
    assert engine.requests == []


def test_on_says_why_it_stays_off(talk: Talk) -> None:
    engine = EchoEngine()
    engine.scripts = {"auto": ArmScript(off_reason="the memory is recurrent")}
    _, _, err = talk("/off\n/on\nhello\n", engine=engine)
    assert "auto is not possible: the memory is recurrent. It stays as it was: speculation OFF (the method" in err


def test_without_drafts_there_is_no_acceptance(talk: Talk) -> None:
    _, _, err = talk("one\n")
    assert "1 tokens" in err and "acceptance" not in err
    _, _, err = talk("one two three four five six\n")
    assert "acceptance" in err


def test_a_draft_that_does_not_load_is_refused_at_the_beginning(talk: Talk, model: Path) -> None:
    engine = EchoEngine()
    engine.draft_failure = f"{model} is damaged"
    code, out, err = talk("hello\n", "--draft", str(model), "--method", "ngram", engine=engine)
    assert (code, out) == (1, "")
    assert f"error: The draft cannot be used: {model} is damaged.\n" in err
    assert f"`localspec pair {model}`" in err and "kept" not in err
    assert engine.generated == []


def test_a_draft_that_is_lost_later_is_told_in_short(talk: Talk, model: Path) -> None:
    class LosingEngine(EchoEngine):
        """Dies at the first answer, and cannot load the draft any more then."""

        async def stream(self, request: Request) -> AsyncIterator[Event]:
            if isinstance(request, Generate) and not self.draft_failure:
                self.draft_failure = f"Cannot read {model}: " + "it is damaged, " * 20
                self.scripts = {"draft": ArmScript(off_reason=self.draft_failure)}
                yield EngineFailed(request.id, "EngineDiedError", "Killed (signal 9).", "", is_fatal=True)
                return
            async for event in super().stream(request):
                yield event

    engine = LosingEngine()
    engine.needs_draft = False
    code, out, err = talk("first\nsecond\n", "--draft", str(model), "--method", "draft", engine=engine)
    assert (code, out.endswith("second \n")) == (0, True)
    assert f"The draft model is not in use: Cannot read {model}: it is damaged" in err
    status = next(line for line in err.splitlines() if line.startswith("1 tokens"))
    assert "speculation OFF (Cannot read model.gguf: it is damaged" in status and status.endswith("…)")
    assert str(model) not in status and len(status) < 200


def test_help_and_unknown_commands(talk: Talk) -> None:
    code, out, err = talk("/help\n/[/]nonsense\n")
    assert code == 0
    assert out == ""
    assert "/method NAME" in err
    assert "There is no command /[/]nonsense" in err


def test_answers_cannot_steer_the_terminal(talk: Talk) -> None:
    _, out, _ = talk("[/] \x1b[31mred\n")
    assert out == "[/] [31mred \n"


def test_options_reach_the_engine(talk: Talk) -> None:
    engine = EchoEngine()
    talk("a b c\n", "--n-max", "7", "--temp", "0.5", "--n-ctx", "512", "--max-tokens", "2", engine=engine)
    load, generate = engine.requests[-2:]
    assert isinstance(load, LoadModels) and isinstance(generate, Generate)
    assert load.speculation.n_max == 7
    assert load.context.n_ctx == 512
    assert generate.sampling.temperature == 0.5
    assert generate.max_tokens == 2


def test_impossible_settings_start_nothing(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = EchoEngine()
    code = run(["chat", str(model), "--n-min", "9", "--n-max", "4"], Services(make_engine=lambda: engine))
    assert code == 2
    assert "n_min 9" in capsys.readouterr().err
    assert engine.requests == []


def test_a_missing_file_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["chat", str(tmp_path / "none.gguf")], Services(make_engine=EchoEngine))
    assert code == 1
    assert "There is no file" in capsys.readouterr().err


def test_draft_needs_a_model(talk: Talk, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chat", str(model), "--method", "draft"], Services(make_engine=EchoEngine)) == 2
    assert "--draft MODEL" in capsys.readouterr().err


def test_a_failed_answer_leaves_the_chat_running(talk: Talk) -> None:
    engine = EchoEngine({"generate": EngineFailed(2, "TemplateError", "No system role.", "Leave it out.")})
    code, out, err = talk("first\nsecond\n", engine=engine)
    assert code == 0
    assert "error: No system role." in err
    assert out.endswith("second \n")
    last = engine.requests[-1]
    assert isinstance(last, Generate) and [message.content for message in last.messages] == ["second"]


def test_a_dead_engine_is_loaded_again(talk: Talk) -> None:
    failure = EngineFailed(2, "EngineDiedError", "Killed (signal 9).", "Load again.", is_fatal=True)
    engine = EchoEngine({"generate": failure})
    code, out, _ = talk("first\nsecond\n", engine=engine)
    assert code == 0
    assert len([request for request in engine.requests if isinstance(request, LoadModels)]) == 2
    assert out.endswith("second \n")


async def test_cancelling_keeps_what_was_said() -> None:
    engine = EchoEngine(pause_s=0.01)
    conversation = Conversation(engine, SamplingSettings(), 1000)
    said: list[str] = []
    enough = asyncio.Event()

    def on_text(text: str) -> None:
        said.append(text)
        if len(said) == 3:
            enough.set()

    asking = asyncio.create_task(conversation.ask("word " * 500, on_text))
    await enough.wait()
    asking.cancel()
    answer = await asking
    assert answer.finish_reason == "cancelled"
    assert answer.text == "".join(said)
    assert 3 <= answer.stats.num_tokens < 500
    assert [message.role for message in conversation.messages] == ["user", "assistant"]


CHAT_PROGRAM = """
import sys
from localspec.cli.main import run
from localspec.cli.services import Services
from tests.scripted_engine import EchoEngine
sys.exit(run(["chat", sys.argv[1], "--max-tokens", "5000"], Services(make_engine=lambda: EchoEngine(pause_s=0.2))))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals to another process work differently on Windows")
@pytest.mark.parametrize("num_presses", [1, 2, 4])
def test_ctrl_c_stops_the_answer_and_not_the_program(num_presses: int, model: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHAT_PROGRAM, str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write("word " * 2000 + "\n")
        process.stdin.flush()
        assert process.stdout.read(4) == "word"
        # All of them come while the engine, which looks up every 200 ms, is still stopping.
        for _ in range(num_presses):
            process.send_signal(signal.SIGINT)
            time.sleep(0.001)
        process.stdin.write("again\n")
        process.stdin.close()
        rest = process.stdout.read()
        error = process.stderr.read()
        assert process.wait(timeout=20) == 0
    assert rest.endswith("again \n")
    assert rest.count("word") < 1900
    assert "stopped" in error
