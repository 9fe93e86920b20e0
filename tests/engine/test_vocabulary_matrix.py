"""The verdict on every pair of 19 real vocabularies is what llama.cpp's own rule gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import llama_cpp.llama_cpp as C
import pytest

from localspec.catalog.pairing import PairSide, check_pair
from localspec.engine.llama.header import read_header
from localspec.engine.llama.library import start_library
from localspec.engine.llama.pairs import check_pairs
from localspec.engine.llama.vocabulary import Vocabulary
from tests import vocabularies

STRCMP_FROM, MOST_APART = 5, 128


@dataclass(frozen=True, slots=True)
class Loaded:
    """A vocabulary as llama.cpp holds it, and as one side of our rule."""

    vocab: Any
    side: PairSide
    texts: tuple[bytes, ...]
    """Of all tokens."""


@pytest.fixture(scope="module")
def loaded() -> Iterator[dict[str, Loaded]]:
    paths = vocabularies.find()
    if len(paths) != vocabularies.NUM_VOCABULARIES:
        pytest.skip(f"no vocabularies in {vocabularies.folder()}; `make test` fetches them")
    start_library()
    params = C.llama_model_default_params()
    params.vocab_only = True
    models = {path: C.llama_model_load_from_file(str(path).encode(), params) for path in paths}
    try:
        assert all(models.values())
        yield {
            path.stem.removeprefix("ggml-vocab-"): Loaded(
                vocab := C.llama_model_get_vocab(model),
                PairSide(read_header(str(path)), Vocabulary(model)),
                tuple(C.llama_vocab_get_text(vocab, token) for token in range(C.llama_vocab_n_tokens(vocab))),
            )
            for path, model in models.items()
        }
    finally:
        for model in models.values():
            C.llama_model_free(model)


def are_compatible(target: Loaded, draft: Loaded) -> bool:
    """common_speculative_are_compatible of llama.cpp's common/speculative.cpp, line by line."""
    tgt, dft = target.vocab, draft.vocab
    if C.llama_vocab_type(tgt) != C.llama_vocab_type(dft):
        return False
    if C.llama_vocab_get_add_bos(tgt) != C.llama_vocab_get_add_bos(dft) or (
        C.llama_vocab_get_add_bos(tgt) and C.llama_vocab_bos(tgt) != C.llama_vocab_bos(dft)
    ):
        return False
    if C.llama_vocab_get_add_eos(tgt) != C.llama_vocab_get_add_eos(dft) or (
        C.llama_vocab_get_add_eos(tgt) and C.llama_vocab_eos(tgt) != C.llama_vocab_eos(dft)
    ):
        return False
    n_tgt, n_dft = C.llama_vocab_n_tokens(tgt), C.llama_vocab_n_tokens(dft)
    if abs(n_tgt - n_dft) > MOST_APART:
        return False
    n_common = min(n_tgt, n_dft)
    return target.texts[STRCMP_FROM:n_common] == draft.texts[STRCMP_FROM:n_common]


def test_all_pairs(loaded: dict[str, Loaded]) -> None:
    is_pair: dict[tuple[str, str], bool] = {}
    for target_name, target in loaded.items():
        for draft_name, draft in loaded.items():
            verdict = check_pair(target.side, draft.side)
            assert verdict.status != "UNKNOWN"
            assert bool(verdict.reason) == (verdict.status == "NO_PAIR")
            is_pair[target_name, draft_name] = verdict.status != "NO_PAIR"
            assert is_pair[target_name, draft_name] == are_compatible(target, draft), (
                target_name,
                draft_name,
                verdict,
            )
    assert len(is_pair) == 361
    assert all(is_pair[b, a] == holds for (a, b), holds in is_pair.items())
    others = {tuple(sorted(names)) for names, holds in is_pair.items() if holds and names[0] != names[1]}
    assert others == {("gpt-neox", "mpt"), ("llama-spm", "phi-3"), ("qwen2", "qwen35")}


def test_a_copy_of_a_vocabulary_is_a_pair_without_notes(loaded: dict[str, Loaded]) -> None:
    for each in loaded.values():
        copy = replace(each.side, header=replace(each.side.header, path="/elsewhere/copy.gguf"))
        assert check_pair(each.side, copy).status == "PAIR"


@pytest.mark.parametrize("name", ["llama-spm", "gpt-2", "qwen2"])
def test_without_fingerprints_the_texts_themselves_are_compared(name: str, loaded: dict[str, Loaded]) -> None:
    side = loaded[name].side
    bare = replace(side, header=replace(side.header, vocabulary_fingerprint=""))
    copy = replace(bare, header=replace(bare.header, path="/elsewhere/copy.gguf"))
    assert check_pair(bare, copy).status == "PAIR"


def test_reasons_name_the_first_difference(loaded: dict[str, Loaded]) -> None:
    def reason(target: str, draft: str) -> str:
        return check_pair(loaded[target].side, loaded[draft].side).reason

    assert reason("refact", "starcoder") == "token 5: the target says '<filename>', the draft says '<repo_name>'"
    assert "SentencePiece BPE" in reason("llama-spm", "qwen2")
    assert reason("command-r", "gemma-4") == "BOS is token 5 in the target and token 2 in the draft"
    assert reason("qwen2", "llama-bpe") == "the draft puts BOS at a text's start, the target does not"
    assert "50257 tokens, the draft 65024" in reason("gpt-2", "falcon")


def test_vocabularies_by_path(loaded: dict[str, Loaded]) -> None:
    paths = {name: each.side.header.path for name, each in loaded.items()}
    drafts = ("llama-spm", "baichuan", "gpt-2")
    found = check_pairs(paths["phi-3"], [paths[name] for name in drafts])
    expected = [check_pair(loaded["phi-3"].side, loaded[name].side) for name in drafts]
    assert list(found) == expected
    assert [verdict.status for verdict in found] == ["PAIR_WITH_NOTE", "NO_PAIR", "NO_PAIR"]


def test_a_header_alone_will_do(loaded: dict[str, Loaded], tmp_path: Path) -> None:
    """As in the sparse files that are made of headers on the Hub."""
    header = loaded["gpt-2"].side.header
    copy = tmp_path / "sparse.gguf"
    copy.write_bytes(Path(header.path).read_bytes()[: header.data_offset])
    with copy.open("r+b") as file:
        file.truncate(10**9)
    (verdict,) = check_pairs(str(copy), [header.path])
    assert verdict.status == "PAIR"
