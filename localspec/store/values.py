"""What is kept, as values. Times are UTC in ISO 8601; records are JSON objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Record = dict[str, Any]

RunState = Literal["running", "done", "interrupted", "failed", "lost"]
"""lost: its process ended without a word; what it had measured until then is kept."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a list."""

    id: int
    created_at: str
    finished_at: str
    """Empty while it runs, or if it was lost."""
    state: RunState
    kind: str
    """`bench`, `demo`, `tune` or `suite`."""
    target_name: str
    draft_name: str
    """Empty without a draft model."""
    workloads: tuple[str, ...]
    speedup: float | None
    """Of the arm that did best over all workloads: median; None if nothing was compared."""
    speedup_low: float | None
    speedup_high: float | None
    best_arm: str
    build: str
    """llama.cpp and binding, in a word or two."""
    device: str
    profile: str
    """Name of the profile that it measured; empty for none."""
    is_unusable: bool = False
    """Whether the speedup is not to be relied on: the baseline changed too much while it was measured."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run with everything that is known of it."""

    summary: RunSummary
    request: Record
    """What was asked for, enough to ask it again: session/run_keeping.py writes and reads it."""
    document: Record | None
    """The document of `bench --json`, trials and rounds included; None unless it came to an end of some kind."""
    trials: tuple[Record, ...]
    """Of a run without a document: the trials that were finished (session/records.trial_record)."""
    rounds: tuple[Record, ...]
    """Of a run without a document: the rounds of the trial that was under way."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A configuration with a name: models, method and settings, and the run that justifies them."""

    name: str
    created_at: str
    run_id: int | None
    """None if no run is behind it, or if that was deleted."""
    document: Record
    """Keys target and draft ({name, path, sha256, repo, quantisation} or null), speculation, context, draft_context,
    sampling, evidence (speedup with interval, workload, device, build; null without a run)."""


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """A chat in a list."""

    id: int
    title: str
    created_at: str
    updated_at: str
    target_name: str
    num_messages: int


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of a chat."""

    id: int
    role: Literal["system", "user", "assistant"]
    content: str
    created_at: str
    finish_reason: str
    """Of an answer; `incomplete` if its process ended while it was written."""
    figures: Record | None
    """Of an answer: tokens, decode_tps, ttft_s, acceptance_rate, drafter, speculation on or off and why."""


@dataclass(frozen=True, slots=True)
class StoredChat:
    """A chat with its messages, oldest first."""

    summary: ChatSummary
    models: Record
    """Target, draft and settings when it was last used, enough to continue it."""
    messages: tuple[StoredMessage, ...]
