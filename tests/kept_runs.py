"""Made-up documents of runs, in the form of `bench --json`. Names hold markup and escape codes, as foreign text may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from localspec.metrics.comparison import judge
from localspec.metrics.statistics import bootstrap_median, estimate_ratio
from localspec.session.records import estimate_record

Document = dict[str, Any]

ARM = {"n_max": 4, "n_min": 0, "p_min": 0.0, "ngram_max": 6, "ngram_min": 4}


def made_up_run(
    rates: Mapping[str, Sequence[float]] | None = None, workload: str = "chat", methods: Mapping[str, str] | None = None
) -> Document:
    """Return the document of a run with one workload.

    Args:
        rates: decode_tps of the trials of each arm, the baseline `off` first.
        workload: its name.
        methods: of the arms, where those are not called so.
    """
    rates = {"off": (100.0, 101.0, 99.0), "draft": (150.0, 152.0, 149.0)} if rates is None else rates
    methods = methods or {}
    trials = [
        _trial(name, pair, pair * len(rates) + place, rate)
        for place, (name, values) in enumerate(rates.items())
        for pair, rate in enumerate(values)
    ]
    arms = [_arm(name, methods.get(name, name), values, rates["off"]) for name, values in rates.items()]
    leading = arms[1] if len(arms) > 1 else arms[0]
    return {
        "schema": 1,
        "build": {
            "llama_cpp_python": "0.3.36",
            "llama_cpp": "b1",
            "system_info": "CPU : AVX2 = 1 | FMA = 1 |",
            "supports_gpu_offload": False,
            "supports_mmap": True,
        },
        "device": {
            "name": "CPU",
            "description": "Processor [/] \x1b[31m",
            "type": "cpu",
            "backend": "CPU",
            "devices": [],
            "power_source": "mains",
            "throttling": "none",
            "drivers": {"NVIDIA": "570.1"},
            "host": {"os": "Linux 6.8", "cpu_name": "Fast", "physical_cores": 2, "memory_total_bytes": 8 << 30},
        },
        "target": _model("/models/target [b].gguf", "aa" * 32),
        "draft": _model("/models/draft.gguf", "bb" * 32),
        "settings": {
            "n_ctx": 256,
            "n_threads": 2,
            "n_gpu_layers": 0,
            "type_k": "f16",
            "flash_attn": True,
            "temperature": 0.0,
            "seed": 1,
            "max_tokens": 41,
            "num_pairs": 3,
            "draft_context": {"n_ctx": 256, "n_threads": 2, "n_gpu_layers": 0},
            "speculation": {},
        },
        "workloads": [
            {
                "name": workload,
                "title": "Open chat",
                "temperature": 0.0,
                "is_copy_heavy": False,
                "arms": arms,
                "speedup": leading["speedup"],
                "verdict": leading["verdict"],
                "same_text": leading["same_text"],
                "summary": leading["sentence"] or "",
                "sentences": [arm["sentence"] for arm in arms if arm["sentence"]],
                "pairs": 3,
                "interrupted": False,
                "notes": [],
                "trials": trials,
            }
        ],
        "interrupted": False,
        "notes": [],
        "draft_failure": "",
        "failure": None,
    }


def changed(document: Document, **values: object) -> Document:
    """Return a copy with other values; a key such as `device__host__os` leads into it."""
    copy = deepcopy(document)
    for path, value in values.items():
        *outer, last = path.split("__")
        part = copy
        for key in outer:
            part = part[key]
        part[last] = value
    return copy


def _model(path: str, sha256: str) -> Document:
    return {"path": path, "sha256": sha256, "name": "Tiny", "quantisation": "Q4_0", "size_bytes": 1000}


def _arm(name: str, method: str, rates: Sequence[float], baseline: Sequence[float]) -> Document:
    is_off = method == "off"
    ratios = [rate / base for rate, base in zip(rates, baseline, strict=False)]
    speedup = None if is_off or not ratios else estimate_ratio(ratios, np.random.default_rng(1))
    num_trials = len(rates)
    return {
        "name": name,
        "method": method,
        **ARM,
        "has_run": bool(rates),
        "speculation": "off" if is_off else "on",
        "drafter": None if is_off else f"{method} Tiny",
        "reason": "",
        "decode_tps": estimate_record(bootstrap_median(rates, np.random.default_rng(1))) if rates else None,
        "prefill_tps": 500.0,
        "ttft_s": 0.02,
        "tpot_s": {"p50": 0.01, "p95": 0.012, "p99": 0.013},
        "num_trials": num_trials,
        "num_tokens": 41 * num_trials,
        "num_rounds": 0 if is_off else 14 * num_trials,
        "num_target_passes": (41 if is_off else 14) * num_trials,
        "target_passes_saved": 0 if is_off else 27 * num_trials,
        "num_draft_tokens": 0 if is_off else 56 * num_trials,
        "num_accepted_tokens": 0 if is_off else 27 * num_trials,
        "acceptance_rate": None if is_off else 27 / 56,
        "mean_accepted_length": None if is_off else 1 + 27 / 14,
        "acceptance_by_position": [] if is_off else [0.9, 0.6, 0.3, 0.1],
        "speedup": estimate_record(speedup),
        "verdict": None if speedup is None else judge(speedup),
        "same_text": None
        if is_off
        else {
            "identical": True,
            "first_difference": None,
            "top2_gap": None,
            "noise": None,
            "kind": "identical",
            "reason": "",
        },
        "sentence": None if speedup is None else f"{speedup.median:.2f}x with {name}.",
    }


def _trial(arm: str, pair: int, place: int, rate: float) -> Document:
    is_off = arm == "off"
    num_rounds = 3
    return {
        "arm": arm,
        "pair": pair,
        "place": place,
        "prompt": "one",
        "is_closing": False,
        "num_prompt_tokens": 10,
        "decode_tps": rate,
        "prefill_tps": 500.0,
        "ttft_s": 0.02,
        "num_tokens": 3 if is_off else 9,
        "acceptance_rate": None if is_off else 0.5,
        "accepted_lengths": [] if is_off else [0, 1, 2],
        "finish_reason": "length",
        "rounds": {
            "drafted": [0 if is_off else 4] * num_rounds,
            "accepted": [0 if is_off else 2] * num_rounds,
            "emitted": [1 if is_off else 3] * num_rounds,
            "total_s": [0.01] * num_rounds,
            "at_s": [0.02, 0.03, 0.04],
            "n_past": [11, 12, 13],
        },
    }
