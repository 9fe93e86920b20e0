"""Loading, switching drafters, and saying truly whether speculation is on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.engine.events import Configured, ModelsLoaded
from localspec.engine.model import Cancelled
from localspec.engine.requests import Configure, ExplainDifference, Generate, LoadModels
from localspec.engine.values import ContextSettings, SpeculationSettings
from localspec.errors import LocalspecError, ModelFileError, ModelLoadError, UsageError
from tests.engine_kit import SMALL, RuntimeKit

DRAFT = SpeculationSettings(method="draft", n_max=3)
NGRAM = SpeculationSettings(method="ngram", n_max=3, ngram_min=1, ngram_max=2)
OFF = SpeculationSettings(method="off")
PROMPT = (10, 20, 30)


@pytest.fixture
def kit() -> Iterator[RuntimeKit]:
    kit = RuntimeKit()
    yield kit
    kit.runtime.close()


def load(
    kit: RuntimeKit, target: Path, draft: Path | None = None, speculation: SpeculationSettings = OFF
) -> ModelsLoaded:
    request = LoadModels(1, str(target), SMALL, str(draft or ""), SMALL, speculation)
    kit.runtime.load_models(request)
    last = kit.events[-1]
    assert isinstance(last, ModelsLoaded)
    return last


def configure(kit: RuntimeKit, speculation: SpeculationSettings, draft: Path | None = None) -> Configured:
    kit.runtime.configure(Configure(2, speculation, str(draft) if draft else None, SMALL))
    last = kit.events[-1]
    assert isinstance(last, Configured)
    return last


def answer_ids(kit: RuntimeKit, is_fresh: bool = True) -> list[int]:
    return kit.generate(Generate(3, tokens=PROMPT, max_tokens=30, is_fresh=is_fresh)).ids


def test_what_is_loaded_is_read_back(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    loaded = load(kit, tiny_files["target"], tiny_files["draft"], DRAFT)
    assert (loaded.target.name, loaded.target.architecture, loaded.target.quantisation) == (
        "tiny target",
        "llama",
        "F32",
    )
    assert (loaded.target.n_ctx, loaded.target.n_vocab, loaded.target.n_threads) == (256, 320, 1)
    assert loaded.draft is not None and loaded.draft.name == "tiny draft"
    assert (loaded.speculation.is_on, loaded.speculation.drafter) == (True, "draft draft")
    fractions = [event.fraction for event in kit.events if event.type == "load_progress" and event.model == "target"]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0


def test_a_context_length_that_llama_cpp_pads_is_read_back(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    kit.runtime.load_models(
        LoadModels(1, str(tiny_files["target"]), ContextSettings(n_ctx=64, n_batch=64, n_ubatch=64))
    )
    loaded = kit.events[-1]
    assert isinstance(loaded, ModelsLoaded)
    assert loaded.target.n_ctx == 256


def test_drafters_are_switched_without_reloading_the_target(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    load(kit, tiny_files["target"], tiny_files["draft"], DRAFT)
    plain: list[int] = []
    for settings in (DRAFT, OFF, NGRAM, DRAFT, OFF):
        state = configure(kit, settings).speculation
        assert state.is_on == (settings.method != "off")
        assert state.settings == settings
        ids = answer_ids(kit, is_fresh=False)
        assert ids == (plain := plain or ids)
        drafters = {event.drafter for event in kit.events if event.type == "round_finished"}
        assert drafters == {state.drafter}
    assert not [event for event in kit.events if event.type == "load_progress"]


def test_swapping_the_draft_file_shows_the_new_name(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    load(kit, tiny_files["target"], tiny_files["draft"], DRAFT)
    changed = configure(kit, DRAFT, tiny_files["padded"])
    assert changed.draft is not None and changed.draft.name == "tiny padded"
    assert "padded" in changed.speculation.drafter
    assert answer_ids(kit) == (configure(kit, OFF), answer_ids(kit))[1]


def test_a_padded_draft_may_propose_ids_that_the_target_lacks(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    load(kit, tiny_files["target"])
    plain = answer_ids(kit)
    load(kit, tiny_files["target"], tiny_files["padded"], DRAFT)
    assert answer_ids(kit) == plain


def test_a_padded_target_may_emit_ids_that_the_draft_lacks(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    load(kit, tiny_files["padded"])
    plain = kit.generate(Generate(3, tokens=PROMPT, max_tokens=120)).ids
    assert any(token >= 320 for token in plain)
    load(kit, tiny_files["padded"], tiny_files["draft"], DRAFT)
    assert kit.generate(Generate(3, tokens=PROMPT, max_tokens=120)).ids == plain


def damaged(path: Path, source: Path) -> Path:
    path.write_bytes(source.read_bytes()[:5000])
    return path


@pytest.mark.parametrize("kind", ["truncated", "missing", "other vocabulary", "recurrent"])
def test_a_draft_that_cannot_be_used_leaves_speculation_off_with_the_reason(
    kit: RuntimeKit, tiny_files: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    draft, words = {
        "truncated": (damaged(tmp_path / "cut.gguf", tiny_files["draft"]), "cut.gguf"),
        "missing": (tmp_path / "none.gguf", "none.gguf"),
        "other vocabulary": (tiny_files["other"], "320 tokens, the draft 600"),
        "recurrent": (tiny_files["mamba"], "cannot take back"),
    }[kind]
    loaded = load(kit, tiny_files["target"], draft, DRAFT)
    assert loaded.draft is None
    assert not loaded.speculation.is_on
    assert words in loaded.draft_failure
    assert loaded.speculation.reason == loaded.draft_failure
    assert len(answer_ids(kit)) == 30


def test_without_a_draft_the_draft_method_is_off_and_says_so(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    load(kit, tiny_files["target"], None, DRAFT)
    state = configure(kit, DRAFT).speculation
    assert (state.is_on, state.reason) == (False, "no draft model is loaded")


def test_a_recurrent_target_answers_with_speculation_off_and_the_reason(
    kit: RuntimeKit, tiny_files: dict[str, Path]
) -> None:
    loaded = load(kit, tiny_files["mamba"], None, NGRAM)
    assert not loaded.target.can_roll_back
    assert not loaded.speculation.is_on
    assert "recurrent" in loaded.speculation.reason
    first = kit.generate(Generate(3, tokens=PROMPT, max_tokens=20))
    assert len(first.ids) == 20
    follow_up = (*PROMPT, *first.ids, 40)
    second = kit.generate(Generate(4, tokens=follow_up, max_tokens=5))
    assert second.started.num_reused == len(follow_up) - 2
    changed = kit.generate(Generate(5, tokens=(10, 21, 30), max_tokens=5))
    assert changed.started.num_reused == 0


def test_impossible_settings_change_nothing(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    load(kit, tiny_files["target"], None, NGRAM)
    for bad in (SpeculationSettings("draft", n_max=4, n_min=9), SpeculationSettings("ngram", n_max=99)):
        with pytest.raises(UsageError):
            configure(kit, bad)
    answer = kit.generate(Generate(3, tokens=PROMPT, max_tokens=5))
    assert answer.finished.speculation.is_on


def test_a_target_that_fails_to_load_leaves_nothing_behind(
    kit: RuntimeKit, tiny_files: dict[str, Path], tmp_path: Path
) -> None:
    load(kit, tiny_files["target"])
    with pytest.raises(ModelFileError):
        load(kit, damaged(tmp_path / "cut.gguf", tiny_files["target"]))
    with pytest.raises(UsageError, match="No model is loaded"):
        kit.generate(Generate(3, tokens=PROMPT))
    load(kit, tiny_files["target"])
    assert len(answer_ids(kit)) == 30


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ContextSettings(n_ctx=256, n_batch=16, n_ubatch=16), "n_batch is 16"),
        (ContextSettings(n_ctx=256, n_batch=64, n_ubatch=128), "n_ubatch is 128"),
        (ContextSettings(n_ctx=-5), "n_ctx is -5"),
        (ContextSettings(n_ctx=1 << 40), "n_ctx is 1099511627776"),
        (ContextSettings(n_threads=100_000_000), "n_threads is 100000000"),
        (ContextSettings(n_ctx=256, type_v="q8_0", flash_attn=False), "context"),
    ],
)
def test_a_context_that_cannot_be_made_is_a_clear_error(
    kit: RuntimeKit, tiny_files: dict[str, Path], settings: ContextSettings, words: str
) -> None:
    with pytest.raises(ModelLoadError) as caught:
        kit.runtime.load_models(LoadModels(1, str(tiny_files["target"]), settings))
    assert words in caught.value.message
    assert caught.value.hint


def test_cancel_while_loading_loads_nothing(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    kit.abort.set()
    with pytest.raises(Cancelled):
        load(kit, tiny_files["target"])
    kit.abort.clear()
    with pytest.raises(LocalspecError):
        kit.generate(Generate(3, tokens=PROMPT))


def test_a_replay_of_equal_arms_finds_no_noise_on_an_exact_model(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    load(kit, tiny_files["target"], tiny_files["draft"], DRAFT)
    rounds = kit.generate(Generate(3, tokens=PROMPT, max_tokens=30, is_fresh=True)).rounds
    ids = [token.id for done in rounds for token in done.emitted]
    request = ExplainDifference(
        4,
        PROMPT,
        tuple(ids[:-1]),
        tuple(done.drafted for done in rounds[1:]),
        tuple(done.num_accepted for done in rounds[1:]),
    )
    kit.runtime.explain_difference(request)
    found = kit.events[-1]
    assert found.type == "difference_explained"
    assert found.noise == 0.0
    assert found.top2_gap > 0.0
    assert found.single_token == found.batched_token == ids[-1]
