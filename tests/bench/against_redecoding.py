"""What keeping the draft's KV cache is worth: ours against llama.cpp's way, on one and the same build."""

from __future__ import annotations

from localspec.engine.drafting.drafter import Drafter
from tests.bench.against_server import N_MAX, Side
from tests.bench.counts import Result, own_rounds
from tests.bench.in_process import InProcessPair
from tests.bench.prompts import mixed
from tests.bench.redecoding import RedecodingDrafter
from tests.bench.setting import Json, Outcome, Setting, alternate


async def against_redecoding(setting: Setting) -> Outcome:
    """Both drafters over the same loaded models, in this process."""
    lines, numbers = [], dict[str, Json]()
    models = setting.models
    pair = InProcessPair(models.target, models.draft, setting.n_ctx, setting.n_threads)
    try:
        prompts = [pair.chat_tokens(conversation[-1].content) for conversation in mixed()]
        for n_max in N_MAX:
            drafters = pair.draft_model_drafter(), RedecodingDrafter(pair.draft)
            ours, theirs = (pair.run(drafter, n_max, prompts[0], setting.num_tokens) for drafter in drafters)
            sides = [_side(pair, drafter, n_max, prompts, setting) for drafter in drafters]
            values, ratios = await alternate(setting.pairs, sides)
            found = Result(ours, own_rounds(theirs), setting.num_tokens).walk
            num_equal = found.num_compared - len(found.partings)
            lines.append(
                f"n_max {n_max}: ours {values[0].words(1)} tokens/s, re-decoding {values[1].words(1)}, "
                f"ratio {ratios[0].words()}; {num_equal} of {found.num_rounds} rounds equal"
            )
            numbers[f"n_max_{n_max}"] = {
                "ours_tps": values[0].json,
                "theirs_tps": values[1].json,
                "ratio": ratios[0].json,
                "rounds_equal": num_equal,
                "rounds": found.num_rounds,
            }
    finally:
        pair.close()
    return Outcome(tuple(lines), numbers)


def _side(pair: InProcessPair, drafter: Drafter, n_max: int, prompts: list[tuple[int, ...]], setting: Setting) -> Side:
    async def measure(number: int) -> float:
        return pair.run(drafter, n_max, prompts[number % len(prompts)], setting.num_tokens).decode_tps

    return measure
