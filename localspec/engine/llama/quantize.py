"""Writing a requantised or layer-pruned copy of a model with llama.cpp's own quantiser."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import llama_cpp.llama_cpp as C

from localspec.catalog.gguf_walk import printable
from localspec.catalog.header import ArrayValue, GgufHeader
from localspec.catalog.quantisation import FILE_TYPES, file_type_number
from localspec.engine.llama import log
from localspec.engine.llama.header import read_header
from localspec.engine.llama.library import start_library
from localspec.errors import LocalspecError, UsageError

QuantizeProgressCallback = Callable[[int, int], None]
"""Called with (tensors begun, tensors in all)."""

_TENSOR_LINE = re.compile(r"\[\s*(\d+)/\s*\d+\]")
_LAYER = re.compile(r"blk\.(\d+)\.")
_END_OF_LAYERS = -1


def quantize(
    source: str,
    destination: str,
    quantisation: str,
    prune_layers: Sequence[int] = (),
    n_threads: int = 0,
    progress: QuantizeProgressCallback | None = None,
) -> int:
    """Write a copy of a model in another quantisation, without some of its layers if wanted.

    The copy is written under a temporary name beside the destination and gets its name when it is complete.

    Args:
        source: a GGUF file, or any one of the files of a split model.
        destination: the file to write; one that is there is replaced.
        quantisation: llama.cpp's name of a file type, such as `Q4_0`, in any case of letters.
        prune_layers: numbers of the layers to leave out, from 0.
        n_threads: 0 takes the number that llama.cpp finds.
        progress: told of each tensor as it is begun.

    Returns:
        The size of the copy in bytes.

    Raises:
        UsageError: unknown quantisation, layers that cannot be left out, or a destination that cannot be written.
        ModelFileError: the source is missing or damaged.
        LocalspecError: llama.cpp could not write the copy.
    """
    file_type = file_type_number(quantisation)
    if file_type is None:
        raise UsageError(
            f"There is no quantisation {printable(quantisation)}.", f"Known ones: {', '.join(FILE_TYPES)}."
        )
    header = read_header(source, max_array=0)
    layers = _checked_layers(header, prune_layers)
    target = Path(destination)
    _check_destination(target, header)
    start_library()

    params = C.llama_model_quantize_default_params()
    params.ftype = file_type
    params.nthread = n_threads
    params.allow_requantize = True
    # Kept alive by this name until the call returns.
    layer_array = (ctypes.c_int32 * (len(layers) + 1))(*layers, _END_OF_LAYERS)
    if layers:
        params.prune_layers = ctypes.cast(layer_array, ctypes.POINTER(ctypes.c_int32))

    kept = sum(_layer_of(tensor.name) not in layers for tensor in header.tensors)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.partial")
    mark = log.position()
    try:
        with log.listening(_TensorCounter(kept, progress)):
            code = C.llama_model_quantize(os.fsencode(header.path), os.fsencode(temporary), ctypes.byref(params))
        if code != 0:
            raise LocalspecError(
                f"llama.cpp could not write {printable(str(target))} as {quantisation}: "
                f"{_reason(log.recent_errors(mark))}.",
                "Last lines of llama.cpp's log: " + " | ".join(log.tail(5, mark)),
            )
        size_bytes = read_header(str(temporary), with_tensors=False, max_array=0).file_bytes
        os.replace(temporary, target)
        return size_bytes
    except OSError as error:
        raise LocalspecError(f"{printable(str(target))} cannot be written: {error}.", "Check the folder.") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


class _TensorCounter:
    """Counts the tensors that the quantiser says it begins."""

    def __init__(self, num_total: int, progress: QuantizeProgressCallback | None) -> None:
        self._num_total = num_total
        self._progress = progress

    def __call__(self, line: str) -> None:
        match = _TENSOR_LINE.match(line)
        if match and self._progress:
            self._progress(min(int(match[1]), self._num_total), self._num_total)


def _checked_layers(header: GgufHeader, prune_layers: Sequence[int]) -> list[int]:
    layers = sorted(set(prune_layers))
    if not layers:
        return []
    num_layers = header.arch_integer("block_count")
    if layers[0] < 0 or layers[-1] >= num_layers:
        raise UsageError(
            f"The model has layers 0 to {num_layers - 1}; layer {layers[0] if layers[0] < 0 else layers[-1]} is none.",
            "Name layers that it has.",
        )
    if len(layers) == num_layers:
        raise UsageError("All layers would be left out.", "Keep at least one.")
    for key, value in header.metadata.items():
        if key.startswith(f"{header.architecture}.") and isinstance(value, ArrayValue) and value.length == num_layers:
            raise UsageError(
                f"llama.cpp cannot leave out layers of this model: they differ, {printable(key)} has a value for each.",
                "Quantise it with all layers.",
            )
    return layers


def _check_destination(target: Path, header: GgufHeader) -> None:
    shown = printable(str(target))
    if not target.parent.is_dir():
        raise UsageError(f"There is no folder {printable(str(target.parent))}.", "Make it first.")
    if target.is_dir():
        raise UsageError(f"{shown} is a folder.", "Name a file.")
    if target.exists() and any(os.path.samefile(target, shard) for shard in header.shards):
        raise UsageError(f"{shown} is the model itself.", "Name another file for the copy.")
    if not os.access(target.parent, os.W_OK):
        raise UsageError(f"The folder of {shown} may not be written to.", "Choose another folder.")


def _layer_of(name: str) -> int:
    match = _LAYER.search(name)
    return int(match[1]) if match else _END_OF_LAYERS


def _reason(errors: Sequence[str]) -> str:
    reason = errors[-1].split("failed to quantize: ", 1)[-1].rstrip(".") if errors else "it gave no reason"
    return "writing failed, the disk may be full" if "iostream error" in reason else reason
