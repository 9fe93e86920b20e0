"""Parts of the chat screen that need no screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.widgets import Static

from localspec.engine.events import EmittedToken, RoundFinished
from localspec.engine.values import Origin, SpeculationSettings
from localspec.errors import SettingsError
from localspec.metrics.live import LiveFigures
from localspec.metrics.speculation import fold_rounds
from localspec.session.baseline import Baseline
from localspec.session.plain_text import printable
from localspec.tui.bench_text import bench_from, bench_texts
from localspec.tui.chat_words import idle_activity, work_activity
from localspec.tui.round_words import round_words
from localspec.tui.state import ChosenModel, EngineState, Workbench
from localspec.tui.token_marks import first_line_of, mark_of, token_lines
from localspec.tui.widgets.chat_figures import bar, figure_lines
from localspec.tui.widgets.chat_panel import ChatPanel

BENCH = Workbench(target=ChosenModel("t", Path("t.gguf")), draft=ChosenModel("d", Path("d.gguf")))


def a_round(*tokens: tuple[str, Origin], index: int = 1, drafter: str = "draft tiny") -> RoundFinished:
    emitted = tuple(EmittedToken(number, text, origin) for number, (text, origin) in enumerate(tokens))
    num_accepted = sum(token.origin == "accepted" for token in emitted)
    drafted = tuple(range(num_accepted + 1))
    return RoundFinished(
        1, index, drafter, drafted, num_accepted, 0, emitted, 0, "n_max", 0.003, 0.01, 0.0, 0.014, 0.1, 10
    )


def test_tokens_are_marked_by_origin() -> None:
    by_model = a_round(("a", "accepted"), ("b", "correction"))
    assert [mark_of(by_model, place) for place in (0, 1)] == ["draft", "correction"]
    assert mark_of(replace(by_model, drafter="n-gram 4-6"), 0) == "n-gram"
    assert mark_of(replace(by_model, drafter="suffix"), 0) == "suffix"
    after_drafts = a_round(("a", "accepted"), ("b", "bonus"))
    assert mark_of(after_drafts, 1) == "bonus"
    assert mark_of(replace(after_drafts, drafted=()), 1) == "plain"


@given(st.lists(st.text(max_size=30), max_size=20), st.integers(8, 40))
def test_no_token_gets_lost_and_no_line_is_too_wide(texts: list[str], width: int) -> None:
    rounds = [a_round((text, "bonus"), index=index) for index, text in enumerate(texts)]
    lines = token_lines(rounds, width)
    shown = "".join(piece.text for line in lines for piece in line).replace("⏎", "").replace(" ", "")
    wanted = "".join(printable(text) for text in texts)
    for blank in "\n\t ":
        wanted = wanted.replace(blank, "")
    assert shown == wanted.replace("⏎", "")
    assert all(sum(cell_len(piece.text) for piece in line) <= width for line in lines)


def test_the_line_of_a_round() -> None:
    rounds = [a_round((f"word{index}\n", "bonus"), index=index) for index in range(5)]
    assert first_line_of(token_lines(rounds, 40), 3) == 3


def test_a_round_in_words() -> None:
    round_ = replace(a_round((" the", "accepted"), (" [/cat]", "correction")), drafted_texts=(" the", " \x1b[1mdog"))
    text = round_words(round_, 9).plain
    assert "round 2 of 9" in text and "1 of 2 drafted tokens accepted" in text
    assert '" [1mdog"✗' in text and 'instead " [/cat]"' in text
    assert "14.0 ms: draft 3.0 ms, verify 10.0 ms" in text
    # A token that ends an answer has no text, which must not look like a mistake of the screen.
    assert "(no text)✗" in round_words(replace(round_, drafted_texts=(" the", "")), 9).plain


def test_settings_come_back_as_they_were() -> None:
    assert bench_from(bench_texts(BENCH), BENCH) == BENCH


def test_a_longer_context_goes_for_the_draft_too() -> None:
    bench = bench_from({"n_ctx": "8192", "max_tokens": "9", "method": "draft"}, BENCH)
    assert (bench.context.n_ctx, bench.draft_context.n_ctx, bench.max_tokens) == (8192, 8192, 9)
    assert bench.speculation == SpeculationSettings("draft")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"n_max": "0"}, "n_max is 0"),
        ({"n_max": "four"}, "n_max: "),
        ({"n_min": "9"}, "n_min 9 is over n_max 4"),
        ({"p_min": "2"}, "p_min is 2"),
        ({"ngram_min": "9"}, "ngram_min 9 is over ngram_max 6"),
        ({"temperature": "-1"}, "temperature: "),
        ({"temperature": "nan"}, "temperature: "),
        ({"seed": "4294967295"}, "seed: "),
        ({"n_ctx": "[/]"}, "n_ctx: "),
        ({"max_tokens": "0"}, "max_tokens: "),
        ({"max_tokens": "9" * 5000}, "max_tokens: "),
        ({"n_ctx": "4", "n_max": "8"}, "does not fit"),
    ],
)
def test_refusals_name_the_setting(texts: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        bench_from(texts, BENCH)
    assert words in caught.value.message
    assert caught.value.hint


def test_a_draft_model_is_needed_to_draft_with_it() -> None:
    with pytest.raises(SettingsError) as caught:
        bench_from({"method": "draft"}, replace(BENCH, draft=None))
    assert "Models screen" in caught.value.hint


@given(st.floats(0.0, 1.0), st.integers(1, 40))
def test_bars_have_their_width(share: float, width: int) -> None:
    assert len(bar(share, width)) == width


@pytest.mark.parametrize("width", [20, 32, 60])
def test_figures_of_nothing_are_dashes_and_fit(width: int) -> None:
    lines = figure_lines(LiveFigures(), None, EngineState(), width)
    assert not any("%" in line.plain for line in lines)
    rounds = [a_round(("a", "accepted"), ("b", "correction"), index=index) for index in range(4)]
    full = figure_lines(LiveFigures(stats=fold_rounds(rounds)), None, EngineState(), 40)
    text = "\n".join(line.plain for line in full)
    assert "50 % of 8" in text and "2.00 tokens a round" in text
    assert "position 1" in text and "100 %" in text
    assert "draft" in text and "21 %" in text


def test_what_goes_on_in_words() -> None:
    assert work_activity(LiveFigures()).text == "preparing the prompt"
    reading = work_activity(LiveFigures(num_read=5, num_prompt=20))
    assert (reading.fraction, reading.key) == (0.25, "esc stops")
    rounds = [a_round(("a", "accepted"), ("b", "correction"), index=index) for index in range(4)]
    live = LiveFigures(stats=fold_rounds(rounds), speed=((1.0, 41.25),))
    assert work_activity(live).text == "answering, 8 tokens, 41.2 tokens/s now"
    died = idle_activity(BENCH, EngineState(failure="It [/] died."), False)
    assert (died.kind, died.text, died.key) == ("failure", "It [/] died.", "ctrl+k loads again")
    assert idle_activity(BENCH, EngineState(busy="comparing"), False).kind == "work"


class PanelApp(App[None]):
    def compose(self) -> ComposeResult:
        yield ChatPanel()


async def test_the_speed_of_the_moment_is_said_in_one_place() -> None:
    app = PanelApp()
    async with app.run_test(size=(44, 40)) as pilot:
        panel = app.query_one(ChatPanel)
        panel.live = LiveFigures(speed=((1.0, 41.25), (2.0, 12.5)))
        panel.baseline = Baseline(30.0, "a short probe")
        await pilot.pause()
        title = str(app.query_one(".chart-title", Static).content)
        assert title == "decode, tokens/s   ╌╌ off 30.0"
