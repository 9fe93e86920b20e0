"""What reading a header costs: of the models at hand, and of one with a vocabulary as large as they come."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from localspec.catalog.embedded import find_smollm2
from localspec.engine.llama.header import read_header
from localspec.engine.llama.library import start_library
from localspec.engine.llama.precheck import precheck
from tests.bench.setting import Json, Outcome, Setting, Spread
from tests.damaged_gguf import F32, I32, STRING, array, string, text, whole

LARGE_VOCABULARY = 262_144
NUM_MERGES = 514_000
"""About as many as Gemma's."""
WANTED_S = 0.3


def write_large(path: Path, num_tokens: int = LARGE_VOCABULARY, num_merges: int = NUM_MERGES) -> Path:
    """Write a sound file with random words for tokens, their scores, types and merges."""
    draw = random.Random(1)
    letters = b"etaoinshrdlucmfwypvbgkqjxz"

    def word() -> bytes:
        return bytes(draw.choices(letters, k=draw.randint(1, 11)))

    raw = whole()
    raw.entries |= {
        b"general.name": text(b"large vocabulary"),
        b"tokenizer.ggml.tokens": array(STRING, [string(word()) for _ in range(num_tokens)]),
        b"tokenizer.ggml.scores": array(F32, [struct.pack("<f", -float(index)) for index in range(num_tokens)]),
        b"tokenizer.ggml.token_type": array(I32, [struct.pack("<i", 1)] * num_tokens),
        b"tokenizer.ggml.merges": array(STRING, [string(word() + b" " + word()) for _ in range(num_merges)]),
    }
    path.write_bytes(raw.encode())
    return path


async def header_time(setting: Setting) -> Outcome:
    """Reading headers, their vocabulary and tensor table included."""
    start_library()
    lines, numbers = [], dict[str, Json]()
    large = write_large(setting.folder / "large-vocabulary.gguf")
    for path in (find_smollm2(), setting.models.target, setting.models.draft, large):
        spread = _times(partial(read_header, str(path)), setting.pairs)
        lines.append(f"{path.name}: {spread.words(1, ' ms')}, {path.stat().st_size / 1e6:.0f} MB")
        numbers[path.name] = spread.json
    walk = _times(partial(precheck, str(large)), setting.pairs)
    lines.append(
        f"{LARGE_VOCABULARY} tokens and {NUM_MERGES} merges: wanted at most {1e3 * WANTED_S:.0f} ms; of it the look "
        f"before parsing {walk.words(1, ' ms')}"
    )
    numbers["walk"] = walk.json
    return Outcome(tuple(lines), numbers)


def _times(read: Callable[[], object], count: int) -> Spread:
    """Return milliseconds; the first reading is a warm-up."""
    times = []
    for _ in range(count + 1):
        started = perf_counter()
        read()
        times.append(1e3 * (perf_counter() - started))
    return Spread.of(times[1:])
