"""Fetching, using, carrying and removing models by commands, with everything real but the Hub."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.session.figures import bytes_text
from tests.hub.commanding import (
    DRAFT,
    DRAFT_FILE,
    FOREIGN,
    FOREIGN_FILE,
    MIB,
    TARGET,
    TARGET_FILE,
    CommandLine,
    Files,
    add_models,
    is_spared,
)
from tests.hub.downloading import cache_of
from tests.hub.server import TestHub

ROOT = Path(__file__).parents[2]
BENCH = ("--pairs", "1", "--max-tokens", "4", "--n-ctx", "256", "--threads", "1", "--workload", "chat")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def in_cache(hub: TestHub) -> list[str]:
    """Return the files of the cache's snapshots."""
    return sorted(path.name for path in cache_of(hub).glob("models--*/snapshots/**/*.gguf"))


def test_pull_finds_a_draft_and_both_work_offline(
    hub: TestHub, files: Files, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_models(hub, files)
    document = command("pull", TARGET, "--yes", "--json").document
    assert [(model["role"], model["name"]) for model in document["models"]] == [
        ("target", f"{TARGET}:F32"),
        ("draft", f"{DRAFT}:F32"),
    ]
    assert document["verdict"]["verdict"] in ("PAIR", "PAIR_WITH_NOTE")
    target, draft = (Path(model["path"]) for model in document["models"])
    assert target.read_bytes() == files.target.read_bytes() and draft.read_bytes() == files.draft.read_bytes()
    assert document["models"][0]["fetched_bytes"] == files.target.stat().st_size
    hub.forget()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    listed = command("models", "--json").document["models"]
    assert {(model["name"], model["place"]) for model in listed} == {
        (f"{TARGET}:F32", "hugging face"),
        (f"{DRAFT}:F32", "hugging face"),
    }
    bench = command("bench", f"{TARGET}:F32", "--draft", DRAFT, "--method", "draft", *BENCH, "--json")
    assert bench.document["workloads"][0]["arms"][1]["speculation"] == "on"
    chat = command("chat", TARGET, "--max-tokens", "4", "--n-ctx", "256", "--threads", "1", stdin="Hello\n")
    assert chat.code == 0, chat.err
    assert hub.requests == ()


def test_a_second_pull_fetches_nothing(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    assert command("pull", TARGET, "--draft", DRAFT, "--yes").code == 0
    hub.forget()
    done = command("pull", TARGET, "--draft", DRAFT)
    assert done.code == 0, done.err
    assert done.out.count("all here") == 2
    assert hub.bytes_sent(TARGET_FILE) <= MIB
    # What is here already may be found as the draft, too.
    done = command("pull", TARGET)
    assert f"The draft is here already: {DRAFT}:F32." in done.out
    assert f"localspec bench {TARGET}:F32 --draft {DRAFT}:F32" in done.out
    assert hub.bytes_sent(TARGET_FILE) <= MIB


def test_pull_without_a_draft(hub: TestHub, files: Files, command: CommandLine) -> None:
    hub.add_repo(TARGET, {TARGET_FILE: files.target})
    done = command("pull", TARGET, "--yes")
    assert done.code == 0, done.err
    assert "No draft was found for it" in done.out
    assert f"localspec bench {TARGET}:F32 --method ngram" in done.out
    add_models(hub, files)
    document = command("pull", TARGET, "--draft", "none", "--json").document
    assert [model["role"] for model in document["models"]] == ["target"]
    assert (document["verdict"], document["draft_here"]) == (None, None)
    assert hub.requests_for(DRAFT_FILE) == ()


def test_no_pair_is_refused_unless_somebody_insists(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    failed = command("pull", TARGET, "--draft", FOREIGN, "--yes").fails()
    assert f"{FOREIGN}:F32 cannot draft for {TARGET}:F32: " in failed.err
    assert "Nothing was fetched." in failed.err
    assert is_spared(hub) and in_cache(hub) == []
    done = command("pull", TARGET, "--draft", FOREIGN, "--yes", "--force")
    assert done.code == 0, done.err
    assert in_cache(hub) == [FOREIGN_FILE, TARGET_FILE]


def test_the_person_is_asked_first(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    done = command("pull", TARGET, typed="n\n")
    assert done.code == 1
    assert "Still to come" in done.out and f"{DRAFT}:F32" in done.out
    assert "Fetch 1" in done.err and "Nothing was fetched." in done.err
    assert is_spared(hub) and in_cache(hub) == []
    assert command("pull", TARGET, typed="").code == 130
    done = command("pull", TARGET, "--json", typed="\n")
    assert done.out.startswith("{") and len(done.document["models"]) == 2
    assert in_cache(hub) == [DRAFT_FILE, TARGET_FILE]


def test_pull_of_what_is_not_there(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    assert f"{TARGET} has no Q2_K." in command("pull", f"{TARGET}:Q2_K").fails().err
    assert "no repository maker/Nothing" in command("pull", TARGET, "--draft", "maker/Nothing").fails(1).err
    assert "no repository on the Hub" in command("pull", TARGET, "--draft", "nothing").fails().err
    assert in_cache(hub) == []


def test_a_file_that_comes_out_wrong_gets_no_name(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    hub.fault(TARGET_FILE, method="GET", flip_byte=9 * MIB)
    command("pull", TARGET, "--draft", "none", "--yes").fails(1)
    assert in_cache(hub) == []


@contextlib.contextmanager
def pulling(hub: TestHub, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Pull the target in a process of its own, until it has got some of it and waits for the rest."""
    hub.fault(TARGET_FILE, method="GET", stall_after=5 * MIB, after=0)
    process = subprocess.Popen(
        [sys.executable, "-m", "localspec", "pull", TARGET, "--draft", "none", "--yes", *options],
        cwd=ROOT,
        env=hub.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while process.poll() is None and (not (left := partials(hub)) or left[0].stat().st_size < 5 * MIB):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.communicate()


def partials(hub: TestHub) -> list[Path]:
    return list(cache_of(hub).glob("models--*/blobs/*.localspec.partial"))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals on Windows")
@pytest.mark.parametrize("ending", ["SIGINT", "SIGKILL"])
def test_what_has_come_is_kept_and_the_rest_is_fetched(
    ending: str, hub: TestHub, files: Files, command: CommandLine
) -> None:
    add_models(hub, files)
    with pulling(hub) as process:
        process.send_signal(getattr(signal, ending))
        _, err = process.communicate(timeout=30)
    if ending == "SIGINT":
        assert process.returncode == 130
        assert "the same command goes on with it" in err and err.endswith("Interrupted.\n")
    else:
        assert process.returncode == -signal.SIGKILL
    assert "Traceback" not in err
    [partial] = partials(hub)
    assert partial.stat().st_size == 5 * MIB
    done = command("models")
    assert "1 download broken off, 5.0 MiB:" in done.out and f"{TARGET} {TARGET_FILE}: 5.0 MiB of" in done.out
    [left] = command("models", "--json").document["partials"]
    assert (left["repo"], left["have_bytes"], left["is_resumable"]) == (TARGET, 5 * MIB, True)
    hub.heal()
    hub.forget()
    document = command("pull", TARGET, "--draft", "none", "--yes", "--json").document
    rest = files.target.stat().st_size - 5 * MIB
    assert document["models"][0]["fetched_bytes"] == rest
    # The header is kept, too.
    assert hub.bytes_sent(TARGET_FILE) == rest
    assert Path(document["models"][0]["path"]).read_bytes() == files.target.read_bytes()
    assert partials(hub) == []
    assert "broken off" not in command("models").out


def test_what_is_here_needs_no_hub(
    hub: TestHub, files: Files, command: CommandLine, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_models(hub, files)
    assert command("pull", TARGET, "--yes").code == 0
    hub.close()
    for reference in (TARGET, f"{TARGET}:F32"):
        done = command("pull", reference)
        assert done.code == 0 and done.out == f"here already: {TARGET}:F32\n"
    document = command("pull", TARGET, "--draft", DRAFT, "--json").document
    assert [(model["role"], model["name"], model["fetched_bytes"]) for model in document["models"]] == [
        ("target", f"{TARGET}:F32", 0),
        ("draft", f"{DRAFT}:F32", 0),
    ]
    assert "connection refused" in command("pull", f"{TARGET}:Q4_0").fails(1).err
    assert "connection refused" in command("pull", TARGET, "--draft", "o/n").fails(1).err
    shutil.copy(files.draft, data / "mine.gguf")
    assert command("pull", "mine").out == "here already: mine\n"
    assert "pull" not in command("pull", "demo/mine").fails().err


def test_remove_asks_and_frees(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    assert command("pull", TARGET, "--yes").code == 0
    done = command("remove", TARGET, typed="n\n")
    assert done.code == 1 and "Nothing was removed." in done.err
    assert "There is nobody to ask" in command("remove", TARGET).fails().err
    assert in_cache(hub) == [DRAFT_FILE, TARGET_FILE]
    done = command("remove", TARGET, typed="y\n")
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == f"Removed; {bytes_text(files.target.stat().st_size)} freed."
    assert in_cache(hub) == [DRAFT_FILE]
    assert command("remove", TARGET, DRAFT, "--yes").fails().code == 2
    assert in_cache(hub) == [DRAFT_FILE]
    assert command("remove", DRAFT, "--yes").code == 0
    assert command("models", "--json").document["models"] == []
    assert list(cache_of(hub).glob("models--*")) == []


def test_remove_partial(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    assert "nothing to remove" in command("remove", "--partial").out
    with pulling(hub) as process:
        assert "is being downloaded" in command("remove", "--partial", "--yes").fails(1).err
        process.kill()
        process.wait()
    done = command("remove", "--partial", "--yes")
    assert done.code == 0 and "Removed; 5.0 MiB freed." in done.out
    assert partials(hub) == []
    assert list(cache_of(hub).glob("models--*")) == []


def test_a_blob_that_another_commit_needs_stays(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    assert command("pull", DRAFT, "--draft", "none", "--yes").code == 0
    old = hub.repositories[DRAFT].commit
    hub.replace(DRAFT, "README.md", b"new words")
    assert command("pull", DRAFT, "--draft", "none", "--yes").code == 0
    assert len(in_cache(hub)) == 2
    names = [model["name"] for model in command("models", "--json").document["models"]]
    assert names == [f"{DRAFT}:F32"]
    done = command("remove", DRAFT, "--yes")
    assert "Removed; 0 MiB freed." in done.out
    [kept] = [path for path in cache_of(hub).glob("models--*/snapshots/*/*.gguf")]
    assert kept.parent.name == old
    assert kept.read_bytes() == files.draft.read_bytes()


def test_a_kit_goes_to_a_machine_without_network(
    hub: TestHub, files: Files, command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_models(hub, files)
    assert command("pull", TARGET, "--yes").code == 0
    kit = tmp_path / "stick" / "my kit"
    kit.parent.mkdir()
    exported = command("kit", "export", str(kit), TARGET, DRAFT)
    assert exported.code == 0, exported.err
    assert "localspec kit import 'my kit'" in exported.out
    for name in ("DATA", "CACHE"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / "elsewhere" / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "elsewhere" / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub.close()
    document = command("kit", "import", str(kit), "--json").document
    assert document["names"] == ["Tiny3-8B-F32", "Tiny3-1B-F32"]
    shutil.rmtree(kit)
    assert [model["place"] for model in command("models", "--json").document["models"]] == ["localspec"] * 2
    bench = command("bench", "Tiny3-8B", "--draft", "Tiny3-1B", "--method", "draft", *BENCH, "--json")
    assert bench.document["workloads"][0]["arms"][1]["speculation"] == "on"
    assert command("remove", "Tiny3-8B", "Tiny3-1B", "--yes").code == 0
    assert list((tmp_path / "elsewhere" / "data" / "models").rglob("*.gguf")) == []


def test_a_kit_with_a_flipped_bit_is_refused(command: CommandLine, files: Files, tmp_path: Path, data: Path) -> None:
    kit = tmp_path / "kit"
    done = command("kit", "export", str(kit), str(files.target), str(files.draft), "--json")
    assert [file["role"] for file in done.document["files"]] == ["target", "draft"]
    damaged = kit / DRAFT_FILE
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    assert DRAFT_FILE in command("kit", "import", str(kit)).fails(1).err
    assert list(data.rglob("*")) == []
    assert "is no kit" in command("kit", "import", str(tmp_path / "data")).fails().err
    assert "No model is called" in command("kit", "export", str(tmp_path / "new"), "nothing").fails().err
    assert not (tmp_path / "new").exists()


def test_progress_of_a_pull_tells_each_step(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    said = command("pull", TARGET, "--draft", DRAFT, "--yes").err.splitlines()
    for expected in (f"asking the Hub for {TARGET}", f"reading the header of {DRAFT}:F32"):
        assert expected in said
    assert f"fetching {TARGET_FILE} (1 of 2)" in said and f"fetching {DRAFT_FILE} (2 of 2)" in said


def test_a_command_that_is_advised_can_be_typed(
    hub: TestHub, files: Files, tmp_path: Path, data: Path, command: CommandLine
) -> None:
    # A name that a shell would take for commands of its own.
    odd = data / "my $(touch gone) model.gguf"
    shutil.copy(files.draft, odd)
    done = command("show", str(odd))
    assert "localspec pair 'my $(touch gone) model'" in done.out
    assert command("pair", "my $(touch gone) model", "--local").code == 0
    environment = dict(os.environ, PATH=str(tmp_path))
    line = next(line for line in done.out.splitlines() if "localspec pair" in line).partition(": ")[2]
    shown = subprocess.run(
        ["/bin/sh", "-c", f'localspec() {{ printf "%s\\n" "$@"; }}; {line}'],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=True,
    )
    assert shown.stdout.splitlines() == ["pair", "my $(touch gone) model"]
    assert json.loads(command("show", str(odd), "--json").out)["name"] == "my $(touch gone) model"


def test_the_plan_says_whether_it_fits_before_anything_is_fetched(
    hub: TestHub, files: Files, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_models(hub, files)
    monkeypatch.setenv("LOCALSPEC_MEMORY__RESERVE_GIB", "1024")
    outcome = command("pull", TARGET, "--draft", "none", "--json")
    assert outcome.code == 0
    assert "does not fit" in outcome.err.lower()
    assert f"localspec fit {TARGET}" in outcome.err
    assert outcome.document["fit"]["verdict"] == "DOES_NOT_FIT"
    monkeypatch.delenv("LOCALSPEC_MEMORY__RESERVE_GIB")
    assert command("pull", TARGET, "--draft", "none", "--json").document["fit"]["verdict"] == "FITS"
