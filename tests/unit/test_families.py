"""What names tell of models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.catalog.families import is_sibling, no_draft_reason, parse_family, search_words

M, B = 10**6, 10**9

NAMES = [
    ("Qwen/Qwen3-8B", "qwen", "3", 8 * B, 0, ()),
    ("unsloth/Qwen3-30B-A3B-Instruct-2507-GGUF", "qwen", "3", 30 * B, 3 * B, ("instruct",)),
    ("Qwen2.5-Coder-32B-Instruct", "qwen", "2.5", 32 * B, 0, ("coder", "instruct")),
    ("meta-llama/Llama-3.2-1B-Instruct", "llama", "3.2", B, 0, ("instruct",)),
    ("gemma-3-270m-it", "gemma", "3", 270 * M, 0, ("instruct",)),
    ("Ministral-8B-Instruct-2410", "ministral", "", 8 * B, 0, ("instruct",)),
    ("mistralai/Ministral-3-3B-Instruct-2512", "ministral", "3", 3 * B, 0, ("instruct",)),
    ("gpt-oss-120b", "gpt-oss", "", 120 * B, 0, ()),
    ("SmolLM2-135M", "smollm", "2", 135 * M, 0, ()),
    ("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm", "2", 135 * M, 0, ("instruct",)),
    ("DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1-distill-qwen", "", 7 * B, 0, ()),
    ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "deepseek-r1-distill-llama", "", 70 * B, 0, ()),
    ("Qwen3.5-35B-A3B", "qwen", "3.5", 35 * B, 3 * B, ()),
    ("Phi-4-mini-instruct", "phi", "4", 0, 0, ("instruct", "mini")),
    ("Qwen/Qwen3-Embedding-0.6B-GGUF:Q8_0", "qwen", "3", 600 * M, 0, ("embedding",)),
    ("Qwen3-Reranker-0.6B", "qwen", "3", 600 * M, 0, ("reranker",)),
    ("Qwen2.5-VL-7B-Instruct", "qwen", "2.5", 7 * B, 0, ("instruct", "vision")),
    ("Qwen2.5-7B-Instruct-1M", "qwen", "2.5", 7 * B, 0, ("instruct",)),
    ("bartowski/Qwen_Qwen3-8B-GGUF", "qwen", "3", 8 * B, 0, ()),
    ("bartowski/meta-llama_Llama-3.2-1B-Instruct-GGUF", "llama", "3.2", B, 0, ("instruct",)),
    ("Meta-Llama-3.1-8B-Instruct", "llama", "3.1", 8 * B, 0, ("instruct",)),
    ("Meta Llama 3.1 8B Instruct", "llama", "3.1", 8 * B, 0, ("instruct",)),
    ("Llama-4-Scout-17B-16E-Instruct", "llama", "4", 17 * B, 0, ("instruct",)),
    ("Mistral-7B-Instruct-v0.3", "mistral", "0.3", 7 * B, 0, ("instruct",)),
    ("Mistral-Small-3.2-24B-Instruct-2506", "mistral", "3.2", 24 * B, 0, ("instruct", "small")),
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral", "0.1", 56 * B, 0, ("instruct",)),
    ("Phi-3-mini-4k-instruct-q4.gguf", "phi", "3", 0, 0, ("instruct", "mini")),
    ("gemma-3n-E4B-it", "gemma", "3n", 4 * B, 0, ("instruct",)),
    ("google/gemma-3-27b-it-qat-q4_0-gguf", "gemma", "3", 27 * B, 0, ("instruct",)),
    ("EAGLE3-LLaMA3.1-Instruct-8B", "llama", "3.1", 8 * B, 0, ("eagle3", "instruct")),
    ("internlm/internlm2_5-7b-chat", "internlm", "2.5", 7 * B, 0, ("instruct",)),
    ("Qwen3-235B-A22B-UD-Q4_K_XL-00001-of-00003.gguf", "qwen", "3", 235 * B, 22 * B, ()),
    ("OLMo-2-0425-1B", "olmo", "2", B, 0, ()),
    ("TinyLlama-1.1B-Chat-v1.0", "tinyllama", "1.0", 1100 * M, 0, ("instruct",)),
    ("qwen3:8b", "qwen", "3", 8 * B, 0, ()),
    ("mistral:latest", "mistral", "", 0, 0, ()),
    ("", "", "", 0, 0, ()),
    ("///", "", "", 0, 0, ()),
    ("8B", "", "", 8 * B, 0, ()),
]


@pytest.mark.parametrize(("name", "line", "version", "size", "active", "variant"), NAMES)
def test_names(name: str, line: str, version: str, size: int, active: int, variant: tuple[str, ...]) -> None:
    family = parse_family(name)
    assert (family.line, family.version) == (line, version)
    assert (family.size_params, family.active_params, family.variant) == (size, active, variant)


@given(
    st.text() | st.from_regex(r"[A-Za-z]{1,8}[-_/. ]?[0-9.]{0,6}[-_]?(A?[0-9.]+[BMT]|[0-9]x[0-9]+B)?", fullmatch=True)
)
def test_no_text_is_too_strange(name: str) -> None:
    family = parse_family(name)
    assert family.size_params >= 0 and family.active_params >= 0
    assert family.line == family.line.lower()
    assert bool(search_words(family)) == bool(family.line)
    assert not is_sibling(family, family) or not family.step_params


@given(
    st.sampled_from([name for name, *_ in NAMES]), st.sampled_from(["", "-GGUF", "-i1-GGUF", "-GGUF:Q4_K_M", ".gguf"])
)
def test_packaging_changes_nothing(name: str, ending: str) -> None:
    plain = parse_family(name)
    if ":" not in name and not name.endswith(".gguf") and plain.line:
        assert parse_family(name + ending) == plain


@pytest.mark.parametrize(
    ("target", "candidate", "expected"),
    [
        ("Qwen3-8B", "Qwen3-0.6B", True),
        ("Qwen3-8B", "Qwen3-4B", False),
        ("Qwen3-8B", "Qwen2.5-0.5B", False),
        ("Qwen3-8B", "Qwen3-Embedding-0.6B", False),
        ("Qwen3-8B", "Qwen3-Reranker-0.6B", False),
        ("Qwen2.5-Coder-32B-Instruct", "Qwen2.5-0.5B-Instruct", True),
        ("Llama-3.1-8B-Instruct", "Llama-3.2-1B-Instruct", True),
        ("Llama-3.1-8B-Instruct", "Llama-2-1B", False),
        ("Llama-3.3-70B-Instruct", "Llama-Guard-3-1B", False),
        ("gemma-3-27b-it", "mmproj-gemma-3-4b-it", False),
        ("gemma-3-27b-it", "gemma-3-270m-it", True),
        # What counts is what one token reads: 3 of the 30 billion.
        ("Qwen3-30B-A3B", "Qwen3-1.7B", False),
        ("Qwen3-30B-A3B", "Qwen3-0.6B", True),
        ("DeepSeek-R1-Distill-Qwen-32B", "DeepSeek-R1-Distill-Qwen-1.5B", True),
        ("DeepSeek-R1-Distill-Qwen-32B", "DeepSeek-R1-Distill-Llama-8B", False),
        ("Ministral-8B-Instruct-2410", "Ministral-3-1B", False),
        # Neither name tells a size, so the headers must.
        ("phi-4", "Phi-4-mini-instruct", True),
        ("model", "another", False),
        ("", "", False),
    ],
)
def test_siblings(target: str, candidate: str, expected: bool) -> None:
    assert is_sibling(parse_family(target), parse_family(candidate)) is expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Qwen3-8B", ("qwen3",)),
        ("Qwen3.5-35B-A3B", ("qwen3.5", "qwen3")),
        ("Llama-3.1-8B", ("llama-3.1", "llama-3")),
        ("gemma-3-27b-it", ("gemma-3",)),
        ("gpt-oss-120b", ("gpt-oss",)),
        ("Mistral-7B-Instruct-v0.3", ("mistral",)),
        ("8B", ()),
    ],
)
def test_search_words(name: str, words: tuple[str, ...]) -> None:
    assert search_words(parse_family(name)) == words


def test_what_cannot_draft_says_why() -> None:
    assert no_draft_reason(parse_family("Qwen3-Embedding-0.6B")) == "an embedding model writes no text"
    assert no_draft_reason(parse_family("Qwen3-0.6B")) == ""
