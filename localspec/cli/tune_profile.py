"""What a search leaves: its confirmation as a run, and the winner as a profile of that run."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.cli.failures import say_failure, say_notice
from localspec.cli.profile import RepoOf, opened, say_reading
from localspec.cli.services import Services
from localspec.errors import LocalspecError, UsageError
from localspec.session.arms import BASELINE_NAME
from localspec.session.kind_outcome import outcomes_of
from localspec.session.measurement import measurement_record
from localspec.session.profiles import make_profile, read_profile
from localspec.session.run_keeping import RunKeeper
from localspec.session.tuning.confirmation import confirmation_of
from localspec.session.tuning.values import TuningResult
from localspec.store.database import Database
from localspec.store.profiles import MAX_NAME, Profiles, check_name
from localspec.store.runs import Runs

if TYPE_CHECKING:
    from localspec.cli.tune import TuneChoice


def check_profile_name(services: Services, name: str, replaces: bool) -> None:
    """Refuse a name that a profile could not get in the end, before anything is measured.

    Raises:
        UsageError: it cannot be one, or is taken.
    """
    check_name(name)
    with opened(services) as database:
        if not replaces and name.casefold() in _taken(database):
            raise UsageError(f"There is a profile {name!r} already.", "Choose another name, or add --replace.")


def keep_winner(services: Services, choice: TuneChoice, result: TuningResult) -> tuple[int | None, str]:
    """Keep the confirmation, and the winner if there is one; return the run's number and the profile's name.

    Of own chats each kind's own winner is kept, too, also where none wins over all.

    What cannot be kept is said, and is no reason to lose what was found.
    """
    measurement = confirmation_of(result)
    if measurement is None:
        return None, ""
    run_id = RunKeeper("tune", services.open_database, say_notice).finish(measurement)
    # A setting that was passed over for all texts must not come back for one of them.
    has_kinds = choice.is_own and result.is_conclusive and not any(one.reason for one in result.confirmed)
    pays = has_kinds and any(outcome.pays for outcome in outcomes_of(measurement_record(measurement)))
    if run_id is None or (result.winner is None and not pays):
        return run_id, ""
    arm = BASELINE_NAME if result.winner is None else result.winner.arm
    try:
        return run_id, _save(services, choice, arm, has_kinds, run_id)
    except LocalspecError as error:
        say_failure(error)
        return run_id, ""


def made_up_name(target: Path, taken: set[str]) -> str:
    """Return a name for a profile of a target that none has yet; `taken` holds casefolded ones."""
    stem = re.sub(r"[^\w .-]+|^[\W_]+", "-", target.stem).strip(" -._") or "model"
    base = f"tuned {stem}"[: MAX_NAME - 4].rstrip()
    names = (base if number == 1 else f"{base} {number}" for number in range(1, 1000))
    return next(name for name in names if name.casefold() not in taken)


def _save(services: Services, choice: TuneChoice, arm: str, has_kinds: bool, run_id: int) -> str:
    with opened(services) as database:
        name = choice.profile or made_up_name(Path(choice.target), _taken(database))
        made = make_profile(
            name,
            Runs(database).get(run_id),
            datetime.now(UTC),
            arm=arm,
            with_kinds=has_kinds,
            repo_of=RepoOf(),
            on_reading=say_reading,
        )
        read_profile(made)
        Profiles(database).save(made, replaces=choice.replaces)
    return name


def _taken(database: Database) -> set[str]:
    return {profile.name.casefold() for profile in Profiles(database).all()}
