"""`python -m tests.bench [NAME…] [--pairs N] [--tokens N]`: medians of paired runs, with their least and greatest.

Nothing is asserted, and the last line of stdout is one JSON document. Runs take turns, one at a time; an otherwise
idle machine is needed for figures that mean something, since llama.cpp's threads wait for each other at every layer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import psutil

from localspec.catalog.embedded import demo_dir
from localspec.engine.llama.library import build_info
from localspec.errors import LocalspecError
from localspec.hardware.cores import read_cores
from tests.bench.against_redecoding import against_redecoding
from tests.bench.against_server import draft_on, speculation_off
from tests.bench.app_escape import escape
from tests.bench.app_first_paint import first_paint
from tests.bench.app_overhead import app_overhead
from tests.bench.app_smooth import smooth
from tests.bench.auto import adversary, auto
from tests.bench.drafters import suffix, suffix_cost
from tests.bench.footprint import footprint_time
from tests.bench.header import header_time
from tests.bench.models import copy_models
from tests.bench.prompt_lookup import ngram, ngram_cost
from tests.bench.setting import Benchmark, Json, Setting
from tests.bench.steps import verify_cost
from tests.bench.verification import verification, verification_cost, verification_speed
from tests.bench.worker_costs import memory, own_time

BENCHMARKS: dict[str, tuple[str, Benchmark]] = {
    "off": ("Speculation off, against llama.cpp's server", speculation_off),
    "draft": ("Draft model on, against llama.cpp's server", draft_on),
    "redecoding": ("Draft model on, against decoding the verified batch again, same build", against_redecoding),
    "own": ("Our own work per round, n_max 4", own_time),
    "memory": ("Memory of the worker", memory),
    "ngram": ("N-gram, against speculation off", ngram),
    "ngram_cost": ("N-gram, cost of a round by length of text", ngram_cost),
    "suffix": ("Suffix decoding, against n-gram, on answers of plain decoding", suffix),
    "suffix_cost": ("Suffix decoding, cost by length of text", suffix_cost),
    "adversary": ("Adaptive drafting with drafters that always lie, against speculation off", adversary),
    "auto": ("Method auto, against speculation off and every fixed setting", auto),
    "verify": ("Cost of a step by its number of tokens", verify_cost),
    "verification_cost": ("Distributions and verification by ratio, cost", verification_cost),
    "verification": ("Verification at a temperature, expected accepted by rule", verification),
    "verification_speed": ("Verification by ratio, against exact", verification_speed),
    "header": ("Reading a header", header_time),
    "footprint": ("Planning memory", footprint_time),
    "first-paint": ("The app, from its start to its first screen", first_paint),
    "escape": ("The app, from Esc to the end of what went on", escape),
    "app-overhead": ("The app, what it costs the engine", app_overhead),
    "smooth": ("The app, how smoothly a fast answer appears", smooth),
}
_BUSY_LOAD = 0.5


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--pairs", type=int, default=4, help="paired runs of each comparison (default 4)")
    parser.add_argument("--tokens", type=int, default=96, help="tokens of each run (default 96)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    if arguments.pairs < 1 or not 8 <= arguments.tokens <= 512:
        parser.error("--pairs must be at least 1, and --tokens between 8 and 512")
    return arguments


async def _run(arguments: argparse.Namespace, folder: Path) -> dict[str, Json]:
    build = build_info()
    cores = read_cores()
    setting = Setting(copy_models(demo_dir()), cores.physical, arguments.pairs, arguments.tokens, folder)
    load = psutil.getloadavg()[0]
    print(f"{cores.physical} physical cores, load {load:.2f}, {build.system_info}")
    if load > _BUSY_LOAD:
        print("Other programs are running: these figures will be wrong.")
    results: dict[str, Json] = {}
    for name in arguments.names or BENCHMARKS:
        title, measure = BENCHMARKS[name]
        started = perf_counter()
        print(f"\n{title} [{name}]", flush=True)
        try:
            outcome = await measure(setting)
            lines, numbers = outcome.lines, outcome.numbers
        except LocalspecError as error:
            lines, numbers = (f"failed: {error.message}", error.hint), {"failure": error.message}
        for line in lines:
            print(f"  {line}")
        elapsed_s = perf_counter() - started
        print(f"  ({elapsed_s:.0f} s)", flush=True)
        results[name] = {**numbers, "elapsed_s": elapsed_s}
    return {
        "schema": 1,
        "n_threads": cores.physical,
        "pairs": arguments.pairs,
        "num_tokens": arguments.tokens,
        "load_before": load,
        "build": {"llama_cpp": build.llama_cpp, "system_info": build.system_info},
        "results": results,
    }


def _main() -> int:
    arguments = _arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="localspec-bench-") as folder:
            document = asyncio.run(_run(arguments, Path(folder)))
    except LocalspecError as error:
        print(f"{error.message} {error.hint}", file=sys.stderr)
        return 1
    print()
    print(json.dumps(document))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
