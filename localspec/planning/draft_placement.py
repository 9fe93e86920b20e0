"""Where the draft would run, held against where the target would."""

from __future__ import annotations

from localspec.planning.devices import HOST
from localspec.planning.fitting import Trial
from localspec.planning.footprint import Footprint, Placement


def slow_draft_note(trial: Trial) -> str:
    """Return a sentence if less of the draft than of the target lies on GPUs; empty otherwise.

    Shares are counted in layers, as they are offloaded: the input embeddings stay in host memory with any placement.
    """
    draft, measured = trial.draft, trial.footprint.draft
    if draft is None or measured is None:
        return ""
    of_target = _layers_on_gpus(trial.target, trial.footprint.target)
    of_draft = _layers_on_gpus(draft, measured)
    if of_draft * trial.num_layers("target") >= of_target * trial.num_layers("draft"):
        return ""
    if not of_draft:
        return (
            "The draft would run on the processor although the target is on the GPU, so each drafted token waits for "
            "the slower of the two, and drafting may cost more time than it saves."
        )
    whole = of_target == trial.num_layers("target")
    target = "the whole target" if whole else f"{of_target} of {trial.num_layers('target')} of the target's"
    return (
        f"Only {of_draft} of {trial.num_layers('draft')} layers of the draft would be on the GPU, but {target}: each "
        "drafted token also waits for the processor, and drafting may cost more time than it saves."
    )


def _layers_on_gpus(placement: Placement, footprint: Footprint) -> int:
    if not any(row.device != HOST and row.weights_bytes for row in footprint.rows):
        return 0
    wanted = placement.n_gpu_layers
    return footprint.num_layers if wanted < 0 else min(wanted, footprint.num_layers)
