"""llama.cpp's own server, from the prebuilt package xllamacpp, in a process of its own.

The child speaks JSON lines over its first stdin and stdout; all that C prints goes to the null device.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

_ROOT = Path(__file__).resolve().parent.parent


class ServerUnavailableError(Exception):
    """xllamacpp is not installed, or cannot be loaded on this machine."""


class ServerError(Exception):
    """The server was loaded, but did not do what it was asked."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What to load; all else is llama.cpp's default, with flash attention on, one slot and no GPU."""

    target: str
    n_ctx: int
    n_threads: int
    draft: str = ""
    n_max: int = 0
    """Tokens drafted in a round by llama.cpp's `draft-simple`, with n_min 0 and p_min 0; 0 for no speculation."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A streamed piece of the answer. All counts are cumulative."""

    text: str
    num_tokens: int
    num_drafted: int
    num_accepted: int


@dataclass(frozen=True, slots=True)
class DraftRound:
    """A round in which something was drafted."""

    start: int
    """Tokens emitted before it."""
    num_drafted: int
    num_accepted: int


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer to one prompt."""

    num_prompt_tokens: int
    num_tokens: int
    decode_tps: float | None
    """Tokens per second after the first one, as the server says."""
    num_drafted: int
    num_accepted: int
    text: str
    chunks: tuple[Chunk, ...]
    """Empty unless the answer was streamed."""

    @property
    def rounds(self) -> tuple[DraftRound, ...]:
        """The rounds with drafts, rebuilt from a streamed answer."""
        return rebuild_rounds(self.chunks)


class ReferenceServer:
    """A running server. Use it as a context manager.

    Raises:
        ServerUnavailableError: xllamacpp cannot be loaded.
        ServerError: the models cannot be.
    """

    def __init__(self, settings: ServerSettings) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ServerUnavailableError("xllamacpp is not installed")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.reference_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
        )
        try:
            self.system_info = str(self._ask(asdict(settings), ServerUnavailableError)["system_info"])
            """llama.cpp's line of the CPU features that this build uses."""
            self._receive(ServerError)
        except BaseException:
            self.close()
            raise

    def complete(
        self, prompt: Sequence[int], num_tokens: int, *, ignore_eos: bool = True, is_streamed: bool = False
    ) -> Completion:
        """Read a prompt afresh and answer greedily.

        Args:
            prompt: token ids.
            num_tokens: most tokens of the answer.
            ignore_eos: never draw an end-of-generation token.
            is_streamed: ask for each token's counts; costs the server some time.

        Raises:
            ServerError: the server refused, or ended.
        """
        question = {
            "prompt": list(prompt),
            "n_predict": num_tokens,
            "ignore_eos": ignore_eos,
            "temperature": 0.0,
            "samplers": ["top_k"],
            "top_k": 1,
            "cache_prompt": False,
            "stream": is_streamed,
            "timings_per_token": is_streamed,
        }
        replies = self._ask(question, ServerError)["replies"]
        for reply in replies:
            if "timings" not in reply:
                raise ServerError(f"the server answered {str(reply)[:500]}")
        timings = replies[-1]["timings"]
        num_emitted = int(timings["predicted_n"])
        return Completion(
            num_prompt_tokens=int(timings["prompt_n"]),
            num_tokens=num_emitted,
            decode_tps=float(timings["predicted_per_second"]) if num_emitted > 1 else None,
            num_drafted=int(timings.get("draft_n", 0)),
            num_accepted=int(timings.get("draft_n_accepted", 0)),
            text="".join(str(reply["choices"][0]["text"]) for reply in replies),
            chunks=tuple(_chunk(reply) for reply in replies) if is_streamed else (),
        )

    def candidates(self, tokens: Sequence[int], num_candidates: int) -> dict[int, float]:
        """Return the best next tokens after some tokens, with their log-probabilities.

        Only a server without a draft says them. What its cache shares with `tokens` is not read again, so that a text
        that is asked about token by token is read in single steps.
        """
        question = {"prompt": list(tokens), "n_predict": 1, "temperature": 0.0, "samplers": ["top_k"], "top_k": 1}
        (reply,) = self._ask(question | {"cache_prompt": True, "logprobs": num_candidates}, ServerError)["replies"]
        best = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return {int(item["id"]): float(item["logprob"]) for item in best}

    def close(self) -> None:
        """End the process. Safe to call twice."""
        assert self._process.stdin and self._process.stdout
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                continue

    def __enter__(self) -> ReferenceServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, question: dict[str, Any], failure: type[Exception]) -> dict[str, Any]:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise failure("the server's process has ended") from None
        return self._receive(failure)

    def _receive(self, failure: type[Exception]) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise failure(f"the server's process ended with status {self._process.wait()}")
        reply: dict[str, Any] = json.loads(line)
        if "failure" in reply:
            raise failure(reply["failure"])
        return reply


