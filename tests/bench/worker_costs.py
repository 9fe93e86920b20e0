"""What our own code costs: time per round, and the worker's memory."""

from __future__ import annotations

import re
from collections import Counter

from localspec.engine.values import SpeculationSettings
from tests.bench.own_engine import own_engine
from tests.bench.prompts import mixed
from tests.bench.setting import Outcome, Setting, Spread

_BUFFER = re.compile(r"(\S+)\s+(model|KV|compute|output) buffer size =\s*([0-9.]+) MiB")
_MIB = 1024 * 1024
_ON = SpeculationSettings("draft", n_max=4)


async def own_time(setting: Setting) -> Outcome:
    """Time of a round that is neither llama.cpp's nor the sampler's, on the demo pair at n_max 4."""
    shares, per_round = [], []
    async with own_engine(setting, "own") as engine:
        prompts = mixed()
        await engine.run(_ON, prompts[0], setting.num_tokens)
        for number in range(setting.pairs):
            trial = await engine.run(_ON, prompts[number % len(prompts)], setting.num_tokens)
            # Round 0 only samples; its prefill is counted elsewhere.
            rounds = trial.rounds[1:]
            own_s = sum(item.total_s - item.draft_s - item.verify_s - item.sample_s for item in rounds)
            shares.append(100 * own_s / sum(item.total_s for item in rounds))
            per_round.append(1e6 * own_s / len(rounds))
    share, own_us = Spread.of(shares), Spread.of(per_round)
    return Outcome(
        (f"own work {share.words(2, ' %')} of a round, {own_us.words(0, ' us')}; wanted at most 3 %",),
        {"share_percent": share.json, "own_us_per_round": own_us.json},
    )


async def memory(setting: Setting) -> Outcome:
    """Peak resident memory less files, KV caches and what llama.cpp says it allots to computing."""
    async with own_engine(setting, "memory") as engine:
        trial = await engine.run(_ON, mixed()[0], setting.num_tokens)
        # llama.cpp prints its buffers when it makes them, and nothing else says how large they are.
        log = engine.log_file.read_text(encoding="utf-8", errors="replace")
    buffers: Counter[str] = Counter()
    for place, kind, size in _BUFFER.findall(log):
        is_copy = kind == "model" and not place.endswith("_Mapped")
        buffers["repacked weights" if is_copy else kind] += int(float(size) * _MIB)
    files_bytes = setting.models.target.stat().st_size + setting.models.draft.stat().st_size
    computing_bytes = buffers["compute"] + buffers["output"]
    rest_bytes = trial.peak_rss_bytes - files_bytes - buffers["KV"] - computing_bytes
    lines = [
        f"peak {_mib(trial.peak_rss_bytes)}: files {_mib(files_bytes)}, KV {_mib(buffers['KV'])}, "
        f"compute and output {_mib(computing_bytes)}, rest {_mib(rest_bytes)}, wanted at most 200 MiB",
        f"In the rest: weights that llama.cpp keeps a second time, repacked, {_mib(buffers['repacked weights'])}.",
    ]
    if not buffers["KV"] or not buffers["compute"]:
        lines.append("llama.cpp's log did not name its buffers; the rest is too large by them.")
    return Outcome(
        tuple(lines),
        {
            "peak_rss_bytes": trial.peak_rss_bytes,
            "files_bytes": files_bytes,
            "kv_bytes": buffers["KV"],
            "compute_bytes": computing_bytes,
            "repacked_bytes": buffers["repacked weights"],
            "rest_bytes": rest_bytes,
        },
    )


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / _MIB:.0f} MiB"
