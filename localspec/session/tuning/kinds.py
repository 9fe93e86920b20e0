"""Who is confirmed when the text is a person's own: what is best for one kind of it may lose over all."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from localspec.catalog.workloads import Workload
from localspec.session.my_chats import has_own
from localspec.session.tuning.values import TuningTrial, WarmSetting


def with_kinds(
    chosen: Sequence[WarmSetting],
    trials: Sequence[TuningTrial],
    workloads: Sequence[Workload],
    spread: float,
    most: int,
) -> tuple[WarmSetting, ...]:
    """Return the settings to confirm: the best over all, then the best for kinds of own text, what gains most first.

    Without own texts, or where the best over all serves every kind, that is who was chosen already. It is never more
    than `most`, so that the confirmation takes no longer.

    Args:
        chosen: who is best over all.
        trials: of the search.
        workloads: that were searched on.
        spread: standard deviation of one log ratio.
        most: settings to return.
    """
    kept = list(chosen[:1])
    draft = next((setting.draft for setting in chosen if setting.draft is not None), None)
    gains: dict[WarmSetting, float] = {}
    for workload in workloads:
        if not has_own((workload,)):
            continue
        scores = {
            trial.setting: score for trial in trials if (score := _score(trial, workload.name, spread)) is not None
        }
        # One confirmation compares everything, and holds one draft model.
        able = [setting for setting in scores if draft is None or setting.draft in (None, draft)]
        best = max(able, key=lambda setting: scores[setting], default=None)
        if best is None:
            continue
        # Off is open to every kind, and gains nothing.
        gain = scores[best] - max(0.0, *(scores.get(setting, 0.0) for setting in kept)) if kept else scores[best]
        if gain > 0.0:
            gains[best] = max(gain, gains.get(best, 0.0))
            draft = draft or best.draft
    ranked = sorted(gains, key=lambda setting: -gains[setting])
    return tuple(dict.fromkeys((*kept, *ranked, *chosen[1:])))[:most]


def _score(trial: TuningTrial, workload: str, spread: float) -> float | None:
    """Return a trial's log ratio on one workload less its standard error; None if it has none there."""
    values = dict(trial.ratios).get(workload, ())
    if not values or trial.reason:
        return None
    return statistics.fmean(map(math.log, values)) - spread / math.sqrt(len(values))