def rebuild_rounds(chunks: Sequence[Chunk]) -> tuple[DraftRound, ...]:
    """Return the rounds that cumulative counts tell of.

    The server counts a round's drafts before it sends the first of its tokens, and a round emits one token more than
    it accepted. Plain steps come only at the end, when a single token is left.

    Raises:
        ServerError: the counts do not fit together, as when none of a round's tokens was sent in time.
    """
    rounds: list[DraftRound] = []
    start = 1
    for before, chunk in pairwise(chunks):
        if chunk.num_drafted == before.num_drafted:
            continue
        num_drafted, num_accepted = chunk.num_drafted - before.num_drafted, chunk.num_accepted - before.num_accepted
        if not before.num_tokens <= start < chunk.num_tokens:
            raise ServerError(f"a round with drafts should begin after {start} tokens, but came with {chunk}")
        rounds.append(DraftRound(start, num_drafted, num_accepted))
        start += num_accepted + 1
    return tuple(rounds)


def _chunk(reply: dict[str, Any]) -> Chunk:
    timings = reply["timings"]
    return Chunk(
        text=str(reply["choices"][0]["text"]),
        num_tokens=int(timings["predicted_n"]),
        num_drafted=int(timings.get("draft_n", 0)),
        num_accepted=int(timings.get("draft_n_accepted", 0)),
    )


def _serve(questions: BinaryIO, say: Callable[[dict[str, Any]], None]) -> None:
    settings = json.loads(questions.readline())
    try:
        import xllamacpp
    except Exception as error:
        say({"failure": f"xllamacpp cannot be loaded: {error}"})
        return
    say({"system_info": str(xllamacpp.get_system_info())})
    try:
        server = xllamacpp.Server(_params(xllamacpp, settings))
    except Exception as error:
        say({"failure": f"the server cannot load the models: {error}"})
        return
    say({"is_loaded": True})
    for line in questions:
        replies: list[Any] = []

        def keep(reply: Any, replies: list[Any] = replies) -> bool:
            replies.append(reply)
            return False

        try:
            whole = server.handle_completions(json.loads(line), keep)
            say({"replies": [json.loads(item) if isinstance(item, str) else item for item in replies or [whole]]})
        except Exception as error:
            say({"failure": str(error)})


def _params(xllamacpp: Any, settings: dict[str, Any]) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = settings["target"]
    params.n_ctx = settings["n_ctx"]
    params.n_batch = params.n_ubatch = 512
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.fit_params = False
    params.verbosity = 0
    placed = [params]
    if settings["n_max"] > 0:
        params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        draft = params.speculative.draft
        draft.mparams.path = settings["draft"]
        draft.n_max, draft.n_min, draft.p_min = settings["n_max"], 0, 0.0
        placed.append(draft)
    for item in placed:
        item.cpuparams.n_threads = item.cpuparams_batch.n_threads = settings["n_threads"]
    return params


def _main() -> None:
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)

    def say(reply: dict[str, Any]) -> None:
        line = memoryview(json.dumps(reply).encode() + b"\n")
        while line:
            line = line[replies.write(line) or 0 :]

    _serve(sys.stdin.buffer, say)


if __name__ == "__main__":
    try:
        _main()
    finally:
        # The server's own threads would hold an orderly exit.
        os._exit(0)
