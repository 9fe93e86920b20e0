"""What the engine process reports. Every number on any screen is a fold over these.

Times are seconds. `at_s` counts from the moment at which the worker received the request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from localspec.catalog.header import GgufHeader
from localspec.catalog.pairing import PairVerdict
from localspec.engine.values import (
    Beliefs,
    BuildInfo,
    DeviceInfo,
    DraftStop,
    FinishReason,
    ModelInfo,
    Origin,
    SpeculationState,
)
from localspec.planning.footprint import PairFootprint


@dataclass(frozen=True, slots=True)
class Probed:
    """The build and the devices."""

    id: int
    build: BuildInfo
    devices: tuple[DeviceInfo, ...]
    type: Literal["probed"] = "probed"


@dataclass(frozen=True, slots=True)
class HeaderRead:
    """A GGUF's header; for a split file, the model that its shards make up."""

    id: int
    header: GgufHeader
    type: Literal["header_read"] = "header_read"


@dataclass(frozen=True, slots=True)
class PairsChecked:
    """A verdict for each draft of the request, in its order. A file that cannot be read is UNKNOWN with the reason."""

    id: int
    verdicts: tuple[PairVerdict, ...]
    type: Literal["pairs_checked"] = "pairs_checked"


@dataclass(frozen=True, slots=True)
class DevicesRegistered:
    """The devices that llama.cpp sees now, the hypothetical ones among them."""

    id: int
    devices: tuple[DeviceInfo, ...]
    type: Literal["devices_registered"] = "devices_registered"


@dataclass(frozen=True, slots=True)
class FootprintMeasured:
    """What the models would take."""

    id: int
    footprint: PairFootprint
    type: Literal["footprint_measured"] = "footprint_measured"


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How much of a file is loaded."""

    id: int
    model: Literal["target", "draft"]
    fraction: float
    type: Literal["load_progress"] = "load_progress"


@dataclass(frozen=True, slots=True)
class ModelsLoaded:
    """What is loaded now, read back from llama.cpp."""

    id: int
    target: ModelInfo
    draft: ModelInfo | None
    draft_failure: str
    """Why a wanted draft is not there; empty when it is, or when none was wanted."""
    speculation: SpeculationState
    load_s: float
    footprint: PairFootprint | None = None
    """What they really take, by the contexts that are in use; None where llama.cpp does not say."""
    type: Literal["models_loaded"] = "models_loaded"


@dataclass(frozen=True, slots=True)
class Configured:
    """The drafter in force from the next generation on."""

    id: int
    draft: ModelInfo | None
    speculation: SpeculationState
    draft_failure: str = ""
    """Why a draft that was asked for is not there; empty when it is, or when none was asked for."""
    footprint: PairFootprint | None = None
    """What the models really take once the draft has changed; None where it has not, or llama.cpp does not say."""
    type: Literal["configured"] = "configured"


@dataclass(frozen=True, slots=True)
class GenerationStarted:
    """The prompt is tokenised and the usable KV prefix is known."""

    id: int
    prompt_tokens: tuple[int, ...]
    num_reused: int
    """Prompt tokens whose target KV was kept."""
    speculation: SpeculationState
    at_s: float
    type: Literal["generation_started"] = "generation_started"


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """Prompt tokens read so far by one of the models."""

    id: int
    model: Literal["target", "draft"]
    num_done: int
    num_total: int
    at_s: float
    type: Literal["prefill_progress"] = "prefill_progress"


@dataclass(frozen=True, slots=True)
class EmittedToken:
    """A token of the answer. Its text is what became readable with it: empty while a character is incomplete,
    for tokens that show nothing, and while the text may be the beginning of a stop string."""

    id: int
    text: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class RoundFinished:
    """One draft-verify-accept cycle, or one plain step. Round 0 samples from the prefill's last row."""

    id: int
    index: int
    drafter: str
    """Name of the drafter that was asked; empty when speculation is off."""
    drafted: tuple[int, ...]
    """Draft tokens that the target checked."""
    num_accepted: int
    num_discarded: int
    """Draft tokens thrown away unchecked (n_min, ids that the target does not know)."""
    emitted: tuple[EmittedToken, ...]
    num_cut: int
    """1 when a stop on the last accepted token left no place for the target's own token; otherwise 0."""
    draft_stop: DraftStop
    draft_s: float
    verify_s: float
    sample_s: float
    total_s: float
    """From the end of the previous round, so that own work = total - draft - verify - sample."""
    at_s: float
    n_past: int
    """Positions in the target's KV cache after the round."""
    drafted_texts: tuple[str, ...] = ()
    """What `drafted` says, token by token; empty where that was not recorded. A part of a character is U+FFFD."""
    match_length: int = 0
    """Tokens of the text that a free drafter found again earlier; 0 for a model's draft."""
    beliefs: Beliefs | None = None
    """Why the draft had this length; None with a fixed length."""
    type: Literal["round_finished"] = "round_finished"


