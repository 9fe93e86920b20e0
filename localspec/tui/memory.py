"""What the app remembers from one start to the next: models, screen, and what was set beside the settings."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from localspec.errors import LocalspecError
from localspec.methods import needs_draft
from localspec.settings import ContextGroup, DraftGroup, SamplingGroup, Settings
from localspec.tui.bench_settings import PARTS, bench_of
from localspec.tui.state import ChosenModel, Workbench

Value = int | float | str | bool | None

MAX_BYTES = 100_000
"""Of the file; a larger one is none of ours."""

_GROUPS = {"speculation": "draft", "sampling": "sampling", "context": "context", "draft_context": "draft"}


class RememberedModel(BaseModel):
    """A chosen model."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(max_length=1000)
    path: str = Field(max_length=5000)


class Remembered(BaseModel):
    """The file's content. Names that are not known are passed over: a newer localspec may have written it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    target: RememberedModel | None = None
    draft: RememberedModel | None = None
    changes: dict[str, dict[str, Value]] = {}
    """Values that differ from the settings, by part of the workbench."""
    max_tokens: int = Field(1024, ge=1, le=1_000_000)
    screen: str = ""


def read_remembered(path: Path) -> Remembered:
    """Return what is remembered; nothing, if there is no such file or it is damaged. Blocks."""
    with suppress(OSError, ValidationError):
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) <= MAX_BYTES:
            return Remembered.model_validate_json(text)
    return Remembered()


def write_remembered(path: Path, remembered: Remembered) -> None:
    """Write the file whole or not at all. Blocks.

    Raises:
        LocalspecError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(remembered.model_dump_json(indent=1) + "\n", encoding="utf-8")
        part.replace(path)
    except (OSError, ValueError) as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or "it holds text that is no Unicode"
        raise LocalspecError(f"What was chosen cannot be remembered: {reason}.", f"See to {path}.") from None


def remember(bench: Workbench, settings: Settings, screen: str) -> Remembered:
    """Return what is to be remembered of a workbench."""
    default = bench_of(settings)
    changes: dict[str, dict[str, Value]] = {}
    for part in PARTS:
        own, usual = asdict(getattr(bench, part)), asdict(getattr(default, part))
        differing = {name: value for name, value in own.items() if value != usual[name]}
        if differing:
            changes[part] = differing
    return Remembered(
        target=_note(bench.target),
        draft=_note(bench.draft),
        changes=changes,
        max_tokens=bench.max_tokens,
        screen=screen,
    )


def recall(remembered: Remembered, settings: Settings, overridden: Collection[tuple[str, str]] = ()) -> Workbench:
    """Return the workbench as it was left. Models that are gone are left out, and values that cannot be.

    Args:
        remembered: from the last time.
        settings: in force; they count where nothing else was chosen.
        overridden: settings as (group, name) that the environment says, which is above what is remembered.
    """
    default = bench_of(settings)
    bench = _changed(default, remembered, overridden)
    target, draft = _found(remembered.target), _found(remembered.draft)
    if target is None:
        draft = None
    if draft is None and needs_draft((bench.speculation.method,)):
        bench = replace(bench, speculation=replace(bench.speculation, method="off"))
    return replace(bench, target=target, draft=draft, max_tokens=remembered.max_tokens)


def _changed(default: Workbench, remembered: Remembered, overridden: Collection[tuple[str, str]]) -> Workbench:
    parts: dict[str, Any] = {}
    for part in PARTS:
        usual = getattr(default, part)
        known = asdict(usual)
        wanted = {
            name: value
            for name, value in remembered.changes.get(part, {}).items()
            if name in known and (_GROUPS[part], name) not in overridden
        }
        parts[part] = replace(usual, **wanted)
    bench = replace(default, **parts)
    speculation = {name: value for name, value in asdict(bench.speculation).items() if name in DraftGroup.model_fields}
    try:
        DraftGroup(**speculation)
        SamplingGroup(**asdict(bench.sampling))
        ContextGroup(**asdict(bench.context))
        ContextGroup(**asdict(bench.draft_context))
    except ValidationError:
        return default
    return bench


def _note(model: ChosenModel | None) -> RememberedModel | None:
    return None if model is None else RememberedModel(name=model.name[:1000], path=str(model.path)[:5000])


def _found(model: RememberedModel | None) -> ChosenModel | None:
    if model is None:
        return None
    with suppress(OSError, ValueError):
        if Path(model.path).is_file():
            return ChosenModel(model.name, Path(model.path))
    return None
