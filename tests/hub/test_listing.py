"""What the Hub's API answers, right and wrong: searches and lists of files."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.failures import TransientHubError
from localspec.catalog.hub.listing import is_safe_path
from localspec.catalog.hub.values import RepoFile
from localspec.errors import DownloadError, HubError
from tests.hub.asking import DATA, REPO, answer, fetch, find
from tests.hub.server import TestHub


async def test_search_finds_gguf_repositories(tiny: TestHub) -> None:
    tiny.add_repo("maker/Other-tiny", {"b.gguf": b""}, gguf={"total": 5, "architecture": "llama"}, downloads=9, likes=2)
    tiny.add_repo("maker/tiny", {"a.safetensors": b""}, downloads=99)
    async with Hub() as client:
        first, second = await client.search("tiny")
        assert await client.search("tiny", limit=1) == (first,)
    assert (first.repo, first.downloads, first.likes, first.architecture, first.num_params) == (
        "maker/Other-tiny",
        9,
        2,
        "llama",
        5,
    )
    assert (second.repo, second.base_models, second.last_modified) == (REPO, ("maker/Tiny",), "2025-03-01")


async def test_a_listing_has_sizes_hashes_and_the_commit(tiny: TestHub) -> None:
    async with Hub() as client:
        listing, file = await find(client)
        assert await client.listing(REPO, listing.commit) == replace(listing, revision=listing.commit)
    assert listing.commit == tiny.repositories[REPO].commit
    assert (file.size_bytes, file.sha256) == (len(DATA), tiny.repositories[REPO].files["a.gguf"].sha256)
    assert (listing.base_models, listing.licence, listing.is_gated) == (("maker/Tiny",), "apache-2.0", False)


BAD_PATHS = [
    "../a.gguf",
    "/etc/a.gguf",
    "x/../../a.gguf",
    "x//a.gguf",
    "./a.gguf",
    "x\\a.gguf",
    "C:a.gguf",
    "C:/a.gguf",
    "a\n.gguf",
    "a\x1b[31m.gguf",
    "a\u202egguf.exe",
    "NUL",
    "con.gguf",
    "x/LPT1.tar/a.gguf",
    "a.gguf ",
    "a.gguf.",
    "x" * 256,
    "é" * 128,
    "\udc80.gguf",
    "a/" * 600 + "a",
    "",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_paths_that_leave_a_folder_or_cannot_be_written_are_known(path: str) -> None:
    assert not is_safe_path(path)


async def test_files_with_bad_paths_are_left_out_of_a_listing(hub: TestHub) -> None:
    hub.add_repo(REPO, {path: b"x" for path in [*BAD_PATHS, "Q8_0/a b-é.gguf"]})
    async with Hub() as client:
        listing = await client.listing(REPO)
        assert [file.path for file in listing.files] == ["Q8_0/a b-é.gguf"]
        assert (listing.num_unsafe, listing.num_surplus) == (len(BAD_PATHS), 0)
        assert await fetch(client, await client.locate(listing, listing.files[0])) == b"x"
        with pytest.raises(DownloadError, match="leave the folder"):
            await client.locate(listing, RepoFile("../x", 1, ""))


async def test_numbers_that_nothing_real_has_count_as_unknown(hub: TestHub) -> None:
    huge = 10**400
    stored = {"sha256": "b" * 64, "size": huge, "pointerSize": 1}
    siblings = [
        {"rfilename": "a.gguf", "size": huge, "lfs": stored},
        {"rfilename": "b.gguf", "size": -5},
        {"rfilename": "c.gguf", "size": (1 << 41) + 1},
        {"rfilename": "d.gguf", "size": 1 << 41},
    ]
    async with Hub() as client:
        answer(hub, {"id": REPO, "sha": "a" * 40, "siblings": siblings, "downloads": huge})
        listing = await client.listing(REPO)
        assert listing.downloads == 0 and [file.size_bytes for file in listing.files] == [0, 0, 0, 1 << 41]
        hub.heal()
        answer(hub, [{"id": REPO, "downloads": huge, "likes": -huge, "gguf": {"total": huge}}])
        (hit,) = await client.search("x")
        assert (hit.downloads, hit.likes, hit.num_params) == (0, 0, 0)


@pytest.mark.parametrize(
    "bad",
    [None, 5, [], {}, {"id": 3}, {"id": "\x1b]0;x/y"}, {"id": "../x"}],
)
async def test_one_bad_entry_of_a_search_hides_no_other(hub: TestHub, bad: object) -> None:
    answer(hub, [{"id": "maker/a", "lastModified": "garbage", "cardData": [1], "tags": 5}, bad, {"id": "maker/b"}])
    async with Hub() as client:
        assert [hit.repo for hit in await client.search("x")] == ["maker/a", "maker/b"]


async def test_of_too_many_files_the_models_stay(hub: TestHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.catalog.hub.listing._MAX_FILES", 3)
    hub.add_repo(REPO, {"README.md": b"x", "x.bin": b"x", "a.gguf": b"x", "b.gguf": b"x", "z.GGUF": b"x"})
    async with Hub() as client:
        listing = await client.listing(REPO)
    assert {file.path for file in listing.files} == {"a.gguf", "b.gguf", "z.GGUF"}
    assert listing.num_surplus == 2


@pytest.mark.parametrize("packing", ["gzip", ""])
@pytest.mark.parametrize("status", [200, 302, 404])
async def test_an_answer_without_end_is_not_taken_in(hub: TestHub, packing: str, status: int) -> None:
    text = b" " * (40 << 20) + b"{}"
    body = gzip.compress(text, 1) if packing else text
    headers = {"Content-Encoding": packing} if packing else {}
    # For no longer than one answer: whoever follows the redirect gets the right one.
    hub.add_repo(REPO, {"a.gguf": b"x"})
    location = {"Location": f"/api/models/{REPO}/revision/main"} if status == 302 else {}
    hub.fault(body=body, status=status, headers=headers | location, times=1)
    async with Hub() as client:
        tracemalloc.start()
        try:
            if status == 302:
                assert (await client.listing(REPO)).files
            else:
                with pytest.raises(HubError, match="longer than 16 MiB" if status == 200 else "no repository"):
                    await client.listing(REPO)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 48 << 20


async def test_packed_answers_are_unpacked_and_packed_nonsense_is_not_the_hubs(tiny: TestHub) -> None:
    document = json.dumps([{"id": "maker/a"}] * 3).encode()
    async with Hub() as client:
        for body, packing in ((gzip.compress(document), "gzip"), (document, "identity")):
            tiny.heal()
            tiny.fault(body=body, headers={"Content-Encoding": packing})
            assert len(await client.search("x")) == 3
        for body, packing in ((b"xxxx", "gzip"), (document, "br"), (gzip.compress(document)[:20], "gzip")):
            tiny.heal()
            tiny.fault(body=body, headers={"Content-Encoding": packing})
            with pytest.raises(HubError, match="not the Hub's"):
                await client.search("x")


async def test_an_answer_that_drips_is_given_up(tiny: TestHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.catalog.hub.api.DEADLINE_S", -1.0)
    async with Hub() as client:
        with pytest.raises(TransientHubError, match="did not answer within"):
            await client.listing(REPO)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.just("maker/Base"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


_FIELDS = ["id", "sha", "siblings", "tags", "gated", "downloads", "likes", "cardData", "gguf", "lastModified", "config"]
_FIELDS += ["baseModels", "createdAt", "inferenceProviderMapping", "safetensors"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=_VALUES | st.dictionaries(st.sampled_from(_FIELDS), _VALUES, min_size=1))
def test_whatever_the_api_answers_it_is_a_value_or_a_failure_in_words(tiny: TestHub, document: object) -> None:
    tiny.heal()
    answer(tiny, document)

    async def ask() -> None:
        async with Hub() as client:
            try:
                listing = await client.listing(REPO)
                assert len(listing.commit) == 40
            except HubError as error:
                assert error.hint
            try:
                for hit in await client.search("x"):
                    assert "/" in hit.repo
            except HubError as error:
                assert error.hint

    asyncio.run(ask())
