"""What a measurement was asked for, as a record from which the same can be asked again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from localspec.errors import StoreError
from localspec.session.measurement import MeasurementPlan
from localspec.store.values import Record

_PLAN = TypeAdapter(MeasurementPlan)

Hashes = tuple[str | None, str | None]


def request_of(plan: MeasurementPlan, hashes: Hashes = (None, None)) -> Record:
    """Return a plan as a JSON object: its fields by their names.

    `target` and `draft` are {path, sha256, file_bytes} (draft: or null). Paths are whole: which folder a person was
    in is not kept. Prompts carry their whole text, since a file that it came from may change, and its SHA-256. Those
    from a person's chats carry the hash only: whoever deletes a chat has deleted its words.

    Args:
        hashes: SHA-256 of target and draft; None where not known.
    """
    # File names need not be Unicode, as pydantic's texts must.
    record: Record = _PLAN.dump_python(plan, mode="json", exclude={"target", "draft"})
    record["target"] = _file(plan.target, hashes[0])
    record["draft"] = None if plan.draft is None else _file(plan.draft, hashes[1])
    for workload in record["workloads"]:
        for prompt in workload["prompts"]:
            prompt["sha256"] = text_sha256(prompt["system"], prompt["user"])
            if prompt["source"] is not None:
                prompt |= {"system": "", "user": "", "earlier": []}
    return record


def plan_of(request: Record) -> MeasurementPlan:
    """Return the plan that a request was made of.

    Raises:
        StoreError: the request is damaged, or from a localspec that knew other settings.
    """
    try:
        draft = request["draft"]
        paths = {
            "target": Path(request["target"]["path"]),
            "draft": None if draft is None else Path(draft["path"]),
        }
        return _PLAN.validate_python({**request, **paths})
    except (KeyError, TypeError, ValidationError) as error:
        raise StoreError(
            f"The settings of this run cannot be read: {_first_line(error)}.",
            "Measure again with `localspec bench`.",
        ) from error


def text_sha256(system: str, user: str) -> str:
    """Return the SHA-256 of a prompt: of its system text and its own, with a zero byte between."""
    return hashlib.sha256(b"\0".join(text.encode("utf-8", "surrogatepass") for text in (system, user))).hexdigest()


def _file(path: Path, sha256: str | None) -> Record:
    try:
        file_bytes = path.stat().st_size
    except OSError:
        file_bytes = None
    return {"path": os.path.abspath(path), "sha256": sha256, "file_bytes": file_bytes}


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return f"{type(error).__name__} {error}"
