"""An engine that follows a script: it emits the events of made-up models, and time passes only on its own clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from localspec.engine.events import (
    Configured,
    DifferenceExplained,
    EmittedToken,
    EngineFailed,
    Event,
    GenerationFinished,
    GenerationStarted,
    LoadProgress,
    ModelsLoaded,
    PrefillProgress,
    Probed,
    Quantized,
    QuantizeProgress,
    RoundFinished,
    Unloaded,
)
from localspec.engine.requests import (
    Cancel,
    Configure,
    ExplainDifference,
    Generate,
    LoadModels,
    Probe,
    Quantize,
    ReadHeader,
    Request,
)
from localspec.engine.values import (
    FinishReason,
    Method,
    ModelInfo,
    Origin,
    SpeculationSettings,
    SpeculationState,
)
from tests.made_up_machine import BUILD, DEVICE, model_info

PROMPT_TOKENS = 10


class FakeClock:
    """Seconds that pass only when somebody says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass(frozen=True, slots=True)
class ArmScript:
    """How one method behaves."""

    accepted: tuple[int, ...] = (2,)
    """Draft tokens accepted in each round, over and over."""
    draft_step_s: float = 0.001
    verify_cost: float = 1.0
    """Time of a verification in plain steps."""
    off_reason: str = ""
    """Why it cannot be switched on; empty if it can."""
    failure: str = ""
    """Message of the failure that Configure gives; empty for none."""
    changed_token: int | None = None
    """Place of an output token that comes out different."""
    drafts_every: int = 1
    """Every so many rounds has drafts; 0: none has."""
    num_tokens: int | None = None
    """Ends with `stop` after so many tokens."""


