"""What the name of a GGUF tells: its quantisation, and which files make up one model."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_SHARDS = 1_000
"""A name that speaks of more files is taken for a whole model's."""

_SHARD = re.compile(r"(?P<stem>.*)-(?P<index>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL | re.ASCII)

_QUANTISED = re.compile(
    r"(?<![A-Za-z0-9])"
    r"(?:UD-)?(?:I?Q[1-8](?:_(?:K|[0-9]|XXS|XS|S|M|L|XL|XXL|NL|R[48]))*|TQ[12]_0|MXFP4(?:_MOE)?|NVFP4)"
    r"(?![A-Za-z0-9])",
    re.IGNORECASE,
)
# llama.cpp looks for these words, with a hyphen after them (common/download.cpp). The case of `mtp-` counts there too:
# whole models with MTP layers inside say `-MTP-` in their names.
_SIDES = re.compile(r"(?<![a-z0-9])(?:eagle3|dflash|dspark)(?![a-z0-9])", re.IGNORECASE)
_NOT_TYPABLE = re.compile(r"[^\w.-]+", re.ASCII)
_WHOLE = re.compile(r"(?<![A-Za-z0-9])(?:BF16|FP?16|FP?32)(?![A-Za-z0-9])", re.IGNORECASE)


def is_model(name: str) -> bool:
    """Whether a file of this name is a model, and not half of a picture reader or a table of importances."""
    low = name.lower()
    if not low.endswith(".gguf") or low.startswith(".") or "mmproj" in low:
        return False
    # Many models are named after the importance matrix that they were quantised with: those say how, too.
    return not (low.startswith("imatrix") or (stem_of(low).endswith("imatrix") and not quantisation_in(low)))


def is_side_file(name: str) -> bool:
    """Whether a file of this name drafts for one target only and is no model to run alone."""
    return _SIDES.search(name) is not None or "mtp-" in name or name.startswith("MTP-")


def typable(stem: str) -> str:
    """Return a name as it is written behind the colon of REPO:NAME."""
    return _NOT_TYPABLE.sub("-", stem)


def stem_of(name: str) -> str:
    """Return a file's name without `.gguf`, and without its number among the files of a split model."""
    match = _SHARD.fullmatch(name)
    if match is not None:
        return match["stem"]
    return name[:-5] if name.lower().endswith(".gguf") else name


def quantisation_in(text: str) -> str:
    """Return the quantisation that a name states, in capitals, such as `Q4_K_M` or `UD-Q2_K_XL`; empty for none.

    Of several the last counts, and one of weights before a type that only some tensors kept: `f16.q6` is Q6.
    """
    found = _QUANTISED.findall(text) or _WHOLE.findall(text)
    return str(found[-1]).upper() if found else ""


def shard_of(name: str) -> tuple[str, int, int] | None:
    """Return stem, number from 1 and count of a file of a split model; None of a whole model's."""
    match = _SHARD.fullmatch(name)
    if match is None or not (1 <= int(match["index"]) <= int(match["count"]) <= MAX_SHARDS):
        return None
    return match["stem"], int(match["index"]), int(match["count"])


def shard_names(name: str) -> tuple[str, ...]:
    """Return the names of all files of the model that a file belongs to, in order; of a whole model its own."""
    shard = shard_of(name)
    if shard is None:
        return (name,)
    stem, _, count = shard
    return tuple(f"{stem}-{index:05d}-of-{count:05d}.gguf" for index in range(1, count + 1))


def group_names(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the models that files of one folder make up, each as the names that it should have, in order."""
    models: dict[tuple[str, ...], None] = {}
    for name in sorted(names):
        models.setdefault(shard_names(name))
    return list(models)
