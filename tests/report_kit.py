"""Documents of made-up runs for tests of the report: real records, of trials whose times and luck are drawn by lot."""

from __future__ import annotations

import json
import random
from typing import Any

from localspec.engine.events import EmittedToken, GenerationFinished, GenerationStarted, RoundFinished
from localspec.engine.values import (
    ContextSettings,
    SamplingSettings,
    SpeculationSettings,
    SpeculationState,
)
from localspec.metrics.latency import LatencyFold
from localspec.metrics.speculation import fold_rounds
from localspec.session.arms import Arm, build_arms
from localspec.session.outcome import ComparisonResult, evaluate_arm
from localspec.session.records import bench_record, device_record, encode_record, model_record, settings_record
from localspec.session.same_text import SameText
from localspec.session.trial import Trial
from tests.made_up_machine import BUILD, DEVICE, model_info

N_MAX = 6
STEP_S = 0.050
"""A plain step of the made-up target."""

LUCK = {
    "edit": {"draft": 0.88, "ngram": 0.93},
    "chat": {"draft": 0.62, "ngram": 0.30},
    "code": {"draft": 0.78, "ngram": 0.70},
}
"""Chance that a draft token is accepted if those before it were."""

_FREQUENCY = {"edit": 0.7, "chat": 0.06, "code": 0.25}
"""How often n-gram drafting has something to say."""


def made_up_document(*workloads: str, num_pairs: int = 4, num_tokens: int = 128, seed: int = 1) -> dict[str, Any]:
    """Return the document of a run on some of LUCK's workloads, with arms off, draft and ngram."""
    rng = random.Random(seed)
    arms = build_arms(("off", "draft", "ngram"), SpeculationSettings(n_max=N_MAX))
    sampling = SamplingSettings()
    results = []
    for workload in workloads or tuple(LUCK):
        trials: dict[str, list[Trial]] = {arm.name: [] for arm in arms}
        for pair in range(num_pairs):
            for place, arm in enumerate(arms):
                trials[arm.name].append(_trial(arm, workload, pair, pair * len(arms) + place, num_tokens, rng))
        same = SameText(identical=True, first_difference=None, top2_gap=None, noise=None, kind=None, reason="")
        results.append(
            ComparisonResult(
                workload_name=workload,
                arms=tuple(
                    evaluate_arm(arm, _state(arm), "", trials[arm.name], trials["off"], None, same, 1) for arm in arms
                ),
                closing=None,
                num_pairs=num_pairs,
                sampling=sampling,
                is_interrupted=False,
                notes=(),
            )
        )
    target, draft = model_info("/home/somebody/models/target-3b-q4_k_m.gguf"), model_info("/m/draft-135m-q4_0.gguf")
    record = bench_record(
        build=BUILD,
        device=device_record((DEVICE,), 0, "no_battery", "none"),
        target=model_record(target, "ab" * 32),
        draft=model_record(draft, "cd" * 32),
        settings=settings_record(
            target, ContextSettings(), sampling, max_tokens=num_tokens, num_pairs=num_pairs, draft=draft, arms=arms
        ),
        results=results,
    )
    decoded: dict[str, Any] = json.loads(encode_record(record))
    return decoded


def _state(arm: Arm) -> SpeculationState:
    name = "" if arm.is_baseline else arm.name
    return SpeculationState(not arm.is_baseline, arm.speculation.method, name, "", arm.speculation)


def _trial(arm: Arm, workload: str, pair: int, place: int, num_tokens: int, rng: random.Random) -> Trial:
    speed = rng.uniform(0.96, 1.04)
    rounds: list[RoundFinished] = []
    latency = LatencyFold()
    latency.observe(GenerationStarted(1, tuple(range(40)), 0, _state(arm), 0.0))
    at_s, emitted = 0.8 * speed, 0
    while emitted < num_tokens:
        num_drafted = 0 if not rounds else _num_drafted(arm, workload, num_tokens - emitted - 1, rng)
        luck = LUCK[workload].get(arm.name, 0.0)
        num_accepted = next((at for at in range(num_drafted) if rng.random() > luck), num_drafted)
        draft_s = num_drafted * 0.006 * speed if arm.name == "draft" else 0.0002 * bool(num_drafted)
        verify_s = STEP_S * (1.0 + 0.11 * num_drafted) * speed * rng.uniform(0.93, 1.12) if rounds else 0.0
        sample_s, own_s = 0.0006 * (num_accepted + 1), 0.0004
        total_s = draft_s + verify_s + sample_s + own_s
        at_s += total_s
        tokens = tuple(EmittedToken(emitted + item, f"w{item} ", "bonus") for item in range(num_accepted + 1))
        emitted += len(tokens)
        rounds.append(
            RoundFinished(
                id=1,
                index=len(rounds),
                drafter=arm.name if num_drafted else "",
                drafted=(0,) * num_drafted,
                num_accepted=num_accepted,
                num_discarded=0,
                emitted=tokens,
                num_cut=0,
                draft_stop="n_max" if num_drafted else "off",
                draft_s=draft_s,
                verify_s=verify_s,
                sample_s=sample_s,
                total_s=total_s,
                at_s=at_s,
                n_past=40 + emitted,
            )
        )
        latency.observe(rounds[-1])
    latency.observe(GenerationFinished(1, "length", "", _state(arm), 0.7, 40 + emitted, 300_000_000, 0, at_s))
    return Trial(
        arm=arm.name,
        pair=pair,
        place=place,
        prompt_name="one",
        prompt_tokens=tuple(range(40)),
        rounds=tuple(rounds),
        stats=fold_rounds(rounds),
        latency=latency.result(),
        text="",
        finish_reason="length",
        speculation=_state(arm),
        peak_rss_bytes=300_000_000,
        device_used_bytes=0,
    )


def _num_drafted(arm: Arm, workload: str, room: int, rng: random.Random) -> int:
    if arm.name == "draft":
        return min(room, rng.choice((2, 3, 4, 5, 6, 6, 6)))
    if arm.name == "ngram" and rng.random() < _FREQUENCY[workload]:
        return min(room, N_MAX)
    return 0
