"""What adaptive drafting has learnt, kept between starts: a small file for each pair of models, as they are loaded.

A file holds times of steps and counts of accepted tokens, and nothing of any text. Its name is a hash of all that the
times depend on: models, layers on devices, threads, cache types, build and machine. So another placement starts anew,
and going back finds what was known. The oldest files make room for new ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from localspec.errors import LocalspecError
from localspec.paths import pacing_dir

if TYPE_CHECKING:
    from localspec.engine.events import Event, ModelsLoaded
    from localspec.engine.interface import Engine
    from localspec.engine.values import ModelInfo, SpeculationState
    from localspec.session.measurement import MeasurementProgress, OnProgress

COLD: Final = "{}"
"""A `pacing_state` that holds nothing, so that the engine forgets what it has learnt and starts over."""

MAX_FILES: Final = 64
MAX_BYTES: Final = 1 << 16
_SUFFIX: Final = ".json"
_KEYS: Final = (
    *("name", "architecture", "quantisation", "num_params", "size_bytes", "n_vocab"),
    *("n_threads", "n_threads_batch", "n_gpu_layers", "type_k", "type_v", "flash_attn"),
)
"""What the time of a step depends on. The length of the context is not among them: only what it holds counts."""


def pacing_key(target: ModelInfo, draft: ModelInfo | None, build: str, machine: str) -> str:
    """Return the name under which the state of a pair is kept.

    Args:
        target: as it was read back after loading; likewise the draft.
        draft: None where only free drafters are used.
        build: version of what computes.
        machine: which computer and processor; folders may be shared by several.
    """
    facts = [{key: getattr(info, key) for key in _KEYS} for info in (target, draft) if info is not None]
    text = json.dumps([facts, build, machine], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


class PacingMemory:
    """The files. What cannot be read counts as not known, and what cannot be written is given up: no answer fails."""

    def __init__(self, folder: Callable[[], Path] = pacing_dir, build: str = "", machine: str = "") -> None:
        """Take where the folder is looked for; build and machine are those of this process unless given."""
        self._folder = folder
        self._build = build or _build()
        self._machine = machine or f"{platform.node()} {platform.machine()} {os.cpu_count()}"

    def find(self, target: ModelInfo, draft: ModelInfo | None) -> str:
        """Return the state that is kept for what is loaded; empty for none, and for one that is damaged."""
        from localspec.engine.pacing_state import from_text

        try:
            with self._path(target, draft).open("rb") as file:
                text = file.read(MAX_BYTES + 1).decode()
        except (OSError, ValueError, LocalspecError):
            return ""
        return text if from_text(text) is not None else ""

    def keep(self, target: ModelInfo, draft: ModelInfo | None, state: str) -> None:
        """Keep a state in place of the one before. One that is no state is not kept."""
        from localspec.engine.pacing_state import from_text

        if len(state.encode("utf-8", "replace")) > MAX_BYTES or from_text(state) is None:
            return
        with suppress(OSError, LocalspecError):
            path = self._path(target, draft)
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f"{path.stem}.{os.getpid()}.tmp")
            try:
                temporary.write_text(state, encoding="utf-8")
                os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
            self._make_room()

    def forget(self, target: ModelInfo, draft: ModelInfo | None) -> None:
        """Delete what is kept for what is loaded."""
        with suppress(OSError, LocalspecError):
            self._path(target, draft).unlink(missing_ok=True)

    def sizes(self) -> tuple[int, ...]:
        """Return the size of each file that is kept, in bytes."""
        return tuple(size for _, size, _ in self._files())

    def clear(self) -> int:
        """Delete all files, and return how many there were.

        Raises:
            LocalspecError: one cannot be deleted.
        """
        files = self._files()
        for _, _, path in files:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise LocalspecError(
                    f"{path} cannot be deleted: {error.strerror}.", "Delete the folder yourself."
                ) from error
        return len(files)

    def _make_room(self) -> None:
        for _, _, path in sorted(self._files(), reverse=True)[MAX_FILES:]:
            path.unlink(missing_ok=True)

    def _files(self) -> list[tuple[int, int, Path]]:
        """Return time of the last change, size and path of each file, a temporary one that a kill left included."""
        found = []
        with suppress(OSError, LocalspecError):
            for path in self._folder().iterdir():
                if path.suffix in (_SUFFIX, ".tmp"):
                    with suppress(OSError):
                        facts = path.stat()
                        found.append((facts.st_mtime_ns, facts.st_size, path))
        return found

    def _path(self, target: ModelInfo, draft: ModelInfo | None) -> Path:
        return self._folder() / f"{pacing_key(target, draft, self._build, self._machine)}{_SUFFIX}"


class PacingKeeper:
    """Stands between one engine and the files: gives what was learnt before, and keeps what its answers teach."""

    def __init__(self, memory: PacingMemory) -> None:
        self._memory = memory
        self._models: tuple[ModelInfo, ModelInfo | None] | None = None

    async def recall(self, engine: Engine, loaded: ModelsLoaded) -> SpeculationState:
        """Give the engine what is known of the models that it has loaded, and return how it drafts then.

        Raises:
            LocalspecError: the engine refused.
        """
        from localspec.engine.events import Configured
        from localspec.engine.interface import last_event
        from localspec.engine.requests import Configure

        state = self.start(loaded)
        if not state:
            return loaded.speculation
        request = Configure(engine.next_id(), loaded.speculation.settings, pacing_state=state)
        answer = await last_event(engine, request)
        return answer.speculation if isinstance(answer, Configured) else loaded.speculation

    def start(self, loaded: ModelsLoaded) -> str:
        """Return what is known of models that were just loaded, for the `pacing_state` of a request; may be empty."""
        self._models = (loaded.target, loaded.draft)
        return self._memory.find(*self._models)

    def observe(self, event: Event) -> None:
        """Take an event of the engine; what adaptive drafting reports at the end of an answer is kept."""
        if event.type == "models_loaded":
            self._models = (event.target, event.draft)
        elif event.type == "configured" and self._models is not None:
            self._models = (self._models[0], event.draft)
        elif event.type == "pacing_reported" and self._models is not None:
            self._memory.keep(*self._models, event.state)

    def watching(self, on_progress: OnProgress) -> OnProgress:
        """Return what passes a measurement's progress on, and keeps what its runs teach.

        A run that began cold knows less than what is kept, and is kept only where nothing was.
        """
        is_better: bool | None = None

        def watch(progress: MeasurementProgress) -> None:
            nonlocal is_better
            on_progress(progress)
            comparison, opening = progress.comparison, progress.opening
            if comparison is None or opening is None or comparison.event is None or comparison.phase != "trial":
                return
            if comparison.event.type == "pacing_reported":
                if is_better is None:
                    is_better = not self.start(opening.loaded) or opening.pacing_state != COLD
                if is_better:
                    self.observe(comparison.event)

        return watch

    def forget(self) -> None:
        """Delete what is kept for the models that are loaded. The engine forgets with the `pacing_state` COLD."""
        if self._models is not None:
            self._memory.forget(*self._models)


def _build() -> str:
    try:
        return version("llama-cpp-python")
    except PackageNotFoundError:
        return ""
