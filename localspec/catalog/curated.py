"""Curated pairs: targets and drafts that public sources say belong together, read from TOML.

They are claims, not verdicts: catalog/pairing.py says whether two files are a pair, and only a measurement, if it pays.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from localspec.errors import SettingsError
from localspec.paths import curated_models_dir, settings_file

CuratedMethod = Literal["draft", "eagle3", "mtp", "dflash", "dspark", "ngram"]
"""How the target is drafted for: by a model, by a head made for it, or out of its own text."""

_MAX_FILE_BYTES = 1024 * 1024

_REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_DRAFT_FILE = re.compile(r"[\w.*?/-]{1,200}\.gguf", re.ASCII)


@dataclass(frozen=True, slots=True)
class CuratedPair:
    """One claim. Texts are what a file says: not markup. Repositories and models are `owner/name`, or empty."""

    family: str
    target_base: str
    """The original model: any GGUF made from it is meant."""
    target_aliases: tuple[str, ...]
    """Other names under which the original model is known on the Hub."""
    target_repo: str
    """A repository that offers it as GGUF."""
    target_params: str
    """Its size as people write it, such as `8B` or `30B-A3B`."""
    draft_base: str
    """The original draft model or head. Empty for n-grams, and where the heads are inside the target's own file."""
    draft_repo: str
    """A repository that offers it as GGUF. Empty while draft_base is stated: it has to be converted first."""
    draft_file: str
    """Name or pattern of the file in draft_repo, where that holds other models too; empty for any."""
    method: CuratedMethod
    notes: str
    """What it rests on, and known traps."""
    source: str
    """Address of the page that says so, or of the facts that it follows from."""
    is_tried: bool
    """Whether it was measured with localspec."""
    llama_cpp: str
    """First version of llama.cpp that can do it, such as `b9190`; empty if not known."""

    @property
    def is_inside_target(self) -> bool:
        """Whether the target's own file holds what drafts."""
        return self.method == "mtp" and not self.draft_base and not self.draft_repo


@dataclass(frozen=True, slots=True)
class CuratedList:
    """What the files say, and what is wrong with those that could not be taken."""

    pairs: tuple[CuratedPair, ...]
    failures: tuple[SettingsError, ...] = ()
    """One for each file that was left out whole."""


