"""Headers of files on the Hub: few bytes, few requests, and a sparse file that llama.cpp takes for the model."""

from __future__ import annotations

import asyncio
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from localspec.catalog.hub import remote_header
from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.failures import TransientHubError
from localspec.catalog.hub.offers import choose_offer
from localspec.catalog.hub.remote_header import SPARE_BYTES, fetch_header
from localspec.catalog.progress import TransferProgress
from localspec.engine.llama.header import read_header
from localspec.errors import AccessError, DiskFullError, HubError, ModelFileError
from tests.hub.server import TestHub
from tests.tiny_gguf import write_llama

REPO = "maker/Model-GGUF"
GIB = 1 << 30
TOKEN = "hf_SECRETtokenSECRET"


def text(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def array(key: bytes, kind: int, items: list[bytes]) -> bytes:
    return text(key) + struct.pack("<IIQ", 9, kind, len(items)) + b"".join(items)


def row(index: int) -> bytes:
    return text(b"blk.%d.ffn_down.weight" % index) + struct.pack("<IQQIQ", 2, 8, 8, 0, 256 * index)


def header(num_tokens: int, num_merges: int, num_tensors: int) -> bytes:
    """A header such as models have; lengths of texts as in byte-pair vocabularies."""
    chance = random.Random(num_tokens)
    entries = [
        text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama"),
        array(b"tokenizer.ggml.tokens", 8, [text(b"t" * chance.randint(1, 12)) for _ in range(num_tokens)]),
        array(b"tokenizer.ggml.token_type", 5, [struct.pack("<i", 1)] * num_tokens),
        array(b"tokenizer.ggml.merges", 8, [text(b"m" * chance.randint(3, 16)) for _ in range(num_merges)]),
        text(b"tokenizer.chat_template") + struct.pack("<I", 8) + text(b"{" * 5000),
    ]
    rows = [row(index) for index in range(num_tensors)]
    return b"GGUF" + struct.pack("<IQQ", 3, num_tensors, len(entries)) + b"".join(entries + rows)


BIG = header(262_144, 262_144, 700)


def start_of(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        return file.read(count)


async def fetched(folder: Path, quantisation: str = "", token: str | None = None) -> Path:
    async with Hub(token=token) as client:
        listing = await client.listing(REPO)
        return await fetch_header(client, listing, choose_offer(listing, quantisation), folder)


@pytest.mark.parametrize("redirect", [False, True])
@pytest.mark.parametrize("head", [header(0, 0, 1), header(300, 100, 20), header(60_000, 0, 300), BIG])
async def test_little_more_than_the_header_is_fetched(
    hub: TestHub, tmp_path: Path, head: bytes, redirect: bool
) -> None:
    hub.add_repo(REPO)
    hub.add_virtual(REPO, "m-Q4_K_M.gguf", 40 * GIB, head)
    hub.fault("m-Q4_K_M.gguf", redirect=redirect)
    path = await fetched(tmp_path)
    assert hub.bytes_sent("m-Q4_K_M.gguf") <= len(head) + SPARE_BYTES
    assert len([request for request in hub.requests_for("m-Q4_K_M.gguf", "GET") if request.status == 206]) <= 8
    status = path.stat()
    assert status.st_size == 40 * GIB
    assert status.st_blocks * 512 <= len(head) + (1 << 16)
    assert start_of(path, len(head) + 100) == head + bytes(100)


async def test_a_split_models_headers_lie_in_one_folder(hub: TestHub, tmp_path: Path) -> None:
    hub.add_repo(REPO)
    heads = [BIG] + [b"GGUF" + struct.pack("<IQQ", 3, 60, 0) + b"".join(row(i) for i in range(60))] * 9
    names = [f"Q8_0/m-Q8_0-{index:05d}-of-00010.gguf" for index in range(1, 11)]
    for name, head in zip(names, heads, strict=True):
        hub.add_virtual(REPO, name, 9 * GIB, head)
    path = await fetched(tmp_path)
    found = sorted(found.name for found in path.parent.iterdir() if found.suffix == ".gguf")
    assert found == [name.removeprefix("Q8_0/") for name in names]
    assert path.name == "m-Q8_0-00001-of-00010.gguf"
    sent = sum(request.bytes_sent for request in hub.requests if "/resolve/" in request.path)
    assert sent <= sum(map(len, heads)) + SPARE_BYTES
    assert start_of(path.with_name("m-Q8_0-00007-of-00010.gguf"), len(heads[6])) == heads[6]


@pytest.mark.parametrize("shards", [1, 2])
async def test_the_engines_reader_takes_the_sparse_file_for_the_model(
    hub: TestHub, tmp_path: Path, shards: int
) -> None:
    (tmp_path / "made").mkdir()
    made = write_llama(tmp_path / "made" / "tiny-F32.gguf", shards=shards)
    files: dict[str, bytes | Path] = {path.name: path for path in made.parent.iterdir()}
    hub.add_repo(REPO, files)
    path = await fetched(tmp_path / "headers")
    local, remote = read_header(str(made), with_tensors=True), read_header(str(path), with_tensors=True)
    assert remote.tensors == local.tensors and remote.tensors
    assert remote.vocabulary_fingerprint == local.vocabulary_fingerprint
    assert remote.file_bytes == local.file_bytes


async def test_what_is_there_is_used_without_a_request(hub: TestHub, tmp_path: Path) -> None:
    hub.add_repo(REPO, {"m-F16.gguf": header(300, 9, 3) + bytes(9000)})
    async with Hub() as client:
        listing = await client.listing(REPO)
        offer = choose_offer(listing, "")
        first = await fetch_header(client, listing, offer, tmp_path)
        hub.forget()
        assert await fetch_header(client, listing, offer, tmp_path) == first
        assert not hub.requests
    hub.replace(REPO, "m-F16.gguf", header(300, 9, 4) + bytes(9000))
    assert await fetched(tmp_path) != first
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in (".gguf", ".seal")]


def zeros(path: Path) -> None:
    size = path.stat().st_size
    path.write_bytes(b"")
    os.truncate(path, size)


def one_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def shorter(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").write_text("x")


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def no_seal(path: Path) -> None:
    (seal,) = path.parent.glob(".*.seal")
    seal.unlink()


def pipe_for_seal(path: Path) -> None:
    (seal,) = path.parent.glob(".*.seal")
    pipe(seal)


def folder_for_seal(path: Path) -> None:
    (seal,) = path.parent.glob(".*.seal")
    folder(seal)


@pytest.mark.parametrize(
    "damage", [zeros, one_bit, shorter, folder, link, pipe, no_seal, pipe_for_seal, folder_for_seal]
)
async def test_a_damaged_header_is_fetched_again_once(
    hub: TestHub, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    head = header(300, 9, 3)
    hub.add_repo(REPO, {"m-F16.gguf": head + bytes(9000)})
    path = await fetched(tmp_path)
    damage(path)
    assert await fetched(tmp_path) == path
    assert path.is_file() and not path.is_symlink() and start_of(path, len(head)) == head
    hub.forget()
    assert await fetched(tmp_path) == path
    assert not hub.requests_for("m-F16.gguf")


async def test_a_header_that_drips_is_given_up(hub: TestHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.catalog.hub.remote_header._GRACE_S", 0.2)
    monkeypatch.setattr("localspec.catalog.hub.remote_header._FILE_S", 0.0)
    hub.add_repo(REPO, {"m-F16.gguf": header(3000, 9, 3) + bytes(9000)})
    hub.fault("m-F16.gguf", method="GET", bytes_per_s=1000)
    with pytest.raises(TransientHubError, match="comes too slowly"):
        await fetched(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


async def test_whoever_sends_quickly_enough_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    moments: list[float] = []

    class Limit:
        def reschedule(self, moment: float) -> None:
            moments.append(moment)

    monkeypatch.setattr(remote_header, "_LONGEST_S", 100.0)
    patience = remote_header._Patience(cast("asyncio.Timeout", Limit()), 10)
    for _ in range(4):
        patience.note(16 << 10)
    patience.note(1 << 30)
    begun = moments[0] - 40.0
    assert [moment - begun for moment in moments] == pytest.approx([40.0, 42.0, 44.0, 46.0, 48.0, 100.0])


async def test_progress_is_told(hub: TestHub, tmp_path: Path) -> None:
    hub.add_repo(REPO)
    hub.add_virtual(REPO, "m-F16.gguf", GIB, BIG)
    told: list[TransferProgress] = []
    async with Hub() as client:
        listing = await client.listing(REPO)
        await fetch_header(client, listing, choose_offer(listing, ""), tmp_path, told.append)
    assert [each.done_bytes for each in told] == sorted(each.done_bytes for each in told)
    assert told[-1].done_bytes >= len(BIG) and told[-1].name == "m-F16.gguf"
    assert all(0 < each.done_bytes <= each.total_bytes for each in told)


async def test_a_gated_header_needs_a_token(hub: TestHub, tmp_path: Path) -> None:
    hub.add_repo(REPO, {"m-F16.gguf": header(9, 9, 9) + bytes(5000)}, gated="manual", token_needed=TOKEN)
    with pytest.raises(AccessError, match="accepted its terms"):
        await fetched(tmp_path)
    assert (await fetched(tmp_path, token=TOKEN)).is_file()


async def test_a_server_that_ignores_ranges_is_broken_off(hub: TestHub, tmp_path: Path) -> None:
    head = header(60_000, 60_000, 300)
    hub.add_repo(REPO)
    hub.add_virtual(REPO, "m-F16.gguf", GIB, head)
    hub.fault("m-F16.gguf", ignore_range=True)
    path = await fetched(tmp_path)
    assert path.stat().st_size == GIB and start_of(path, len(head)) == head
    (get,) = hub.requests_for("m-F16.gguf", "GET")
    # What the sockets between the two hold was sent too; a gigabyte was not.
    assert get.bytes_sent < len(head) + 64 * SPARE_BYTES


async def test_a_connection_that_is_cut_is_taken_up_where_it_broke(hub: TestHub, tmp_path: Path) -> None:
    hub.add_repo(REPO)
    hub.add_virtual(REPO, "m-F16.gguf", GIB, BIG)
    hub.fault("m-F16.gguf", cut_after=300_000, times=3)
    path = await fetched(tmp_path)
    assert start_of(path, len(BIG)) == BIG
    assert hub.bytes_sent("m-F16.gguf") <= len(BIG) + SPARE_BYTES


async def test_a_server_that_always_cuts_is_given_up(hub: TestHub, tmp_path: Path) -> None:
    hub.add_repo(REPO)
    hub.add_virtual(REPO, "m-F16.gguf", GIB, BIG)
    hub.fault("m-F16.gguf", cut_after=0)
    with pytest.raises(TransientHubError, match="broke off"):
        await fetched(tmp_path)
    hub.heal()
    hub.fault("m-F16.gguf", cut_after=1)
    with pytest.raises(TransientHubError, match="in crumbs"):
        await fetched(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


ENDLESS = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 10**6)
WHOLE = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text(b"k") + struct.pack("<IQ", 8, 30 * GIB)
MANY = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text(b"k") + struct.pack("<IIQ", 9, 8, 2**62)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (WHOLE, "metadata goes on beyond 48 MiB"),
        (MANY, "too long to be true"),
        (ENDLESS + text(b"t" * (1 << 26)), "goes on beyond 48 MiB"),
        (b"<!DOCTYPE html><html>", "is a web page"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**40, 1), "claims 1099511627776 tensors"),
        (b"", "not a GGUF file"),
    ],
)
async def test_a_hostile_header_costs_little_and_is_named(
    hub: TestHub, tmp_path: Path, head: bytes, words: str
) -> None:
    hub.add_repo(REPO)
    hub.add_virtual(REPO, "m-F16.gguf", 40 * GIB, head)
    with pytest.raises(ModelFileError, match=words) as caught:
        await fetched(tmp_path)
    assert f"{REPO}/m-F16.gguf" in caught.value.message
    assert hub.bytes_sent("m-F16.gguf") <= SPARE_BYTES
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


async def test_a_petabyte_is_refused_before_anything_is_read(hub: TestHub, tmp_path: Path) -> None:
    hub.add_repo(REPO)
    hub.add_virtual(REPO, "m-F16.gguf", 10**15, BIG)
    with pytest.raises(HubError, match="claims 1000000000000000 bytes"):
        await fetched(tmp_path)
    assert hub.bytes_sent("m-F16.gguf") == 0


async def test_a_size_that_the_file_system_refuses_is_said(
    hub: TestHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(27, "File too large")

    hub.add_repo(REPO)
    hub.add_virtual(REPO, "m-F16.gguf", 40 * GIB, header(9, 9, 9))
    monkeypatch.setattr("localspec.catalog.hub.remote_header.extend_sparse", refuse)
    with pytest.raises(HubError, match="more than a file in"):
        await fetched(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


async def test_a_full_disk_is_said(hub: TestHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    hub.add_repo(REPO, {"m-F16.gguf": header(9, 9, 9) + bytes(9000)})
    monkeypatch.setattr("localspec.catalog.hub.remote_header.extend_sparse", refuse)
    with pytest.raises(DiskFullError, match="no room"):
        await fetched(tmp_path)


async def test_cancelling_leaves_nothing(hub: TestHub, tmp_path: Path) -> None:
    hub.add_repo(REPO)
    hub.add_virtual(REPO, "m-F16.gguf", GIB, BIG)
    hub.fault("m-F16.gguf", stall_after=100_000)
    task = asyncio.create_task(fetched(tmp_path))
    while not hub.stalled.is_set():
        await asyncio.sleep(0.005)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=5)
    assert done and task.cancelled() and not hub.is_released
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
