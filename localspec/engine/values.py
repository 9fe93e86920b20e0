"""Values that requests and events carry: settings of a run, and the state of the engine.

Plain frozen dataclasses of JSON types, so that wire.py can code them both ways.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from localspec.methods import Method as Method
from localspec.methods import PacingKind as PacingKind
from localspec.methods import Verification as Verification

FinishReason = Literal["stop", "stop_string", "length", "context_full", "cancelled"]
"""Why a generation ended: an end-of-generation token, a stop string, max_tokens, no room, the user."""

DraftStop = Literal[
    "n_max", "p_min", "n_min", "no_match", "room", "silent", "not_worth", "unproven", "measuring", "resting", "off"
]
"""Why a draft ended: the length limit, the confidence cut-off, thrown away for being under n_min,
nothing to copy from, no room in a context or no tokens left, the drafter had no more to say, speculation off. And with
adaptive pacing: the next token is not worth its time, the drafter has not proven enough yet for what such a draft
could lose, a plain step was wanted to measure it, drafting does not pay now."""

Origin = Literal["accepted", "correction", "bonus"]
"""Where an emitted token came from. A round without drafts emits one `bonus` token."""

KvType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]

MAX_DRAFT_TOKENS = 32
"""Longest draft of a round. The target's logits buffer is sized for one row more."""

MAX_CTX = 1 << 24
MAX_BATCH = 1 << 16
MAX_THREADS = 512
"""ggml's own limit; beyond it, it ends the process."""
MAX_LAYERS = 1 << 16


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """How a model is placed and its context made; names are llama.cpp's."""

    n_ctx: int = 4096
    """Positions; 0 takes the trained context. llama.cpp pads it to 256: read the real one back."""
    n_batch: int = 512
    n_ubatch: int = 512
    n_threads: int = 0
    """Threads of single-token steps; 0 takes the number of physical cores."""
    n_threads_batch: int = 0
    """Threads of steps with several tokens; 0 takes n_threads, since a verification is such a step."""
    n_gpu_layers: int = -1
    """Layers on the GPU; -1 for all."""
    type_k: KvType = "f16"
    type_v: KvType = "f16"
    flash_attn: bool = True
    use_mmap: bool = True
    experts_on_cpu: bool = False
    """Keep a mixture's expert matrices in host memory, whatever layers are offloaded."""


@dataclass(frozen=True, slots=True)
class SpeculationSettings:
    """How to draft and how to verify. The defaults are localspec's own, not llama.cpp's."""

    method: Method = "off"
    n_max: int = 4
    """Most tokens drafted in a round."""
    n_min: int = 0
    """A draft shorter than this is thrown away."""
    p_min: float = 0.0
    """Draft model only: stop before the first token whose probability in the draft's full softmax is lower. Where the
    draft is drawn (`rejection`, `block`): where no token has as much in what is drawn from."""
    ngram_max: int = 6
    """Longest suffix that prompt lookup searches for, in tokens."""
    ngram_min: int = 4
    """Shortest suffix that prompt lookup accepts as a match, in tokens."""
    verification: Verification = "exact"
    pacing: PacingKind = "fixed"
    """How the length of a draft is chosen. Method `auto` is always adaptive."""
    suffix_factor: float = 2.0
    """Suffix decoding: longest draft, in tokens per token of the match."""
    suffix_p_min: float = 0.3
    """Suffix decoding: stop where the share of earlier continuations that a proposal stands for falls below this.
    Adaptive pacing cuts drafts itself and takes at most 0.1."""
    draft_temperature: float = -1.0
    """`rejection` and `block`: temperature that the draft is drawn at; below 0, the target's own."""
    remembers: bool = False
    """Suffix decoding: keep the token ids of answers on this machine, and copy from earlier ones too."""


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """llama.cpp's sampler chain. Temperature 0 is greedy: only penalties and grammar then count besides."""

    temperature: float = 0.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    """Tokens that the penalties look back on; -1 for the whole context, 0 for none."""
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    seed: int = 1
    grammar: str = ""
    """GBNF text; empty for none."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device as ggml reports it."""

    name: str
    description: str
    type: Literal["cpu", "gpu", "integrated_gpu", "accelerator", "other"]
    backend: str
    free_bytes: int
    total_bytes: int
    is_unified: bool = False
    """Its memory is the host's."""
    device_id: str = ""
    """Bus address such as `0000:c1:00.0`, by which two backends' views of one GPU are known; empty if not told."""


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """The llama.cpp that this process has loaded."""

    llama_cpp_python: str
    llama_cpp: str
    """Version or commit as the binding or library states it; empty when it does not."""
    system_info: str
    """llama.cpp's own line of CPU features and backends."""
    supports_gpu_offload: bool
    supports_mmap: bool


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A loaded model and its context, read back from llama.cpp."""

    path: str
    name: str
    architecture: str
    description: str
    """llama.cpp's one-line description, such as `llama 135M Q4_1`."""
    quantisation: str
    num_params: int
    size_bytes: int
    n_vocab: int
    n_ctx: int
    n_ctx_train: int
    n_threads: int
    n_threads_batch: int
    n_gpu_layers: int
    type_k: str
    type_v: str
    flash_attn: bool
    can_roll_back: bool
    """From a real trial of removing the last token."""
    template: Literal["file", "fallback"]
    """Where the chat format comes from: the file's own template, or localspec's plain fallback."""
    end_tokens: tuple[int, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class SpeculationState:
    """Whether drafts are really used, read from the engine's objects and not from anybody's settings."""

    is_on: bool
    method: Method
    drafter: str
    """The drafter's name with the draft model's, such as `draft SmolLM2-135M Q4_0`; empty when off."""
    reason: str
    """Why it is off; empty when on."""
    settings: SpeculationSettings


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What adaptive pacing believed when it chose the length of a round's draft. Times in seconds."""

    drafter: str
    """The drafter that it chose, or would choose if drafting paid."""
    limit: int
    """Most tokens that it asked for; 0 for none."""
    expected_tokens: float
    """Tokens that it expected of the round, the target's own included."""
    expected_s: float
    """Time that it expected of the round."""
    plain_s: float
    """Time of a round without a draft."""
    acceptance: float
    """Expected acceptance rate of that drafter's tokens now."""
    needed: float
    """Acceptance rate from which its best length would pay here."""
    is_resting: bool = False
    """That drafter's acceptance is lower than needed, so it is tried on a schedule only. The draft's stop is `resting`
    then; another stop says why else nothing was drafted."""
    is_exploring: bool = False
    """This round was chosen in order to learn, not because it was thought best."""