def curated_folders(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return where curated pairs lie: the shipped folder, then `pairs` in the folder of settings, which need not exist.

    Raises:
        LocalspecError: the installation lacks its folder.
    """
    return curated_models_dir(), settings_file(environ).parent / "pairs"


def load_curated(folders: Sequence[Path]) -> tuple[CuratedPair, ...]:
    """Return all pairs, as read_curated() does.

    Raises:
        SettingsError: a file cannot be taken.
    """
    found = read_curated(folders)
    if found.failures:
        raise found.failures[0]
    return found.pairs


def read_curated(folders: Sequence[Path]) -> CuratedList:
    """Return the pairs of all TOML files in the folders, and the failure of each file that cannot be taken.

    An entry of a later folder takes the place of an earlier folder's with the same target, draft and method. A file
    with a mistake is left out whole; folders that do not exist are passed over.
    """
    pairs: list[CuratedPair] = []
    failures: list[SettingsError] = []
    for folder in folders:
        num_earlier = len(pairs)
        for path in _toml_files(folder):
            try:
                fresh = read_pairs(path)
                _refuse_repeats(path, fresh, pairs[num_earlier:])
            except SettingsError as error:
                failures.append(error)
                continue
            for pair in fresh:
                old = next((i for i, known in enumerate(pairs[:num_earlier]) if _same_claim(pair, known)), None)
                if old is None:
                    pairs.append(pair)
                else:
                    pairs[old] = pair
    return CuratedList(tuple(pairs), tuple(failures))


def pairs_for(target: str, base_models: Sequence[str], pairs: Sequence[CuratedPair]) -> tuple[CuratedPair, ...]:
    """Return the pairs of a target, in the order of the list.

    Args:
        target: `owner/name` of the repository that it comes from, or of the original model; empty if not known.
        base_models: `owner/name` of each model that it was made from.
        pairs: where to look.
    """
    wanted = {name.casefold() for name in (target, *base_models) if name}
    return tuple(p for p in pairs if not wanted.isdisjoint(name.casefold() for name in _target_names(p)))


def read_pairs(path: Path) -> tuple[CuratedPair, ...]:
    """Return the pairs of one file.

    Raises:
        SettingsError: the file cannot be read, or an entry is wrong; file, entry and field are named.
    """
    try:
        if not path.is_file():
            raise SettingsError(f"{path} is no file.", "Remove it, or put a TOML file in its place.")
        with path.open("rb") as file:
            raw = file.read(_MAX_FILE_BYTES + 1)
        if len(raw) > _MAX_FILE_BYTES:
            raise SettingsError(f"{path} is over {_MAX_FILE_BYTES:,} bytes.", "Split it into several files.")
        values = tomllib.loads(raw.decode("utf-8"))
        parsed = _FileText.model_validate(values)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SettingsError(f"Cannot read {path}: {reason}", "Make it a readable file, or remove it.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"Cannot read {path}: it is not UTF-8 text.", "Save it as UTF-8.") from None
    except ValidationError as error:
        raise _as_settings_error(error, path, values) from None
    except (ValueError, RecursionError) as error:
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        raise SettingsError(f"{path} is not valid TOML: {reason}", "Correct that line, or remove the file.") from None
    return tuple(
        CuratedPair(**{**entry.model_dump(), "family": parsed.family, "target_aliases": tuple(entry.target_aliases)})
        for entry in parsed.pairs
    )


def _plain(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise PydanticCustomError("plain_text", "Input should be one line without control characters or outer spaces")
    return text


def _repo_or_empty(text: str) -> str:
    if text and (not _REPO.fullmatch(text) or ".." in text or "--" in text):
        raise PydanticCustomError("repository", "Input should be OWNER/NAME as on the Hub, or left out")
    return text


def _inside_repo(text: str) -> str:
    parts = text.split("/")
    if text and (not _DRAFT_FILE.fullmatch(text) or "" in parts or any(part.startswith(".") for part in parts)):
        raise PydanticCustomError("draft_file", "Input should be the name of a .gguf file, in which * and ? may stand")
    return text


_Plain = Annotated[str, AfterValidator(_plain)]
_Repo = Annotated[str, AfterValidator(_repo_or_empty)]


class _PairText(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    target_base: _Repo = ""
    target_aliases: list[_Repo] = []
    target_repo: _Repo = ""
    target_params: str = Field("", pattern=r"^(\d{1,4}(\.\d{1,3})?[KMBT](-A\d{1,3}(\.\d{1,3})?[KMBT])?|E\d{1,2}B)?\z")
    draft_base: _Repo = ""
    draft_repo: _Repo = ""
    draft_file: Annotated[str, AfterValidator(_inside_repo)] = ""
    method: CuratedMethod = "draft"
    notes: _Plain = Field(min_length=1, max_length=800)
    source: _Plain = Field(min_length=1, max_length=300)
    is_tried: bool = False
    llama_cpp: str = Field("", pattern=r"^(b\d{1,6}|\d{1,4}(\.\d{1,4}){1,3})?\z")

    @model_validator(mode="after")
    def _name_both_sides(self) -> _PairText:
        if not self.target_base and not self.target_repo:
            raise PydanticCustomError("no_target", "Neither target_base nor target_repo is given")
        has_draft = bool(self.draft_base or self.draft_repo)
        if self.method == "ngram" and has_draft:
            raise PydanticCustomError("needless_draft", "The method ngram takes no draft")
        if self.method not in ("ngram", "mtp") and not has_draft:
            raise PydanticCustomError("no_draft", "Neither draft_base nor draft_repo is given")
        if self.draft_file and not self.draft_repo:
            raise PydanticCustomError("no_draft_repo", "draft_file is given without draft_repo")
        return self


class _FileText(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    family: _Plain = Field(min_length=1, max_length=60)
    pairs: list[_PairText] = Field(min_length=1)


def _toml_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".toml" and not path.name.startswith("."))
    except OSError:
        return []


def _refuse_repeats(path: Path, fresh: Sequence[CuratedPair], known: Sequence[CuratedPair]) -> None:
    for index, pair in enumerate(fresh):
        if any(_same_claim(pair, other) for other in (*known, *fresh[:index])):
            raise SettingsError(
                f"{path}: {_entry_name(index, pair.target_base or pair.target_repo)} is there twice in this folder.",
                "Remove one of the two.",
            )


def _target_names(pair: CuratedPair) -> tuple[str, ...]:
    return pair.target_base, pair.target_repo, *pair.target_aliases


def _same_claim(one: CuratedPair, other: CuratedPair) -> bool:
    return (
        one.method == other.method
        and _same_model(one.target_base, one.target_repo, other.target_base, other.target_repo)
        and _same_model(one.draft_base, one.draft_repo, other.draft_base, other.draft_repo)
    )


def _same_model(base: str, repo: str, other_base: str, other_repo: str) -> bool:
    if base and other_base:
        return base.casefold() == other_base.casefold()
    if repo and other_repo:
        return repo.casefold() == other_repo.casefold()
    return not (base or repo or other_base or other_repo)


def _as_settings_error(error: ValidationError, path: Path, values: Mapping[str, object]) -> SettingsError:
    first, *others = error.errors(include_url=False, include_context=False)
    rest = f" ({len(others)} more after this one.)" if others else ""
    return SettingsError(f"{path}: {_where(first, values)}{_complaint(first)}{rest}", _advice(first))


def _where(detail: ErrorDetails, values: Mapping[str, object]) -> str:
    loc = detail["loc"]
    if len(loc) < 2 or not isinstance(loc[1], int):
        return f"{str(loc[0])!r:.80}: " if loc else ""
    entries = values.get("pairs")
    entry = entries[loc[1]] if isinstance(entries, list) and loc[1] < len(entries) else None
    named = (entry.get("target_base") or entry.get("target_repo")) if isinstance(entry, dict) else None
    name = _entry_name(loc[1], named if isinstance(named, str) else "")
    return f"{name}: " + (f"{str(loc[2])!r:.80}: " if len(loc) > 2 else "")


def _entry_name(index: int, target: str) -> str:
    return f"entry {index + 1}" + (f" (target {target!r:.120})" if target else "")


def _complaint(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        return "there is no such field."
    if detail["type"] == "missing":
        return "this field is missing."
    return detail["msg"] + ("." if isinstance(detail["input"], dict) else f", not {detail['input']!r:.80}.")


def _advice(detail: ErrorDetails) -> str:
    known = list((_FileText if len(detail["loc"]) < 2 else _PairText).model_fields)
    if detail["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(detail["loc"][-1]).lower()[:80], known, n=1, cutoff=0.5)
        return f"Did you mean {near[0]}?" if near else f"Known fields: {', '.join(known)}."
    if detail["type"] == "missing" or len(detail["loc"]) < 3:
        return "Add what is missing; README.md in the shipped folder of pairs describes the fields."
    return "Correct it, or remove the entry."
