"""`localspec --replay FILE`: a recorded session in place of models, a Hub and what is kept."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeGuard

from localspec.engine.events import HeaderRead
from localspec.engine.requests import Generate, LoadModels
from localspec.errors import OfflineError, UsageError
from localspec.settings import Settings
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.engine.recording import Exchange

NUM_PAIRS = 3
"""Of a comparison: as few as give an interval, since the recorded runs are few, too."""

_LARGEST_STAND_IN = 1 << 30
"""Larger models are stood in for by empty files: a comparison reads the files."""


@contextmanager
def replayed_session(
    recording: Path, settings: Settings, speed: float | None = 1.0, folder: Path | None = None
) -> Iterator[tuple[AppServices, Launch]]:
    """Give what the app needs to play a recording. What it keeps meanwhile is gone afterwards.

    Until then this process has folders of its own, so that neither the user's models nor what is known of them show.

    Args:
        recording: a .jsonl file (see engine/recording.py).
        settings: in force.
        speed: 1 for the recorded pace; None for at once.
        folder: an empty one that the caller has made and will remove; None for one that lasts no longer than this.

    Raises:
        UsageError: it cannot be read, is no recording, or loads no models.
    """
    from localspec.engine.recorded_session import RecordedSession
    from localspec.engine.recording import read_recording
    from localspec.store.database import Database

    exchanges = read_recording(recording)
    with ExitStack() as stack:
        if folder is None:
            made = TemporaryDirectory(prefix="localspec-replay-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(made))
        database = folder / "replay.sqlite3"
        bench = _bench(exchanges, folder, recording)
        own = _as_measured(settings, exchanges)
        services = AppServices(
            own.model_copy(update={"models": own.models.model_copy(update={"folders": (folder,)})}),
            make_engine=lambda: RecordedSession(exchanges, speed),
            open_hub=_no_hub,
            open_database=lambda: Database(database),
        )
        questions = dict.fromkeys(one.request.messages[-1].content for one in exchanges if _is_chat(one.request))
        stack.enter_context(_folders_within(folder / "own"))
        yield services, Launch(replay=recording, workbench=bench, screen="chat", questions=tuple(questions))


@contextmanager
def _folders_within(folder: Path) -> Iterator[None]:
    names = ("LOCALSPEC_DATA", "LOCALSPEC_CACHE", "HF_HOME", "HF_HUB_CACHE")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({name: str(folder / name.lower()) for name in names})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _is_chat(request: object) -> TypeGuard[Generate]:
    # What is measured begins afresh; a chat goes on where it was.
    return isinstance(request, Generate) and bool(request.messages) and not request.is_fresh


def _bench(exchanges: Sequence[Exchange], folder: Path, recording: Path) -> Workbench:
    """Return the workbench as it was when models were loaded first. Empty files stand in for the models."""
    load = next((one.request for one in exchanges if isinstance(one.request, LoadModels)), None)
    if load is None:
        raise UsageError(f"The recording {recording} loads no models.", "Record a session from its start.")
    asked = next((one.request for one in exchanges if isinstance(one.request, Generate)), None)
    headers = [event.header for one in exchanges for _, event in one.events if isinstance(event, HeaderRead)]
    sizes = {PurePath(header.path).name: header.file_bytes for header in headers}
    bench = Workbench(
        target=_stand_in(load.target_path, folder, sizes),
        draft=_stand_in(load.draft_path, folder, sizes) if load.draft_path else None,
        speculation=load.speculation,
        context=load.context,
        draft_context=load.draft_context,
    )
    return bench if asked is None else replace(bench, sampling=asked.sampling, max_tokens=asked.max_tokens)


def _as_measured(settings: Settings, exchanges: Sequence[Exchange]) -> Settings:
    """Return settings with runs as long as the recorded ones, and as few; in a session, comparing comes last."""
    lengths = [one.request.max_tokens for one in exchanges if isinstance(one.request, Generate)]
    if not lengths or lengths[-1] < 2:
        return settings
    measures = {"max_tokens": lengths[-1], "pairs": NUM_PAIRS}
    return settings.model_copy(update={"bench": settings.bench.model_copy(update=measures)})


def _stand_in(recorded: str, folder: Path, sizes: Mapping[str, int]) -> ChosenModel:
    # The name comes from a file, so only its last part counts, and only as a name in our own folder.
    name = Path(recorded.replace("\0", "")).name[:100] or "model.gguf"
    path = folder / name
    path.touch()
    size = sizes.get(PurePath(recorded).name, 0)
    if 0 < size <= _LARGEST_STAND_IN:
        os.truncate(path, size)
    return ChosenModel(path.stem, path)


def _no_hub() -> Hub:
    raise OfflineError("A recorded session asks no Hub.", "Start localspec without --replay.")
