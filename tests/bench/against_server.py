"""Speed against llama.cpp's own server and, where the build should not matter, against this build's bare loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, closing

from localspec.engine.values import SpeculationSettings
from tests.bench.bare_loop import BareLoop
from tests.bench.own_engine import OwnEngine, own_engine, speed
from tests.bench.prompts import mixed
from tests.bench.setting import Json, Outcome, Setting, Spread, alternate
from tests.reference_server import ReferenceServer, ServerSettings, ServerUnavailableError

Side = Callable[[int], Awaitable[float]]
Prompts = Sequence[tuple[int, ...]]

N_MAX = (2, 4, 8)
_BUILDS = "The server is a prebuilt, generic AVX2 build, and ours is built for this machine."


async def speculation_off(setting: Setting) -> Outcome:
    """Plain decoding: ours through the worker, the bare loop of the same build, and the server."""
    off = SpeculationSettings("off")
    async with own_engine(setting, "off") as engine:
        prompts = await _prompt_tokens(engine)
        with ExitStack() as stack:
            bare = stack.enter_context(closing(BareLoop(setting)))

            async def bare_side(pair: int) -> float:
                return bare.decode_tps(prompts[pair % len(prompts)], setting.num_tokens)

            sides = [_own_side(engine, off, prompts, setting), bare_side]
            try:
                server = stack.enter_context(
                    ReferenceServer(ServerSettings(str(setting.models.target), setting.n_ctx, setting.n_threads))
                )
                sides.append(_server_side(server, prompts, setting))
                note = f"{_BUILDS} Its CPU features: {server.system_info}"
            except ServerUnavailableError as error:
                note = f"No comparison with the server: {error}."
            await _warm_up(sides)
            values, ratios = await alternate(setting.pairs, sides)
    to_bare = values[0].median / values[1].median
    lines = [f"ours {values[0].words(1)} tokens/s, bare loop of our build {values[1].words(1)}"]
    lines.append(f"ours / bare loop, of the medians: {to_bare:.3f}")
    numbers: dict[str, Json] = {"ours_tps": values[0].json, "bare_loop_tps": values[1].json, "ratio_to_bare": to_bare}
    if len(sides) > 2:
        lines.append(f"server {values[2].words(1)}, ours / server {ratios[0].words(3)}, wanted 0.98")
        numbers |= {"server_tps": values[2].json, "ratio_to_server": ratios[0].json}
    return Outcome((*lines, note), numbers)


async def draft_on(setting: Setting) -> Outcome:
    """With the draft model: ours through the worker, and the server's `draft-simple`, at equal n_max."""
    lines, numbers = [], dict[str, Json]()
    async with own_engine(setting, "draft") as engine:
        prompts = await _prompt_tokens(engine)
        for n_max in N_MAX:
            files = str(setting.models.target), str(setting.models.draft)
            settings = ServerSettings(files[0], setting.n_ctx, setting.n_threads, files[1], n_max)
            try:
                with ReferenceServer(settings) as server:
                    sides = [
                        _own_side(engine, SpeculationSettings("draft", n_max=n_max), prompts, setting),
                        _server_side(server, prompts, setting),
                    ]
                    await _warm_up(sides)
                    values, ratios = await alternate(setting.pairs, sides)
            except ServerUnavailableError as error:
                return Outcome((f"No comparison with the server: {error}.",), {"unavailable": str(error)})
            lines.append(
                f"n_max {n_max}: ours {values[0].words(1)} tokens/s, server {values[1].words(1)}, "
                f"ratio {ratios[0].words()}, wanted 1.2"
            )
            numbers[f"n_max_{n_max}"] = _numbers(values, ratios)
    lines.append(f"{_BUILDS} See `redecoding` for the algorithm's share.")
    return Outcome(tuple(lines), numbers)


def _numbers(values: Sequence[Spread], ratios: Sequence[Spread]) -> Json:
    return {"ours_tps": values[0].json, "theirs_tps": values[1].json, "ratio": ratios[0].json}


async def _prompt_tokens(engine: OwnEngine) -> Prompts:
    """Return the prompts' token ids; the runs that find them also warm the worker up."""
    off = SpeculationSettings("off")
    return [(await engine.run(off, conversation, 8)).prompt_tokens for conversation in mixed()]


def _own_side(engine: OwnEngine, speculation: SpeculationSettings, prompts: Prompts, setting: Setting) -> Side:
    async def measure(pair: int) -> float:
        return speed(await engine.run(speculation, prompts[pair % len(prompts)], setting.num_tokens))

    return measure


def _server_side(server: ReferenceServer, prompts: Prompts, setting: Setting) -> Side:
    async def measure(pair: int) -> float:
        answer = server.complete(prompts[pair % len(prompts)], setting.num_tokens)
        if answer.decode_tps is None:
            raise ValueError("the server emitted too few tokens")
        return answer.decode_tps

    return measure


async def _warm_up(sides: Sequence[Side]) -> None:
    for side in sides:
        await side(0)
