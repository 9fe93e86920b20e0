"""Our engine as users run it: the worker process behind the client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from localspec.engine.client import EngineClient
from localspec.engine.interface import last_event
from localspec.engine.requests import Configure, Generate
from localspec.engine.values import Message, SamplingSettings, SpeculationSettings
from localspec.session.loading import load_models
from localspec.session.trial import Trial, run_trial
from tests.bench.setting import Setting


class OwnEngine:
    """A worker with the pair loaded."""

    def __init__(self, client: EngineClient, log_file: Path) -> None:
        self._client = client
        self.log_file = log_file
        """Holds what llama.cpp said while it loaded the models."""

    async def run(
        self,
        speculation: SpeculationSettings,
        prompt: Sequence[Message] | Sequence[int],
        max_tokens: int,
        sampling: SamplingSettings | None = None,
        ignore_eog: bool = True,
    ) -> Trial:
        """Read a prompt (a conversation, or token ids) afresh and answer it.

        Raises:
            LocalspecError: the engine failed.
        """
        await last_event(self._client, Configure(self._client.next_id(), speculation))
        request = Generate(
            self._client.next_id(),
            messages=tuple(item for item in prompt if isinstance(item, Message)),
            tokens=tuple(item for item in prompt if isinstance(item, int)),
            sampling=sampling or SamplingSettings(),
            max_tokens=max_tokens,
            ignore_eog=ignore_eog,
            is_fresh=True,
        )
        return await run_trial(self._client, request, speculation.method, 0, 0, "", lambda _: None)


@asynccontextmanager
async def own_engine(setting: Setting, name: str) -> AsyncIterator[OwnEngine]:
    """Start a worker and load the pair; `name` is its log file's."""
    log_file = setting.folder / f"{name}.log"
    client = EngineClient(log_file)
    try:
        models = setting.models
        off = SpeculationSettings("off")
        await load_models(client, models.target, models.draft, setting.context, off, lambda _: None)
        yield OwnEngine(client, log_file)
    finally:
        await client.close()


def speed(trial: Trial) -> float:
    """Return tokens per second after the first round."""
    if trial.decode_tps is None:
        raise ValueError("too few tokens to tell the speed")
    return trial.decode_tps
