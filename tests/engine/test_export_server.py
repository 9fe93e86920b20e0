"""The command lines for llama.cpp, parsed by its own parser and obeyed by its own server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localspec.session.exporting.llama_cpp import llama_cpp_command
from localspec.session.profiles import NamedProfile
from tests.llama_cpp_arguments import Parsed, ParserUnavailableError, Program, parse
from tests.profile_kit import CONTEXT, DRAFT_CONTEXT, SAMPLING, drafting, model, named_profile

PROMPT = [*range(10, 30), *range(10, 30), 10, 11, 12, 13]


def asked(program: Program, words: tuple[str, ...], prompt: list[int] | None = None) -> Parsed:
    try:
        return parse(program, words, prompt or ())
    except ParserUnavailableError as error:
        pytest.skip(str(error))


def tiny(files: dict[str, Path], **changes: Any) -> NamedProfile:
    return named_profile(
        **{
            "target": model(str(files["target"])),
            "draft": model(str(files["draft"])),
            "context": {**CONTEXT, "n_ctx": 256, "n_threads": 1, "n_threads_batch": 1},
            "draft_context": {**DRAFT_CONTEXT, "n_ctx": 256},
            **changes,
        }
    )


@pytest.mark.parametrize("program", ["llama-server", "llama-cli"])
def test_every_option_is_known_and_means_what_it_should(program: Program, tiny_files: dict[str, Path]) -> None:
    context = {
        **CONTEXT,
        **{"n_ctx": 512, "n_batch": 128, "n_ubatch": 64, "n_threads": 3, "n_threads_batch": 2, "n_gpu_layers": -1},
        **{"type_k": "q8_0", "use_mmap": False, "experts_on_cpu": True},
    }
    profile = tiny(
        tiny_files,
        context=context,
        draft_context={
            **DRAFT_CONTEXT,
            "n_ctx": 512,
            "n_gpu_layers": 7,
            "type_v": "q8_0",
            "n_threads": 5,
            "n_threads_batch": 6,
        },
        speculation=drafting(n_max=5, n_min=2, p_min=0.25),
        sampling={**SAMPLING, "temperature": 0.5, "top_k": 7, "repeat_last_n": -1, "seed": 9, "presence_penalty": -1.5},
    )
    parsed = asked(program, llama_cpp_command(profile, program).words)
    assert parsed.is_accepted
    params = parsed.params
    assert params["model"] == str(tiny_files["target"]) and params["draft_model"] == str(tiny_files["draft"])
    assert (params["n_ctx"], params["n_batch"], params["n_ubatch"], params["n_threads"]) == (512, 128, 64, 3)
    # llama.cpp writes -2 for all layers.
    assert (params["n_gpu_layers"], params["draft_n_gpu_layers"], params["n_threads_batch"]) == (-2, 7, 2)
    assert (params["draft_n_threads"], params["draft_n_threads_batch"]) == (5, 6)
    assert params["types"][-1] == "DRAFT_SIMPLE"
    assert (params["draft_n_max"], params["draft_n_min"], params["draft_p_min"]) == (5, 2, 0.25)
    assert (params["flash_attn"], params["fit"]) == (1, False)
    assert (params["temperature"], params["top_k"], params["repeat_last_n"], params["seed"]) == (0.5, 7, 512, 9)
    assert params["type_k"] == params["draft_type_v"]
    if program == "llama-server":
        assert params["n_parallel"] == 1


@pytest.mark.parametrize("program", ["llama-server", "llama-cli"])
def test_ngram_options(program: Program, tiny_files: dict[str, Path]) -> None:
    profile = tiny(tiny_files, speculation=drafting("ngram", n_max=3, ngram_min=4))
    params = asked(program, llama_cpp_command(profile, program).words).params
    assert params["types"][-1] == "NGRAM_SIMPLE"
    assert (params["ngram_size"], params["ngram_draft"], params["draft_model"]) == (3, 3, "")


def test_the_parser_refuses_what_is_not_there(tiny_files: dict[str, Path]) -> None:
    words = ("--model", str(tiny_files["target"]))
    assert asked("llama-server", (*words, "--slots")).is_accepted
    assert not asked("llama-cli", (*words, "--slots")).is_accepted
    assert not asked("llama-server", (*words, "--draft-max", "4")).is_accepted


def test_the_server_really_drafts_with_the_model(tiny_files: dict[str, Path]) -> None:
    words = llama_cpp_command(tiny(tiny_files, speculation=drafting(n_max=4)), "llama-server").words
    timings = asked("llama-server", words, PROMPT).timings
    assert timings["predicted_n"] == 48
    assert timings["draft_n"] >= timings["draft_n_accepted"] > 0
    # Without the type, the same command loads the draft model and never asks it.
    index = words.index("--spec-type")
    silent = asked("llama-server", (*words[:index], *words[index + 2 :]), PROMPT).timings
    assert "draft_n" not in silent


def test_the_server_really_drafts_by_ngrams(tiny_files: dict[str, Path]) -> None:
    profile = tiny(tiny_files, speculation=drafting("ngram", n_max=4, ngram_min=6))
    words = llama_cpp_command(profile, "llama-server").words
    assert asked("llama-server", words, PROMPT).timings.get("draft_n", 0) > 0
    # A match that is longer than the draft never yields one.
    index = words.index("--spec-ngram-simple-size-n") + 1
    longer = (*words[:index], "6", *words[index + 1 :])
    assert "draft_n" not in asked("llama-server", longer, PROMPT).timings


def test_plain_decoding(tiny_files: dict[str, Path]) -> None:
    words = llama_cpp_command(tiny(tiny_files, speculation=drafting("off"), draft=None), "llama-server").words
    assert "draft_n" not in asked("llama-server", words, PROMPT).timings
