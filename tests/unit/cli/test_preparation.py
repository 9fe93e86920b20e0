from __future__ import annotations

from pathlib import Path

import pytest

from localspec.catalog.embedded import DEMO_DRAFT, DEMO_PRUNED_DRAFT, DEMO_TARGET
from localspec.engine.events import EngineFailed
from localspec.engine.requests import Quantize
from localspec.errors import ModelLoadError
from localspec.session.demo import PreparationProgress, prepare_demo_models
from tests.scripted_engine import EchoEngine


async def test_copies_are_made_once(tmp_path: Path) -> None:
    engine = EchoEngine()
    seen: list[PreparationProgress] = []
    source = tmp_path / "source.gguf"
    models = await prepare_demo_models(engine, seen.append, source, tmp_path)
    made = [request for request in engine.requests if isinstance(request, Quantize)]
    assert [(request.quantisation, request.source_path) for request in made] == [
        ("F16", str(source)),
        ("Q4_0", str(source)),
    ]
    assert models.target == tmp_path / DEMO_TARGET.file_name and models.target.exists()
    assert models.draft == tmp_path / DEMO_DRAFT.file_name
    assert models.pruned_draft is None
    assert [(step.num_done, step.num_total) for step in seen] == [(0, 0), (1, 2)] * 2
    await prepare_demo_models(engine, seen.append, source, tmp_path)
    assert len([request for request in engine.requests if isinstance(request, Quantize)]) == 2


async def test_the_pruned_copy_is_made_when_asked_for(tmp_path: Path) -> None:
    engine = EchoEngine()
    models = await prepare_demo_models(engine, lambda _: None, tmp_path / "s.gguf", tmp_path, with_pruned=True)
    last = engine.requests[-1]
    assert isinstance(last, Quantize)
    assert last.prune_layers == DEMO_PRUNED_DRAFT.prune_layers
    assert models.pruned_draft is not None and models.pruned_draft.exists()


async def test_a_copy_that_fails_keeps_the_engines_words(tmp_path: Path) -> None:
    engine = EchoEngine({"quantize": EngineFailed(1, "ModelLoadError", "No room on the disk.", "Make room.")})
    with pytest.raises(ModelLoadError, match="No room"):
        await prepare_demo_models(engine, lambda _: None, tmp_path / "s.gguf", tmp_path)
