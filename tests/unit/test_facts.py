"""Facts drawn from headers, sound and hostile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.catalog.facts import draft_kind, facts_of
from localspec.catalog.header import ArrayValue, GgufHeader, Scalar, TensorInfo

Rows = Mapping[str, tuple[int, ...]]


def header(architecture: str, rows: Rows, **values: Any) -> GgufHeader:
    """Return a header; keys without a stop belong to the architecture. Each weight has two bytes."""
    metadata: dict[str, Scalar | ArrayValue] = {"general.architecture": architecture}
    for key, value in values.items():
        metadata[key.replace("__", ".") if "__" in key else f"{architecture}.{key}"] = value
    tensors = []
    for name, shape in rows.items():
        count = 1
        for size in shape:
            count *= size
        tensors.append(TensorInfo(name, "f16", shape, 0, 2 * count))
    size_bytes = sum(tensor.size_bytes for tensor in tensors)
    return GgufHeader(
        path="model.gguf",
        version=3,
        file_bytes=size_bytes + 100,
        data_offset=96,
        shards=("model.gguf",),
        metadata=metadata,
        tensors=tuple(tensors),
        num_tensors=len(tensors),
        num_params=size_bytes // 2,
        tensor_bytes=size_bytes,
        vocabulary_fingerprint="ab",
    )


DENSE: dict[str, tuple[int, ...]] = {
    "token_embd.weight": (8, 100),
    "output_norm.weight": (8,),
    "output.weight": (8, 100),
    "blk.0.attn_q.weight": (8, 8),
    "blk.1.attn_q.weight": (8, 8),
}


def test_a_dense_model() -> None:
    made = header(
        "qwen3",
        DENSE,
        block_count=2,
        context_length=40_960,
        embedding_length=8,
        general__name="Qwen3 Tiny",
        general__file_type=15,
        general__license="apache-2.0",
        general__base_model__count=2,
        general__base_model__0__repo_url="https://huggingface.co/Qwen/Qwen3-0.6B-Base",
        general__base_model__1__repo_url="https://example.org/Qwen/Qwen3-0.6B",
        tokenizer__ggml__tokens=ArrayValue("str", 100, ("a",)),
        tokenizer__chat_template="{{ messages }}",
    )
    facts = facts_of(made)
    assert facts.title == "Qwen3 Tiny"
    assert facts.architecture == "qwen3"
    assert facts.quantisation == "Q4_K_M"
    assert facts.num_params == 1600 + 8 + 128
    assert facts.num_active_params == 800 + 8 + 128, "the table of embeddings is only looked up"
    assert facts.active_bytes == 2 * facts.num_active_params
    assert (facts.n_ctx_train, facts.n_layer, facts.n_embd, facts.n_vocab) == (40_960, 2, 8, 100)
    assert (facts.num_experts, facts.num_experts_used, facts.num_mtp_layers) == (0, 0, 0)
    assert facts.draft_only is None
    assert facts.vocabulary_fingerprint == "ab"
    assert facts.licence == "apache-2.0"
    assert facts.base_models == ("Qwen/Qwen3-0.6B-Base",)
    assert len(facts.template_fingerprint) == 32


def test_a_tied_table_is_the_output_too() -> None:
    rows = {name: shape for name, shape in DENSE.items() if name != "output.weight"}
    facts = facts_of(header("gemma3", rows | {"per_layer_token_embd.weight": (4, 100)}, block_count=2))
    assert facts.num_active_params == 800 + 8 + 128


def test_of_the_experts_only_the_chosen_are_read() -> None:
    rows = DENSE | {
        "blk.0.ffn_gate_inp.weight": (8, 16),
        "blk.0.ffn_up_exps.weight": (8, 4, 16),
        "blk.0.ffn_up_exps.bias": (4, 16),
        "blk.0.ffn_norm_exps.weight": (8,),
        "blk.0.ffn_up_shexp.weight": (8, 4),
        "blk.0.exp_probs_b.bias": (16,),
        "blk.1.ffn_gate_up_exps.weight": (8, 8, 16),
    }
    facts = facts_of(header("deepseek2", rows, block_count=2, expert_count=16, expert_used_count=4))
    assert (facts.num_experts, facts.num_experts_used) == (16, 4)
    shared = 936 + 128 + 8 + 32 + 16
    assert facts.num_active_params == shared + (512 + 64 + 1024) // 4
    assert facts.active_bytes == 2 * facts.num_active_params


def test_layers_may_use_different_numbers_of_experts() -> None:
    rows = {f"blk.{layer}.ffn_up_exps.weight": (8, 4, 16) for layer in range(3)}
    used = ArrayValue("i32", 3, (4, 8, 2))
    facts = facts_of(header("x", rows, block_count=3, expert_count=16, expert_used_count=used))
    assert facts.num_experts_used == 8
    assert facts.num_active_params == 512 * (4 + 8 + 2) // 16


def test_a_tensor_for_each_expert() -> None:
    rows = {f"blk.0.ffn_up.{expert}.weight": (8, 4) for expert in range(8)}
    facts = facts_of(header("llama", rows, block_count=1, expert_count=8, expert_used_count=2))
    assert facts.num_active_params == 8 * (32 * 2 // 8)


@pytest.mark.parametrize("used", [0, -1, 17, 2**40, "4", 4.0, True])
def test_without_a_number_of_chosen_experts_nothing_active_is_claimed(used: Scalar) -> None:
    rows = DENSE | {"blk.0.ffn_up_exps.weight": (8, 4, 16)}
    facts = facts_of(header("x", rows, block_count=2, expert_count=16, expert_used_count=used))
    assert (facts.num_experts_used, facts.num_active_params, facts.active_bytes) == (0, 0, 0)


def test_layers_for_multi_token_prediction_are_not_the_models_own() -> None:
    rows = DENSE | {"blk.2.nextn.eh_proj.weight": (16, 8), "blk.2.attn_q.weight": (8, 8)}
    facts = facts_of(header("glm4moe", rows, block_count=3, nextn_predict_layers=1))
    assert (facts.num_mtp_layers, facts.n_layer, facts.draft_only) == (1, 2, None)
    assert facts.num_active_params == 936


def test_a_side_file_for_multi_token_prediction() -> None:
    rows = {name: shape for name, shape in DENSE.items() if "blk." not in name}
    rows |= {"blk.2.nextn.eh_proj.weight": (16, 8), "blk.2.attn_q.weight": (8, 8)}
    facts = facts_of(header("qwen35", rows, block_count=3, nextn_predict_layers=1, embedding_length=8))
    assert (facts.draft_only, facts.target_hidden_size, facts.num_mtp_layers) == ("mtp", 8, 1)
    assert facts.num_active_params == 808 + 128 + 64


@pytest.mark.parametrize(
    ("architecture", "extra", "kind"),
    [
        ("eagle3", "fc.weight", "eagle3"),
        ("dflash", "fc.weight", "dflash"),
        ("dflash", "markov_w1.weight", "dspark"),
        ("gemma4-assistant", "nextn.post_projection.weight", "mtp"),
        ("llama", "fc.weight", None),
        ("clip", "markov_w1.weight", None),
    ],
)
def test_kinds_of_files(architecture: str, extra: str, kind: str | None) -> None:
    layers = ArrayValue("i32", 3, (2, 18, 33))
    made = header(architecture, DENSE | {extra: (8, 8)}, target_layers=layers, embedding_length=8)
    assert draft_kind(made) == kind
    assert facts_of(made).target_layers == ((2, 18, 33) if kind is not None else ())


def test_an_eagle3_head_without_an_output_has_no_tied_one() -> None:
    rows = {"token_embd.weight": (8, 100), "blk.0.attn_q.weight": (16, 8), "d2t": (50,)}
    facts = facts_of(header("eagle3", rows, block_count=1, target_hidden_size=64))
    assert (facts.target_hidden_size, facts.num_active_params) == (64, 128)


def test_the_quantisation_of_most_bytes_where_none_is_stated() -> None:
    made = header("llama", DENSE)
    assert facts_of(made).quantisation == "F16"
    assert facts_of(replace(made, metadata=made.metadata | {"general.file_type": 9999})).quantisation == "F16"


def test_a_stated_size_of_the_vocabulary_serves_where_there_are_no_tokens() -> None:
    assert facts_of(header("llama", DENSE, vocab_size=320)).n_vocab == 320
    assert facts_of(header("llama", DENSE)).n_vocab == 0


@pytest.mark.parametrize(
    "address",
    [
        "https://huggingface.co/../secret",
        "https://huggingface.co/a/b/c",
        "http://huggingface.co/a/b",
        "https://huggingface.co.evil.org/a/b",
        "https://huggingface.co/a/b\x1b[31m",
        "https://huggingface.co/a/" + "b" * 200,
    ],
)
def test_addresses_that_are_no_repository(address: str) -> None:
    assert facts_of(header("llama", DENSE, general__base_model__0__repo_url=address)).base_models == ()


def test_a_header_without_its_tensors_gives_no_facts() -> None:
    with pytest.raises(ValueError, match="without its tensors"):
        facts_of(replace(header("llama", DENSE), tensors=()))
    assert facts_of(replace(header("llama", {}), num_tensors=0)).num_params == 0


_SCALARS: st.SearchStrategy[Scalar] = st.one_of(
    st.integers(-(2**63), 2**64), st.floats(), st.booleans(), st.text(max_size=20)
)
_VALUES: st.SearchStrategy[Scalar | ArrayValue] = st.one_of(
    _SCALARS,
    st.lists(_SCALARS, max_size=5).flatmap(
        lambda items: st.integers(len(items), 2**40).map(lambda length: ArrayValue("x", length, tuple(items)))
    ),
)
_KEYS = (
    "block_count",
    "nextn_predict_layers",
    "expert_count",
    "expert_used_count",
    "embedding_length",
    "embedding_length_out",
    "target_hidden_size",
    "target_layers",
    "context_length",
    "vocab_size",
)
_GENERAL = (
    "general.name",
    "general.file_type",
    "general.license",
    "general.base_model.0.repo_url",
    "tokenizer.ggml.tokens",
    "tokenizer.chat_template",
)
_NAMES = st.one_of(
    st.sampled_from(["token_embd.weight", "output.weight", "d2t", "markov_w1.weight"]),
    st.builds(
        lambda layer, part: f"blk.{layer}.{part}",
        st.one_of(st.integers(0, 4), st.integers(0, 10**30)),
        st.sampled_from(["attn_q.weight", "ffn_up_exps.weight", "ffn_up.3.weight", "ffn_up_shexp.weight"]),
    ),
    st.text(max_size=10),
)


@st.composite
def hostile(draw: st.DrawFn) -> GgufHeader:
    """A header in which any value may be missing, of a wrong type, negative or huge."""
    architecture = draw(st.sampled_from(["llama", "eagle3", "dflash", "gemma4-assistant", "", "x"]))
    rows = draw(st.dictionaries(_NAMES, st.lists(st.integers(1, 2**40), max_size=4).map(tuple), max_size=6))
    metadata: dict[str, Scalar | ArrayValue] = {"general.architecture": architecture}
    metadata |= draw(st.dictionaries(st.sampled_from([f"{architecture}.{key}" for key in _KEYS]), _VALUES))
    metadata |= draw(st.dictionaries(st.sampled_from(_GENERAL), _VALUES))
    return replace(header(architecture, rows), metadata=metadata)


@settings(max_examples=150, deadline=None)
@given(made=hostile())
def test_hostile_values_count_as_unstated(made: GgufHeader) -> None:
    facts = facts_of(made)
    counts = (facts.n_ctx_train, facts.n_layer, facts.n_embd, facts.num_experts, facts.num_experts_used)
    assert all(0 <= count < 2**31 for count in (*counts, facts.num_mtp_layers, facts.target_hidden_size))
    assert facts.num_experts_used <= facts.num_experts
    assert 0 <= facts.num_active_params <= facts.num_params
    assert 0 <= facts.active_bytes <= facts.tensor_bytes
    assert all(isinstance(layer, int) and layer >= 0 for layer in facts.target_layers)
