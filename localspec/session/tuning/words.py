"""What a search found, in plain sentences. File names in them are not markup."""

from __future__ import annotations

from localspec.session.condition_marks import marks_sentence
from localspec.session.tuning.budget import budget_text
from localspec.session.tuning.confirmation import confirmation_marks
from localspec.session.tuning.space import setting_name
from localspec.session.tuning.values import STAGES, Confirmed, Stage, TuningPlan, TuningResult
from localspec.session.verdict import factor_text, speedup_phrase


def stage_text(stage: Stage) -> str:
    """Return what a stage is about."""
    return dict(STAGES)[stage]


def order_text(plan: TuningPlan) -> str:
    """Return the order of the stages and what part of the budget each may take."""
    return (
        f"{budget_text(plan.budget_s)} in all, loading included: up to a quarter for threads and other ways of "
        "loading, about half of the rest for ways of drafting, and what is left for confirming the best on new prompts."
    )


def result_sentences(result: TuningResult) -> tuple[str, ...]:
    """Return what was found: the winner, what marks its figure, or why there is none; then what loading gains."""
    marked = "" if result.winner is None else marks_sentence(confirmation_marks(result))
    sentences = [
        _verdict(result),
        marked,
        *(_confirmed_text(result, one) for one in result.confirmed if one != result.winner),
    ]
    if gain := cold_sentence(result):
        sentences.append(gain)
    return tuple(sentence for sentence in sentences if sentence)


def cold_sentence(result: TuningResult) -> str:
    """Return what another way of loading gains without any drafts; empty where none does."""
    cold = result.cold
    own = [change for change in cold.changes if change not in cold.of_draft]
    # Where nothing is drafted it does not matter how a draft would be loaded.
    drafting = list(cold.of_draft) if result.winner is not None or not result.is_conclusive else []
    sentences = []
    if own and cold.off_gain is not None and cold.off_gain >= 1.005:
        what = ", ".join(own)
        sentences.append(f"off itself gains {factor_text(cold.off_gain)}x by {what}: no drafts are needed for that.")
    else:
        drafting = own + drafting
    if drafting:
        sentences.append(f"Loaded with {', '.join(drafting)}, which helps drafting; without drafts nothing changes.")
    return " ".join(sentences)


def _verdict(result: TuningResult) -> str:
    winner = result.winner
    if winner is not None and winner.speedup is not None:
        text = f"Best here: {setting_name(winner.setting, result.plan.drafts)}, {speedup_phrase(winner.speedup)}"
        parts = [f"{name} {speedup_phrase(speedup)}" for name, speedup in winner.by_workload if speedup is not None]
        return f"{text} ({'; '.join(parts)})." if len(parts) > 1 else f"{text} on {winner.by_workload[0][0]}."
    if result.is_interrupted or result.failure is not None:
        best = next((trial for trial in result.trials if trial.ratio is not None and not trial.reason), None)
        if best is None or best.ratio is None:
            return "Ended before anything was known of drafting."
        name = setting_name(best.setting, result.plan.drafts)
        pairs = "one pair" if best.num_pairs == 1 else f"{best.num_pairs} pairs"
        return f"Ended early, and nothing is confirmed. Best so far: {name}, {factor_text(best.ratio)}x in {pairs}."
    if result.is_unsettled:
        why = next(
            (one.reason for one in result.confirmed if one.is_unsettled and one.reason), "too few pairs were run"
        )
        return f"Nothing is settled: {why}. Tune again when the machine is quiet, or give it more time."
    if not any(trial.ratio is not None for trial in result.trials):
        return "Leave drafts off: no way of drafting could run here."
    if not result.confirmed:
        return "Leave drafts off: nothing that was tried seemed faster."
    return "Leave drafts off: what seemed faster was not clearly so on new prompts."


def _confirmed_text(result: TuningResult, one: Confirmed) -> str:
    name = setting_name(one.setting, result.plan.drafts)
    if one.is_unsettled:
        return "" if one.speedup is None else f"{name}: {speedup_phrase(one.speedup)}, which settles nothing."
    if one.reason:
        return f"{name} was passed over: {one.reason.rstrip('.')}."
    if one.speedup is None:
        return f"{name}: no pair was complete."
    figure = speedup_phrase(one.speedup)
    if result.winner is None:
        return f"{name}: {figure} on new prompts."
    is_tie = one.verdict == "faster" and one.speedup.median >= (
        result.winner.speedup.median if result.winner.speedup else 0.0
    )
    return f"{name}: {figure}; not clearly better, and less simple." if is_tie else f"{name}: {figure}."
