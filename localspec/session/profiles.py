"""Profiles: made of a kept run, checked when they are read, and turned back into what a command is given."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from localspec.engine.values import ContextSettings, Method, SamplingSettings, SpeculationSettings
from localspec.errors import LocalspecError, UsageError
from localspec.methods import needs_draft, takes_draft
from localspec.session.condition_marks import marks_of_record, marks_sentence
from localspec.session.kind_outcome import arms_by_kind
from localspec.session.records import document_of
from localspec.session.run_document import Figure, RunArm, RunDocument, RunModel, RunWorkload, read_document
from localspec.session.run_files import check_model
from localspec.session.verdict import factor_text
from localspec.session.workload_kind import Kind
from localspec.settings import ContextGroup, DraftGroup, KvType, SamplingGroup, check_context, check_draft
from localspec.store.values import Profile, Record, StoredRun


def _known(group: type[BaseModel]) -> BeforeValidator:
    """Leave out names that this release does not have; another one may have written them."""

    def keep(value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if key in group.model_fields}

    return BeforeValidator(keep)


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class ProfileModel(_Part):
    """A model's file, and what it was when the profile was made."""

    name: str
    path: str
    sha256: str | None = None
    repo: str = ""
    quantisation: str = ""
    file_bytes: int | None = None
    modified_ns: int | None = None


class DraftContext(_Part):
    """What the draft model's context has of its own."""

    n_ctx: int
    n_threads: int | None = None
    """None in profiles of before: as the target's."""
    n_threads_batch: int | None = None
    n_gpu_layers: int
    type_k: KvType
    type_v: KvType


class Evidence(_Part):
    """The measurement that a profile stands on."""

    arm: str
    workload: str
    """Where the arm did best, if it ran on several."""
    speedup: Figure | None = None
    verdict: str | None = None
    results: list[Record] = []
    """All workloads of it: name, speedup and verdict of each."""
    is_reliable: bool = True
    """False if the speedup is not to be relied on: the baseline changed too much while it was measured."""
    marks: list[str] = []
    """What of the machine's state marks the speedup, such as `on battery`."""
    device: str = ""
    build: str = ""
    measured_at: str = ""


class ProfileDocument(_Part):
    """All that a profile says."""

    target: ProfileModel
    draft: ProfileModel | None = None
    speculation: Annotated[DraftGroup, _known(DraftGroup)]
    context: Annotated[ContextGroup, _known(ContextGroup)]
    draft_context: DraftContext | None = None
    sampling: Annotated[SamplingGroup, _known(SamplingGroup)]
    evidence: Evidence | None = None
    by_workload: dict[str, Annotated[DraftGroup, _known(DraftGroup)]] = {}
    """How to draft for kinds of text that were measured each for itself, by workloads' names; `speculation` is for all
    others."""

    @property
    def methods(self) -> tuple[Method, ...]:
        """All ways of drafting in it."""
        return (self.speculation.method, *(group.method for group in self.by_workload.values()))


@dataclass(frozen=True, slots=True)
class NamedProfile:
    """A profile that has been read and checked."""

    name: str
    created_at: str
    run_id: int | None
    document: ProfileDocument

    @property
    def models(self) -> tuple[tuple[str, ProfileModel], ...]:
        """The models that it uses, by role."""
        draft = self.document.draft
        is_used = takes_draft(self.document.methods)
        return (("target", self.document.target), *((("draft", draft),) if draft is not None and is_used else ()))


def read_profile(profile: Profile) -> NamedProfile:
    """Return a kept profile, checked.

    Raises:
        LocalspecError: it is damaged, or its settings do not go together.
    """
    try:
        document = ProfileDocument.model_validate(profile.document)
        for group in (document.speculation, *document.by_workload.values()):
            check_draft(group, n_ctx=document.context.n_ctx, n_batch=document.context.n_batch)
        check_context(document.context)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        raise _damaged(profile.name, place) from None
    except LocalspecError as error:
        raise _damaged(profile.name, error.message) from None
    if needs_draft(document.methods) and document.draft is None:
        raise _damaged(profile.name, "it drafts with a model and names none")
    return NamedProfile(profile.name, profile.created_at, profile.run_id, document)


