"""The user's settings: flags over environment over settings.toml over the defaults written here.

The defaults are localspec's own and are always sent to llama.cpp in full: none is inherited from it, so a new release
of llama.cpp changes nothing unseen. Environment variables are named LOCALSPEC_<GROUP>__<NAME>, such as
LOCALSPEC_DRAFT__N_MAX.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import SettingsError as SourceError

from localspec.errors import SettingsError
from localspec.methods import Method, PacingKind, Verification
from localspec.paths import settings_file
from localspec.settings_checks import MAX_DRAFT_TOKENS as MAX_DRAFT_TOKENS
from localspec.settings_checks import check_context as check_context
from localspec.settings_checks import check_draft as check_draft
from localspec.settings_checks import check_draft_context as check_draft_context
from localspec.units import MemoryUnit, SpeedUnit

_PREFIX = "LOCALSPEC_"

KvType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_as_number(cls, value: object, info: ValidationInfo) -> object:
        # Pydantic would take `n_max = true` for 1.
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation is not bool:
            raise PydanticCustomError("number_expected", "Input should be a number or text")
        return value


class DraftGroup(_Group):
    """How tokens are drafted. check_draft() says which combinations are possible."""

    method: Method = "off"
    n_max: int = 4
    """Most tokens drafted in a round."""
    n_min: int = 0
    """A draft shorter than this is thrown away."""
    p_min: float = 0.0
    """Draft model only: stop before the first token less probable than this."""
    ngram_max: int = 6
    """Longest suffix that prompt lookup searches for, in tokens."""
    ngram_min: int = 4
    """Shortest suffix that prompt lookup accepts as a match, in tokens."""
    verification: Verification = "exact"
    """Which drafted tokens are kept at a temperature above 0. `exact` gives the same text for the same seed."""
    pacing: PacingKind = "fixed"
    """`adaptive` chooses the length of each draft, none included, by what it measures; method `auto` always does."""
    suffix_factor: float = 2.0
    """Suffix decoding: longest draft, in tokens per token of the match."""
    suffix_p_min: float = 0.3
    """Suffix decoding: stop where a draft's share of earlier continuations falls below this."""
    draft_temperature: float = -1.0
    """Verification `rejection` and `block`: temperature that drafts are drawn at; -1 for the target's own."""
    remembers: bool = False
    """Suffix decoding: keep the token ids of answers on this machine, and copy from earlier ones too."""
    n_ctx: int = Field(0, ge=0, le=2**24)
    """Positions of the draft model's context; 0 takes as many as the target has."""
    n_gpu_layers: int | None = Field(None, ge=-1, le=2**16)
    """The draft model's layers on the GPU, -1 for all; not set: as for the target."""
    n_threads: int = Field(0, ge=0, le=512)
    """Threads of the draft model's single-token steps; 0 takes the target's."""
    n_threads_batch: int = Field(0, ge=0, le=512)
    """Threads of its steps with several tokens; 0 takes the target's n_threads_batch, or else its own n_threads."""
    type_k: KvType | None = None
    """Type of the draft model's cached keys, likewise values; not set: as for the target."""
    type_v: KvType | None = None


class SamplingGroup(_Group):
    """llama.cpp's sampler chain. Temperature 0 takes the most probable token."""

    temperature: float = Field(0.0, ge=0, le=100)
    top_k: int = Field(40, ge=0, le=1_000_000)
    """Candidates kept; 0 keeps all."""
    top_p: float = Field(0.95, ge=0, le=1)
    min_p: float = Field(0.05, ge=0, le=1)
    repeat_penalty: float = Field(1.0, ge=0.001, le=100)
    repeat_last_n: int = Field(64, ge=-1, le=1_000_000)
    """Tokens that penalties look back on; -1 for the whole context."""
    frequency_penalty: float = Field(0.0, ge=-100, le=100)
    presence_penalty: float = Field(0.0, ge=-100, le=100)
    seed: int = Field(1, ge=0, lt=2**32 - 1)
    """The same seed gives the same text. llama.cpp takes 2^32 - 1 to mean a random one, so it is not allowed."""
    grammar: str = ""
    """GBNF text; empty for none."""


class ContextGroup(_Group):
    """How a model is placed and its context made; names are llama.cpp's. check_context() says what goes together."""

    n_ctx: int = Field(4096, ge=0, le=2**24)
    """Positions; 0 takes the trained context."""
    n_batch: int = Field(512, ge=MAX_DRAFT_TOKENS + 1, le=2**16)
    n_ubatch: int = Field(512, ge=MAX_DRAFT_TOKENS + 1, le=2**16)
    """No fewer than a verification has tokens."""
    n_threads: int = Field(0, ge=0, le=512)
    """Threads of single-token steps; 0 takes the number of physical cores."""
    n_threads_batch: int = Field(0, ge=0, le=512)
    """Threads of steps with several tokens; 0 takes n_threads."""
    n_gpu_layers: int = Field(-1, ge=-1, le=2**16)
    """Layers on the GPU; -1 for all."""
    type_k: KvType = "f16"
    type_v: KvType = "f16"
    flash_attn: bool = True
    use_mmap: bool = True
    experts_on_cpu: bool = False
    """Keep a mixture's expert matrices in host memory, whatever layers are offloaded."""