@dataclass
class ScriptedEngine:
    """Implements localspec.engine.interface.Engine."""

    clock: FakeClock = field(default_factory=FakeClock)
    scripts: Mapping[Method, ArmScript] = field(default_factory=dict)
    step_s: float = 0.01
    slowdown: float = 1.0
    """Every generation takes this many times as long as the one before."""
    noise: float = 0.0
    """Each generation's speed is drawn evenly from 1 - noise to 1 + noise."""
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    explained: DifferenceExplained | None = None
    """Answer to ExplainDifference, but for its id; None answers with a failure."""
    on_round: Callable[[ScriptedEngine, RoundFinished], None] | None = None
    """Called before each round is reported."""
    draft_failure: str = ""
    failures: dict[str, EngineFailed] = field(default_factory=dict)
    """Answers by type of request; each is used once."""
    pause_s: float = 0.0
    """Real seconds before each round."""
    needs_draft: bool = False
    """The method draft cannot be switched on unless a draft model was loaded."""
    echoes: bool = False
    """Answers repeat the words of the last message, instead of counting."""
    answer: Callable[[Request], list[Event] | None] = lambda request: None
    """Takes over a request by returning its events."""

    requests: list[Request] = field(default_factory=list)
    generated: list[tuple[Method, Generate]] = field(default_factory=list)
    is_closed: bool = False
    death: str = ""
    _last_id: int = 0
    _cancelled: set[int] = field(default_factory=set)
    _state: SpeculationState = field(default_factory=lambda: _off(SpeculationSettings(), "nothing is loaded"))
    _target: ModelInfo | None = None
    _draft: ModelInfo | None = None
    _words: list[str] = field(default_factory=list)

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def cancel(self, request_id: int) -> None:
        self._cancelled.add(request_id)

    async def close(self) -> None:
        self.is_closed = True

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.requests.append(request)
        failure = self.failures.pop(request.type, None)
        taken_over = self.answer(request) if failure is None else [failure]
        if taken_over is not None:
            for event in taken_over:
                await asyncio.sleep(0)
                yield event
            return
        if isinstance(request, Generate):
            self.generated.append((self._state.method if self._state.is_on else "off", request))
            async for event in self._generate(request):
                yield event
            return
        await asyncio.sleep(0)
        for event in self._answer(request):
            yield event

    def _answer(self, request: Request) -> list[Event]:
        match request:
            case Probe():
                return [Probed(request.id, BUILD, (DEVICE,))]
            case ReadHeader():
                return [_failed(request.id, "ModelFileError", "There is no such file.")]
            case LoadModels():
                self._target = model_info(request.target_path)
                has_draft = bool(request.draft_path) and not self.draft_failure
                self._draft = model_info(request.draft_path) if has_draft else None
                self._switch(request.speculation)
                return [
                    LoadProgress(request.id, "target", 1.0),
                    ModelsLoaded(request.id, self._target, self._draft, self.draft_failure, self._state, 0.1),
                ]
            case Configure():
                script = self._script(request.speculation.method)
                if script.failure:
                    return [_failed(request.id, "UsageError", script.failure)]
                if request.draft_path is not None:
                    has_draft = bool(request.draft_path) and not self.draft_failure
                    self._draft = model_info(request.draft_path) if has_draft else None
                self._switch(request.speculation)
                failure = self.draft_failure if request.draft_path else ""
                return [Configured(request.id, self._draft, self._state, failure)]
            case ExplainDifference():
                if self.explained is None:
                    return [_failed(request.id, "DecodeError", "The replay failed.")]
                return [replace(self.explained, id=request.id)]
            case Quantize():
                Path(request.destination_path).write_bytes(b"GGUF")
                return [QuantizeProgress(request.id, 1, 2), Quantized(request.id, request.destination_path, 4)]
            case Cancel():
                return []
            case _:
                return [Unloaded(request.id)]

    def _script(self, method: Method) -> ArmScript:
        return self.scripts.get(method, ArmScript())

    def _switch(self, settings: SpeculationSettings) -> None:
        reason = self._script(settings.method).off_reason
        if settings.method == "off":
            self._state = _off(settings, "the method is off")
        elif self.needs_draft and settings.method == "draft" and self._draft is None:
            self._state = _off(settings, "there is no draft model")
        elif reason:
            self._state = _off(settings, reason)
        else:
            self._state = SpeculationState(True, settings.method, settings.method, "", settings)

    async def _generate(self, request: Generate) -> AsyncIterator[Event]:
        script = self._script(self._state.method) if self._state.is_on else self.scripts.get("off", ArmScript())
        factor = self.slowdown ** (len(self.generated) - 1) / self.rng.uniform(1 - self.noise, 1 + self.noise)
        received_s = self.clock()
        prompt = tuple(range(PROMPT_TOKENS))
        yield GenerationStarted(request.id, prompt, 0, self._state, 0.0)
        self.clock.advance(self.step_s * 2 * factor)
        yield PrefillProgress(request.id, "target", PROMPT_TOKENS, PROMPT_TOKENS, self.clock() - received_s)
        prefill_s = self.clock() - received_s
        self._words = (request.messages[-1].content if request.messages else "text").split() if self.echoes else []
        limit = min(request.max_tokens, script.num_tokens or len(self._words) or request.max_tokens)
        num_emitted = index = 0
        finish: FinishReason = "length" if limit == request.max_tokens else "stop"
        while num_emitted < limit:
            await asyncio.sleep(self.pause_s)
            if request.id in self._cancelled:
                finish = "cancelled"
                break
            round_ = self._round(request.id, index, num_emitted, limit, script, factor, received_s)
            if self.on_round is not None:
                self.on_round(self, round_)
            num_emitted += len(round_.emitted)
            index += 1
            yield round_
        yield GenerationFinished(
            id=request.id,
            finish_reason=finish,
            tail_text="",
            speculation=self._state,
            prefill_s=prefill_s,
            n_past=PROMPT_TOKENS + num_emitted,
            peak_rss_bytes=100_000_000,
            device_used_bytes=0,
            at_s=self.clock() - received_s,
        )

    def _round(
        self,
        request_id: int,
        index: int,
        num_emitted: int,
        limit: int,
        script: ArmScript,
        factor: float,
        received_s: float,
    ) -> RoundFinished:
        every = script.drafts_every
        has_drafts = self._state.is_on and index > 0 and every > 0 and index % every == 0
        num_drafted = min(self._state.settings.n_max, limit - num_emitted - 1) if has_drafts else 0
        num_accepted = min(num_drafted, script.accepted[index % len(script.accepted)]) if num_drafted else 0
        draft_s = num_drafted * script.draft_step_s * factor
        verify_s = (script.verify_cost if num_drafted else 1.0) * self.step_s * factor if index else 0.0
        self.clock.advance(draft_s + verify_s)
        ids = [1000 + num_emitted + offset for offset in range(num_accepted + 1)]
        drafted = (*ids[:num_accepted], *((-1,) * (num_drafted - num_accepted)))
        if script.changed_token is not None:
            ids = [token + (token == 1000 + script.changed_token) for token in ids]
        last: Origin = "correction" if num_accepted < num_drafted else "bonus"
        emitted = tuple(
            EmittedToken(token, self._text(token, num_emitted + offset), "accepted" if offset < num_accepted else last)
            for offset, token in enumerate(ids)
        )
        return RoundFinished(
            id=request_id,
            index=index,
            drafter=self._state.drafter,
            drafted=drafted,
            num_accepted=num_accepted,
            num_discarded=0,
            emitted=emitted,
            num_cut=0,
            draft_stop="n_max" if num_drafted else "off",
            draft_s=draft_s,
            verify_s=verify_s,
            sample_s=0.0,
            total_s=draft_s + verify_s,
            at_s=self.clock() - received_s,
            n_past=PROMPT_TOKENS + num_emitted + num_accepted,
        )

    def _text(self, token: int, index: int) -> str:
        return f"{self._words[index] if self._words else f'w{token}'} "


class EchoEngine(ScriptedEngine):
    """An engine for tests of the command line: it says word by word what it was asked, and loads any file."""

    def __init__(self, failures: dict[str, EngineFailed] | None = None, pause_s: float = 0.0) -> None:
        super().__init__(failures=failures or {}, pause_s=pause_s, needs_draft=True, echoes=True)


def _off(settings: SpeculationSettings, reason: str) -> SpeculationState:
    return SpeculationState(False, settings.method, "", reason, settings)


def _failed(request_id: int, kind: str, message: str) -> EngineFailed:
    return EngineFailed(request_id, kind, message, "Do something else.")
