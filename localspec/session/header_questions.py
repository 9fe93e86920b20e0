"""What the engine tells of models from their headers alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from localspec.catalog.facts import ModelFacts, facts_of
from localspec.catalog.pairing import PairVerdict
from localspec.engine.events import HeaderRead, PairsChecked
from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import CheckPairs, ReadHeader
from localspec.errors import EngineDiedError, LocalspecError, ModelFileError


async def read_facts(engine: Engine, path: Path) -> ModelFacts:
    """Return what a file's header says of its model.

    Raises:
        LocalspecError: it cannot be read.
    """
    answer = await last_event(engine, ReadHeader(id=engine.next_id(), path=str(path)))
    if not isinstance(answer, HeaderRead):
        raise EngineDiedError("The engine gave another answer than a header.", "Try again.")
    try:
        return facts_of(answer.header)
    except ValueError as error:
        raise ModelFileError(f"{path.name} lists no weights: {error}", "Choose a file that holds a model.") from error


async def ask_verdicts(
    engine: Engine, target: Path, drafts: Sequence[Path]
) -> dict[Path, PairVerdict | LocalspecError]:
    """Return the verdict on each draft, or why there is none.

    All are asked for at once, and if that fails each alone, so that one bad file costs only itself.
    """
    if not drafts:
        return {}
    try:
        return dict(zip(drafts, await _ask(engine, target, drafts), strict=True))
    except LocalspecError as error:
        if len(drafts) == 1:
            return {drafts[0]: error}
    answers: dict[Path, PairVerdict | LocalspecError] = {}
    for draft in drafts:
        answers |= await ask_verdicts(engine, target, [draft])
    return answers


async def _ask(engine: Engine, target: Path, drafts: Sequence[Path]) -> tuple[PairVerdict, ...]:
    request = CheckPairs(engine.next_id(), str(target), tuple(str(draft) for draft in drafts))
    answer = await last_event(engine, request)
    if not isinstance(answer, PairsChecked) or len(answer.verdicts) != len(drafts):
        raise EngineDiedError("The engine gave another answer than verdicts.", "Try again.")
    return answer.verdicts