class BenchGroup(_Group):
    """How arms are compared."""

    pairs: int = Field(3, ge=1, le=1000)
    """Paired runs of each arm; three or more give an interval worth reading."""
    max_tokens: int = Field(128, ge=2, le=1_000_000)
    """Tokens generated in a run."""
    warmup: int = Field(16, ge=0, le=1_000_000)
    """Tokens of the run before the first pair, whose figures are thrown away; 0 for none."""


class ModelsGroup(_Group):
    """Where models lie, beside localspec's own folder and the Hugging Face cache, which are always looked at."""

    folders: Annotated[tuple[Path, ...], NoDecode] = ()
    """Whole paths; ~ stands for the home folder. One text may hold several, parted as in PATH or as a JSON list.
    A folder that does not exist is passed over, with a note."""

    @field_validator("folders", mode="before")
    @classmethod
    def _part(cls, value: object) -> object:
        if isinstance(value, str) and value.lstrip().startswith("["):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise PydanticCustomError("json_expected", "Input should be a valid JSON list of folders") from None
        elif isinstance(value, str):
            value = [part for part in value.split(os.pathsep) if part]
        # Pydantic would speak of tuples and of Python's classes.
        if not isinstance(value, list | tuple) or not all(isinstance(part, str | Path) for part in value):
            raise PydanticCustomError("folders_expected", "Input should be a list of folders, each of them a text")
        return value

    @field_validator("folders")
    @classmethod
    def _expand(cls, folders: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(_whole_path(folder) for folder in folders)


class MemoryGroup(_Group):
    """What a memory plan may use."""

    reserve_gib: float = Field(1.0, ge=0, le=1024)
    """Kept free on each device, in GiB; a small device keeps less."""


class AppGroup(_Group):
    """How the terminal app looks."""

    theme: str = Field("auto", min_length=1, max_length=100)
    """Name of one of its themes; `auto` is dark, or light where the terminal says that its background is."""


class UnitsGroup(_Group):
    """What sizes and speeds are shown in."""

    memory: MemoryUnit = "GiB"
    """GiB and MiB are powers of 1024, GB and MB powers of 1000."""
    speed: SpeedUnit = "tokens/s"


def _flat_keys(value: object) -> object:
    """Return keys by the whole name of what they do: `chat.stop = "x"` without quotes is a table in a table."""
    if not isinstance(value, Mapping):
        raise PydanticCustomError("keys_expected", "Input should be keys by the name of what they do")
    flat: dict[str, object] = {}
    waiting: list[tuple[str, object]] = [(str(name), part) for name, part in value.items()]
    while waiting:
        name, part = waiting.pop(0)
        if isinstance(part, Mapping):
            waiting += [(f"{name}.{below}", further) for below, further in part.items()]
        else:
            # What is written as one name is above the same in tables: so the environment is above the file.
            flat.setdefault(name, part)
    return flat


class Settings(BaseSettings):
    """All groups. load_settings() reads them."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True)

    draft: DraftGroup = DraftGroup()
    sampling: SamplingGroup = SamplingGroup()
    context: ContextGroup = ContextGroup()
    bench: BenchGroup = BenchGroup()
    models: ModelsGroup = ModelsGroup()
    memory: MemoryGroup = MemoryGroup()
    app: AppGroup = AppGroup()
    units: UnitsGroup = UnitsGroup()
    keys: Annotated[dict[str, str], BeforeValidator(_flat_keys)] = {}
    """Of the terminal app, by the name of what they do: `"chat.stop" = "escape,f10"`. It checks them itself."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources, first wins; a .env file in whatever folder the user stands in is not read."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


Flags = Mapping[str, Mapping[str, object]]
"""Values of command-line options as {group: {name: value}}; None stands for an option that was not given."""


def load_settings(flags: Flags | None = None, file: Path | None = None) -> Settings:
    """Return the settings in force.

    Args:
        flags: what the command line asks for.
        file: a settings file; by default the one in the configuration folder. It need not exist.

    Raises:
        SettingsError: a value or name is wrong, with where it was written and what to do.
    """
    path = file or settings_file()
    given = _given(flags or {})
    _refuse_unknown_variables(os.environ)
    sources = type("Settings", (Settings,), {"model_config": SettingsConfigDict(toml_file=path)})
    try:
        settings: Settings = sources(**given)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}", "Correct that line, or delete the file.") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SettingsError(f"Cannot read {path}: {reason}", "Make it a readable text file, or delete it.") from None
    except SourceError as error:
        raise SettingsError(
            f"An environment variable is wrong: {error}", f"Name single settings, as in {_PREFIX}DRAFT__N_MAX=4."
        ) from None
    except ValidationError as error:
        raise _as_settings_error(error, given, path) from None
    positions = [n_ctx for n_ctx in (settings.context.n_ctx, settings.draft.n_ctx) if n_ctx]
    try:
        check_draft(settings.draft, n_ctx=min(positions, default=0), n_batch=settings.context.n_batch)
        check_context(settings.context)
        check_draft_context(settings.draft, settings.context)
    except SettingsError as error:
        raise _with_origin(error, settings, given, path) from None
    return settings


