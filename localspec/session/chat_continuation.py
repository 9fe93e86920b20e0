"""A kept chat taken up again: the same models by path or name, and what is different from then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from localspec.catalog.found_model import FoundModel
from localspec.catalog.naming import existing_file
from localspec.engine.values import Message
from localspec.errors import LocalspecError, ModelFileError
from localspec.session.hashing import OnHashed, sha256_of
from localspec.session.library import local_models
from localspec.settings import Settings
from localspec.store.values import Record, StoredChat

Role = Literal["target", "draft"]


@dataclass(frozen=True, slots=True)
class HashCheck:
    """A file whose SHA-256 was known when the chat was kept."""

    role: Role
    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Continued:
    """A kept chat, ready to go on."""

    chat_id: int
    target: FoundModel
    draft: FoundModel | None
    turns: tuple[Message, ...]
    checks: tuple[HashCheck, ...]
    """Files to compare with what they were then."""


def find_target(chat: StoredChat, settings: Settings) -> tuple[FoundModel, tuple[str, ...]]:
    """Return a chat's target, and what is different from then, in sentences.

    Raises:
        ModelFileError: it is not here any more.
    """
    entry = _entry(chat.models, "target")
    model, notes = _find("target", entry, settings)
    if model is None:
        raise ModelFileError(
            f"The target of this chat is not here any more: {_called(entry)}.",
            "Name a model to go on with: --target MODEL. `localspec models` lists what is here.",
        )
    return model, notes


def find_draft(chat: StoredChat, settings: Settings) -> tuple[FoundModel | None, tuple[str, ...]]:
    """Return a chat's draft, if it had one. One that is gone is a note, since the chat can go on without.

    Raises:
        ModelFileError: the file is there and cannot be opened.
    """
    entry = _entry(chat.models, "draft")
    if not entry:
        return None, ()
    model, notes = _find("draft", entry, settings)
    return model, notes if model is not None else (f"The draft of this chat is not here any more: {_called(entry)}.",)


def hash_checks(chat: StoredChat, target: FoundModel | None, draft: FoundModel | None) -> tuple[HashCheck, ...]:
    """Return the files of which it can be told whether they are the same as then, to the byte.

    Files of another size are not among them: find_target and find_draft say that already.
    """
    checks = []
    pairs: tuple[tuple[Role, FoundModel | None], ...] = (("target", target), ("draft", draft))
    for role, model in pairs:
        entry = _entry(chat.models, role)
        sha256 = entry.get("sha256")
        if model is not None and isinstance(sha256, str) and sha256 and entry.get("size_bytes") == model.file_bytes:
            checks.append(HashCheck(role, model.path, sha256))
    return tuple(checks)


async def changed_files(
    checks: tuple[HashCheck, ...],
    on_progress: Callable[[Role, int, int], None] = lambda role, num_done, num_total: None,
    folder: Path | None = None,
) -> tuple[str, ...]:
    """Return a sentence for each file whose content is not what it was. A sum that is not remembered is computed.

    Args:
        checks: from hash_checks.
        on_progress: called with whose file is read, bytes read and bytes in all.
        folder: where sums are remembered; by default the cache folder.
    """
    notes = []
    for check in checks:
        try:
            now = await sha256_of(check.path, _report(on_progress, check.role), folder)
        except LocalspecError:
            continue
        if now != check.sha256:
            notes.append(
                f"The {check.role} has another content than then, though it is as large: SHA-256 {now[:12]}… "
                f"instead of {check.sha256[:12]}…"
            )
    return tuple(notes)


def _report(on_progress: Callable[[Role, int, int], None], role: Role) -> OnHashed:
    return lambda num_done, num_total: on_progress(role, num_done, num_total)


def _entry(models: Record, role: Role) -> Record:
    entry = models.get(role)
    return entry if isinstance(entry, dict) else {}


def _called(entry: Record) -> str:
    return str(entry.get("path") or entry.get("name") or "its name is not known")


def _find(role: Role, entry: Record, settings: Settings) -> tuple[FoundModel | None, tuple[str, ...]]:
    path, name = str(entry.get("path") or ""), str(entry.get("name") or "")
    model = existing_file(path, local_models(settings)) if path else None
    notes = []
    if model is None:
        model = _namesake(entry, name, path, settings)
        if model is None:
            return None, ()
        notes.append(f"The {role} was at {path}; {model.path} is taken for it.")
    size = entry.get("size_bytes")
    if isinstance(size, int) and size != model.file_bytes:
        notes.append(
            f"The {role} is another file than then: {model.file_bytes} bytes instead of {size} ({model.path})."
        )
    return model, tuple(notes)


def _namesake(entry: Record, name: str, path: str, settings: Settings) -> FoundModel | None:
    """Return the model that has the name or the file name of one that was moved; one of the same size before others."""
    file_name = Path(path).name.casefold()
    matches = [
        model
        for model in local_models(settings)
        if model.name.casefold() == name.casefold() or (file_name and model.path.name.casefold() == file_name)
    ]
    matches.sort(key=lambda model: model.file_bytes != entry.get("size_bytes"))
    return matches[0] if matches else None
