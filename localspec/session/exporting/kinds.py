"""A profile that holds a setting for each kind of text, taken apart into several that hold one each."""

from __future__ import annotations

import re
from dataclasses import replace

from localspec.errors import UsageError
from localspec.session.profiles import NamedProfile


def for_kind(profile: NamedProfile, kind: str) -> NamedProfile:
    """Return what a profile holds for a kind of text, as a profile of its own.

    Nothing is said of how fast it is: what the profile stands on was measured over all of its texts.

    Raises:
        UsageError: it holds nothing of its own for that.
    """
    by_workload = profile.document.by_workload
    found = next((name for name in by_workload if name.casefold() == kind.casefold()), None)
    if found is None:
        there = f"It has some for {listed(tuple(by_workload))}." if by_workload else "It has one setting for all texts."
        raise UsageError(f"The profile {profile.name!r} has no setting of its own for {kind!r:.80}.", there)
    change = {"speculation": by_workload[found], "by_workload": {}, "evidence": None}
    return replace(profile, name=f"{profile.name}, for {found}", document=profile.document.model_copy(update=change))


def for_the_rest(profile: NamedProfile) -> NamedProfile:
    """Return what a profile holds for all texts that have no setting of their own, as a profile of its own."""
    return replace(profile, document=profile.document.model_copy(update={"by_workload": {}}))


def entries(profile: NamedProfile) -> dict[str, NamedProfile]:
    """Return a profile of its own for each setting, by a short name of plain letters, the one for the rest first."""
    apart = [for_the_rest(profile), *(for_kind(profile, kind) for kind in profile.document.by_workload)]
    named: dict[str, NamedProfile] = {}
    for one in apart:
        name = base = slug(one.name)
        number = 2
        while name in named:
            name, number = f"{base}-{number}", number + 1
        named[name] = one
    return named


def slug(name: str) -> str:
    """Return a name in small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "profile"


def listed(names: tuple[str, ...]) -> str:
    """Return names as prose lists them, such as `chat, code and edit`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
