"""What each setting does, in a line."""

from __future__ import annotations

from collections.abc import Mapping

TITLES: Mapping[str, str] = {
    "app": "Appearance",
    "units": "Units",
    "draft": "Drafting",
    "sampling": "Sampling",
    "context": "Context of the target",
    "bench": "Comparisons",
    "models": "Models",
    "memory": "Memory",
}
"""In the order in which they are shown."""

WORDS: Mapping[tuple[str, str], str] = {
    ("draft", "method"): "how tokens are drafted",
    ("draft", "n_max"): "most tokens drafted in a round",
    ("draft", "n_min"): "a shorter draft is thrown away",
    ("draft", "p_min"): "stop before a token less probable",
    ("draft", "ngram_max"): "longest match looked for, in tokens",
    ("draft", "ngram_min"): "shortest match that counts, in tokens",
    ("draft", "n_ctx"): "draft model's; 0: as the target's",
    ("draft", "n_gpu_layers"): "draft model's; empty: as the target's",
    ("draft", "type_k"): "draft model's; unset: as the target's",
    ("draft", "type_v"): "likewise",
    ("sampling", "temperature"): "0 takes the most probable token",
    ("sampling", "top_k"): "candidates kept; 0 keeps all",
    ("sampling", "top_p"): "candidates with this share together",
    ("sampling", "min_p"): "least share of the likeliest one's",
    ("sampling", "repeat_penalty"): "1 for none",
    ("sampling", "repeat_last_n"): "penalties look back so far; -1: all",
    ("sampling", "frequency_penalty"): "0 for none",
    ("sampling", "presence_penalty"): "0 for none",
    ("sampling", "seed"): "the same seed gives the same text",
    ("sampling", "grammar"): "GBNF text; empty for none",
    ("context", "n_ctx"): "positions; 0 takes the trained context",
    ("context", "n_batch"): "tokens of a step",
    ("context", "n_ubatch"): "computed at once, at most n_batch",
    ("context", "n_threads"): "of single tokens; 0: as many as cores",
    ("context", "n_threads_batch"): "of several tokens; 0: as n_threads",
    ("context", "n_gpu_layers"): "layers on the GPU; -1 for all",
    ("context", "type_k"): "cached keys; smaller types save memory",
    ("context", "type_v"): "cached values, likewise",
    ("context", "flash_attn"): "flash attention",
    ("context", "use_mmap"): "map the file instead of reading it",
    ("context", "experts_on_cpu"): "a mixture's experts stay in host memory",
    ("bench", "pairs"): "paired runs; an interval needs three",
    ("bench", "max_tokens"): "tokens of a run",
    ("bench", "warmup"): "tokens before the first pair, thrown away",
    ("models", "folders"): "more of them, parted as in PATH",
    ("memory", "reserve_gib"): "GiB kept free on each device",
    ("app", "theme"): "auto: as the terminal is",
    ("units", "memory"): "GiB is 1024 MiB, GB is 1000 MB",
    ("units", "speed"): "of reading and writing",
}
