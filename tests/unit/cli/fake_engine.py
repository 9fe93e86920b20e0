"""An engine for tests of the command line: it says word by word what it was asked, and loads any file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from localspec.engine.events import (
    Configured,
    EmittedToken,
    EngineFailed,
    Event,
    GenerationFinished,
    GenerationStarted,
    LoadProgress,
    ModelsLoaded,
    Probed,
    Quantized,
    QuantizeProgress,
    RoundFinished,
)
from localspec.engine.requests import Configure, Generate, LoadModels, Probe, Quantize, Request
from localspec.engine.values import (
    BuildInfo,
    DeviceInfo,
    FinishReason,
    ModelInfo,
    SpeculationSettings,
    SpeculationState,
)

BUILD = BuildInfo(
    llama_cpp_python="0.3.36",
    llama_cpp="b1",
    system_info="CPU : AVX2 = 1 | [bold]FMA = 1 |",
    supports_gpu_offload=False,
    supports_mmap=True,
)
CPU = DeviceInfo("CPU", "Processor [/] \x1b[31m", "cpu", "CPU", 2**30, 2**31)


def model_info(path: str) -> ModelInfo:
    """Return plausible facts of a loaded model."""
    return ModelInfo(
        path=path,
        name="Tiny [/b]",
        architecture="llama",
        description="tiny",
        quantisation="F16",
        num_params=10,
        size_bytes=20,
        n_vocab=320,
        n_ctx=256,
        n_ctx_train=256,
        n_threads=1,
        n_threads_batch=1,
        n_gpu_layers=0,
        type_k="f16",
        type_v="f16",
        flash_attn=True,
        can_roll_back=True,
        template="file",
    )


class FakeEngine:
    """Carries out requests in memory. Answers to Generate repeat the last message."""

    def __init__(self, failures: dict[str, EngineFailed] | None = None, pause_s: float = 0.0) -> None:
        self.requests: list[Request] = []
        self.is_closed = False
        self.failures = failures or {}
        """By request type; each is used once."""
        self._pause_s = pause_s
        self._last_id = 0
        self._cancelled: set[int] = set()
        self._state = SpeculationState(False, "off", "", "nothing is loaded", SpeculationSettings())
        self._draft: ModelInfo | None = None

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.requests.append(request)
        failure = self.failures.pop(request.type, None)
        if failure is not None:
            yield failure
        elif isinstance(request, Probe):
            yield Probed(request.id, BUILD, (CPU,))
        elif isinstance(request, LoadModels):
            yield LoadProgress(request.id, "target", 0.5)
            self._draft = model_info(request.draft_path) if request.draft_path else None
            self._switch(request.speculation)
            yield ModelsLoaded(request.id, model_info(request.target_path), self._draft, "", self._state, 0.1)
        elif isinstance(request, Configure):
            self._switch(request.speculation)
            yield Configured(request.id, self._draft, self._state)
        elif isinstance(request, Quantize):
            yield QuantizeProgress(request.id, 1, 2)
            with open(request.destination_path, "wb") as copy:
                copy.write(b"GGUF")
            yield Quantized(request.id, request.destination_path, 4)
        elif isinstance(request, Generate):
            async for event in self._generate(request):
                yield event

    async def cancel(self, request_id: int) -> None:
        self._cancelled.add(request_id)

    async def close(self) -> None:
        self.is_closed = True

    def _switch(self, wanted: SpeculationSettings) -> None:
        if wanted.method == "draft" and self._draft is None:
            self._state = SpeculationState(False, "draft", "", "there is no draft model", wanted)
        else:
            is_on = wanted.method != "off"
            reason = "" if is_on else "the method is off"
            self._state = SpeculationState(is_on, wanted.method, wanted.method if is_on else "", reason, wanted)

    async def _generate(self, request: Generate) -> AsyncIterator[Event]:
        words = (request.messages[-1].content if request.messages else "text").split()[: request.max_tokens]
        yield GenerationStarted(request.id, (1, 2, 3), 0, self._state, 0.0)
        reason: FinishReason = "stop"
        at_s = 0.0
        # Two words a round when speculation is on, so that it is faster by construction.
        step = 2 if self._state.is_on else 1
        for index, start in enumerate(range(0, len(words), step)):
            await asyncio.sleep(self._pause_s)
            if request.id in self._cancelled:
                reason = "cancelled"
                break
            at_s += 0.01
            emitted = [EmittedToken(start + at, f"{word} ", "bonus") for at, word in enumerate(words[start:][:step])]
            emitted[:-1] = [EmittedToken(token.id, token.text, "accepted") for token in emitted[:-1]]
            drafted = tuple(token.id for token in emitted[:-1])
            yield RoundFinished(
                id=request.id,
                index=index,
                drafter=self._state.drafter,
                drafted=drafted,
                num_accepted=len(drafted),
                num_discarded=0,
                emitted=tuple(emitted),
                num_cut=0,
                draft_stop="n_max" if drafted else "off",
                draft_s=0.001,
                verify_s=0.008,
                sample_s=0.0005,
                total_s=0.01,
                at_s=at_s,
                n_past=3 + start,
            )
        yield GenerationFinished(request.id, reason, "", self._state, 0.005, 10, 1000, 0, at_s)
