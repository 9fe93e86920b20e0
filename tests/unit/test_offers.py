"""How a repository's files become offers, and which one a person means."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.catalog.hub.offers import choose_offer, offers
from localspec.catalog.hub.values import RepoFile, RepoListing
from localspec.errors import UsageError

GIB = 1 << 30


def listing(*paths: str, sizes: tuple[int, ...] = ()) -> RepoListing:
    """A repository whose files grow in the order given, or have the sizes given."""
    sizes = sizes or tuple(GIB * (index + 1) for index in range(len(paths)))
    files = tuple(RepoFile(path, size, "0" * 64) for path, size in zip(paths, sizes, strict=True))
    return RepoListing("maker/Model-GGUF", "main", "1" * 40, files, (), "", False, 0)


def labels(repo: RepoListing) -> list[str]:
    return [offer.quantisation for offer in offers(repo)]


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("Model-Q4_K_M.gguf", "Q4_K_M"),
        ("model.Q4_0_4_4.gguf", "Q4_0_4_4"),
        ("model-iq2_xxs.gguf", "IQ2_XXS"),
        ("Model-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("gpt-oss-20b-MXFP4_MOE.gguf", "MXFP4_MOE"),
        ("Model-F16.gguf", "F16"),
        ("Model-bf16.gguf", "BF16"),
        ("Q8_0/weights.gguf", "Q8_0"),
        ("weights.gguf", "weights"),
        ("my model.gguf", "my-model"),
    ],
)
def test_the_label_is_in_the_name_or_the_folder(path: str, label: str) -> None:
    assert labels(listing(path)) == [label]


def test_shards_are_one_offer_in_order_and_half_a_set_is_none() -> None:
    repo = listing(
        "UD-Q2_K_XL/m-UD-Q2_K_XL-00002-of-00002.gguf",
        "UD-Q2_K_XL/m-UD-Q2_K_XL-00001-of-00002.gguf",
        "m-Q8_0-00001-of-00003.gguf",
        "m-Q8_0-00003-of-00003.gguf",
    )
    (only,) = offers(repo)
    assert only.quantisation == "UD-Q2_K_XL"
    assert [file.path[-15:] for file in only.files] == ["1-of-00002.gguf", "2-of-00002.gguf"]
    assert only.size_bytes == 3 * GIB


def test_what_is_no_model_is_left_out() -> None:
    repo = listing(
        "mmproj-F16.gguf",
        "imatrix.gguf",
        "Model-imatrix.gguf",
        "Model-Q4_K_M.gguf_file",
        "Model-lora-F16.gguf",
        "adapter-f16.gguf",
        "README.md",
        "Model-Q4_K_M.gguf",
    )
    assert labels(repo) == ["Q4_K_M"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("eagle3-Model-Q8_0.gguf", "eagle3"),
        ("Qwen3-8B-EAGLE3-Q8_0.gguf", "eagle3"),
        ("dflash-Model-F16.gguf", "dflash"),
        ("Model-dspark-F16.gguf", "dspark"),
        ("mtp-Model-Q8_0.gguf", "mtp"),
        ("MTP-Model-Q8_0.gguf", "mtp"),
        ("Qwen3.5-9B-MTP-Q4_K_M.gguf", "model"),
        ("Eagle-7B-Q4_K_M.gguf", "model"),
    ],
)
def test_draft_only_files_are_known_by_name(path: str, kind: str) -> None:
    (only,) = offers(listing(path))
    assert only.kind == kind


def test_the_smallest_comes_first() -> None:
    assert labels(listing("m-Q8_0.gguf", "m-Q2_K.gguf", sizes=(2, 1))) == ["Q2_K", "Q8_0"]


def test_two_models_of_one_quantisation_go_by_their_names() -> None:
    repo = listing("Chat-Q4_K_M.gguf", "Code-Q4_K_M.gguf", "Chat-Q8_0.gguf")
    assert labels(repo) == ["Chat-Q4_K_M", "Code-Q4_K_M", "Q8_0"]
    assert choose_offer(repo, "code-q4_k_m").files[0].path == "Code-Q4_K_M.gguf"
    with pytest.raises(UsageError) as caught:
        choose_offer(repo, "Q4_K_M")
    assert "Chat-Q4_K_M" in caught.value.hint and "Code-Q4_K_M" in caught.value.hint


def test_equal_names_in_two_folders_stay_apart() -> None:
    found = labels(listing("a/m-Q8_0.gguf", "b/m-Q8_0.gguf", "a b/m-Q8_0.gguf"))
    assert sorted(found) == ["a-b.m-Q8_0", "a.m-Q8_0", "b.m-Q8_0"]


def test_thousands_of_equal_labels_are_numbered_in_one_pass() -> None:
    # Beyond MAX_SHARDS these are no shards, and all have one stem and one label.
    repo = listing(*(f"m-Q8_0-{index:05d}-of-20000.gguf" for index in range(1, 20_001)))
    found = labels(repo)
    assert len(set(found)) == 20_000
    assert {"m-Q8_0", "m-Q8_0-2", "m-Q8_0-20000"} <= set(found)
    alike = labels(listing(*(f"a/{'é' * (1 + index % 40)}{' ' * (1 + index // 40)}.gguf" for index in range(4_000))))
    assert len(set(alike)) == 4_000 and "a.--3999" in alike


def test_one_shard_each_of_thousands_of_models_is_no_offer() -> None:
    assert offers(listing(*(f"m{index}-00001-of-01000.gguf" for index in range(5_000)))) == ()


def test_the_case_counts_where_it_tells_two_apart() -> None:
    repo = listing("A-Q3_K.gguf", "a-Q3_K.gguf")
    assert choose_offer(repo, "A-Q3_K").files[0].path == "A-Q3_K.gguf"
    assert choose_offer(repo, "a-Q3_K").files[0].path == "a-Q3_K.gguf"
    with pytest.raises(UsageError, match="may mean several"):
        choose_offer(repo, "q3_k")


def test_files_that_were_not_looked_at_are_spoken_of() -> None:
    with pytest.raises(UsageError) as caught:
        choose_offer(replace(listing("m-Q4_K_M.gguf"), num_surplus=7), "Q8_0")
    assert "7 more files were not looked at" in caught.value.hint


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        (("Q2_K", "Q4_K_S", "Q4_K_M", "Q8_0"), "Q4_K_M"),
        (("Q2_K", "UD-Q4_K_XL", "Q8_0"), "UD-Q4_K_XL"),
        (("UD-Q4_K_M", "Q4_K_M"), "Q4_K_M"),
        (("Q2_K", "MXFP4", "F16"), "MXFP4"),
        (("Q2_K", "IQ4_XS", "Q6_K"), "IQ4_XS"),
        (("IQ1_S", "Q2_K", "Q3_K_M"), "Q3_K_M"),
        (("F32",), "F32"),
    ],
)
def test_without_a_word_the_usual_one_is_taken(there: tuple[str, ...], taken: str) -> None:
    assert choose_offer(listing(*(f"m-{label}.gguf" for label in there)), "").quantisation == taken


@pytest.mark.parametrize(
    ("word", "taken"),
    [("q4_k_m", "Q4_K_M"), ("Q8", "Q8_0"), ("Q4_K_XL", "UD-Q4_K_XL"), ("m-Q8_0", "Q8_0"), ("Q4_K_M", "Q4_K_M")],
)
def test_a_word_means_a_label_its_beginning_or_a_file(word: str, taken: str) -> None:
    repo = listing("m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-UD-Q4_K_XL.gguf")
    assert choose_offer(repo, word).quantisation == taken


def test_a_word_that_fits_nothing_gets_the_nearest_and_all_sizes() -> None:
    with pytest.raises(UsageError) as caught:
        choose_offer(listing("m-Q4_K_M.gguf", "m-Q8_0.gguf"), "Q4_K_N")
    assert caught.value.message == "maker/Model-GGUF has no Q4_K_N."
    assert caught.value.hint == ("Did you mean maker/Model-GGUF:Q4_K_M? It has Q4_K_M (1.0 GiB), Q8_0 (2.0 GiB).")


def test_a_beginning_that_fits_two_asks_which() -> None:
    with pytest.raises(UsageError, match="may mean several"):
        choose_offer(listing("m-Q4_K_M.gguf", "m-Q4_K_S.gguf"), "Q4_K")


def test_a_repository_without_models_says_so() -> None:
    with pytest.raises(UsageError, match="no GGUF model"):
        choose_offer(listing("model.safetensors"), "")


def test_models_come_before_draft_only_files_unless_these_are_named() -> None:
    repo = listing("eagle3-m-Q4_K_M.gguf", "m-Q4_K_M.gguf")
    assert choose_offer(repo, "").kind == "model"
    assert choose_offer(repo, "Q4_K_M").kind == "model"
    assert choose_offer(repo, "eagle3-m-Q4_K_M").kind == "eagle3"
    assert choose_offer(repo, "", kind="eagle3").kind == "eagle3"
    assert choose_offer(listing("eagle3-m-Q8_0.gguf"), "").kind == "eagle3"


_PARTS = st.sampled_from(
    ["Q4_K_M", "q8_0", "UD-Q2_K_XL", "F16", "mtp", "EAGLE3", "-", ".", "_", "/", "00001-of-00002", "x", "é", ".gguf"]
)


@given(st.lists(st.lists(_PARTS, min_size=1, max_size=6).map("".join).map(lambda name: f"{name}.gguf"), unique=True))
def test_whatever_the_names_each_file_is_offered_once_under_a_label_of_its_own(names: list[str]) -> None:
    found = offers(listing(*names))
    paths = [file.path for offer in found for file in offer.files]
    assert len(paths) == len(set(paths)) and set(paths) <= set(names)
    assert len({(offer.kind, offer.quantisation) for offer in found}) == len(found)
    for offer in found:
        assert offer.quantisation
