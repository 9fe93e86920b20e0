"""Reading a GGUF's metadata and tensor table through ggml's own parser, without its weights."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from math import prod
from pathlib import Path

from localspec.catalog.gguf_walk import printable
from localspec.catalog.header import ArrayValue, GgufHeader, Scalar, TensorInfo
from localspec.engine.llama import ggml, log
from localspec.engine.llama.precheck import precheck
from localspec.errors import ModelFileError

MAX_ALIGNMENT = 1 << 20
MAX_LAYERS, MAX_EXPERTS = 512, 1024
"""What this llama.cpp has room for. It ends the process where a file asks for more."""

SHARD_NAME = re.compile(r"(?P<stem>.*)-(?P<index>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
"""How the files of a split model are named."""
_AGAIN = "Download the file again. If it is what its maker published, it needs fixing there."
_U16 = 2


@dataclass(frozen=True, slots=True)
class _Shard:
    path: str
    version: int
    file_bytes: int
    data_offset: int
    metadata: dict[str, Scalar | ArrayValue]
    tensors: tuple[TensorInfo, ...]
    has_typed_index: bool
    """Whether split.no has the type that llama.cpp takes for granted."""
    fingerprint: str
    vocabulary_at: int

    def integer(self, key: str, default: int) -> int:
        value = self.metadata.get(key, default)
        return value if isinstance(value, int) else default


def read_header(path: str, with_tensors: bool = True, max_array: int = 64) -> GgufHeader:
    """Read the header of a model.

    Args:
        path: a GGUF file, or any one of the files that a model is split into.
        with_tensors: also list the tensors; they are checked and counted in any case.
        max_array: of longer arrays only the length and this many first items are given.

    Returns:
        The header; its path is the file that llama.cpp wants to be given, which for a split model is the first.

    Raises:
        ModelFileError: a file is missing, damaged or not supported.
        MissingSymbolError: this build of llama.cpp has no GGUF parser.
    """
    log.install()
    first = _read_file(path, max_array)
    paths = _shard_paths(path, first)
    shards = [first] if paths == [path] else [_read_file(shard, max_array) for shard in paths]
    if len(shards) > 1:
        _check_shards(shards)
        first = shards[0]
    tensors = tuple(tensor for shard in shards for tensor in shard.tensors)
    header = GgufHeader(
        path=first.path,
        version=first.version,
        file_bytes=sum(shard.file_bytes for shard in shards),
        data_offset=first.data_offset,
        shards=tuple(paths),
        metadata=first.metadata,
        tensors=tensors if with_tensors else (),
        num_tensors=len(tensors),
        num_params=sum(prod(tensor.shape) for tensor in tensors),
        tensor_bytes=sum(tensor.size_bytes for tensor in tensors),
        vocabulary_fingerprint=first.fingerprint,
        vocabulary_at=first.vocabulary_at,
    )
    _check_counts(header)
    return header


def _read_file(path: str, max_array: int) -> _Shard:
    walk = precheck(path)
    mark = log.position()
    try:
        context = ggml.GgufContext(path)
    except ValueError:
        reasons = log.recent_errors(mark)
        # The first line names the fault, the ones after it only what could not be done therefore.
        reason = reasons[0].split(": ", 1)[-1] if reasons else "ggml's parser refuses it without a reason"
        raise ModelFileError(f"{printable(path)} is damaged or not supported: {reason}.", _AGAIN) from None
    with context:
        alignment = 32
        metadata: dict[str, Scalar | ArrayValue] = {}
        has_typed_index = False
        for index in range(context.num_keys):
            key = context.key(index)
            metadata[key] = value = _value(context, index, max_array)
            if key == "general.alignment" and isinstance(value, int):
                alignment = value
            elif key == "split.no":
                has_typed_index = context.type(index) == _U16
        if alignment > MAX_ALIGNMENT:
            raise ModelFileError(
                f"{printable(path)} is damaged: it asks for an alignment of {alignment} bytes.", _AGAIN
            )
        tensors = tuple(_tensor(context, index, path) for index in range(context.num_tensors))
        shard = _Shard(
            path=path,
            version=context.version,
            file_bytes=walk.size_bytes,
            data_offset=context.data_offset,
            metadata=metadata,
            tensors=tensors,
            has_typed_index=has_typed_index,
            fingerprint=walk.fingerprint,
            vocabulary_at=walk.vocabulary_at,
        )
    _check_data(shard)
    return shard


def _value(context: ggml.GgufContext, index: int, max_array: int) -> Scalar | ArrayValue:
    if context.type(index) != ggml.GGUF_ARRAY:
        return context.scalar(index)
    items = context.array_items(index, max(0, max_array))
    return ArrayValue(ggml.GGUF_TYPES[context.array_type(index)], context.array_length(index), items)


def _tensor(context: ggml.GgufContext, index: int, path: str) -> TensorInfo:
    name = context.tensor_name(index)
    shape = context.tensor_shape(index)
    if 0 in shape:
        sizes = " x ".join(map(str, shape))
        raise ModelFileError(f"{printable(path)} is damaged: tensor {printable(name)} has the shape {sizes}.", _AGAIN)
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    type_name = ggml.type_name(context.tensor_type(index))
    return TensorInfo(name, type_name, shape, context.tensor_offset(index), context.tensor_bytes(index))


def _check_data(shard: _Shard) -> None:
    end = shard.data_offset + max((tensor.offset + tensor.size_bytes for tensor in shard.tensors), default=0)
    if end > shard.file_bytes:
        raise ModelFileError(
            f"{printable(shard.path)} is cut short: its tensors end at byte {end}, "
            f"but the file has {shard.file_bytes} bytes.",
            "The download was probably interrupted. Download the file again.",
        )


def _check_counts(header: GgufHeader) -> None:
    num_experts = header.arch_integer("expert_count")
    limits = (
        ("block_count", 1, MAX_LAYERS, 1),
        ("expert_count", 0, MAX_EXPERTS, 0),
        ("expert_used_count", min(num_experts, 1), num_experts, 0),
    )
    for key, least, most, default in limits:
        stated = header.metadata.get(f"{header.architecture}.{key}")
        # A few models state a number for each layer.
        each = stated.items if isinstance(stated, ArrayValue) else (header.arch_integer(key, default),)
        for value in each:
            if not (isinstance(value, int) and least <= value <= most):
                raise ModelFileError(
                    f"{printable(header.path)} cannot be run: {printable(header.architecture)}.{key} is {value}, "
                    f"and llama.cpp takes {least} to {most}.",
                    "The file is damaged, or needs a newer llama.cpp.",
                )


def _shard_paths(path: str, shard: _Shard) -> list[str]:
    """Return the files of the model that a file belongs to, in order."""
    count = shard.integer("split.count", 1)
    if count <= 1:
        return [path]
    folder, name = os.path.split(path)
    match = SHARD_NAME.fullmatch(name)
    if match is None or int(match["count"]) != count:
        raise ModelFileError(
            f"{printable(path)} says that it is one of {count} files, but its name does not end in "
            f"-NNNNN-of-{count:05d}.gguf.",
            "Give the files of a split model the names under which they were published, in one folder.",
        )
    names = [f"{match['stem']}-{index:05d}-of-{count:05d}.gguf" for index in range(1, count + 1)]
    present = set(os.listdir(folder or "."))
    missing = [name for name in names if name not in present]
    if missing:
        shown = ", ".join(map(printable, missing[:3])) + (" …" if len(missing) > 3 else "")
        raise ModelFileError(
            f"{len(missing)} of the {count} files of this model are missing in "
            f"{printable(str(Path(folder or '.').absolute()))}: {shown}.",
            "Download them into the same folder.",
        )
    return [os.path.join(folder, name) for name in names]


def _check_shards(shards: list[_Shard]) -> None:
    for index, shard in enumerate(shards):
        if not shard.has_typed_index or shard.integer("split.no", -1) != index:
            raise ModelFileError(
                f"{printable(shard.path)} is not number {index + 1} of its model's files, as its name says.",
                "Give the files of a split model the names under which they were published.",
            )
    expected = shards[0].integer("split.tensors.count", -1)
    found = sum(len(shard.tensors) for shard in shards)
    names = {tensor.name for shard in shards for tensor in shard.tensors}
    if found != expected or len(names) != found:
        raise ModelFileError(
            f"The {len(shards)} files of {printable(shards[0].path)} do not belong together: "
            f"{expected} tensors were announced, {len(names)} different ones are there.",
            "Download all of them again from the same place.",
        )
