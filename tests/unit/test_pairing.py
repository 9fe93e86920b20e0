"""The pair rule on made-up vocabularies and headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from localspec.catalog.header import ArrayValue, GgufHeader, Scalar, TensorInfo
from localspec.catalog.pairing import PairSide, PairVerdict, check_pair


@dataclass
class Words:
    """A vocabulary of given texts."""

    texts: list[bytes] = field(default_factory=lambda: [b"word %d" % index for index in range(300)])
    type: int = 2
    bos: int = 1
    eos: int = 2
    adds_bos: bool = True
    adds_eos: bool = False

    def __post_init__(self) -> None:
        self.n_tokens = len(self.texts)

    def token_text(self, token: int) -> bytes:
        return self.texts[token]


def header(path: str, size: int = 1000, architecture: str = "qwen3", **values: Any) -> GgufHeader:
    """Return a header with one matrix of `size` weights of four bytes."""
    metadata: dict[str, Scalar | ArrayValue] = {"general.architecture": architecture}
    metadata |= {key.replace("__", "."): value for key, value in values.items()}
    tensors = (TensorInfo("blk.0.attn_q.weight", "f32", (size,), 0, 4 * size),)
    return GgufHeader(path, 3, 4 * size, 0, (path,), metadata, tensors, 1, size, 4 * size)


def check(
    target: Words | None = None, draft: Words | None = None, ours: GgufHeader | None = None, **changes: Any
) -> PairVerdict:
    theirs = header("draft.gguf", 100)
    return check_pair(
        PairSide(ours or header("target.gguf"), target or Words()),
        PairSide(changes.get("theirs", theirs), draft or Words()),
    )


def with_text(token: int, text: bytes) -> Words:
    words = Words()
    words.texts[token] = text
    return words


def test_equal_vocabularies_are_a_pair() -> None:
    assert check() == PairVerdict("PAIR", "")


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (Words(type=1), "the target's vocabulary is of the type byte-level BPE, the draft's of the type SentencePiece"),
        (Words(adds_bos=False), "the target puts BOS at a text's start, the draft does not"),
        (Words(adds_eos=True), "the draft puts EOS at a text's end, the target does not"),
        (Words(bos=7), "BOS is token 1 in the target and token 7 in the draft"),
        (Words([b"x"] * 429), "the target has 300 tokens, the draft 429: 129 apart"),
        (with_text(5, b"<tool_call>"), "token 5: the target says 'word 5', the draft says '<tool_call>'"),
        (with_text(299, b"\xff\x1b[31m"), "token 299: the target says 'word 299', the draft says '\ufffd\\x1b[31m'"),
        (with_text(9, b"y" * 500), "token 9: the target says 'word 9', the draft says '" + "y" * 39 + "…'"),
    ],
)
def test_the_first_difference_in_words(draft: Words, reason: str) -> None:
    verdict = check(draft=draft)
    assert verdict.status == "NO_PAIR"
    assert verdict.reason.startswith(reason)
    assert verdict.notes == ()
    assert verdict.reason.isprintable()


def test_an_end_that_is_added_must_be_the_same() -> None:
    verdict = check(Words(adds_eos=True), Words(adds_eos=True, eos=7))
    assert (verdict.status, verdict.reason) == ("NO_PAIR", "EOS is token 2 in the target and token 7 in the draft")


@pytest.mark.parametrize(
    ("target", "draft", "note"),
    [
        (Words(), Words(Words().texts + [b"[PAD]"] * 128), "300 tokens in the target, 428 in the draft"),
        (Words(), Words(eos=7), "EOS is token 2 in the target and token 7 in the draft; neither adds it"),
        (Words(), Words(eos=-1), "EOS is token 2 in the target and not set in the draft; neither adds it"),
        (Words(adds_bos=False), Words(adds_bos=False, bos=9), "BOS is token 1 in the target and token 9"),
        (Words(), with_text(4, b"<pad>"), "token 4: the target says 'word 4', the draft says '<pad>' (llama.cpp does"),
    ],
)
def test_differences_that_do_not_matter_are_noted(target: Words, draft: Words, note: str) -> None:
    verdict = check(target, draft)
    assert verdict.status == "PAIR_WITH_NOTE"
    assert verdict.reason == ""
    assert len(verdict.notes) == 1
    assert note in verdict.notes[0]


def test_a_vocabulary_of_four_tokens_has_none_to_compare() -> None:
    assert check(Words([b"a"] * 4), Words([b"b"] * 4)).status == "PAIR_WITH_NOTE"


@pytest.mark.parametrize(
    ("ours", "theirs", "note"),
    [("a", "b", "differ"), ("a", "", "the draft has no chat template"), ("", "b", "only the draft has")],
)
def test_templates(ours: str, theirs: str, note: str) -> None:
    verdict = check(
        ours=header("target.gguf", tokenizer__chat_template=ours),
        theirs=header("draft.gguf", 100, tokenizer__chat_template=theirs),
    )
    assert verdict.status == "PAIR_WITH_NOTE"
    assert [note in each for each in verdict.notes] == [True]


def test_the_same_file_twice() -> None:
    verdict = check(ours=header("folder/../same.gguf"), theirs=header("same.gguf"))
    assert verdict.status == "PAIR_WITH_NOTE"
    assert "both are the same file" in verdict.notes[0]


def test_a_draft_that_is_not_much_cheaper() -> None:
    assert check(theirs=header("draft.gguf", 250)).status == "PAIR"
    verdict = check(ours=header("target.gguf", 10**9), theirs=header("draft.gguf", 5 * 10**8))
    assert verdict.status == "PAIR_WITH_NOTE"
    assert verdict.notes[0].startswith("too dear to pay: it reads 0.50 of what a target step reads; a quarter")
    verdict = check(ours=header("target.gguf", 10**6), theirs=header("draft.gguf", 10**9))
    assert verdict.notes[0].startswith("too dear to pay: it reads 1000.00 times what a target step reads;")


def test_a_mixture_with_few_active_parameters() -> None:
    size = 30_000_000_000
    target = header("target.gguf", 10, "qwen3moe", qwen3moe__expert_count=128, qwen3moe__expert_used_count=8)
    experts = TensorInfo("blk.0.ffn_up_exps.weight", "q4_0", (size // 128, 1, 128), 0, size // 2)
    target = replace(target, tensors=(experts,), num_params=size, tensor_bytes=size // 2)
    verdict = check(ours=target, theirs=header("draft.gguf", 600_000_000))
    assert verdict.status == "PAIR_WITH_NOTE"
    assert verdict.notes == (
        "too dear to pay: it reads 2.56 times what a target step reads; a quarter or less is worth trying "
        "(of the target's 30.0 B parameters a token uses 1.9 B, 3.1 times the draft's 600 M; "
        "4 times or more is worth trying)",
    )
    assert check(ours=target, theirs=header("draft.gguf", 1000)).status == "PAIR"


def test_without_a_vocabulary_it_cannot_be_said() -> None:
    whole, broken = PairSide(header("a"), Words()), PairSide(header("b"), None, "llama.cpp does not know it")
    for sides, name in (((whole, broken), "draft"), ((broken, whole), "target")):
        verdict = check_pair(*sides)
        assert verdict.status == "UNKNOWN"
        assert verdict.reason == f"the {name}'s vocabulary cannot be compared: llama.cpp does not know it"


def target_header(**changes: Any) -> GgufHeader:
    """Return a model of 36 layers, 4096 wide, with 1000 tokens."""
    values: dict[str, Any] = {
        "qwen3__embedding_length": 4096,
        "qwen3__block_count": 36,
        "tokenizer__ggml__tokens": tokens(1000),
    }
    return replace(header("target.gguf", **values, **changes), vocabulary_fingerprint="ab")


def tokens(count: int) -> ArrayValue:
    return ArrayValue("str", count, ())


def head_header(
    architecture: str = "eagle3", rows: Mapping[str, tuple[int, ...]] | None = None, **changes: Any
) -> GgufHeader:
    """Return a draft-only file that was made for target_header()."""
    values = {
        "target_hidden_size": 4096,
        "embedding_length": 4096,
        "block_count": 1,
        "target_layers": ArrayValue("i32", 3, (2, 18, 36)),
    } | changes
    shapes = {"blk.0.attn_q.weight": (8192, 4096), "fc.weight": (12288, 4096), "d2t": (500,), **(rows or {})}
    named = {f"{architecture}__{key}": value for key, value in values.items() if value is not None}
    made = header("head.gguf", 10, architecture, tokenizer__ggml__tokens=tokens(1000), **named)
    tensors = tuple(TensorInfo(name, "f16", shape, 0, 2) for name, shape in shapes.items())
    return replace(made, tensors=tensors, num_tensors=len(tensors), vocabulary_fingerprint="ab")


def check_head_files(target: GgufHeader, head: GgufHeader) -> PairVerdict:
    return check_pair(PairSide(target, None), PairSide(head, None))


@pytest.mark.parametrize("kind", ["eagle3", "dflash", "dspark"])
def test_a_head_that_was_made_for_the_target(kind: str) -> None:
    rows = {"markov_w1.weight": (64, 1000)} if kind == "dspark" else {}
    head = head_header("eagle3" if kind == "eagle3" else "dflash", rows)
    assert check_head_files(target_header(), head) == PairVerdict("PAIR", "", (), kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"target_hidden_size": 5120}, "NO_PAIR", "hidden states of 5120, but this one's have 4096"),
        ({"target_hidden_size": None}, "UNKNOWN", "does not say how wide"),
        ({"target_layers": ArrayValue("i32", 3, (2, 18, 37))}, "NO_PAIR", "reads layer 37 of its target"),
        ({"target_layers": ArrayValue("i32", 2, (2, 18))}, "NO_PAIR", "reads 2 layers"),
        ({"target_layers": ArrayValue("i32", 1, (-1,))}, "UNKNOWN", "does not say which layers"),
        ({"target_layers": None}, "UNKNOWN", "does not say which layers"),
        ({"embedding_length": 2048}, "NO_PAIR", "no embeddings of its own"),
        ({"rows": {"token_embd.weight": (4096, 900)}}, "NO_PAIR", "embeddings for 900 tokens"),
        ({"rows": {"d2t": (1200,)}}, "NO_PAIR", "proposes 1200 different tokens"),
    ],
)
def test_an_eagle3_head_for_another_target(changes: dict[str, Any], status: str, words: str) -> None:
    verdict = check_head_files(target_header(), head_header(**changes))
    assert verdict.status == status
    assert words in verdict.reason
    assert verdict.method == "eagle3"


def test_a_head_with_embeddings_of_its_own_may_be_narrower() -> None:
    head = head_header(embedding_length=2048, rows={"token_embd.weight": (2048, 1000)})
    assert check_head_files(target_header(), head).status == "PAIR"


def test_a_dflash_draft_is_as_wide_as_its_target() -> None:
    head = head_header("dflash", target_hidden_size=None, embedding_length=2560)
    verdict = check_head_files(target_header(), head)
    assert verdict.status == "NO_PAIR"
    assert "hidden states of 2560" in verdict.reason


def test_a_head_with_other_tokens() -> None:
    other = replace(head_header(), vocabulary_fingerprint="cd")
    verdict = check_head_files(target_header(), other)
    assert verdict.status == "PAIR_WITH_NOTE"
    assert "tokens are not all the same" in verdict.notes[0]
    metadata = other.metadata | {"tokenizer.ggml.tokens": tokens(2000)}
    verdict = check_head_files(target_header(), replace(other, metadata=metadata))
    assert verdict.status == "NO_PAIR"
    assert "2000 tokens, but this one has 1000" in verdict.reason
    verdict = check_head_files(target_header(), replace(other, vocabulary_fingerprint=""))
    assert "only one of the two files holds a vocabulary" in verdict.notes[0]


def side_file(architecture: str, width: int, **changes: Any) -> GgufHeader:
    """Return a file that holds the one layer after the 36 of a model."""
    values = {"nextn_predict_layers": 1, "block_count": 37, "embedding_length": width} | changes
    rows = {"blk.36.nextn.eh_proj.weight": (8192, 4096), "token_embd.weight": (4096, 1000)}
    head = head_header(architecture, rows, **values)
    return replace(head, tensors=tuple(each for each in head.tensors if "blk.0." not in each.name))


def test_a_side_file_for_multi_token_prediction() -> None:
    assert check_head_files(target_header(), side_file("qwen3", 4096)) == PairVerdict("PAIR", "", (), "mtp")
    for file, words in (
        (side_file("qwen3moe", 4096), "architecture qwen3moe, but this one's is qwen3"),
        (side_file("qwen3", 5120), "hidden states of 5120"),
        (side_file("qwen3", 4096, nextn_predict_layers=2, block_count=38), ""),
        (side_file("qwen3", 4096, nextn_predict_layers=2, block_count=37), "made for a target of 35 layers"),
    ):
        verdict = check_head_files(target_header(), file)
        assert verdict.method == "mtp"
        assert (verdict.status, words in verdict.reason) == ("NO_PAIR" if words else "PAIR", True)


def test_a_gemma4_assistant() -> None:
    head = side_file("gemma4-assistant", 256, embedding_length_out=4096, nextn_predict_layers=4, block_count=4)
    assert "made for a target of the architecture gemma4" in check_head_files(target_header(), head).reason
    target = replace(
        target_header(),
        metadata={
            "general.architecture": "gemma4",
            "gemma4.embedding_length": 4096,
            "gemma4.block_count": 36,
            "tokenizer.ggml.tokens": tokens(1000),
        },
    )
    assert check_head_files(target, head).status == "PAIR"


@pytest.mark.parametrize("side", ["whole model", "head"])
def test_a_head_is_no_target(side: str) -> None:
    draft = target_header() if side == "whole model" else head_header()
    verdict = check_head_files(head_header(), draft)
    assert verdict.status == "NO_PAIR"
    assert verdict.reason == "the target is an EAGLE-3 head and cannot run alone"