def _whole_path(folder: Path) -> Path:
    try:
        whole = folder.expanduser()
    except RuntimeError:
        raise PydanticCustomError("home_unknown", "There is no user of that name, so ~ stands for nothing") from None
    if not whole.is_absolute() or "\0" in str(whole):
        # Relative to what? The same settings file serves every working folder.
        raise PydanticCustomError("whole_path_expected", "Input should be a whole path, or begin with ~")
    return whole


def _given(flags: Flags) -> dict[str, dict[str, Any]]:
    groups = {group: {k: v for k, v in values.items() if v is not None} for group, values in flags.items()}
    return {group: values for group, values in groups.items() if values}


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    # pydantic-settings passes over variables of groups that it does not know.
    for variable in environ:
        group, delimiter, _ = variable.upper().removeprefix(_PREFIX).partition("__")
        if variable.upper().startswith(_PREFIX) and delimiter and group.lower() not in Settings.model_fields:
            raise SettingsError(
                f"The environment variable {variable} names no group of settings.",
                _nearest(group.lower(), list(Settings.model_fields)),
            )


def _as_settings_error(error: ValidationError, given: Mapping[str, Mapping[str, object]], path: Path) -> SettingsError:
    details = error.errors(include_url=False, include_context=False)
    first = details[0]
    name = ".".join(str(part) for part in first["loc"])
    rest = f" ({len(details) - 1} more after this one.)" if len(details) > 1 else ""
    return SettingsError(f"{_origin(first, given, path)}: {name}: {_complaint(first)}{rest}", _advice(first))


def _with_origin(
    error: SettingsError, settings: Settings, given: Mapping[str, Mapping[str, object]], path: Path
) -> SettingsError:
    """Return a refusal with where the settings that it names were written; defaults were written nowhere."""
    words = frozenset(re.findall(r"\w+", error.message))
    origins = [
        _origin_of(name, setting, given, path)
        for name, group in (("draft", settings.draft), ("context", settings.context))
        for setting in type(group).model_fields
        if setting in words and setting in group.model_fields_set
    ]
    places = " and ".join(dict.fromkeys(origins))
    return SettingsError(f"{places}: {error.message}" if places else error.message, error.hint)


def _origin(detail: ErrorDetails, given: Mapping[str, Mapping[str, object]], path: Path) -> str:
    group, name = (*(str(part) for part in detail["loc"]), "", "")[:2]
    return _origin_of(group, name, given, path)


def _origin_of(group: str, name: str, given: Mapping[str, Mapping[str, object]], path: Path) -> str:
    if name in given.get(group, {}):
        return "Command line"
    variables = {variable.upper(): variable for variable in os.environ}
    for wanted in (f"{_PREFIX}{group}__{name}".upper(), f"{_PREFIX}{group}".upper()):
        if wanted in variables:
            return f"Environment variable {variables[wanted]}"
    return str(path)


def _complaint(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        return "there is no such setting."
    if detail["type"] == "model_type":
        return f"this is a group of settings, not {detail['input']!r:.80}."
    return f"{detail['msg']}, not {detail['input']!r:.80}."


def _advice(detail: ErrorDetails) -> str:
    loc = [str(part) for part in detail["loc"]]
    if detail["type"] == "model_type":
        return f"Write [{loc[0]}] on a line of its own, and its settings under it."
    if detail["type"] != "extra_forbidden":
        return "Correct the value, or leave it out to take the default."
    if len(loc) == 1:
        return _nearest(loc[0], list(Settings.model_fields))
    group = Settings.model_fields[loc[0]].annotation
    known = list(group.model_fields) if isinstance(group, type) and issubclass(group, BaseModel) else []
    return _nearest(loc[-1], known)


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else f"Known names: {', '.join(known)}."