@dataclass(frozen=True, slots=True)
class PacingReported:
    """What adaptive pacing has learnt, before GenerationFinished; for the next start with these models here."""

    id: int
    state: str
    """JSON text; see engine/pacing_state.py."""
    type: Literal["pacing_reported"] = "pacing_reported"


@dataclass(frozen=True, slots=True)
class GenerationFinished:
    """The end of a generation, cancelled ones included."""

    id: int
    finish_reason: FinishReason
    tail_text: str
    """Text held back until the end (an incomplete stop string or character)."""
    speculation: SpeculationState
    prefill_s: float
    """Time of both prefills."""
    n_past: int
    peak_rss_bytes: int
    device_used_bytes: int
    """Bytes in use on the GPUs as ggml reports them; 0 without a GPU."""
    at_s: float
    type: Literal["generation_finished"] = "generation_finished"


@dataclass(frozen=True, slots=True)
class DifferenceExplained:
    """What replaying found at the first difference."""

    id: int
    top2_gap: float
    """Gap between the two best candidates' logits in the single-step replay."""
    noise: float
    """Largest difference between single-step and batched logits, over the replayed positions' best candidates."""
    single_token: int
    """What the sampler chose there from single-step logits."""
    batched_token: int
    """What it chose from batched logits."""
    type: Literal["difference_explained"] = "difference_explained"


@dataclass(frozen=True, slots=True)
class StepCost:
    """Time of a step of one width, in seconds."""

    width: int
    """Tokens of the step; each has a row of logits."""
    median_s: float
    low_s: float
    """Quarter of the steps were faster."""
    high_s: float
    """Quarter of the steps were slower."""
    num_steps: int


@dataclass(frozen=True, slots=True)
class StepsProgress:
    """How far the measuring of one of the models is, and what is known by now."""

    id: int
    model: Literal["target", "draft"]
    fraction: float
    costs: tuple[StepCost, ...]
    type: Literal["steps_progress"] = "steps_progress"


@dataclass(frozen=True, slots=True)
class StepsMeasured:
    """What steps cost here."""

    id: int
    depth: int
    """Positions that were in the target's cache."""
    prefill_tps: float | None
    """The target's; None if it was too fast for the clock."""
    costs: tuple[StepCost, ...]
    """The target's, by width."""
    draft_prefill_tps: float | None
    draft: StepCost | None
    """A single step of the draft; None without one."""
    type: Literal["steps_measured"] = "steps_measured"


@dataclass(frozen=True, slots=True)
class QuantizeProgress:
    """Tensors written."""

    id: int
    num_done: int
    num_total: int
    type: Literal["quantize_progress"] = "quantize_progress"


@dataclass(frozen=True, slots=True)
class Quantized:
    """The copy is complete under its name."""

    id: int
    path: str
    size_bytes: int
    type: Literal["quantized"] = "quantized"


@dataclass(frozen=True, slots=True)
class Unloaded:
    """Models are freed; the process ends now."""

    id: int
    type: Literal["unloaded"] = "unloaded"


@dataclass(frozen=True, slots=True)
class EngineFailed:
    """A request could not be carried out. `is_fatal`: the process has ended."""

    id: int
    kind: str
    """Class name of the LocalspecError."""
    message: str
    hint: str
    is_fatal: bool = False
    exit_code: int | None = None
    """Exit status of an ended process; negative: the signal that killed it."""
    log_tail: tuple[str, ...] = ()
    type: Literal["engine_failed"] = "engine_failed"


Event = Annotated[
    Probed
    | HeaderRead
    | PairsChecked
    | DevicesRegistered
    | FootprintMeasured
    | LoadProgress
    | ModelsLoaded
    | Configured
    | GenerationStarted
    | PrefillProgress
    | RoundFinished
    | PacingReported
    | GenerationFinished
    | DifferenceExplained
    | StepsProgress
    | StepsMeasured
    | QuantizeProgress
    | Quantized
    | Unloaded
    | EngineFailed,
    Field(discriminator="type"),
]
