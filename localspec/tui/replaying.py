"""`localspec --replay FILE`: a recorded session in place of models, a Hub and what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from localspec.engine.requests import Generate, LoadModels
from localspec.errors import OfflineError, UsageError
from localspec.settings import Settings
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.engine.recording import Exchange


@contextmanager
def replayed_session(
    recording: Path, settings: Settings, speed: float | None = 1.0
) -> Iterator[tuple[AppServices, Launch]]:
    """Give what the app needs to play a recording. What it keeps meanwhile is gone afterwards.

    Args:
        recording: a .jsonl file (see engine/recording.py).
        settings: in force.
        speed: 1 for the recorded pace; None for at once.

    Raises:
        UsageError: it cannot be read, is no recording, or loads no models.
    """
    from localspec.engine.recorded_session import RecordedSession
    from localspec.engine.recording import read_recording
    from localspec.store.database import Database

    exchanges = read_recording(recording)
    with TemporaryDirectory(prefix="localspec-replay-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        bench = _bench(exchanges, folder, recording)
        services = AppServices(
            _as_measured(settings, exchanges),
            make_engine=lambda: RecordedSession(exchanges, speed),
            open_hub=_no_hub,
            open_database=lambda: Database(folder / "replay.sqlite3"),
        )
        yield services, Launch(replay=recording, workbench=bench, screen="chat")


def _bench(exchanges: Sequence[Exchange], folder: Path, recording: Path) -> Workbench:
    """Return the workbench as it was when models were loaded first. Empty files stand in for the models."""
    load = next((one.request for one in exchanges if isinstance(one.request, LoadModels)), None)
    if load is None:
        raise UsageError(f"The recording {recording} loads no models.", "Record a session from its start.")
    asked = next((one.request for one in exchanges if isinstance(one.request, Generate)), None)
    bench = Workbench(
        target=_stand_in(load.target_path, folder),
        draft=_stand_in(load.draft_path, folder) if load.draft_path else None,
        speculation=load.speculation,
        context=load.context,
        draft_context=load.draft_context,
    )
    return bench if asked is None else replace(bench, sampling=asked.sampling, max_tokens=asked.max_tokens)


def _as_measured(settings: Settings, exchanges: Sequence[Exchange]) -> Settings:
    """Return settings with runs as long as the recorded ones; in a session, comparing comes last."""
    lengths = [one.request.max_tokens for one in exchanges if isinstance(one.request, Generate)]
    if not lengths or lengths[-1] < 2:
        return settings
    return settings.model_copy(update={"bench": settings.bench.model_copy(update={"max_tokens": lengths[-1]})})


def _stand_in(recorded: str, folder: Path) -> ChosenModel:
    # The name comes from a file, so only its last part counts, and only as a name in our own folder.
    name = Path(recorded.replace("\0", "")).name[:100] or "model.gguf"
    path = folder / name
    path.touch()
    return ChosenModel(path.stem, path)


def _no_hub() -> Hub:
    raise OfflineError("A recorded session asks no Hub.", "Start localspec without --replay.")