def make_profile(
    name: str,
    run: StoredRun,
    now: datetime,
    *,
    arm: str = "",
    workload: str = "",
    with_kinds: bool | None = None,
    repo_of: Callable[[Path], str] = lambda path: "",
    on_reading: Callable[[Path], None] = lambda path: None,
) -> Profile:
    """Return a profile with the best way of drafting of a run, or a named one.

    Args:
        name: of the profile.
        run: a kept run.
        now: when the profile is made.
        arm: which to take, `off` too; empty for the best one.
        workload: the only one to look at; empty for all.
        with_kinds: keep the best for each kind of own text, too, if those were measured; None: unless an arm is named.
        repo_of: tells where on the Hub a model file is from; empty where unknown.
        on_reading: called before a model file is read through, to see whether it is the one that was measured.

    Raises:
        UsageError: nothing was faster, or there is no such arm or workload, or it has not run; or a model file is not
            the one that was measured, or not known by its whole path.
        LocalspecError: the run's document is damaged.
    """
    document = read_document(run)
    workloads = document.named(workload)
    kinds = arms_by_kind(workloads) if (not arm if with_kinds is None else with_kinds) else {}
    if not arm and (baseline := _only_for_kinds(workloads, kinds)) is not None:
        chosen = baseline
    else:
        chosen = _named_arm(workloads, arm) if arm else _best_arm(workloads, run.summary.id)
    methods = (chosen.method, *(item.method for item in kinds.values()))
    if needs_draft(methods) and document.draft is None:
        raise UsageError("The run had no draft model.", "Choose another --arm.")
    is_drafting = document.draft is not None and takes_draft(methods)
    for role, model in (("target", document.target), ("draft", document.draft if is_drafting else None)):
        if model is not None:
            check_model(run, role, model, on_reading)
    settings = document.settings
    sampling = {**settings, **workloads[0].sampling} if len(workloads) == 1 else settings
    own = settings.get("draft_context")
    return Profile(
        name=name,
        created_at=now.isoformat(timespec="seconds"),
        run_id=run.summary.id,
        document={
            "target": _model(document.target, repo_of),
            "draft": _model(document.draft, repo_of) if is_drafting and document.draft is not None else None,
            "speculation": _drafting(chosen),
            "context": _part(ContextSettings, settings),
            "draft_context": {key: own.get(key) for key in DraftContext.model_fields} if is_drafting and own else None,
            "sampling": _part(SamplingSettings, sampling),
            "evidence": _evidence(document, workloads, chosen.name, run),
            "by_workload": {kind: _drafting(item) for kind, item in kinds.items()},
        },
    )


def profile_flags(profile: NamedProfile) -> dict[str, dict[str, object]]:
    """Return a profile's settings by group, as options of a command line would give them."""
    document = profile.document
    own = {} if document.draft_context is None else document.draft_context.model_dump(exclude_none=True)
    drafting = document.speculation.model_dump(exclude={"method", "remembers", *DraftContext.model_fields})
    return {
        "draft": {**drafting, **own},
        "context": document.context.model_dump(),
        "sampling": document.sampling.model_dump(),
    }


def file_notes(profile: NamedProfile) -> tuple[str, ...]:
    """Return a sentence for each model file that is gone or no longer what it was."""
    notes = []
    for role, model in profile.models:
        try:
            facts = Path(model.path).stat()
        except (OSError, ValueError):
            notes.append(f"The profile's {role} is gone: there is no file {model.path}.")
            continue
        if model.file_bytes is not None and facts.st_size != model.file_bytes:
            notes.append(
                f"The profile's {role} is another file now, of {facts.st_size} bytes instead of {model.file_bytes}: "
                "what was measured may no longer hold."
            )
        elif model.modified_ns is not None and facts.st_mtime_ns != model.modified_ns:
            notes.append(f"The profile's {role} was written anew since the profile was made; it may be another one.")
    return tuple(notes)


def speedup_text(figure: Figure | None) -> str:
    """Return a speedup with its interval, such as `1.31x (1.22 to 1.40)`; empty without one."""
    if figure is None:
        return ""
    if figure.low is None or figure.high is None:
        return f"{factor_text(figure.median)}x"
    return f"{factor_text(figure.median)}x ({factor_text(figure.low)} to {factor_text(figure.high)})"


def evidence_notes(evidence: Evidence | None) -> tuple[str, ...]:
    """Return sentences on what to know of the speedup that a profile stands on."""
    if evidence is None:
        return ()
    doubt = (
        "" if evidence.is_reliable else "Its figure is unusable: the baseline changed too much while it was measured."
    )
    return tuple(filter(None, (doubt, marks_sentence(evidence.marks))))


def evidence_text(evidence: Evidence | None) -> str:
    """Return the speedup that a profile stands on, with a word where it is not to be relied on; empty without one."""
    figure = speedup_text(None if evidence is None else evidence.speedup)
    return f"{figure}, unusable" if figure and evidence is not None and not evidence.is_reliable else figure


def _only_for_kinds(workloads: list[RunWorkload], kinds: Mapping[Kind, RunArm]) -> RunArm | None:
    """Return the baseline where drafts pay for some kind of text, but not over all."""
    if not any(arm.method != "off" for arm in kinds.values()) or _found_best(workloads) is not None:
        return None
    return workloads[0].baseline


