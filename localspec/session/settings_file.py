"""Changes to settings.toml that leave everything else in it as it is: comments, order, blank lines."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from localspec.errors import LocalspecError, SettingsError
from localspec.settings import Settings, load_settings

_KEYS = "LOCALSPEC_KEYS"

Value = bool | int | float | str | Sequence[str] | None
"""None takes a setting out of the file, so that the default counts."""

Changes = Mapping[tuple[str, str], Value]
"""By group and name."""


def overridden_settings(environ: Mapping[str, str] = os.environ) -> dict[tuple[str, str], str]:
    """Return the settings that the environment says, as (group, name), each with its variable."""
    known = {variable.upper(): variable for variable in environ}
    overridden: dict[tuple[str, str], str] = {("keys", name): known[_KEYS] for name in _keys_of(known, environ)}
    for group, field in Settings.model_fields.items():
        names = getattr(field.annotation, "model_fields", {})
        for name in names:
            for candidate in (f"LOCALSPEC_{group}__{name}".upper(), f"LOCALSPEC_{group}".upper()):
                if candidate in known:
                    overridden.setdefault((group, name), known[candidate])
    return overridden


def change_settings(path: Path, changes: Changes) -> Settings:
    """Write changes to a settings file, if all settings are right with them, and return what is then in force. Blocks.

    The file is replaced as a whole; if it is a link, what it points to is.

    Args:
        path: the file; it need not exist.
        changes: new values; what is not named stays.

    Raises:
        SettingsError: a value is wrong, or two do not go together. The file is as it was.
        LocalspecError: it cannot be read or written.
    """
    path = path.resolve()
    text = _changed_text(_read(path), changes, path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8", newline="")
        try:
            settings = load_settings(file=part)
        except SettingsError as error:
            words = error.message.removeprefix(f"{part}: ").replace(str(part), str(path))
            raise SettingsError(words, error.hint) from None
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except OSError as error:
        raise LocalspecError(f"Cannot write {path}: {error.strerror}.", "Make its folder writable.") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return settings


def _read(path: Path) -> str:
    try:
        # Bytes, since reading as text would change the ends of lines.
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise LocalspecError(f"Cannot read {path}: {reason}.", "Make it a readable text file, or delete it.") from None


def _changed_text(text: str, changes: Changes, path: Path) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        for (group, name), value in changes.items():
            table = document.get(group)
            if value is None:
                if (holder := _holder(table, name)) is not None:
                    del holder[0][holder[1]]
                continue
            if table is None:
                document[group] = tomlkit.table()
                table = document[group]
            if not isinstance(table, dict):
                raise SettingsError(f"{path}: {group} is no group.", f"Write [{group}] on a line of its own.")
            place, own = _holder(table, name) or (table, name)
            place[own] = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}", "Correct that line, or delete the file.") from None


def _holder(table: object, name: str) -> tuple[dict[str, Any], str] | None:
    """Return the table that has a name, and the name there: `chat.stop` may be a `stop` in a table `chat`."""
    if not isinstance(table, dict):
        return None
    if name in table:
        return table, name
    for end, character in enumerate(name):
        if character == "." and (found := _holder(table.get(name[:end]), name[end + 1 :])) is not None:
            return found
    return None


def _keys_of(known: Mapping[str, str], environ: Mapping[str, str]) -> list[str]:
    """Return what the environment gives keys to: one variable with a JSON object."""
    with suppress(ValueError, RecursionError):
        value = json.loads(environ[known[_KEYS]]) if _KEYS in known else {}
        return [str(name) for name in value] if isinstance(value, dict) else []
    return []
