"""Remembered headers."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from localspec.catalog import header_cache
from localspec.catalog.facts import ModelFacts
from localspec.catalog.header_cache import HeaderCache, Reading, Stamp, stamp_of

FACTS = ModelFacts(
    title="T\x1b[31m",
    architecture="llama",
    quantisation="Q4_K_M",
    num_params=7,
    num_active_params=7,
    file_bytes=2**41,
    tensor_bytes=6,
    active_bytes=5,
    n_ctx_train=4,
    n_layer=3,
    n_embd=2,
    num_experts=0,
    num_experts_used=0,
    n_vocab=1,
    vocabulary_fingerprint="f",
    num_mtp_layers=0,
    draft_only="eagle3",
    target_hidden_size=8,
    target_layers=(1, 2),
    template_fingerprint="",
    licence="",
    base_models=("o/n",),
)


HUGE = asdict(FACTS) | {"num_params": 10**400}
LESS = asdict(FACTS) | {"target_layers": [1, -1]}


def _stamp(file: Path) -> Stamp:
    stamp = stamp_of([file])
    assert stamp is not None
    return stamp


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "models" / "m.gguf"
    file.parent.mkdir()
    file.write_bytes(b"1234")
    return file


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "headers.json"


def test_facts_and_failures_come_back_equal(model: Path, memory: Path) -> None:
    cache = HeaderCache(memory)
    assert cache.get(_stamp(model)) is None
    for reading in (Reading(FACTS), Reading(None, "damaged", "again")):
        cache.put(_stamp(model), reading)
        assert cache.get(_stamp(model)) == reading
        cache.save()
        assert HeaderCache(memory).get(_stamp(model)) == reading
    assert [file.name for file in memory.parent.iterdir()] == ["headers.json"]


def test_a_changed_file_is_forgotten(model: Path, memory: Path) -> None:
    cache = HeaderCache(memory)
    cache.put(_stamp(model), Reading(FACTS))
    model.write_bytes(b"12345")
    assert cache.get(_stamp(model)) is None
    cache.put(_stamp(model), Reading(FACTS))
    os.utime(model, ns=(1, 1))
    assert cache.get(_stamp(model)) is None


def test_every_shard_counts(model: Path, memory: Path) -> None:
    other = model.with_name("n.gguf")
    other.write_bytes(b"x")
    both = stamp_of([model, other])
    assert both is not None
    cache = HeaderCache(memory)
    cache.put(both, Reading(FACTS))
    assert cache.get(_stamp(model)) is None
    other.write_bytes(b"yy")
    changed = stamp_of([model, other])
    assert changed is not None and cache.get(changed) is None
    other.unlink()
    assert stamp_of([model, other]) is None
    assert stamp_of([]) is None


def test_a_name_that_is_no_unicode_is_not_remembered(tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"caf\xe9.gguf")
    file.write_bytes(b"x")
    assert stamp_of([file]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "[" * 100_000,
        '{"format": "0", "entries": {}}',
        '{"entries": {}}',
        json.dumps({"format": header_cache.FORMAT, "entries": [1]}),
        "\udcff",
    ],
)
def test_a_foreign_file_is_ignored_and_replaced(text: str, model: Path, memory: Path) -> None:
    memory.parent.mkdir()
    memory.write_text(text, encoding="utf-8", errors="surrogateescape")
    cache = HeaderCache(memory)
    assert cache.get(_stamp(model)) is None
    cache.put(_stamp(model), Reading(FACTS))
    cache.save()
    assert HeaderCache(memory).get(_stamp(model)) == Reading(FACTS)


def test_another_versions_readings_are_ignored(model: Path, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = HeaderCache(memory)
    cache.put(_stamp(model), Reading(FACTS))
    cache.save()
    monkeypatch.setattr(header_cache, "FORMAT", "another")
    assert HeaderCache(memory).get(_stamp(model)) is None


@pytest.mark.parametrize(
    "damage", [{"facts": {"title": 3}}, {"facts": 1}, {"failure": None}, {"facts": HUGE}, {"facts": LESS}]
)
def test_a_damaged_entry_is_one_that_is_not_there(damage: dict[str, object], model: Path, memory: Path) -> None:
    cache = HeaderCache(memory)
    cache.put(_stamp(model), Reading(FACTS))
    cache.save()
    said = json.loads(memory.read_text())
    said["entries"][str(model)]["reading"].update(damage)
    memory.write_text(json.dumps(said))
    assert HeaderCache(memory).get(_stamp(model)) is None


def test_two_processes_keep_each_others_readings(model: Path, memory: Path) -> None:
    other = model.with_name("n.gguf")
    other.write_bytes(b"x")
    first, second = HeaderCache(memory), HeaderCache(memory)
    first.put(_stamp(model), Reading(FACTS))
    second.put(_stamp(other), Reading(replace(FACTS, title="other")))
    first.save()
    second.save()
    both = HeaderCache(memory)
    assert both.get(_stamp(model)) == Reading(FACTS)
    assert both.get(_stamp(other)) == Reading(replace(FACTS, title="other"))


def test_vanished_files_are_dropped_when_there_are_too_many(
    model: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = HeaderCache(memory)
    cache.put(_stamp(model), Reading(FACTS))
    cache.save()
    monkeypatch.setattr(header_cache, "MAX_FILE_BYTES", int(4.5 * memory.stat().st_size))
    files = [model.with_name(f"{index}.gguf") for index in range(6)]
    for file in files:
        file.write_bytes(b"x")
        cache.put(_stamp(file), Reading(FACTS))
    files[4].unlink()
    cache.save()
    kept = json.loads(memory.read_text())["entries"]
    assert list(kept) == [str(files[index]) for index in (1, 2, 3, 5)]
    assert memory.stat().st_size <= header_cache.MAX_FILE_BYTES


def test_all_of_many_thousand_models_are_remembered(memory: Path) -> None:
    cache = HeaderCache(memory)
    stamps = [
        Stamp(((f"/models/{index}/a-model-with-a-usual-name-{index}-Q4_K_M.gguf", 1, 1),)) for index in range(9_000)
    ]
    for stamp in stamps:
        cache.put(stamp, Reading(FACTS))
    cache.save()
    again = HeaderCache(memory)
    assert all(again.get(stamp) == Reading(FACTS) for stamp in stamps[::100])


def test_a_model_that_says_too_much_of_itself_pushes_none_out(model: Path, memory: Path) -> None:
    cache = HeaderCache(memory)
    cache.put(_stamp(model), Reading(replace(FACTS, title="x" * header_cache.MAX_ENTRY_BYTES)))
    cache.save()
    assert HeaderCache(memory).get(_stamp(model)) is None
    assert not memory.exists()


def test_where_nothing_can_be_written_the_cache_lasts_as_long_as_the_process(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOCALSPEC_CACHE", str(tmp_path / "file"))
    for cache in (HeaderCache(), HeaderCache(tmp_path / "file" / "headers.json")):
        cache.put(_stamp(model), Reading(FACTS))
        cache.save()
        assert cache.get(_stamp(model)) == Reading(FACTS)