def _best_arm(workloads: list[RunWorkload], run_id: int) -> RunArm:
    """Return the arm that session/verdict.best_arm would have advised."""
    best = _found_best(workloads)
    if best is None:
        names = ", ".join(dict.fromkeys(arm.name for workload in workloads for arm in workload.arms))
        has_unusable = not all(workload.is_reliable for workload in workloads)
        why = " The baseline changed too much for its figures to be relied on." if has_unusable else ""
        raise UsageError(
            f"No way of drafting was clearly faster in run {run_id}.{why}", f"Name one with --arm; there are: {names}."
        )
    return best


def _found_best(workloads: list[RunWorkload]) -> RunArm | None:
    best: tuple[float, RunArm] | None = None
    reliable = [workload for workload in workloads if workload.is_reliable]
    by_name: dict[str, list[RunArm]] = {}
    for arm in (arm for workload in reliable for arm in workload.speculative):
        by_name.setdefault(arm.name, []).append(arm)
    most = max(map(len, by_name.values()), default=0)
    for same in by_name.values():
        # A suite compares some arms on one workload only: what they gain there says nothing of the others.
        if len(same) < most:
            continue
        medians = [other.speedup.median for other in same if other.speedup is not None and other.speedup.median > 0]
        if not medians or not any(other.verdict == "faster" for other in same):
            continue
        mean = statistics.geometric_mean(medians)
        if mean > max(1.0, best[0] if best else 1.0):
            best = (mean, same[-1])
    return best[1] if best else None


def _named_arm(workloads: list[RunWorkload], name: str) -> RunArm:
    arms = {arm.name.casefold(): arm for workload in reversed(workloads) for arm in workload.arms}
    found = arms.get(name.casefold())
    if found is None:
        raise UsageError(
            f"The run has no arm {name!r:.80}.", f"It has: {', '.join(arm.name for arm in arms.values())}."
        )
    if not any(arm.has_run for workload in workloads for arm in workload.arms if arm.name == found.name):
        reason = found.reason.rstrip(".") or "it was not reached"
        raise UsageError(f"The arm {found.name!r} has not run: {reason}.", "Choose another --arm.")
    return found


def _evidence(document: RunDocument, workloads: list[RunWorkload], name: str, run: StoredRun) -> Record:
    arms = [(item, arm) for item in workloads for arm in item.arms if arm.name == name and arm.has_run]
    # What is not to be relied on counts only if there is nothing else.
    where, best = max(
        arms,
        key=lambda pair: (pair[0].is_reliable, 0.0 if pair[1].speedup is None else pair[1].speedup.median),
    )
    return {
        "arm": name,
        "workload": where.name,
        "speedup": _dump(best.speedup),
        "verdict": _verdict(where, best),
        "is_reliable": where.is_reliable,
        "marks": list(marks_of_record(document_of(run), [item.name for item, _ in arms])),
        "results": [
            {
                "workload": workload.name,
                "speedup": _dump(arm.speedup),
                "verdict": _verdict(workload, arm),
                "is_reliable": workload.is_reliable,
            }
            for workload, arm in arms
        ],
        "device": run.summary.device or str(document.device.get("description") or ""),
        "build": run.summary.build or str(document.build.get("llama_cpp_python") or ""),
        "measured_at": run.summary.created_at,
    }


def _verdict(workload: RunWorkload, arm: RunArm) -> str | None:
    return arm.verdict if workload.is_reliable or arm.verdict is None else "no_clear_difference"


def _model(model: RunModel, repo_of: Callable[[Path], str]) -> Record:
    path = Path(model.path)
    size = modified = None
    try:
        facts = path.stat()
        size, modified = facts.st_size, facts.st_mtime_ns
    except (OSError, ValueError):
        pass  # It may lie on a disk that is not here; whoever uses the profile hears of it.
    return {
        "name": path.name,
        "path": str(path),
        "sha256": model.sha256,
        "repo": repo_of(path),
        "quantisation": model.quantisation,
        "file_bytes": size,
        "modified_ns": modified,
    }


def _numbers() -> tuple[str, ...]:
    return tuple(
        field.name for field in fields(SpeculationSettings) if field.name in RunArm.model_fields.keys() - {"method"}
    )


def _part(kind: type[Any], record: Record) -> Record:
    return {field.name: record[field.name] for field in fields(kind) if record.get(field.name) is not None}


def _drafting(arm: RunArm) -> Record:
    return {"method": arm.method, **{key: getattr(arm, key) for key in _numbers()}}


def _dump(figure: Figure | None) -> Record | None:
    return None if figure is None else figure.model_dump()


def _damaged(name: str, detail: str) -> LocalspecError:
    return LocalspecError(
        f"What is kept of the profile {name!r} is damaged, or of another version: {detail}",
        f"Delete it, and make it again of a run: localspec profile delete {name!r}",
    )
