"""Commands that a person is advised to run next."""

from __future__ import annotations

import shlex

from localspec.cli.text import one_line


def command_line(*words: str) -> str:
    """Return a command as it can be copied into a shell: names are foreign, and a shell would carry out some."""
    return " ".join(shlex.quote(one_line(word)) for word in words)
