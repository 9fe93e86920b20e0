"""Measuring the same again: what a kept run asked for, where its files are now, and what else has changed since."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from localspec.catalog.found_model import FoundModel
from localspec.engine.interface import Engine
from localspec.engine.values import DeviceInfo
from localspec.errors import ModelFileError, UsageError
from localspec.session.examination import Examination, examine
from localspec.session.hashing import OnHashed, sha256_of
from localspec.session.measurement import MeasurementPlan
from localspec.session.my_chats import has_own, restored
from localspec.session.records import device_record, document_of
from localspec.session.run_differences import Difference, surroundings_differences
from localspec.session.run_request import plan_of
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import Record, RunSummary, StoredRun


@dataclass(frozen=True, slots=True)
class Rerun:
    """A run to be measured again."""

    run_id: int
    plan: MeasurementPlan
    document: Record
    """Of the earlier run."""
    moved: tuple[str, ...]
    """Sentences on files that lie elsewhere now."""


def require_plan(run: RunSummary) -> None:
    """Raise UsageError for a run that cannot be measured again as it was, since it is a suite."""
    if run.kind == "suite":
        raise UsageError(
            f"Run {run.id} is a suite: what it compares follows from what it finds.",
            "Measure a suite anew: localspec bench MODEL --suite auto",
        )


def make_rerun(
    stored: StoredRun,
    models: Sequence[FoundModel],
    is_forced: bool = False,
    open_database: Callable[[], Database] | None = None,
) -> Rerun:
    """Return what a kept run asked for, with its files where they are now.

    Args:
        stored: the run.
        models: of this machine; a file that is gone is looked for among them by its name.
        is_forced: load even what would not fit into memory.
        open_database: opens the store, where the words of a person's own prompts are; None where there is none.

    Raises:
        ModelFileError: a file is gone.
        UsageError: an own prompt is gone, or the run is a suite.
        StoreError: what was asked for cannot be read.
    """
    require_plan(stored.summary)
    plan, document = _with_own(plan_of(stored.request), open_database), document_of(stored)
    moved: list[str] = []
    target = _find("target", plan.target, document.get("target"), models, moved)
    draft = None if plan.draft is None else _find("draft", plan.draft, document.get("draft"), models, moved)
    has_hashes = any((document.get(role) or {}).get("sha256") for role in ("target", "draft"))
    plan = replace(
        plan,
        target=target,
        draft=draft,
        with_hashes=plan.with_hashes or has_hashes,
        is_forced=plan.is_forced or is_forced,
    )
    return Rerun(stored.summary.id, plan, document, tuple(moved))


async def differences_now(engine: Engine, rerun: Rerun, on_hashed: OnHashed | None = None) -> tuple[Difference, ...]:
    """Return what is not as it was in the earlier run: build, driver, device, machine, power, files.

    Files are read through for their SHA-256 if the earlier run knew it and it is not remembered.

    Raises:
        LocalspecError: the engine cannot be asked, or a file cannot be read.
    """
    examination = await examine(engine)
    if examination.failure is not None:
        raise examination.failure
    return surroundings_differences(rerun.document, await _present(examination, rerun, on_hashed))


def _with_own(plan: MeasurementPlan, open_database: Callable[[], Database] | None) -> MeasurementPlan:
    """Return a kept plan with the words of own prompts, which are in their chats only."""
    if not has_own(plan.workloads):
        return plan
    if open_database is None:
        raise UsageError("That run was made on your own chats, which are not at hand.", "Measure anew: --my-chats.")
    with open_database() as database:
        return replace(plan, workloads=restored(plan.workloads, Chats(database), plan.context, plan.max_tokens))


async def _present(examination: Examination, rerun: Rerun, on_hashed: OnHashed | None) -> Record:
    """Return as much of the new run's document as is known before it."""
    profile, before = examination.profile, rerun.document
    layers = int((before.get("target") or {}).get("n_gpu_layers") or 0)
    return {
        "build": None if examination.build is None else asdict(examination.build),
        "device": device_record(
            [DeviceInfo(**asdict(device)) for device in profile.devices],
            layers,
            power_source=profile.host.power,
            host=asdict(profile.host),
            drivers=profile.drivers,
        ),
        "target": await _model_now(before.get("target"), rerun.plan.target, on_hashed),
        "draft": await _model_now(before.get("draft"), rerun.plan.draft, on_hashed),
    }


async def _model_now(before: Record | None, path: Path | None, on_hashed: OnHashed | None) -> Record | None:
    if before is None or path is None:
        # A draft that had failed to load has no record, and may load now.
        return before
    known = before.get("sha256")
    return {**before, "path": str(path), "sha256": await sha256_of(path, on_hashed) if known else None}


def _find(role: str, path: Path, before: Record | None, models: Sequence[FoundModel], moved: list[str]) -> Path:
    # Where a relative path began is not known: the same name in this folder may be any file.
    if path.is_absolute() and path.is_file():
        return path
    namesakes = [model.path for model in models if model.path.name == path.name and not model.missing]
    if len(namesakes) == 1:
        moved.append(f"The {role} lies in {namesakes[0].parent} now.")
        return namesakes[0]
    known = (before or {}).get("sha256")
    which = f" Its SHA-256 is {known}." if known else ""
    if not path.is_absolute():
        raise ModelFileError(
            f"That run kept its {role} as {path}, a path that began in a folder it does not name.",
            f"Measure anew with `localspec bench`, naming the file.{which}",
        )
    raise ModelFileError(
        f"The {role} of that run is no longer at {path}.",
        f"Put the file back, or measure another one with `localspec bench`.{which}",
    )
