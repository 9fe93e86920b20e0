"""A toy language model, its sampler and scripted drafters: the loop without llama.cpp."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from localspec.engine.distribution import Distribution
from localspec.engine.drafting.drafter import Draft, GoOn
from localspec.engine.model import Cancelled, Progress
from localspec.errors import DecodeError


class ToyModel:
    """Next token = a fixed function of the last few tokens, so that any cached prefix decides it exactly."""

    def __init__(self, n_vocab: int = 11, n_ctx: int = 256, seed: int = 0, order: int = 3) -> None:
        self._n_vocab = n_vocab
        self._n_ctx = n_ctx
        self._seed = seed
        self._order = order
        self._tokens: list[int] = []
        self._rows: list[int] = []
        self.num_decoded = 0
        self.num_steps = 0
        self.cancel_at_step: int | None = None

    @property
    def n_ctx(self) -> int:
        return self._n_ctx

    @property
    def n_vocab(self) -> int:
        return self._n_vocab

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    def following(self, tokens: Sequence[int]) -> int:
        """The model's one answer after these tokens."""
        key = (self._seed, *tokens[-self._order :])
        return random.Random(repr(key)).randrange(self._n_vocab)

    def decode(self, tokens: Sequence[int], num_logits: int) -> None:
        self.num_steps += 1
        if self.cancel_at_step is not None and self.num_steps >= self.cancel_at_step:
            raise Cancelled
        if len(self._tokens) + len(tokens) > self._n_ctx:
            raise DecodeError("full", "")
        if any(not 0 <= token < self._n_vocab for token in tokens):
            raise DecodeError("an id is out of range", "")
        assert len(tokens) > 0 and num_logits <= len(tokens)
        rows = []
        for token in tokens:
            self._tokens.append(token)
            rows.append(self.following(self._tokens))
        self._rows = rows[len(rows) - num_logits :]
        self.num_decoded += len(tokens)

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> None:
        for start in range(0, len(tokens), 8):
            part = tokens[start : start + 8]
            self.decode(part, 1 if start + 8 >= len(tokens) else 0)
            if progress is not None:
                progress(start + len(part), len(tokens))

    def truncate(self, length: int) -> None:
        if length < len(self._tokens):
            del self._tokens[length:]
            self._rows = []

    def keep_prefix(self, tokens: Sequence[int]) -> int:
        shared = 0
        for ours, theirs in zip(self._tokens, tokens[:-1], strict=False):
            if ours != theirs:
                break
            shared += 1
        self.truncate(shared)
        return shared

    def clear(self) -> None:
        self.truncate(0)

    def argmax(self, row: int) -> int:
        return self._rows[row]

    def argmax_with_probability(self, row: int) -> tuple[int, float]:
        token = self._rows[row]
        return token, (token % 10 + 1) / 10


class ToySampler:
    """Greedy, or a seeded draw that replaces the model's answer now and then; remembers what it accepted."""

    def __init__(self, model: ToyModel, seed: int | None = None) -> None:
        self._model = model
        self._random = random.Random(seed) if seed is not None else None
        self.accepted: list[int] = []

    def sample(self, row: int) -> int:
        token = self._model.argmax(row)
        if self._random is not None:
            draw = self._random.random()
            if draw < 0.3:
                token = int(draw * 1000) % self._model.n_vocab
        self.accepted.append(token)
        return token

    def distribution(self, row: int, prefix: Sequence[int]) -> Distribution:
        return Distribution(np.array([self._model.argmax(row)], np.int32), np.ones(1))

    def accept(self, token: int) -> None:
        self.accepted.append(token)


class PlacedDrafter:
    """All of a drafter but what it says: free, without a model, and it knows how far the text has come."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.position = 0

    @property
    def name(self) -> str:
        return self._name

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        self.position = 0

    def forget(self) -> None:
        pass

    @property
    def num_unseen(self) -> int:
        return 0

    @property
    def is_free(self) -> bool:
        return True

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        raise NotImplementedError

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        self.position += len(tokens)

    def close(self) -> None:
        pass


class ScriptedDrafter(PlacedDrafter):
    """Proposes what a function of the text says, and records what it is told."""

    def __init__(self, propose: Callable[[list[int], int], Draft], name: str = "scripted") -> None:
        super().__init__(name)
        self._propose = propose
        self.text: list[int] = []
        self.observed: list[tuple[tuple[int, ...], int]] = []
        self.is_closed = False

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        super().begin(prompt, progress)
        self.text = list(prompt)

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        draft = self._propose(list(self.text), limit)
        return Draft(draft.tokens[:limit], draft.stop, draft.probabilities and draft.probabilities[:limit])

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        super().observe(tokens, num_accepted)
        self.observed.append((tuple(tokens), num_accepted))
        self.text.extend(tokens)

    def close(self) -> None:
        self.is_closed = True


def oracle(model: ToyModel, noise: float = 0.0, seed: int = 0) -> ScriptedDrafter:
    """Proposes the model's own greedy continuation; with noise, each token is wrong at that probability."""
    rng = random.Random(seed)

    def propose(text: list[int], limit: int) -> Draft:
        tokens: list[int] = []
        for _ in range(limit):
            token = model.following([*text, *tokens])
            tokens.append((token + 1) % model.n_vocab if rng.random() < noise else token)
        return Draft(tuple(tokens), "n_max")

    return ScriptedDrafter(propose, "oracle")


def always_wrong(model: ToyModel) -> ScriptedDrafter:
    """Proposes anything but the model's own greedy continuation."""

    def propose(text: list[int], limit: int) -> Draft:
        wrong = (model.following(text) + 1) % model.n_vocab
        return Draft((wrong,) * limit, "n_max")

    return ScriptedDrafter(propose, "always wrong")


def silent() -> ScriptedDrafter:
    """Never has anything to say."""
    return ScriptedDrafter(lambda text, limit: Draft((), "silent"), "silent")


def scripted_tokens(drafts: Sequence[Sequence[int]]) -> ScriptedDrafter:
    """Proposes these drafts one after the other, then nothing."""
    remaining = [tuple(draft) for draft in drafts]

    def propose(text: list[int], limit: int) -> Draft:
        return Draft(remaining.pop(0), "n_max") if remaining else Draft((), "silent")

    return ScriptedDrafter(propose)
