"""What the app asks of the engine process. Each request has an id, which the events that answer it carry too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from localspec.engine.values import ContextSettings, Message, SamplingSettings, SpeculationSettings
from localspec.planning.devices import HypotheticalDevice
from localspec.planning.footprint import Placement


@dataclass(frozen=True, slots=True)
class Probe:
    """Report the build and the devices. Answer: Probed."""

    id: int
    type: Literal["probe"] = "probe"


@dataclass(frozen=True, slots=True)
class ReadHeader:
    """Read a GGUF's metadata without weights. Answer: HeaderRead or EngineFailed."""

    id: int
    path: str
    with_tensors: bool = True
    """Also list the tensors."""
    max_array: int = 64
    """Longest array given whole; of longer ones (vocabularies) only the length and the first items are given."""
    type: Literal["read_header"] = "read_header"


@dataclass(frozen=True, slots=True)
class CheckPairs:
    """Say of each draft file whether it can draft for the target. Only headers are read. Answer: PairsChecked."""

    id: int
    target_path: str
    draft_paths: tuple[str, ...]
    type: Literal["check_pairs"] = "check_pairs"


@dataclass(frozen=True, slots=True)
class RegisterDevices:
    """Let llama.cpp plan for GPUs that are not here. Answer: DevicesRegistered. Once, before anything else; a process
    that has them can measure footprints and do nothing else."""

    id: int
    devices: tuple[HypotheticalDevice, ...]
    type: Literal["register_devices"] = "register_devices"


@dataclass(frozen=True, slots=True)
class MeasureFootprint:
    """Say what models would take in memory, without allocating it. Answer: FootprintMeasured.

    Only headers are read, so a file that holds no more than its header will do.
    """

    id: int
    target_path: str
    target: Placement
    draft_path: str = ""
    draft: Placement | None = None
    type: Literal["measure_footprint"] = "measure_footprint"


@dataclass(frozen=True, slots=True)
class LoadModels:
    """Load a target and perhaps a draft, and replace what was loaded. Answers: LoadProgress …, ModelsLoaded."""

    id: int
    target_path: str
    context: ContextSettings = field(default_factory=ContextSettings)
    draft_path: str = ""
    draft_context: ContextSettings = field(default_factory=ContextSettings)
    speculation: SpeculationSettings = field(default_factory=SpeculationSettings)
    pacing_state: str = ""
    """What adaptive pacing learnt before with these models here (PacingReported.state); empty for nothing."""
    type: Literal["load_models"] = "load_models"


@dataclass(frozen=True, slots=True)
class Configure:
    """Change how tokens are drafted, without reloading the target. Answer: Configured."""

    id: int
    speculation: SpeculationSettings
    draft_path: str | None = None
    """Another draft model to load first, empty for none at all; None keeps the one loaded."""
    draft_context: ContextSettings = field(default_factory=ContextSettings)
    pacing_state: str = ""
    """As LoadModels.pacing_state; empty keeps what this process has learnt."""
    type: Literal["configure"] = "configure"


@dataclass(frozen=True, slots=True)
class Generate:
    """Continue a conversation, a text or token ids. Answers: PrefillProgress …, RoundFinished …, GenerationFinished."""

    id: int
    messages: tuple[Message, ...] = ()
    """A conversation, put into the model's chat format."""
    text: str | None = None
    """Raw text, tokenised as it is; used when there are no messages."""
    tokens: tuple[int, ...] | None = None
    """Token ids, used when there is neither."""
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    max_tokens: int = 512
    stop: tuple[str, ...] = ()
    ignore_eog: bool = False
    """Never draw an end-of-generation token (benchmarks of equal length), as llama.cpp's ignore_eos."""
    is_fresh: bool = False
    """Forget the KV caches first, so that the whole prompt is read."""
    type: Literal["generate"] = "generate"


@dataclass(frozen=True, slots=True)
class ExplainDifference:
    """Replay two outputs that differ and measure whether rounding explains it.

    Answers: PrefillProgress …, DifferenceExplained.

    The target reads the prompt and the common tokens twice: the answer in single steps, then in the very
    batches of the speculative arm, rejected drafts included.
    """

    id: int
    prompt: tuple[int, ...]
    common: tuple[int, ...]
    """Emitted tokens that both outputs share, at whose end they part."""
    drafted: tuple[tuple[int, ...], ...]
    """Draft tokens of each of the speculative arm's rounds, round 0 left out."""
    num_accepted: tuple[int, ...]
    """How many of them each round accepted."""
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    ignore_eog: bool = False
    type: Literal["explain_difference"] = "explain_difference"


@dataclass(frozen=True, slots=True)
class MeasureSteps:
    """Time prefill, and single steps of several widths, on what is loaded. Answers: StepsProgress …, StepsMeasured."""

    id: int
    text: str
    """Read for it; repeated where it is too short."""
    widths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
    """Tokens of a step of the target. 1 is always measured. A draft of k tokens is verified in a step of k + 1."""
    depth: int = 256
    """Positions that are in the cache before each step."""
    seconds: float = 15.0
    """Time for it, both models together."""
    type: Literal["measure_steps"] = "measure_steps"


@dataclass(frozen=True, slots=True)
class Quantize:
    """Write a requantised or layer-pruned copy of a GGUF. Answers: QuantizeProgress …, Quantized."""

    id: int
    source_path: str
    destination_path: str
    quantisation: str
    """llama.cpp's file type name, such as `Q4_0`, `Q8_0`, `F16`."""
    prune_layers: tuple[int, ...] = ()
    n_threads: int = 0
    type: Literal["quantize"] = "quantize"


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a request as soon as possible. A generation ends with GenerationFinished, marked cancelled; others with
    EngineFailed of kind Cancelled."""

    id: int
    request_id: int
    type: Literal["cancel"] = "cancel"


@dataclass(frozen=True, slots=True)
class Unload:
    """Free models and contexts, and end the process. Answer: Unloaded, then end of file."""

    id: int
    type: Literal["unload"] = "unload"


Request = Annotated[
    Probe
    | ReadHeader
    | CheckPairs
    | RegisterDevices
    | MeasureFootprint
    | LoadModels
    | Configure
    | Generate
    | ExplainDifference
    | MeasureSteps
    | Quantize
    | Cancel
    | Unload,
    Field(discriminator="type"),
]
