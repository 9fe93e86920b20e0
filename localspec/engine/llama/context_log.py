"""What llama.cpp's log says of memory while a model is opened and a context made; sizes are rounded to 0.01 MiB."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from localspec.engine.llama.buffers import HOST

_MIB = 1 << 20
_ASSIGNED = re.compile(r"load_tensors: layer +(\d+) assigned to device (.+?), is_swa")
_KV_LAYER = re.compile(r"llama_kv_cache: layer +\d+: dev = (.+)")
_KV_SIZE = re.compile(r"llama_kv_cache: size = +([\d.]+) MiB")
_BUFFER = re.compile(
    r"(?P<whose>llama_memory_recurrent|sched_reserve|llama_context): +(?P<name>.+?) +"
    r"(?:RS|compute|output) buffer size = +(?P<mib>[\d.]+) MiB"
)


@dataclass(slots=True)
class ContextLog:
    """Sizes in bytes by buffer; of KV caches by device, shared out by the number of layers."""

    layer_devices: list[str] = field(default_factory=list)
    """Where each layer's weights go; the last is the output layer."""
    kv: Counter[str] = field(default_factory=Counter)
    recurrent: Counter[str] = field(default_factory=Counter)
    compute: Counter[str] = field(default_factory=Counter)
    output_buffer: str = HOST
    """Which buffer holds the logits."""


def read_log(lines: Iterable[str]) -> ContextLog:
    """Return what lines say that were logged while one model or one context was made."""
    found = ContextLog()
    layers: Counter[str] = Counter()
    for line in lines:
        if match := _ASSIGNED.match(line):
            # Every layer is named once, from the first to the output layer.
            found.layer_devices.append(match[2])
        elif match := _KV_LAYER.match(line):
            layers[match[1]] += 1
        elif match := _KV_SIZE.match(line):
            size, total = _bytes(match[1]), max(1, layers.total())
            for device, count in layers.items():
                found.kv[device] += size * count // total
            layers.clear()
        elif match := _BUFFER.match(line):
            name, size = match["name"], _bytes(match["mib"])
            if match["whose"] == "llama_memory_recurrent":
                found.recurrent[name] += size
            elif match["whose"] == "sched_reserve":
                found.compute[name] += size
            else:
                found.output_buffer = name
    return found


def _bytes(mebibytes: str) -> int:
    return round(float(mebibytes) * _MIB)
