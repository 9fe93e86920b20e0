"""`localspec fit` for models on a Hub: nothing but headers is fetched."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.hub.commanding import (
    DRAFT,
    FOREIGN,
    TARGET,
    TARGET_FILE,
    CommandLine,
    Files,
    add_models,
    is_spared,
)
from tests.hub.server import TestHub
from tests.tiny_gguf import write_llama

CARD = ("--device", "RTX 4070:64MiB")


def test_a_remote_plan_is_that_of_the_downloaded_file(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    remote = command("fit", TARGET, "--draft", f"{DRAFT}:F32", "--n-ctx", "512", *CARD, "--json").document
    assert is_spared(hub)
    assert (remote["target"], remote["draft"]) == (f"{TARGET}:F32", f"{DRAFT}:F32")
    local = command("fit", str(files.target), "--draft", str(files.draft), "--n-ctx", "512", *CARD, "--json").document
    assert remote["rows"] == local["rows"]
    assert {row["device"] for row in remote["rows"]} == {"HYPO0", "CPU"}


def test_auto_takes_the_draft_that_pair_finds(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    done = command("fit", TARGET, "--draft", "auto", "--n-ctx", "512", "--json")
    assert done.document["draft"] == f"{DRAFT}:F32"
    assert {row["model"] for row in done.document["rows"]} == {"target", "draft"}
    assert is_spared(hub)
    # What is offered names the draft that was found.
    done = command("fit", TARGET, "--draft", "auto", "--n-ctx", "16384", *CARD, "--json")
    commands = [shlex.split(offer["command"]) for offer in done.document["offers"] if offer["code"] != "without_draft"]
    assert commands and all(words[words.index("--draft") + 1] == f"{DRAFT}:F32" for words in commands)


def test_the_matrix_reads_each_header_once(hub: TestHub, files: Files, command: CommandLine, tmp_path: Path) -> None:
    small = write_llama(tmp_path / "Tiny3-8B-F16.gguf", n_embd=256, n_layer=8, dtype="f16")
    hub.add_repo(TARGET, {TARGET_FILE: files.target, small.name: small})
    document = command("fit", f"{TARGET}:F32", "--matrix", *CARD, "--json").document
    assert [row["label"] for row in document["matrix"]] == ["F16", "F32"]
    assert document["contexts"] == [512]
    assert is_spared(hub) and hub.bytes_sent(small.name) <= 1 << 20
    sent = hub.bytes_sent(TARGET_FILE), hub.bytes_sent(small.name)
    command("fit", f"{TARGET}:F32", "--matrix", *CARD, "--json")
    assert (hub.bytes_sent(TARGET_FILE), hub.bytes_sent(small.name)) == sent


def test_a_quantisation_that_is_not_there_is_said(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    assert "It has F32" in command("fit", f"{TARGET}:Q2_K").fails().err


def test_two_that_are_no_pair_are_measured_and_told_so(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    document = command("fit", TARGET, "--draft", FOREIGN, "--n-ctx", "512", "--json").document
    assert any("no pair" in note for note in document["notes"])
    paired = command("fit", TARGET, "--draft", f"{DRAFT}:F32", "--n-ctx", "512", "--json").document
    assert not any("no pair" in note for note in paired["notes"])
