"""Ollama's store: a manifest for each model and tag, which names its files by their SHA-256."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localspec.catalog.walk import Walk

MODEL_LAYER = "application/vnd.ollama.image.model"
"""Media type of weights. Adapters, projectors, templates and parameters have others."""

_DIGEST = re.compile(r"sha256[:-](?P<hex>[0-9a-f]{64})")
_MAX_MANIFEST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """One tag of one model."""

    name: str
    """As `ollama list` shows it: `model:tag`, with its namespace and host unless they are Ollama's own."""
    tag: str
    blobs: tuple[Path, ...]
    """Its weights, one file as a rule. They may have been removed."""


def ollama_models(folder: Path, walk: Walk) -> Iterator[OllamaModel]:
    """Yield what the manifests of a store name. Those that are damaged or name no GGUF are passed over."""
    top = str(folder / "manifests")
    for manifest_folder, files in walk.folders(top, lambda name: True):
        parts = os.path.relpath(manifest_folder, top).split(os.sep)
        for tag, facts in files.items():
            if facts is None or facts.st_size > _MAX_MANIFEST_BYTES or tag.startswith("."):
                continue
            digests = _digests(Path(manifest_folder, tag))
            if digests:
                blobs = tuple(_blob(folder / "blobs", digest) for digest in digests)
                yield OllamaModel(f"{_short(parts)}:{tag}", tag, blobs)


def _digests(manifest: Path) -> tuple[str, ...]:
    try:
        said = json.loads(manifest.read_bytes())
        layers = said["layers"]
        wanted = [layer["digest"] for layer in layers if layer["mediaType"] == MODEL_LAYER]
        matches = [_DIGEST.fullmatch(digest) for digest in wanted]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return ()
    # A digest of another form could be a path that leads out of the store.
    return () if None in matches else tuple(match["hex"] for match in matches if match)


def _blob(folder: Path, digest: str) -> Path:
    # Until 2024 the names had a colon.
    old = folder / f"sha256:{digest}"
    return old if os.path.lexists(old) else folder / f"sha256-{digest}"


def _short(parts: list[str]) -> str:
    if len(parts) > 1 and parts[0] == "registry.ollama.ai":
        parts = parts[1:]
        if len(parts) > 1 and parts[0] == "library":
            parts = parts[1:]
    return "/".join(parts)
