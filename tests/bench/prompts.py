"""The prompts that are measured with."""

from __future__ import annotations

from localspec.catalog.workloads import find_workload
from localspec.engine.values import Message
from localspec.session.arms import prompt_cases

Conversation = tuple[Message, ...]


def conversations(workload: str) -> tuple[Conversation, ...]:
    """Return a workload's prompts."""
    return tuple(case.messages for case in prompt_cases(find_workload(workload)))


def mixed() -> tuple[Conversation, ...]:
    """Return a chat and a code prompt, for what does not depend much on the kind of text."""
    return conversations("chat")[0], conversations("code")[0]
