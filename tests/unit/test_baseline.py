"""A baseline counts for the very models and settings that it was measured with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine.events import ModelsLoaded
from localspec.engine.values import SpeculationSettings, SpeculationState
from localspec.session.baseline import find_baseline
from localspec.store.database import Database
from localspec.store.runs import Runs
from tests.kept_runs import Document, changed, made_up_run
from tests.made_up_machine import model_info

DRAFT = SpeculationSettings("draft", n_max=4)
IN_FORCE = {
    "n_ctx": 4096,
    "n_threads": 4,
    "n_threads_batch": 4,
    "n_gpu_layers": 0,
    "type_k": "f16",
    "type_v": "f16",
    "flash_attn": True,
}


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    with Database(tmp_path / "runs.sqlite3") as database:
        yield Runs(database)


def loaded(
    target: str = "/models/target [b].gguf", draft: str = "/models/draft.gguf", **settings: object
) -> ModelsLoaded:
    values = {**IN_FORCE, **settings}
    infos = [replace(model_info(path), **values) for path in (target, draft)]  # type: ignore[arg-type]
    return ModelsLoaded(1, infos[0], infos[1], "", SpeculationState(True, "draft", "draft", "", DRAFT), 0.1)


def keep(runs: Runs, document: Document) -> int:
    run_id = runs.start("bench", {"workloads": []})
    runs.finish(run_id, document, "done")
    return run_id


def a_run(**settings: object) -> Document:
    document = made_up_run()
    document["settings"] = {**document["settings"], **IN_FORCE, "draft_context": dict(IN_FORCE), **settings}
    return document


def test_the_newest_run_of_the_same_pair_and_settings_counts(runs: Runs) -> None:
    keep(runs, a_run())
    faster = a_run()
    faster["workloads"][0]["arms"][0]["decode_tps"]["median"] = 123.0
    newest = keep(runs, faster)
    keep(runs, a_run(n_ctx=8192))
    found = find_baseline(runs, loaded(), DRAFT)
    assert found is not None
    assert (found.decode_tps, found.source) == (123.0, f"run {newest}")


@pytest.mark.parametrize(
    ("state", "speculation"),
    [
        (loaded(target="/models/other.gguf"), DRAFT),
        (loaded(draft="/models/other.gguf"), DRAFT),
        (loaded(n_ctx=2048), DRAFT),
        (loaded(type_k="q8_0"), DRAFT),
        (loaded(), replace(DRAFT, n_max=8)),
        (loaded(), replace(DRAFT, p_min=0.5)),
        (loaded(), SpeculationSettings("ngram")),
    ],
)
def test_any_other_run_does_not(runs: Runs, state: ModelsLoaded, speculation: SpeculationSettings) -> None:
    keep(runs, a_run())
    assert find_baseline(runs, state, speculation) is None


def test_a_damaged_run_is_passed_over(runs: Runs) -> None:
    first = keep(runs, a_run())
    keep(runs, changed(a_run(), settings=None))
    found = find_baseline(runs, loaded(), DRAFT)
    assert found is not None and found.source == f"run {first}"
