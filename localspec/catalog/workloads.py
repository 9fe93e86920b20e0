"""Workloads: named sets of prompts of one kind of text, read from TOML."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from localspec.errors import LocalspecError, UsageError
from localspec.paths import prompts_dir

MAX_PROMPT_BYTES = 4 * 1024 * 1024
"""Largest file that is taken as a prompt."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt. `system` is empty when there is none."""

    name: str
    system: str
    user: str
    earlier: tuple[str, ...] = ()
    """What the conversation held before: questions and answers by turns."""
    source: tuple[int, int] | None = None
    """Chat and message that it was taken from; None for one that is nobody's."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Prompts of one kind. `is_copy_heavy`: much of the answer stands in the prompt already."""

    name: str
    title: str
    description: str
    is_copy_heavy: bool
    temperature: float | None
    """Temperature that belongs to this kind of text; None leaves the choice to the user."""
    prompts: tuple[Prompt, ...]


class _PromptText(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    system: str = ""
    user: str

    @field_validator("system", "user")
    @classmethod
    def _strip(cls, text: str) -> str:
        return text.strip()

    @field_validator("user")
    @classmethod
    def _not_empty(cls, text: str) -> str:
        if not text:
            raise ValueError("the prompt is empty")
        return text


class _WorkloadText(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str = Field(min_length=1)
    description: str
    is_copy_heavy: bool
    temperature: float | None = Field(default=None, ge=0.0, le=5.0)
    prompts: list[_PromptText] = Field(min_length=1)

    @field_validator("prompts")
    @classmethod
    def _distinct(cls, prompts: list[_PromptText]) -> list[_PromptText]:
        names = [prompt.name for prompt in prompts]
        if len(set(names)) < len(names):
            raise ValueError("two prompts have the same name")
        return prompts


def read_workload(path: Path) -> Workload:
    """Read one workload file.

    Raises:
        LocalspecError: the file cannot be read, is not TOML or does not describe a workload.
    """
    try:
        text = _WorkloadText.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise LocalspecError(f"The workload {path} could not be read: {error}.", "Install localspec again.") from error
    except tomllib.TOMLDecodeError as error:
        raise LocalspecError(f"The workload {path} is not valid TOML: {error}.", "Correct the file.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise LocalspecError(
            f"The workload {path} is wrong at {place}: {first['msg']}.", "Correct the file."
        ) from error
    return Workload(
        name=text.name,
        title=text.title,
        description=text.description,
        is_copy_heavy=text.is_copy_heavy,
        temperature=text.temperature,
        prompts=tuple(Prompt(prompt.name, prompt.system, prompt.user) for prompt in text.prompts),
    )


def load_workloads(folder: Path | None = None) -> tuple[Workload, ...]:
    """Read every workload of a folder, localspec's own by default, in order of name.

    Raises:
        LocalspecError: there is none, one of them is wrong, or two have the same name.
    """
    folder = prompts_dir() if folder is None else folder
    workloads = sorted((read_workload(path) for path in sorted(folder.glob("*.toml"))), key=lambda item: item.name)
    if not workloads:
        raise LocalspecError(f"There are no workloads in {folder}.", "Install localspec again.")
    names = [workload.name for workload in workloads]
    for name in names:
        if names.count(name) > 1:
            raise LocalspecError(f"Two workloads in {folder} are called {name!r}.", "Rename one of them.")
    return tuple(workloads)


def find_workload(name: str, workloads: tuple[Workload, ...] | None = None) -> Workload:
    """Return a workload by its name.

    Raises:
        UsageError: there is none of this name; the hint gives the nearest ones, or all.
    """
    workloads = load_workloads() if workloads is None else workloads
    for workload in workloads:
        if workload.name == name:
            return workload
    names = [workload.name for workload in workloads]
    nearest = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(nearest)}?" if nearest else f"There are: {', '.join(names)}."
    raise UsageError(f"There is no workload {name!r}.", hint)


def workload_from_file(path: Path) -> Workload:
    """Return a workload of one prompt: the whole text of a plain file.

    Raises:
        UsageError: the file is missing, too large, empty or not UTF-8 text.
    """
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise UsageError(f"{path} is not a file.", "Give a plain text file as the prompt.")
        if size > MAX_PROMPT_BYTES:
            raise UsageError(f"{path} has {size} bytes, too many for a prompt.", "Give a plain text file under 4 MiB.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The prompt {path} could not be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text.", "Give a plain text file as the prompt.") from error
    if not text.strip():
        raise UsageError(f"{path} is empty.", "Write the prompt into the file.")
    return Workload(
        name=path.stem,
        title=path.name,
        description="A prompt of your own.",
        is_copy_heavy=False,
        temperature=None,
        prompts=(Prompt(path.stem, "", text.strip()),),
    )
