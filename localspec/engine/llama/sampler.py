"""llama.cpp's sampler chain over a context's rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import log as natural_log
from typing import Any

import llama_cpp.llama_cpp as C
import numpy as np

from localspec.engine.distribution import Distribution
from localspec.engine.llama import log
from localspec.engine.llama.candidates import Candidates, Ids, Logits, ids_where, likely_ids
from localspec.engine.llama.context import LlamaContext
from localspec.engine.values import SamplingSettings
from localspec.errors import UsageError


class LlamaSampler:
    """The user's chain: grammar, penalties, then greedy, or top-k, top-p, min-p, temperature and a seeded draw.

    `sample` draws and accepts in one call, one draw of the random generator per emitted token. Verification by
    matching calls it row by row and stops at the first token that differs from the draft, so after any round the chain
    has accepted exactly the emitted tokens, and the same seed gives the same text with and without drafts.
    `distribution` tells what `sample` would draw from, for the rules that draw by themselves.
    """

    def __init__(
        self, context: LlamaContext, settings: SamplingSettings, prompt: Sequence[int], banned: Sequence[int] = ()
    ) -> None:
        """Build the chain.

        Args:
            context: whose rows are sampled.
            settings: the user's.
            prompt: its last tokens count for the penalties, as in llama.cpp.
            banned: ids that are never drawn (their logits become -inf, as with llama.cpp's ignore_eos).

        Raises:
            UsageError: a value is out of range, or the grammar cannot be parsed.
        """
        check_sampling(settings)
        self._context = context
        self._settings = settings
        self._banned = np.array(banned, dtype=np.intp)
        self._chain: Any = _new_chain()
        self._history: Any = None
        self._filters: Any = None
        self._ahead: Any = None
        """A copy of the history that has read `_ahead_tokens` too."""
        self._ahead_tokens: list[int] = []
        self._penalised: deque[int] = deque(maxlen=0)
        self._candidates = Candidates(context.n_vocab)
        # llama.cpp's greedy sampler copies all logits to candidates first: 76 us at 49k tokens, against 43 us for this.
        self._is_plain_greedy = settings.temperature <= 0 and not settings.grammar and not _has_penalties(settings)
        try:
            self._fill(prompt)
        except UsageError:
            self.close()
            raise

    def _fill(self, prompt: Sequence[int]) -> None:
        vocabulary, settings = self._context.model.vocabulary, self._settings
        if settings.grammar or _has_penalties(settings):
            # A chain of its own inside the chain, so that it can be copied and read on alone.
            self._history = _new_chain()
            C.llama_sampler_chain_add(self._chain, self._history)
        if settings.grammar:
            mark = log.position()
            grammar = C.llama_sampler_init_grammar(vocabulary.handle, settings.grammar.encode(), b"root")
            if not grammar:
                raise UsageError(
                    f"The grammar cannot be parsed: {log.last_error(mark) or 'llama.cpp gave no reason'}",
                    "It must be GBNF with a rule named root.",
                )
            C.llama_sampler_chain_add(self._history, grammar)
        if _has_penalties(settings):
            last_n = settings.repeat_last_n if settings.repeat_last_n >= 0 else self._context.n_ctx
            penalties = C.llama_sampler_init_penalties(
                vocabulary.n_tokens,
                last_n,
                settings.repeat_penalty,
                settings.frequency_penalty,
                settings.presence_penalty,
            )
            self._penalised = deque(prompt[-last_n:] if last_n > 0 else (), maxlen=last_n)
            for token in self._penalised:
                C.llama_sampler_accept(penalties, token)
            C.llama_sampler_chain_add(self._history, penalties)
        if settings.temperature <= 0:
            C.llama_sampler_chain_add(self._chain, C.llama_sampler_init_greedy())
            return
        self._filters = new_filters(settings)
        C.llama_sampler_chain_add(self._chain, self._filters)
        C.llama_sampler_chain_add(self._chain, C.llama_sampler_init_dist(settings.seed))

    def sample(self, row: int) -> int:
        """Draw from a row of the context's last step, and add the token to the chain's state."""
        if self._banned.size or self._is_plain_greedy:
            logits = self._logits(row)
            if self._is_plain_greedy:
                return int(logits.argmax())
        token = int(C.llama_sampler_sample(self._chain, self._context.handle, self._context.row_index(row)))
        self._penalised.append(token)
        self._forget_ahead()
        return token

    def distribution(self, row: int, prefix: Sequence[int]) -> Distribution:
        """Return what a row's token is drawn from; see TokenSampler. The temperature must be above 0.

        llama.cpp's own chain says so, the draw left out; where that is certain to change nothing, it is given only
        the candidates that its filters can leave.
        """
        logits = self._logits(row)
        history = self._history_after(prefix)
        ids = self._possible_ids(logits, prefix)
        found = self._candidates.distribution(history, self._filters, logits, ids) if ids is not None else None
        if found is None:
            found = self._candidates.distribution(history, self._filters, logits)
        assert found is not None
        return found

    def accept(self, token: int) -> None:
        """Add an emitted token that `sample` did not draw to the chain's state."""
        C.llama_sampler_accept(self._chain, token)
        self._penalised.append(token)
        self._forget_ahead()

    def _logits(self, row: int) -> Logits:
        logits = self._context.logits(row)
        if self._banned.size:
            logits[self._banned] = -np.inf
        return logits

    def _possible_ids(self, logits: Logits, prefix: Sequence[int]) -> Ids | None:
        """Return ids among which are all that the filters can leave; None where the whole vocabulary must be asked."""
        settings = self._settings
        if settings.grammar:
            return None
        if settings.top_k > 0:
            # A penalty moves the penalised ids only: no other enters from beyond the first top_k + their number.
            penalised = {*self._penalised, *prefix} if self._penalised.maxlen else set[int]()
            count = settings.top_k + len(penalised)
            if 8 * count > logits.size:
                return None
            ids = likely_ids(logits, count)
            return np.union1d(ids, np.fromiter(penalised, np.int32)) if penalised else ids
        if settings.top_p >= 1.0 and settings.min_p > 0.0 and self._history is None:
            least = float(logits.max()) + natural_log(settings.min_p)
            return ids_where(logits > least - 1e-3)
        return None

    def _history_after(self, prefix: Sequence[int]) -> Any:
        """Return the chain that has accepted all emitted tokens and a prefix."""
        if self._history is None or not prefix:
            return self._history
        known = len(self._ahead_tokens)
        if self._ahead is None or list(prefix[:known]) != self._ahead_tokens:
            self._forget_ahead()
            self._ahead = C.llama_sampler_clone(self._history)
            known = 0
        for token in prefix[known:]:
            C.llama_sampler_accept(self._ahead, token)
            self._ahead_tokens.append(token)
        return self._ahead

    def _forget_ahead(self) -> None:
        if self._ahead is not None:
            C.llama_sampler_free(self._ahead)
            self._ahead = None
            self._ahead_tokens = []

    def close(self) -> None:
        """Free the chain. No call follows."""
        self._forget_ahead()
        if self._chain:
            C.llama_sampler_free(self._chain)
            self._chain = None


def new_filters(settings: SamplingSettings) -> Any:
    """Return a new chain of what removes candidates and scales logits; the caller frees it, or adds it to another."""
    chain = _new_chain()
    for link in (
        C.llama_sampler_init_top_k(settings.top_k),
        C.llama_sampler_init_top_p(settings.top_p, 1),
        C.llama_sampler_init_min_p(settings.min_p, 1),
        C.llama_sampler_init_temp(settings.temperature),
    ):
        C.llama_sampler_chain_add(chain, link)
    return chain


def _new_chain() -> Any:
    params = C.llama_sampler_chain_default_params()
    params.no_perf = True
    return C.llama_sampler_chain_init(params)


def _has_penalties(settings: SamplingSettings) -> bool:
    return settings.repeat_penalty != 1.0 or settings.frequency_penalty != 0.0 or settings.presence_penalty != 0.0


def check_sampling(settings: SamplingSettings) -> None:
    """Refuse values that llama.cpp would abort on or silently misread.

    Raises:
        UsageError: a value is out of range.
    """
    bounds = (
        ("temperature", settings.temperature, 0.0, 100.0),
        ("top_p", settings.top_p, 0.0, 1.0),
        ("min_p", settings.min_p, 0.0, 1.0),
        ("repeat_penalty", settings.repeat_penalty, 1e-3, 100.0),
        ("frequency_penalty", settings.frequency_penalty, -100.0, 100.0),
        ("presence_penalty", settings.presence_penalty, -100.0, 100.0),
        ("repeat_last_n", settings.repeat_last_n, -1, 1 << 20),
        ("top_k", settings.top_k, 0, 1 << 24),
        ("seed", settings.seed, 0, (1 << 32) - 1),
    )
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise UsageError(f"{name} is {value}.", f"It must lie between {low} and {high}.")
