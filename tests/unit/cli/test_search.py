from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from localspec.catalog.hub.values import Offer, RepoFile
from localspec.cli.main import run
from localspec.cli.screen import DASH
from localspec.cli.search import drafts_text, search_hub, size_span
from localspec.cli.services import Services
from localspec.errors import AccessError, HubError, OfflineError
from tests.candidate_kit import MIB, FakeHub, as_hub, curated, hit
from tests.scripted_engine import EchoEngine


class OpenHub(FakeHub):
    """A made-up Hub that is opened and closed as the real one."""

    is_closed = False

    async def __aenter__(self) -> OpenHub:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.is_closed = True


def search(hub: OpenHub, *arguments: str) -> int:
    return run(["search", *arguments], Services(EchoEngine, lambda: as_hub(hub)))


def offer(mib: int, kind: Any = "model") -> Offer:
    return Offer("Q4_0", kind, (RepoFile("a.gguf", mib * MIB, ""),))


def test_sizes_from_the_smallest_to_the_greatest() -> None:
    assert size_span([]) == DASH
    assert size_span([offer(87)]) == "87 MiB"
    assert size_span([offer(94), offer(87)]) == "87 to 94 MiB"
    assert size_span([offer(87), offer(1, "eagle3")]) == "87 MiB"


def test_known_drafts_in_a_few_words() -> None:
    assert drafts_text([]) == ""
    assert drafts_text([curated("", "ngram")]) == ""
    pairs = [curated("o/a"), curated("", draft_base="o/b"), curated("o/e", "eagle3"), curated("o/d")]
    assert drafts_text(pairs[:3]) == "o/a, o/b, o/e (eagle3)"
    assert drafts_text(pairs) == "o/a, o/b, o/e (eagle3) …"
    assert drafts_text([curated("", "mtp")]) == "its own mtp heads (mtp)"


def test_a_repository_that_cannot_be_listed_is_still_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    hub = OpenHub([hit("o/a-GGUF"), hit("o/b-GGUF")], {"o/a-GGUF": AccessError("Not for you.", "Log in.")})
    assert search(hub, "words", "--json") == 0
    captured = capsys.readouterr()
    first, second = json.loads(captured.out)["repos"]
    assert (first["failure"], first["offers"]) == ("Not for you.", [])
    assert second["failure"] is None and len(second["offers"]) == 2
    assert "not told" in captured.err
    assert hub.is_closed


@pytest.mark.parametrize(
    ("repos", "params"),
    [
        (["bartowski/SmolLM2-1.7B-Instruct-GGUF", "bartowski/SmolLM2-135M-Instruct-GGUF"], 135_000_000),
        (["bartowski/Meta-Llama-3.1-70B-Instruct-GGUF"], 0),
        (["a-very-long-name-of-somebody/DeepSeek-R1-Distill-Qwen-32B-abliterated-i1-GGUF"], 32_000_000_000),
    ],
)
def test_the_table_fits_80_columns(
    repos: Sequence[str], params: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert search(OpenHub([replace(hit(repo, 4711), num_params=params) for repo in repos]), "x") == 0
    table = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert max(map(len, table)) <= 80
    for repo in repos:
        # Whole on a line, or broken behind the owner at the worst.
        owner, name = repo.split("/")
        beginnings = [line.split()[0] for line in table]
        assert repo in beginnings or (f"{owner}/" in beginnings and name in beginnings)


def test_no_answer_says_what_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    assert search(OpenHub(), "[/]", "\x1b[31m") == 0
    out = capsys.readouterr().out
    assert "The Hub has no GGUF model for '[/] " in out and "\x1b" not in out


def test_a_failed_search_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (HubError("The Hub is odd.", "Wait."), OfflineError("No route.", "Plug in.")):
        hub = OpenHub(failures={"search": error})
        assert search(hub, "x", "--json") == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert f"error: {error.message}\nhint: {error.hint}\n" in captured.err
        assert hub.is_closed


async def test_no_more_than_a_few_are_listed_at_once() -> None:
    class Busy(OpenHub):
        num_now = most = 0

        async def listing(self, repo: str, revision: str = "main") -> Any:
            self.num_now += 1
            self.most = max(self.most, self.num_now)
            await asyncio.sleep(0.001)
            self.num_now -= 1
            return await super().listing(repo, revision)

    hub = Busy([hit(f"o/m{index}-GGUF") for index in range(12)])
    steps: list[float] = []
    answers = await search_hub(cast("Any", hub), "x", 50, lambda text, fraction, figure: steps.append(fraction))
    assert [answer.hit.repo for answer in answers] == [one.repo for one in hub.hits]
    assert 1 < hub.most <= 4
    assert steps == sorted(steps) and steps[-1] == 1.0
