from __future__ import annotations

from dataclasses import replace

from localspec.engine.values import SamplingSettings, SpeculationSettings
from localspec.metrics.latency import LatencyFold
from localspec.session.answer_line import AnswerFigures, answer_line, figures_of, kept_figures
from localspec.session.baseline import Baseline, saved_s, speedup_over
from localspec.session.conversation import Answer, Conversation
from localspec.store.values import StoredMessage
from tests.scripted_engine import ArmScript, EchoEngine


async def answered(method: str = "ngram") -> Answer:
    engine = EchoEngine()
    engine.scripts = {"ngram": ArmScript(accepted=(3,), verify_cost=1.0)}
    conversation = Conversation(engine, SamplingSettings(), 100)
    await conversation.configure(SpeculationSettings(method=method))  # type: ignore[arg-type]
    return await conversation.ask("word " * 41, lambda piece: None)


async def test_a_baseline_gives_a_multiple_and_what_was_saved() -> None:
    answer = await answered()
    decode_tps = answer.latency.decode_tps
    assert decode_tps is not None
    figures = figures_of(answer, Baseline(decode_tps / 2.0, "run 1"))
    assert figures.speedup is not None and abs(figures.speedup - 2.0) < 1e-9
    # 40 tokens after the first, each in half the time.
    assert figures.saved_s is not None and abs(figures.saved_s - 40 / decode_tps) < 1e-9
    assert "2.0x" in answer_line(figures) and "saved" in answer_line(figures)
    slower = figures_of(answer, Baseline(decode_tps * 2.0, "run 1"))
    assert "0.50x" in answer_line(slower) and "cost" in answer_line(slower)


async def test_without_a_baseline_or_without_drafts_there_is_none() -> None:
    answer = await answered()
    assert "x," not in answer_line(figures_of(answer, None))
    off = figures_of(await answered("off"), Baseline(1.0, "run 1"))
    assert (off.speedup, off.saved_s, off.acceptance_rate) == (None, None, None)


def test_too_few_tokens_have_no_speed() -> None:
    latency = LatencyFold().result()
    assert speedup_over(Baseline(10.0, "run 1"), latency) is None
    assert saved_s(Baseline(10.0, "run 1"), latency) is None


def test_the_line() -> None:
    figures = AnswerFigures(212, 0, 41.3, 1.6, 0.71, 3.1, "stop")
    assert answer_line(figures) == "212 tokens, 41.3 tokens/s, 1.6x, acceptance 71 %, saved 3.1 s"
    stopped = replace(figures, saved_s=-0.8, speedup=0.93, num_thinking=12, finish_reason="cancelled")
    assert answer_line(stopped) == (
        "212 tokens, 12 of them thinking, 41.3 tokens/s, 0.93x, acceptance 71 %, cost 0.8 s, stopped"
    )
    assert answer_line(AnswerFigures(finish_reason="incomplete")) == "broken off"


def test_what_is_kept_of_an_answer() -> None:
    record = {"tokens": 3, "decode_tps": 20.0, "acceptance_rate": 0.5, "is_on": True}
    message = StoredMessage(1, "assistant", "text", "", "length", record)
    assert answer_line(kept_figures(message)) == "3 tokens, 20.0 tokens/s, acceptance 50 %, cut at max_tokens"
    assert answer_line(kept_figures(replace(message, figures={"tokens": "many"}, finish_reason="stop"))) == ""
