"""Another draft, or none, beside a target that stays loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine.events import Configured, ModelsLoaded
from localspec.engine.model import Cancelled
from localspec.engine.requests import Configure, Generate, LoadModels
from localspec.engine.values import SpeculationSettings
from tests.engine_kit import SMALL, RuntimeKit

DRAFT = SpeculationSettings(method="draft", n_max=3)
PROMPT = (10, 20, 30)


@pytest.fixture
def kit(tiny_files: dict[str, Path]) -> Iterator[RuntimeKit]:
    kit = RuntimeKit()
    kit.runtime.load_models(LoadModels(1, str(tiny_files["target"]), SMALL, str(tiny_files["draft"]), SMALL, DRAFT))
    yield kit
    kit.runtime.close()


def change(kit: RuntimeKit, draft: Path | None, n_ctx: int = SMALL.n_ctx) -> Configured:
    kit.events.clear()
    kit.runtime.configure(Configure(2, DRAFT, str(draft or ""), replace(SMALL, n_ctx=n_ctx)))
    last = kit.events[-1]
    assert isinstance(last, Configured)
    assert not [event for event in kit.events if event.type == "load_progress" and event.model == "target"]
    return last


def test_no_draft_leaves_the_target_with_its_cache_and_gives_the_memory_back(kit: RuntimeKit) -> None:
    loaded = kit.events[-1]
    assert isinstance(loaded, ModelsLoaded) and loaded.footprint is not None and loaded.footprint.draft is not None
    before = kit.generate(Generate(3, tokens=PROMPT, max_tokens=20))
    changed = change(kit, None)
    assert changed.draft is None and changed.draft_failure == ""
    assert (changed.speculation.is_on, changed.speculation.reason) == (False, "no draft model is loaded")
    assert changed.footprint is not None and changed.footprint.draft is None
    assert changed.footprint.target == loaded.footprint.target
    after = kit.generate(Generate(4, tokens=(*PROMPT, *before.ids), max_tokens=5))
    assert after.started.num_reused == len(PROMPT) + len(before.ids) - 1


def test_another_draft_and_another_context_of_it_are_read_back(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    longer = change(kit, tiny_files["draft"], 512)
    assert longer.draft is not None and longer.draft.n_ctx == 512
    assert longer.footprint is not None and longer.footprint.draft is not None and longer.footprint.draft.n_ctx == 512
    other = change(kit, tiny_files["padded"])
    assert other.draft is not None and other.draft.name == "tiny padded" and other.speculation.is_on


def test_the_same_draft_is_not_loaded_again(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    same = change(kit, tiny_files["draft"])
    assert same.draft is not None and same.footprint is None
    assert [event.type for event in kit.events] == ["configured"]


def test_a_draft_that_fails_leaves_the_target_and_says_why(kit: RuntimeKit, tmp_path: Path) -> None:
    failed = change(kit, tmp_path / "none.gguf")
    assert failed.draft is None and "none.gguf" in failed.draft_failure
    assert (failed.speculation.is_on, failed.speculation.reason) == (False, failed.draft_failure)
    assert len(kit.generate(Generate(3, tokens=PROMPT, max_tokens=20)).ids) == 20


def test_a_draft_whose_loading_is_stopped_is_not_claimed_to_draft(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    kit.abort.set()
    with pytest.raises(Cancelled):
        change(kit, tiny_files["padded"])
    kit.abort.clear()
    answer = kit.generate(Generate(3, tokens=PROMPT, max_tokens=20))
    assert not answer.finished.speculation.is_on and "stopped" in answer.finished.speculation.reason
