"""The test hub is taken for the real one by the real client, and goes wrong as told."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from tests.hub.server import TestHub

REPO = "maker/Tiny-GGUF"
DATA = bytes(range(256)) * 40


@pytest.fixture
def tiny(hub: TestHub) -> TestHub:
    """A Hub with one repository."""
    files = {"a.gguf": DATA, "README.md": b"# Tiny"}
    hub.add_repo(REPO, files, base_models=["maker/Tiny"], downloads=7, gguf={"total": 10, "architecture": "llama"})
    return hub


def resolve(hub: TestHub, path: str = "a.gguf") -> str:
    return hf_hub_url(REPO, path, endpoint=hub.url)


def test_the_client_reads_a_listing(tiny: TestHub) -> None:
    info = HfApi().model_info(REPO, files_metadata=True)
    assert info.sha == tiny.repositories[REPO].commit
    assert info.tags is not None and {"gguf", "base_model:maker/Tiny", "license:apache-2.0"} <= set(info.tags)
    siblings = {sibling.rfilename: sibling for sibling in info.siblings or ()}
    assert siblings["a.gguf"].size == len(DATA)
    assert siblings["a.gguf"].lfs is not None and siblings["a.gguf"].lfs.sha256 == hashlib.sha256(DATA).hexdigest()
    assert siblings["README.md"].lfs is None
    assert siblings["README.md"].blob_id == hashlib.sha1(b"blob 6\0# Tiny").hexdigest()


def test_the_client_searches(tiny: TestHub) -> None:
    tiny.add_repo("maker/Other-GGUF", {"b.gguf": b"GGUF"}, downloads=9)
    tiny.add_repo("maker/Tiny", {"model.safetensors": b"no GGUF"}, downloads=99)
    found = list(HfApi().list_models(search="tiny", filter="gguf", limit=5, expand=["downloads", "gguf", "tags"]))
    assert [(model.id, model.downloads) for model in found] == [(REPO, 7)]
    assert found[0].gguf == {"total": 10, "architecture": "llama"}
    everything = [model.id for model in HfApi().list_models(filter="gguf", sort="downloads")]
    assert everything == ["maker/Other-GGUF", REPO]


@pytest.mark.parametrize("is_redirected", [False, True], ids=["one port", "redirected"])
@pytest.mark.parametrize("path", ["a.gguf", "README.md"])
def test_the_client_downloads_into_its_cache(tiny: TestHub, path: str, is_redirected: bool) -> None:
    if is_redirected:
        tiny.fault(redirect=True)
    size = tiny.repositories[REPO].files[path].size
    found = Path(hf_hub_download(REPO, path))
    assert found.read_bytes() == tiny.repositories[REPO].files[path].read(0, size)
    assert found.is_relative_to(tiny.home)
    assert try_to_load_from_cache(REPO, path) == str(found)
    assert tiny.bytes_sent(path) == size
    assert {request.port for request in tiny.requests_for(path, "GET")} == {"cdn" if is_redirected else "hub"}


def test_a_new_version_has_a_new_name_and_the_old_one_remains(tiny: TestHub) -> None:
    old = get_hf_file_metadata(resolve(tiny))
    tiny.replace(REPO, "a.gguf", b"another")
    new = get_hf_file_metadata(resolve(tiny))
    assert (old.etag, old.size) == (hashlib.sha256(DATA).hexdigest(), len(DATA))
    assert (new.etag, new.size) == (hashlib.sha256(b"another").hexdigest(), 7)
    assert old.commit_hash is not None and old.commit_hash != new.commit_hash
    assert Path(hf_hub_download(REPO, "a.gguf", revision=old.commit_hash)).read_bytes() == DATA


def test_who_may_not_read_is_told_as_the_hub_tells_it(tiny: TestHub) -> None:
    tiny.add_repo("maker/Gated", {"a.gguf": DATA}, gated="manual", token_needed="hf_right")
    tiny.add_repo("maker/Private", {"a.gguf": DATA}, token_needed="hf_right")
    assert HfApi().model_info("maker/Gated").gated == "manual"
    refusals: list[tuple[str, str | bool, type[Exception]]] = [
        ("maker/Gated", False, GatedRepoError),
        ("maker/Gated", "hf_wrong", GatedRepoError),
        ("maker/Private", False, RepositoryNotFoundError),
        ("maker/Private", "hf_wrong", RepositoryNotFoundError),
        ("maker/Missing", False, RepositoryNotFoundError),
    ]
    for repo, token, error in refusals:
        with pytest.raises(error):
            get_hf_file_metadata(hf_hub_url(repo, "a.gguf", endpoint=tiny.url), token=token)
    assert get_hf_file_metadata(hf_hub_url("maker/Gated", "a.gguf", endpoint=tiny.url), token="hf_right").etag
    with pytest.raises(RepositoryNotFoundError):
        HfApi().model_info("maker/Private")
    with pytest.raises(RevisionNotFoundError):
        HfApi().model_info(REPO, revision="nightly")
    with pytest.raises(EntryNotFoundError):
        get_hf_file_metadata(resolve(tiny, "b.gguf"))


def test_ranges(tiny: TestHub) -> None:
    def get(value: str, **headers: str) -> httpx2.Response:
        return httpx2.get(resolve(tiny), headers={"Range": value, **headers})

    part = get("bytes=10-19")
    assert (part.status_code, part.content) == (206, DATA[10:20])
    assert part.headers["Content-Range"] == f"bytes 10-19/{len(DATA)}"
    assert get("bytes=10000-").content == DATA[10000:]
    assert get("bytes=-3").content == DATA[-3:]
    assert get("bytes=10-19", **{"If-Range": '"changed"'}).status_code == 200
    beyond = get(f"bytes={len(DATA)}-")
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, f"bytes */{len(DATA)}")
    tiny.fault("a.gguf", ignore_range=True, times=1)
    assert get("bytes=10-19").status_code == 200
    assert get("bytes=10-19").status_code == 206


def test_a_virtual_file_claims_any_size(tiny: TestHub) -> None:
    tiny.add_virtual(REPO, "huge.gguf", 2**50, b"GGUF")
    assert get_hf_file_metadata(resolve(tiny, "huge.gguf")).size == 2**50
    part = httpx2.get(resolve(tiny, "huge.gguf"), headers={"Range": "bytes=2-9"})
    assert part.content == b"UF" + bytes(6)
    assert tiny.bytes_sent("huge.gguf") == 8


def test_a_status_comes_as_often_as_told(tiny: TestHub) -> None:
    tiny.fault("a.gguf", status=429, retry_after=3, times=2)
    answers = [httpx2.get(resolve(tiny)) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [429, 429, 200]
    assert answers[0].headers["Retry-After"] == "3"
    tiny.fault(REPO, status=403, error_code="GatedRepo")
    with pytest.raises(GatedRepoError):
        HfApi().model_info(REPO)
    tiny.heal()
    tiny.fault(REPO, status=500, times=1)
    with pytest.raises(HfHubHTTPError):
        HfApi().model_info(REPO)
    assert HfApi().model_info(REPO).id == REPO


def test_a_cut_closes_the_connection_after_so_many_bytes(tiny: TestHub) -> None:
    tiny.fault("a.gguf", cut_after=5000, times=1)
    got = bytearray()
    with httpx2.stream("GET", resolve(tiny)) as answer, pytest.raises(httpx2.RemoteProtocolError):
        for piece in answer.iter_bytes():
            got += piece
    assert bytes(got) == DATA[:5000]
    assert tiny.bytes_sent("a.gguf") == 5000
    assert httpx2.get(resolve(tiny)).content == DATA


def test_a_flipped_byte_is_wrong_only_where_and_as_often_as_told(tiny: TestHub) -> None:
    tiny.fault("a.gguf", flip_byte=7000, times=1)
    assert httpx2.get(resolve(tiny), headers={"Range": "bytes=0-99"}).content == DATA[:100]
    wrong = httpx2.get(resolve(tiny)).content
    assert [at for at in range(len(DATA)) if wrong[at] != DATA[at]] == [7000]
    assert httpx2.get(resolve(tiny)).content == DATA


def test_a_stalled_answer_ends_with_the_hub(tiny: TestHub) -> None:
    tiny.fault("a.gguf", stall_after=100)
    failures: list[BaseException] = []

    def download() -> None:
        try:
            httpx2.get(resolve(tiny), timeout=30)
        except httpx2.HTTPError as error:
            failures.append(error)

    client = threading.Thread(target=download)
    client.start()
    assert tiny.stalled.wait(10)
    assert tiny.bytes_sent("a.gguf") == 100
    started_s = time.monotonic()
    tiny.close()
    client.join(10)
    assert time.monotonic() - started_s < 10
    assert failures or not client.is_alive()


def test_headers_that_lie(tiny: TestHub) -> None:
    tiny.fault("a.gguf", wrong_etag="f" * 64, linked_size=1, times=1)
    lie = get_hf_file_metadata(resolve(tiny))
    assert (lie.etag, lie.size) == ("f" * 64, 1)
    tiny.fault("a.gguf", no_etag=True, no_commit=True, times=1)
    bare = get_hf_file_metadata(resolve(tiny))
    assert (bare.etag, bare.commit_hash) == (None, None)
    tiny.fault("a.gguf", wrong_length=len(DATA) + 1, times=1)
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(resolve(tiny))
    tiny.fault("a.gguf", content_range="bytes 0-9/10", times=1)
    part = httpx2.get(resolve(tiny), headers={"Range": "bytes=5-14"})
    assert part.headers["Content-Range"] == "bytes 0-9/10"
    tiny.fault("a.gguf", chunked=True, times=1)
    chunked = httpx2.get(resolve(tiny))
    assert (chunked.content, "Content-Length" in chunked.headers) == (DATA, False)
    assert httpx2.get(resolve(tiny)).headers["Content-Length"] == str(len(DATA))


def test_redirects_and_foreign_pages(tiny: TestHub) -> None:
    tiny.fault("a.gguf", redirect=True)
    away = httpx2.get(resolve(tiny))
    assert away.status_code == 302 and tiny.signature in away.headers["Location"]
    assert away.headers["X-Linked-Etag"] == f'"{hashlib.sha256(DATA).hexdigest()}"'
    there = httpx2.get(away.headers["Location"])
    assert there.content == DATA and hashlib.sha256(DATA).hexdigest() not in there.headers["ETag"]
    assert httpx2.get(away.headers["Location"].replace(tiny.signature, "forged")).status_code == 403
    assert httpx2.get(away.headers["Location"], headers={"Authorization": "Bearer hf_x"}).status_code == 400
    tiny.heal()
    tiny.fault(redirect_loop=True)
    with pytest.raises(httpx2.TooManyRedirects):
        httpx2.get(resolve(tiny), follow_redirects=True)
    tiny.heal()
    tiny.fault(html=True)
    assert httpx2.get(f"{tiny.url}/api/models").headers["Content-Type"].startswith("text/html")
    tiny.heal()
    tiny.fault("api/models", body=b"[nonsense")
    assert httpx2.get(f"{tiny.url}/api/models").content == b"[nonsense"


def test_requests_are_on_record_until_forgotten(tiny: TestHub) -> None:
    httpx2.get(resolve(tiny), headers={"X-Mark": "here"})
    (request,) = tiny.requests
    assert (request.method, request.status, request.bytes_sent, request.port) == ("GET", 200, len(DATA), "hub")
    assert request.headers["x-mark"] == "here"
    assert tiny.bytes_sent() == tiny.bytes_sent("a.gguf") == len(DATA)
    assert tiny.bytes_sent("b.gguf") == 0
    tiny.forget()
    assert tiny.requests == ()


def test_subprocesses_find_it_by_their_environment(tiny: TestHub) -> None:
    code = f"from huggingface_hub import hf_hub_download; print(hf_hub_download({REPO!r}, 'README.md'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=tiny.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tiny.home)
    assert all("authorization" not in request.headers for request in tiny.requests)
