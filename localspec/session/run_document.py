"""What a kept run's document says, as far as profiles and estimates read it; checked, since it comes from a file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from localspec.engine.values import Method, PacingKind, Verification
from localspec.errors import LocalspecError, UsageError
from localspec.session.records import document_of
from localspec.store.run_facts import is_unusable_workload
from localspec.store.runs import Runs
from localspec.store.values import Record, StoredRun

LAST = "last"
"""Word for the newest run."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Figure(_Part):
    """A median with its interval."""

    median: float
    low: float | None = None
    high: float | None = None
    pairs: int = 0


class RunModel(_Part):
    """A model that was loaded."""

    path: str
    name: str = ""
    quantisation: str = ""
    sha256: str | None = None


class RunArm(_Part):
    """One way of drafting on one workload."""

    name: str
    method: Method
    n_max: int
    n_min: int = 0
    p_min: float = 0.0
    ngram_max: int = 6
    ngram_min: int = 4
    suffix_factor: float = 2.0
    suffix_p_min: float = 0.3
    remembers: bool = False
    pacing: PacingKind = "fixed"
    verification: Verification = "exact"
    draft_temperature: float = -1.0
    has_run: bool = False
    reason: str = ""
    decode_tps: Figure | None = None
    speedup: Figure | None = None
    verdict: str | None = None
    num_draft_tokens: int | None = None
    num_rounds: int | None = None
    draft_s: float | None = None
    acceptance_rate: float | None = None
    mean_accepted_length: float | None = None
    conditional_acceptance_by_position: list[float | None] | None = None


class RunRounds(_Part):
    """A trial's rounds, column by column."""

    drafted: list[int] = Field(default_factory=list)
    total_s: list[float] = Field(default_factory=list)
    draft_s: list[float] = Field(default_factory=list)
    """Empty in a run that did not keep it."""


class RunTrial(_Part):
    """One measured generation."""

    arm: str
    is_closing: bool = False
    rounds: RunRounds = RunRounds()


class RunWorkload(_Part):
    """One workload's comparison."""

    name: str
    arms: list[RunArm]
    trials: list[RunTrial] = Field(default_factory=list)
    sampling: Record = Field(default_factory=dict)
    is_reliable: bool = True
    """False if the baseline changed too much while it was measured."""

    @model_validator(mode="before")
    @classmethod
    def _judge(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {**value, "is_reliable": not is_unusable_workload(value)}

    @property
    def baseline(self) -> RunArm | None:
        """The arm without drafts."""
        return next((arm for arm in self.arms if arm.method == "off"), None)

    @property
    def speculative(self) -> list[RunArm]:
        """The arms with drafts that have run."""
        return [arm for arm in self.arms if arm.method != "off" and arm.has_run]


class RunDocument(_Part):
    """A whole run."""

    build: Record = Field(default_factory=dict)
    device: Record = Field(default_factory=dict)
    target: RunModel
    draft: RunModel | None = None
    settings: Record
    workloads: list[RunWorkload]

    def named(self, workload: str) -> list[RunWorkload]:
        """Return the workload of that name, or all for an empty one.

        Raises:
            UsageError: the run has no such workload, or none at all.
        """
        if not self.workloads:
            raise UsageError(
                "Nothing was measured in this run: it ended before its first answer was complete.",
                "Choose another one; `localspec runs` lists them.",
            )
        found = [item for item in self.workloads if not workload or item.name.casefold() == workload.casefold()]
        if not found:
            names = ", ".join(dict.fromkeys(item.name for item in self.workloads)) or "none"
            raise UsageError(f"The run has no workload {workload!r:.80}.", f"It has: {names}.")
        return found


def choose_run(runs: Runs, word: str) -> StoredRun:
    """Return the run that a word means: a number, or `last`.

    Raises:
        UsageError: there is no such run.
    """
    if word.casefold() == LAST:
        newest = runs.summaries(limit=1)
        if not newest:
            raise UsageError("No run is kept yet.", "Measure something: localspec bench MODEL")
        return runs.get(newest[0].id)
    if not (word.isascii() and word.isdigit() and len(word) <= 18):
        raise UsageError(f"{word!r:.80} is no run.", "Give a number that `localspec runs` shows, or `last`.")
    return runs.get(int(word))


def read_document(run: StoredRun) -> RunDocument:
    """Return what a kept run says.

    Raises:
        LocalspecError: its document is damaged.
    """
    try:
        return RunDocument.model_validate(document_of(run))
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        raise LocalspecError(
            f"What is kept of run {run.summary.id} is damaged, or of another version: {place}.", "Measure again."
        ) from None
