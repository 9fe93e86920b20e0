"""A process with GPUs that are not here: `python -m tests.device_process ORDER`, where ORDER is a Machine as JSON.

Registered devices stay for the life of a process, so tests that need them have one of their own. What it finds goes to
stdout as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from localspec.planning.footprint import Placement

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Found:
    """What one placement takes."""

    weights: dict[str, int]
    """Bytes by buffer type."""
    context: dict[str, int]
    compute: dict[str, int]
    is_pipelined: bool
    """llama.cpp said that several GPUs work at the same time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the process says in the end."""

    devices: tuple[tuple[str, str, str, int, int, bool], ...]
    """Name, description, type, free and total bytes, unified."""
    found: tuple[Found, ...]
    num_blocks: int
    """Buffers that are still allocated on hypothetical devices after everything was freed."""
    peak_rss_bytes: int
    errors: str
    """What the process wrote to stderr."""


def run(
    devices: Sequence[str], model: Path | None = None, *placements: Placement, breakage: tuple[str, ...] = ()
) -> Answer:
    """Measure a model with placements on devices as parse_device takes them. The same question is asked once.

    Args:
        devices: descriptions.
        model: a GGUF of which the header is enough.
        placements: each is measured.
        breakage: names of functions of the devices' rules that fail each time.
    """
    return _run(tuple(devices), model, placements, breakage)


@cache
def _run(
    devices: tuple[str, ...], model: Path | None, placements: tuple[Placement, ...], breakage: tuple[str, ...]
) -> Answer:
    order = {
        "devices": devices,
        "model": None if model is None else str(model),
        "placements": [asdict(placement) for placement in placements],
        "breakage": breakage,
    }
    command = [sys.executable, "-m", "tests.device_process", json.dumps(order)]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert child.returncode == 0, child.stderr.decode()
    answer: dict[str, Any] = json.loads(child.stdout)
    return Answer(
        devices=tuple(tuple(device) for device in answer["devices"]),
        found=tuple(Found(**found) for found in answer["found"]),
        num_blocks=answer["num_blocks"],
        peak_rss_bytes=answer["peak_rss_bytes"],
        errors=child.stderr.decode(),
    )


def _main() -> None:
    from localspec.engine.llama import backend_rules, hypothetical, library, memory
    from localspec.planning.devices import parse_device

    order = json.loads(sys.argv[1])
    for name in order["breakage"]:
        setattr(backend_rules.CudaRules, name, _fail)
    hypothetical.register([parse_device(text) for text in order["devices"]])
    found = [_measure(order["model"], Placement(**placement)) for placement in order["placements"]]
    answer = {
        "devices": [
            (device.name, device.description, device.type, device.free_bytes, device.total_bytes, device.is_unified)
            for device in library.devices()
        ],
        "found": [asdict(item) for item in found],
        "num_blocks": hypothetical.num_allocated(),
        "peak_rss_bytes": memory.peak_rss_bytes(),
    }
    print(json.dumps(answer))


def _measure(path: str, placement: Placement) -> Found:
    import llama_cpp.llama_cpp as C

    from localspec.engine.llama import hypothetical, log
    from localspec.engine.llama.breakdown import memory_breakdown
    from localspec.engine.llama.params import context_params, probe_params

    lines: list[str] = []
    params = probe_params(placement, hypothetical.handles())
    model = C.llama_model_load_from_file(path.encode(), params.value)
    assert model, log.tail()
    with log.listening(lines.append):
        context = C.llama_init_from_model(model, context_params(placement))
    assert context, log.tail()
    rows = memory_breakdown(context)
    C.llama_free(context)
    C.llama_model_free(model)
    return Found(
        weights={row.buffer.name: row.model_bytes for row in rows},
        context={row.buffer.name: row.context_bytes for row in rows},
        compute={row.buffer.name: row.compute_bytes for row in rows},
        is_pipelined=any("pipeline parallelism enabled" in line for line in lines),
    )


def _fail(*_: object) -> None:
    raise RuntimeError("broken on purpose")


if __name__ == "__main__":
    _main()
