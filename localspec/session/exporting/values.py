"""What the exports to other engines share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localspec.methods import WORDS, is_adaptive
from localspec.session.condition_marks import marks_sentence
from localspec.session.exporting.kinds import listed
from localspec.session.exporting.shells import Shell, check_path, command_lines, comment
from localspec.session.profiles import NamedProfile, evidence_text

Option = tuple[str, ...]

NOTHING_DRAFTED = "Nothing is drafted: that was the best, or was asked for."


@dataclass(frozen=True, slots=True)
class Command:
    """A command line for another engine."""

    program: str
    options: tuple[Option, ...]
    remarks: tuple[str, ...]
    """What has no equivalent there, and what to know."""

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments after the program."""
        return tuple(word for option in self.options for word in option)

    def text(self, profile: NamedProfile, shell: Shell) -> str:
        """Return the command with its remarks, ready for a shell or a script."""
        lines = [comment(line) for line in (*heading(profile), *self.remarks)]
        return "\n".join([*lines, command_lines(self.program, self.options, shell)]) + "\n"


def heading(profile: NamedProfile) -> tuple[str, ...]:
    """Return what was measured, that it was measured elsewhere, and what of the profile stays behind."""
    evidence = profile.document.evidence
    lines = [f"localspec profile {profile.name}"]
    if evidence is not None and (figure := evidence_text(evidence)):
        lines.append(f"Measured by localspec, not by this engine: {figure} on {evidence.workload}.")
        if not evidence.is_reliable:
            lines.append("Do not rely on that figure: the baseline changed too much while it was measured.")
        if marked := marks_sentence(evidence.marks):
            lines.append(marked)
    if kinds := tuple(profile.document.by_workload):
        lines.append(
            f"The profile has settings of its own for {listed(kinds)}, which this cannot hold beside the one for the "
            "rest. `localspec export` with --workload takes one of them; llama-presets and llama-swap hold them all."
        )
    return tuple(lines)


def target_path(profile: NamedProfile) -> str:
    """Return the target's path.

    Raises:
        UsageError: it holds what does not show.
    """
    return check_path(profile.document.target.path, "target")


def draft_path(profile: NamedProfile) -> str:
    """Return the draft's path.

    Raises:
        UsageError: it holds what does not show.
    """
    draft = profile.document.draft
    return "" if draft is None else check_path(draft.path, "draft")


def number(value: float) -> str:
    """Return a number as command lines take it."""
    return f"{value:g}"


def sampling_remark(profile: NamedProfile) -> str:
    """Return the sampling for an engine that takes it with each request."""
    sampling = profile.document.sampling
    parts = [f"temperature {number(sampling.temperature)}"]
    if sampling.temperature > 0:
        parts += [
            f"top_k {sampling.top_k}",
            f"top_p {number(sampling.top_p)}",
            f"min_p {number(sampling.min_p)}",
        ]
    if sampling.repeat_penalty != 1.0:
        parts.append(f"repeat_penalty {number(sampling.repeat_penalty)}")
    return f"Sampling goes with each request: {', '.join(parts)}, seed {sampling.seed}."


def drafting_remarks(profile: NamedProfile, known: Sequence[str]) -> tuple[str, ...]:
    """Return a remark for each drafting setting that is in force and not among the known ones."""
    drafting = profile.document.speculation
    remarks = []
    if drafting.method == "off":
        return ()
    if is_without_equal(drafting.method):
        return (_without_equal(drafting.method),)
    if is_adaptive(drafting.method, drafting.pacing):
        remarks.append(
            f"How long a draft is was chosen by what was measured, up to {drafting.n_max} tokens; here it is always "
            f"{drafting.n_max}, which may be slower."
        )
    if "n_min" not in known and drafting.n_min:
        remarks.append(f"n_min {drafting.n_min} (throw away shorter drafts) has no equivalent here.")
    if drafting.method == "draft" and "p_min" not in known and drafting.p_min:
        remarks.append(f"p_min {number(drafting.p_min)} (stop at a less probable token) has no equivalent here.")
    if drafting.method == "ngram" and "ngram" not in known:
        remarks.append(
            f"ngram_min {drafting.ngram_min} and ngram_max {drafting.ngram_max} (tokens that must match) have no "
            "equivalent here."
        )
    if drafting.method == "suffix" and "suffix" not in known:
        remarks.append("Suffix decoding has no equivalent here: nothing is drafted.")
    if "verification" not in known:
        what = "the same text as without drafts, for the same seed" if drafting.verification == "exact" else _RATIO
        remarks.append(
            f"Verification `{drafting.verification}` ({what}) is no setting here: see what the engine promises."
        )
    return tuple(remarks)


def draft_threads_remarks(profile: NamedProfile) -> tuple[str, ...]:
    """Return a remark if the draft had other threads than the target, for an engine that gives both the same."""
    context, own = profile.document.context, profile.document.draft_context
    if own is None or own.n_threads in (None, 0, context.n_threads):
        return ()
    return (f"The draft's own n_threads {own.n_threads} has no equivalent here.",)


def is_without_equal(method: str) -> bool:
    """Whether no other engine drafts in this way."""
    return method in ("cascade", "auto")


def _without_equal(method: str) -> str:
    return (
        f"The method {method} ({WORDS['cascade' if method == 'cascade' else 'auto']}) has no equivalent here: nothing "
        "is drafted. A profile of a fixed arm comes along: localspec bench with --method draft or ngram."
    )


_RATIO = "drafts are kept by the ratio of both models' probabilities, so that the distribution stays as it is"
