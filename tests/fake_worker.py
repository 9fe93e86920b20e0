"""A stand-in for the engine process: speaks the wire protocol, holds no model, and misbehaves when asked to.

`generate` with `text` "WORD ARGUMENTS" does what WORD says (see `_SCRIPTS`); every other request is answered in
the usual way. It uses the standard library only, so that it starts at once. Nothing of localspec is imported.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from typing import Any

OUTPUT = os.fdopen(os.dup(1), "wb", buffering=0)
os.dup2(2, 1)
cancelled: set[int] = set()
requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
is_deaf = threading.Event()

OFF = {
    "is_on": False,
    "method": "off",
    "drafter": "",
    "reason": "not asked for",
    "settings": {
        "method": "off",
        "n_max": 4,
        "n_min": 0,
        "p_min": 0.0,
        "ngram_max": 4,
        "ngram_min": 2,
        "verification": "exact",
    },
}
MODEL = {
    "path": "/models/toy.gguf",
    "name": "toy",
    "architecture": "llama",
    "description": "llama toy F32",
    "quantisation": "F32",
    "num_params": 1000,
    "size_bytes": 4000,
    "n_vocab": 320,
    "n_ctx": 256,
    "n_ctx_train": 256,
    "n_threads": 2,
    "n_threads_batch": 2,
    "n_gpu_layers": 0,
    "type_k": "f16",
    "type_v": "f16",
    "flash_attn": True,
    "can_roll_back": True,
    "template": "fallback",
    "end_tokens": [2],
}
BUILD = {
    "llama_cpp_python": "0.0.0",
    "llama_cpp": "",
    "system_info": "fake",
    "supports_gpu_offload": False,
    "supports_mmap": True,
}


def emit(type_: str, id_: int, **fields: Any) -> None:
    """Write an event."""
    data = memoryview(json.dumps({"type": type_, "id": id_, **fields}).encode() + b"\n")
    while data:
        data = data[OUTPUT.write(data) or 0 :]


def emit_round(id_: int, index: int, text: str) -> None:
    """Write a plain step that emitted one token."""
    emit(
        "round_finished",
        id_,
        index=index,
        drafter="",
        drafted=[],
        num_accepted=0,
        num_discarded=0,
        emitted=[{"id": 5, "text": text, "origin": "bonus"}],
        num_cut=0,
        draft_stop="off",
        draft_s=0.0,
        verify_s=0.001,
        sample_s=0.0,
        total_s=0.001,
        at_s=0.1 + index * 0.001,
        n_past=3 + index,
    )


def finish(id_: int, reason: str, num_rounds: int) -> None:
    """Write the last event of a generation."""
    emit(
        "generation_finished",
        id_,
        finish_reason=reason,
        tail_text="",
        speculation=OFF,
        prefill_s=0.1,
        n_past=3 + num_rounds,
        peak_rss_bytes=1,
        device_used_bytes=0,
        at_s=1.0,
    )


def generate(id_: int, word: str, arguments: list[str]) -> None:
    """Emit a few rounds, then do what the word says."""
    emit("generation_started", id_, prompt_tokens=[1, 2, 3], num_reused=0, speculation=OFF, at_s=0.01)
    num_rounds = int(arguments[0]) if arguments else 3
    pause_s = float(arguments[1]) if len(arguments) > 1 else 0.0
    if word == "deaf":
        is_deaf.set()
    for index in range(num_rounds):
        if id_ in cancelled and word != "deaf":
            finish(id_, "cancelled", index)
            return
        emit_round(id_, index, f"w{index} ")
        time.sleep(pause_s)
    ending = _SCRIPTS[word]
    ending(id_)
    finish(id_, "cancelled" if id_ in cancelled else "length", num_rounds)


def hang(id_: int) -> None:
    """Wait for Cancel; a deaf worker waits for good."""
    while id_ not in cancelled or is_deaf.is_set():
        time.sleep(0.002)


def die_by_signal(id_: int) -> None:
    """End as the system's out-of-memory killer would end it, after a last word on stderr."""
    print("\x1b[31mlast words\x1b[0m", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def exit_3(id_: int) -> None:
    """End in the middle of a line."""
    OUTPUT.write(b'{"type": "round_fin')
    os._exit(3)


def garbage(id_: int) -> None:
    """Break the protocol."""
    OUTPUT.write(b"\x1b[2Jggml_abort: not JSON\n")
    time.sleep(60)


def other_id(id_: int) -> None:
    """Speak of a request that nobody waits for."""
    emit_round(id_ + 1000, 0, "stray")


def long_line(id_: int) -> None:
    """Emit a token whose text is several MB long."""
    emit_round(id_, 99, "x" * 5_000_000)


def chatter(id_: int) -> None:
    """Print where C code would print, to both standard outputs."""
    print("printed to stdout", flush=True)
    os.write(1, b"written to fd 1\n")
    os.write(2, b"written to fd 2\n")


def grandchild(id_: int) -> None:
    """Die while a child of ours holds the pipes open."""
    if os.fork() == 0:
        time.sleep(5)
        os._exit(0)
    os._exit(3)


def refuse(id_: int) -> None:
    """Fail, and go on living."""
    emit("engine_failed", id_, kind="DecodeError", message="No.", hint="Ask for less.")


def answer(id_: int) -> None:
    """Nothing more."""


_SCRIPTS = {
    "answer": answer,
    "hang": hang,
    "deaf": hang,
    "sigkill": die_by_signal,
    "exit3": exit_3,
    "garbage": garbage,
    "other_id": other_id,
    "long": long_line,
    "chatter": chatter,
    "grandchild": grandchild,
    "refuse": refuse,
}


def load(id_: int, target_path: str) -> None:
    """Pretend to load; the path may ask for trouble."""
    if target_path == "die":
        os.kill(os.getpid(), signal.SIGABRT)
    for step in range(3):
        emit("load_progress", id_, model="target", fraction=step / 2)
    emit("models_loaded", id_, target=MODEL, draft=None, draft_failure="", speculation=OFF, load_s=0.01)


def read_requests() -> None:
    """Hear Cancel at once, queue everything else, end with stdin."""
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["type"] == "cancel":
            cancelled.add(request["request_id"])
        else:
            requests.put(request)
    os._exit(0)


def main() -> None:
    """Serve."""
    threading.Thread(target=read_requests, daemon=True).start()
    while True:
        request = requests.get()
        id_ = request["id"]
        match request["type"]:
            case "probe":
                emit("probed", id_, build=BUILD, devices=[])
            case "load_models":
                load(id_, request["target_path"])
            case "configure":
                emit("configured", id_, draft=None, speculation=OFF)
            case "generate":
                word, *arguments = (request["text"] or "answer").split()
                generate(id_, word, arguments)
            case "unload":
                emit("unloaded", id_)
                os._exit(0)
            case other:
                emit("engine_failed", id_, kind="UsageError", message=f"{other}?", hint="")


if __name__ == "__main__":
    main()
