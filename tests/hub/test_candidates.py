"""The search for candidates with the real engine, the real client and a Hub on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.catalog.hub.client import Hub
from localspec.engine.client import EngineClient
from localspec.session.candidates import CandidateTarget, find_candidates
from tests.hub.server import TestHub
from tests.tiny_gguf import write_llama


@pytest.fixture
def target(tmp_path: Path) -> CandidateTarget:
    path = write_llama(tmp_path / "Tiny3-8B-F32.gguf", n_layer=8, name="Tiny3 8B")
    return CandidateTarget(path, path.stem)


@pytest.mark.usefixtures("quick_engines")
async def test_the_engine_judges_headers_of_the_hub(hub: TestHub, target: CandidateTarget, tmp_path: Path) -> None:
    small = write_llama(tmp_path / "small.gguf", n_layer=1, name="Tiny3 1B")
    middle = write_llama(tmp_path / "middle.gguf", n_layer=4, name="Tiny3 2B")
    foreign = write_llama(tmp_path / "foreign.gguf", n_layer=1, n_vocab=800, name="Tiny3 0.5B")
    hub.add_repo("o/Tiny3-1B-GGUF", {"Tiny3-1B-F32.gguf": small})
    hub.add_repo("o/Tiny3-2B-GGUF", {"Tiny3-2B-F32.gguf": middle})
    hub.add_repo("o/Tiny3-0.5B-GGUF", {"Tiny3-0.5B-F32.gguf": foreign})
    hub.add_repo("o/Tiny3-0.1B-GGUF", {"Tiny3-0.1B-F32.gguf": b"<html>no model</html>" * 1000})
    engine = EngineClient(tmp_path / "engine.log")
    notes: list[str] = []
    try:
        async with Hub(hub.url) as client:
            found = await find_candidates(engine, target, hub=client, on_note=notes.append)
    finally:
        await engine.close()
    assert notes == []
    accepted, ngram, *refused = found
    assert (accepted.label, accepted.source) == ("o/Tiny3-1B-GGUF:F32", "hub")
    assert accepted.verdict is not None and accepted.verdict.status in ("PAIR", "PAIR_WITH_NOTE")
    assert accepted.cost_ratio is not None and accepted.cost_ratio < 0.25
    assert accepted.size_bytes == small.stat().st_size
    assert ngram.method == "ngram"
    refusals = {one.label: one.refusal for one in refused}
    assert "too dear to pay: it reads 0.53 of" in refusals["o/Tiny3-2B-GGUF:F32"]
    assert "token" in refusals["o/Tiny3-0.5B-GGUF:F32"]
    assert refusals["o/Tiny3-0.1B-GGUF:F32"]


async def test_without_a_network_the_answer_is_there_at_once(target: CandidateTarget, tmp_path: Path) -> None:
    engine = EngineClient(tmp_path / "engine.log")
    notes: list[str] = []
    try:
        # Nothing listens on port 9.
        async with Hub("http://127.0.0.1:9", False) as client:
            [only] = await find_candidates(engine, target, hub=client, on_note=notes.append)
    finally:
        await engine.close()
    assert only.method == "ngram"
    assert len(notes) == 1 and notes[0].startswith("Only this machine was searched: ")
