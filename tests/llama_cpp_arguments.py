"""llama.cpp's own parser of command lines, and its server started from what it parsed, in a process of its own.

The prebuilt package xllamacpp has no name for the parser, but its library exports the C++ function, and its parameter
object holds llama.cpp's common_params as they are.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_ROOT = Path(__file__).resolve().parent.parent

_PARSE = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
"""common_params_parse(int, char **, common_params &, llama_example, void (*)(int, char **))."""

_EXAMPLES = {"llama-cli": 5, "llama-server": 12}
"""Numbers in common.h's enum llama_example: which options there are depends on the program."""

Program = Literal["llama-cli", "llama-server"]


class ParserUnavailableError(Exception):
    """xllamacpp is not installed, cannot be loaded here, or has another inside than is known."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What llama.cpp made of a command line."""

    is_accepted: bool
    params: dict[str, Any]
    """Some of the parameters after parsing; empty if it was refused."""
    timings: dict[str, Any]
    """Of one answer of a server that was started with them; empty if none was asked for."""


def parse(program: Program, words: Sequence[str], prompt: Sequence[int] = ()) -> Parsed:
    """Let llama.cpp parse a command line.

    Args:
        program: whose options there are.
        words: the arguments after the program.
        prompt: token ids; with some, a server is started with what was parsed, and answers them.

    Raises:
        ParserUnavailableError: it cannot be asked.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise ParserUnavailableError("xllamacpp is not installed")
    question = json.dumps({"program": program, "words": list(words), "prompt": list(prompt)})
    done = subprocess.run(
        [sys.executable, "-m", "tests.llama_cpp_arguments"],
        input=question.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=_ROOT,
        timeout=60,
        check=False,
    )
    lines = done.stdout.splitlines()
    if not lines:
        raise AssertionError(f"llama.cpp's process ended with status {done.returncode}")
    answer = json.loads(lines[-1])
    if "unavailable" in answer:
        raise ParserUnavailableError(answer["unavailable"])
    return Parsed(**answer)


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    try:
        import xllamacpp

        function = getattr(ctypes.CDLL(xllamacpp.xllamacpp.__file__), _PARSE)
        params = xllamacpp.CommonParams()
        address = _address_of(params)
    except Exception as error:
        return {"unavailable": f"{type(error).__name__}: {error}"}
    function.restype = ctypes.c_bool
    words = [b"program", *(os.fsencode(word) for word in question["words"])]
    array = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    if not function(len(words), array, ctypes.c_void_p(address), _EXAMPLES[question["program"]], None):
        return {"is_accepted": False, "params": {}, "timings": {}}
    timings: dict[str, Any] = {}
    if question["prompt"]:
        server = xllamacpp.Server(params)
        request = {"prompt": question["prompt"], "n_predict": 48, "ignore_eos": True, "temperature": 0.0}
        reply = server.handle_completions(request)
        timings = (json.loads(reply) if isinstance(reply, str) else reply)["timings"]
    return {"is_accepted": True, "params": _read(params), "timings": timings}


def _address_of(params: Any) -> int:
    """Return where llama.cpp's structure lies inside the Python object: at two numbers that nothing else has."""
    params.n_predict, params.n_ctx = -123_456_789, 987_654_321
    raw = (ctypes.c_char * type(params).__basicsize__).from_address(id(params)).raw
    offset = raw.find(struct.pack("ii", -123_456_789, 987_654_321))
    params.n_predict, params.n_ctx = -1, 0
    if offset < 0:
        raise ValueError("the parameters lie elsewhere")
    return id(params) + offset


def _read(params: Any) -> dict[str, Any]:
    speculative, sampling = params.speculative, params.sampling
    draft, ngram = speculative.draft, speculative.ngram_simple
    return {
        "model": params.model.path,
        "n_ctx": params.n_ctx,
        "n_batch": params.n_batch,
        "n_ubatch": params.n_ubatch,
        "n_gpu_layers": params.n_gpu_layers,
        "n_parallel": params.n_parallel,
        "n_threads": params.cpuparams.n_threads,
        "n_threads_batch": params.cpuparams_batch.n_threads,
        "flash_attn": int(params.flash_attn_type),
        "type_k": str(params.cache_type_k),
        "fit": params.fit_params,
        "types": [one.name.rpartition("TYPE_")[2] for one in speculative.types],
        "draft_model": draft.mparams.path,
        "draft_n_max": draft.n_max,
        "draft_n_min": draft.n_min,
        "draft_p_min": draft.p_min,
        "draft_n_gpu_layers": draft.n_gpu_layers,
        "draft_n_threads": draft.cpuparams.n_threads,
        "draft_n_threads_batch": draft.cpuparams_batch.n_threads,
        "draft_type_v": str(draft.cache_type_v),
        "ngram_size": ngram.size_n,
        "ngram_draft": ngram.size_m,
        "temperature": sampling.temp,
        "top_k": sampling.top_k,
        "repeat_last_n": sampling.penalty_last_n,
        "seed": sampling.seed,
    }


def _main() -> None:
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    replies.write(json.dumps(_answer(json.loads(sys.stdin.buffer.read()))).encode() + b"\n")


if __name__ == "__main__":
    try:
        _main()
    finally:
        # The server's own threads would hold an orderly exit.
        os._exit(0)
