"""One answer: prompt, both prefills, rounds, and the events that tell of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

from localspec.engine.adaptive_pacing import AdaptivePacing
from localspec.engine.drafting.drafter import Drafter
from localspec.engine.events import (
    EmittedToken,
    Event,
    GenerationFinished,
    GenerationStarted,
    PacingReported,
    PrefillProgress,
    RoundFinished,
)
from localspec.engine.llama.drawn_draft import DrawnDraft
from localspec.engine.llama.loading import LoadedModel
from localspec.engine.llama.memory import device_used_bytes, peak_rss_bytes
from localspec.engine.llama.prompt import prompt_tokens
from localspec.engine.llama.sampler import LlamaSampler
from localspec.engine.llama.vocabulary import TextDecoder
from localspec.engine.model import Cancelled
from localspec.engine.pacing import FixedPacing
from localspec.engine.requests import Generate
from localspec.engine.speculative import Round, speculate
from localspec.engine.stops import VisibleText
from localspec.engine.values import FinishReason, SpeculationState
from localspec.engine.verification import Verify, verify_exact
from localspec.engine.verification_ratio import choose_verify
from localspec.errors import UsageError

Emit = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Generation:
    """What a generation runs on."""

    target: LoadedModel
    drafter: Drafter | None
    speculation: SpeculationState
    emit: Emit
    received_s: float
    """When the worker got the request, on `clock`."""
    clock: Callable[[], float] = perf_counter
    drawn_draft: DrawnDraft | None = None
    """The draft model, which draws where the verification can use it; None where no model drafts."""
    pacing: AdaptivePacing | None = None
    """Chooses the lengths of drafts, and keeps what it learns; None for a fixed length."""

    def run(self, request: Generate) -> None:
        """Answer a request with events, GenerationFinished last.

        Raises:
            UsageError: the request cannot be carried out.
            TemplateError: the chat template objects.
            DecodeError: a step failed.
        """
        if request.max_tokens < 1:
            raise UsageError(f"max_tokens is {request.max_tokens}.", "Ask for at least one token.")
        if request.ignore_eog and request.sampling.grammar:
            raise UsageError("A grammar ends where it ends: end tokens cannot be ignored.", "Use one of the two.")
        context, vocabulary = self.target.context, self.target.model.vocabulary
        if request.is_fresh:
            context.clear()
            if self.drafter is not None:
                self.drafter.forget()
        try:
            tokens = prompt_tokens(self.target, request)
        except Cancelled:
            self._finish(request, "cancelled", "", 0.0)
            return
        num_reused = context.keep_prefix(tokens)
        self.emit(GenerationStarted(request.id, tuple(tokens), num_reused, self.speculation, self._now()))
        stop = (*request.stop, *(self.target.chat.stop if request.messages else ()))
        visible = VisibleText(TextDecoder(vocabulary), vocabulary.end_tokens, stop)
        banned = tuple(vocabulary.end_tokens) if request.ignore_eog else ()
        sampler = LlamaSampler(context, request.sampling, tokens, banned)
        finish: FinishReason = "cancelled"
        prefill_s = 0.0
        try:
            started = self.clock()
            context.prefill(tokens[num_reused:], self._progress(request.id, "target"))
            if self.drafter is not None:
                self.drafter.begin(tokens, self._progress(request.id, "draft"))
            prefill_s = self.clock() - started
            if self.pacing is not None:
                self.pacing.begin()
            with self._drawing(request, tokens, banned):
                for finished in self._rounds(request, sampler, visible):
                    self.emit(self._round_event(request.id, finished, visible.take()))
                    finish = finished.finish or finish
        except Cancelled:
            finish = "cancelled"
        finally:
            sampler.close()
        if self.pacing is not None and self.drafter is not None:
            self.emit(PacingReported(request.id, self.pacing.state))
        self._finish(request, finish, visible.finish(finish), prefill_s)

    def _finish(self, request: Generate, reason: FinishReason, tail_text: str, prefill_s: float) -> None:
        self.emit(
            GenerationFinished(
                id=request.id,
                finish_reason=reason,
                tail_text=tail_text,
                speculation=self.speculation,
                prefill_s=prefill_s,
                n_past=len(self.target.context.tokens),
                peak_rss_bytes=peak_rss_bytes(),
                device_used_bytes=device_used_bytes(),
                at_s=self._now(),
            )
        )

    def _rounds(self, request: Generate, sampler: LlamaSampler, visible: VisibleText) -> Iterator[Round]:
        return speculate(
            self.target.context,
            sampler,
            self.drafter,
            self.pacing or FixedPacing(self.speculation.settings),
            request.max_tokens,
            visible.ends,
            self.clock,
            self._verify(request),
        )

    def _verify(self, request: Generate) -> Verify:
        if self.drafter is None:
            return verify_exact
        sampling = request.sampling
        return choose_verify(self.speculation.settings.verification, sampling.temperature, sampling.seed)

    def _drawing(self, request: Generate, prompt: Sequence[int], banned: Sequence[int]) -> AbstractContextManager[None]:
        if self.drawn_draft is None:
            return nullcontext()
        n_vocab = self.target.context.n_vocab
        return self.drawn_draft.drawing(request.sampling, self.speculation.settings, prompt, n_vocab, banned)

    def _now(self) -> float:
        return self.clock() - self.received_s

    def _progress(self, request_id: int, model: Literal["target", "draft"]) -> Callable[[int, int], None]:
        def report(num_done: int, num_total: int) -> None:
            self.emit(PrefillProgress(request_id, model, num_done, num_total, self._now()))

        return report

    def _round_event(self, request_id: int, done: Round, texts: list[str]) -> RoundFinished:
        emitted = tuple(
            EmittedToken(token, text, origin)
            for token, text, origin in zip(done.emitted, texts, done.origins, strict=True)
        )
        piece = self.target.model.vocabulary.piece
        return RoundFinished(
            id=request_id,
            index=done.index,
            drafter=done.drafter,
            drafted=done.drafted,
            num_accepted=done.num_accepted,
            num_discarded=done.num_discarded,
            emitted=emitted,
            num_cut=done.num_cut,
            draft_stop=done.draft_stop,
            draft_s=done.draft_s,
            verify_s=done.verify_s,
            sample_s=done.sample_s,
            total_s=done.total_s,
            at_s=self._now(),
            n_past=done.n_past,
            match_length=done.match_length,
            beliefs=done.beliefs,
            drafted_texts=tuple(piece(token).decode("utf-8", "replace") for token in done.drafted),
        )
