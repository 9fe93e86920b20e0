"""Methods as the settings name them: which drafter they make, why there is none, and the same text with each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.engine.drafting.remembered import kept_answers
from localspec.engine.events import Configured, Event
from localspec.engine.llama import library
from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.runtime import Runtime
from localspec.engine.requests import Configure, Generate, LoadModels
from localspec.engine.values import Method, SpeculationSettings, SpeculationState
from tests.engine_kit import SMALL, Answer

PROMPT = (10, 20, 30)


class Kit:
    """A Runtime with answers in a folder of the test's own."""

    def __init__(self, answers: Path) -> None:
        library.start_library()
        self.answers = answers
        self.events: list[Event] = []
        self.runtime = Runtime(self.events.append, AbortFlag(), 1, answers_folder=lambda: answers)

    def load(self, target: Path, draft: Path | None = None) -> None:
        self.runtime.load_models(LoadModels(1, str(target), SMALL, str(draft or ""), SMALL))

    def use(self, settings: SpeculationSettings) -> SpeculationState:
        self.runtime.configure(Configure(2, settings))
        last = self.events[-1]
        assert isinstance(last, Configured)
        return last.speculation

    def answer(self, is_fresh: bool = True, max_tokens: int = 60) -> Answer:
        del self.events[:]
        request = Generate(3, tokens=PROMPT, max_tokens=max_tokens, is_fresh=is_fresh)
        self.runtime.generate(request, 0.0)
        return Answer(tuple(self.events))


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Kit]:
    kit = Kit(tmp_path / "answers")
    yield kit
    kit.runtime.close()


def test_each_method_is_named_after_what_drafts(kit: Kit, tiny_files: dict[str, Path]) -> None:
    kit.load(tiny_files["target"], tiny_files["draft"])
    names = {method: kit.use(SpeculationSettings(method)).drafter for method in _METHODS}
    assert names == {
        "off": "",
        "ngram": "n-gram 4-6",
        "draft": "draft draft",
        "suffix": "suffix",
        "cascade": "suffix + draft draft",
        "auto": "suffix + draft draft",
    }


_METHODS: tuple[Method, ...] = ("off", "ngram", "draft", "suffix", "cascade", "auto")


def test_without_a_draft_model_a_cascade_is_off_and_auto_is_suffix_decoding(
    kit: Kit, tiny_files: dict[str, Path]
) -> None:
    kit.load(tiny_files["target"])
    cascade, auto = kit.use(SpeculationSettings("cascade")), kit.use(SpeculationSettings("auto"))
    assert (cascade.is_on, cascade.drafter, cascade.reason) == (False, "", "no draft model is loaded")
    assert (auto.is_on, auto.drafter, auto.reason) == (True, "suffix", "")


@pytest.mark.parametrize("method", ["suffix", "cascade", "auto"])
def test_a_recurrent_target_has_no_drafter_and_says_why(kit: Kit, tiny_files: dict[str, Path], method: Method) -> None:
    kit.load(tiny_files["mamba"])
    state = kit.use(SpeculationSettings(method))
    assert not state.is_on
    assert "recurrent" in state.reason
    assert len(kit.answer(max_tokens=5).ids) == 5


@pytest.mark.parametrize("draft", ["draft", "padded"])
def test_every_method_writes_the_text_of_plain_decoding(kit: Kit, tiny_files: dict[str, Path], draft: str) -> None:
    kit.load(tiny_files["target"], tiny_files[draft])
    plain = kit.answer().ids
    for method in _METHODS:
        for n_max in (1, 4, 16):
            kit.use(SpeculationSettings(method, n_max=n_max, suffix_p_min=0.0, ngram_min=1))
            answer = kit.answer(is_fresh=n_max != 4)
            assert answer.ids == plain, method
            assert answer.finished.n_past == len(PROMPT) + 60 - 1


def test_the_rounds_of_a_cascade_name_their_speaker(kit: Kit, tiny_files: dict[str, Path]) -> None:
    kit.load(tiny_files["target"], tiny_files["draft"])
    kit.use(SpeculationSettings("cascade", suffix_p_min=0.0))
    rounds = kit.answer(max_tokens=150).rounds
    speakers = {done.drafter for done in rounds if done.drafted}
    assert speakers <= {"suffix", "draft draft"} and "draft draft" in speakers
    for done in rounds:
        assert (done.match_length > 0) == (done.drafter == "suffix" and bool(done.drafted))


def test_answers_are_kept_only_where_that_is_asked_for_and_never_of_fresh_ones(
    kit: Kit, tiny_files: dict[str, Path]
) -> None:
    kit.load(tiny_files["target"])
    kit.use(SpeculationSettings("suffix"))
    kit.answer(is_fresh=False)
    assert not kit.answers.exists()
    remembering = SpeculationSettings("suffix", remembers=True)
    assert kit.use(remembering).drafter == "suffix with earlier answers"
    kit.answer(is_fresh=True)
    assert kept_answers(kit.answers).num_files == 0
    first = kit.answer(is_fresh=False)
    assert kept_answers(kit.answers).num_bytes > 4 * 60
    kit.use(SpeculationSettings("off"))
    kit.use(remembering)
    again = kit.answer(is_fresh=False)
    assert again.ids == first.ids
    assert len(again.rounds) < len(first.rounds) / 2
