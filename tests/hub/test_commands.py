"""Commands about models from one end to the other: the real engine, the real client, and a Hub on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hub.commanding import (
    DRAFT,
    DRAFT_FILE,
    FOREIGN,
    MIB,
    TARGET,
    TARGET_FILE,
    CommandLine,
    Files,
    add_models,
    is_spared,
)
from tests.hub.server import TestHub
from tests.tiny_gguf import CHATML, write_llama

TOKEN = "hf_SECRETtokenSECRET"


def test_search_lists_repositories_and_sizes(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    done = command("search", "tiny3")
    assert done.code == 0
    assert "searching the Hub" in done.err
    rows = {line.split()[0]: line for line in done.out.splitlines() if line.startswith("maker/")}
    assert list(rows) == [TARGET, DRAFT]
    assert "4.7k" in rows[TARGET] and "MiB" in rows[TARGET]
    assert max(map(len, done.out.partition("\n\n")[0].splitlines())) <= 80
    [first, _] = command("search", "tiny3", "--json").document["repos"]
    assert first["repo"] == TARGET
    assert [(offer["quantisation"], offer["size_bytes"]) for offer in first["offers"]] == [
        ("F32", files.target.stat().st_size)
    ]
    assert hub.bytes_sent(TARGET_FILE) == 0


def test_search_without_an_answer(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    done = command("search", "nothing", "like", "this")
    assert done.code == 0
    assert "'nothing like this'" in done.out
    assert command("search", "nothing", "like", "this", "--json").document["repos"] == []


def test_show_reads_the_header_only(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    done = command("show", TARGET)
    assert done.code == 0, done.err
    assert "F32 *" in done.out and "Tiny3 8B" in done.out and f"localspec pull {TARGET}:F32" in done.out
    assert f"asking the Hub for {TARGET}" in done.err
    document = command("show", f"{TARGET}:f32", "--json").document
    assert document["is_remote"] is True
    assert document["facts"]["file_bytes"] == files.target.stat().st_size
    assert (document["facts"]["n_layer"], document["facts"]["n_embd"]) == (8, 256)
    assert files.target.stat().st_size > 8 * MIB
    assert is_spared(hub)


def test_a_repository_is_shown_whole_with_what_is_here_of_it(
    hub: TestHub, files: Files, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add_repo(
        TARGET, {"tiny-Q4_K_M.gguf": files.target, "tiny-Q8_0.gguf": files.draft, "tiny-F16.gguf": files.foreign}
    )
    assert command("pull", f"{TARGET}:Q8_0", "--draft", "none", "--yes").code == 0
    done = command("show", TARGET)
    assert done.code == 0, done.err
    rows = {line.split()[0]: line.split() for line in done.out.splitlines() if line.startswith(("Q", "F16"))}
    assert rows["Q8_0"][-1] == "here" and rows["F16"][-1] == "model" and rows["Q4_K_M"][1] == "*"
    assert "* taken if none is named\n" in done.out
    offered = {offer["quantisation"]: offer["here"] for offer in command("show", TARGET, "--json").document["offers"]}
    assert offered == {"Q8_0": "whole", "F16": None, "Q4_K_M": None}
    for arguments in (("pair", TARGET), ("fit", TARGET, "--n-ctx", "512")):
        assert f"{TARGET}:Q4_K_M" in command(*arguments).out
    document = command("fit", TARGET, "--matrix", "--json").document
    assert {row["label"] for row in document["matrix"]} == set(offered)
    # What is here is not asked of the Hub again.
    hub.forget()
    assert command("show", f"{TARGET}:Q8_0", "--json").document["is_remote"] is False
    assert hub.requests == ()
    # Out of reach of the Hub, what is here will do.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for arguments in (("show", TARGET), ("pair", TARGET), ("fit", TARGET, "--n-ctx", "512")):
        done = command(*arguments)
        assert done.code == 0, done.err
        assert f"{TARGET}:Q8_0" in done.out and f"Of {TARGET} there is {TARGET}:Q8_0 on this machine." in done.err
    assert command("show", "--hub", TARGET).fails(1)


def test_show_names_the_nearest_quantisation(hub: TestHub, files: Files, command: CommandLine) -> None:
    hub.add_repo(TARGET, {"tiny-Q4_K_M.gguf": files.draft, "tiny-Q8_0.gguf": files.draft})
    failed = command("show", f"{TARGET}:Q4_K_X").fails()
    assert f"{TARGET} has no Q4_K_X" in failed.err
    assert f"Did you mean {TARGET}:Q4_K_M?" in failed.err and "Q8_0" in failed.err
    assert hub.bytes_sent("tiny-Q4_K_M.gguf") == 0


def test_show_of_what_is_not_there(hub: TestHub, command: CommandLine) -> None:
    hub.add_repo("maker/Text-only", {"README.md": b"words"})
    assert "no GGUF model" in command("show", "maker/Text-only").fails().err
    assert "no repository maker/Nothing" in command("show", "maker/Nothing").fails(1).err
    assert "No model is called nothing." in command("show", "nothing").fails().err
    assert "no repository on the Hub" in command("show", "--hub", "nothing").fails().err
    assert "There is no file" in command("show", "./nothing.gguf").fails(1).err


@pytest.mark.parametrize("arguments", [("show", TARGET), ("pair", TARGET), ("pull", TARGET), ("pair", DRAFT, TARGET)])
def test_a_gated_repository_says_how_to_get_in(
    arguments: tuple[str, ...], hub: TestHub, files: Files, command: CommandLine
) -> None:
    add_models(hub, files)
    hub.add_repo(TARGET, {TARGET_FILE: files.target}, gated="manual", token_needed=TOKEN)
    failed = command(*arguments).fails(1)
    assert f"{TARGET} is gated" in failed.err
    assert "HF_TOKEN" in failed.err


def test_a_token_opens_and_is_never_shown(
    hub: TestHub, files: Files, command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    add_models(hub, files, gated="manual", token_needed=TOKEN)
    hub.fault(TARGET_FILE, redirect=True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    lines = [
        ("search", "tiny3"),
        ("show", TARGET),
        ("pair", TARGET, DRAFT),
        ("pair", TARGET),
        ("pull", TARGET, "--draft", DRAFT, "--yes"),
        ("models",),
        ("show", TARGET),
        ("kit", "export", str(tmp_path / "kit"), TARGET),
    ]
    for line in lines:
        for options in ((), ("--json",)):
            done = command(*line, *options)
            assert done.code == 0, done.err
            assert TOKEN not in done.text and hub.signature not in done.text
    hub.fault(TARGET_FILE, status=500)
    hub.fault(TARGET, status=403)
    failed = command("show", "--hub", TARGET).fails(1)
    assert TOKEN not in failed.text
    assert command("remove", TARGET, "--yes").code == 0
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "engine.log" for path in written)
    assert [path for path in written if TOKEN.encode() in path.read_bytes()] == []
    # To the Hub itself it goes, to where the Hub redirects it does not.
    by_port = {(request.port, "authorization" in request.headers) for request in hub.requests}
    assert by_port == {("hub", True), ("cdn", False)}


def test_pair_of_two_on_the_hub(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    done = command("pair", TARGET, DRAFT)
    assert done.code == 0, done.err
    assert "verdict a pair" in done.out and "A draft step reads 0.0" in done.out
    refused = command("pair", TARGET, FOREIGN, "--json")
    assert refused.code == 1
    document = refused.document
    assert document["verdict"] == "NO_PAIR" and document["reason"]
    assert (document["target"], document["draft"]) == (f"{TARGET}:F32", f"{FOREIGN}:F32")
    assert is_spared(hub)


def test_pair_of_a_local_one_with_one_of_the_hub(hub: TestHub, files: Files, command: CommandLine, data: Path) -> None:
    add_models(hub, files)
    (data / TARGET_FILE).write_bytes(files.target.read_bytes())
    done = command("pair", "tiny3-8b", DRAFT)
    assert done.code == 0, done.err
    assert "target  Tiny3-8B-F32\n" in done.out and f"draft   {DRAFT}:F32\n" in done.out
    assert hub.requests_for(TARGET_FILE) == ()


def test_pair_ranks_what_may_draft(hub: TestHub, files: Files, command: CommandLine, tmp_path: Path) -> None:
    add_models(hub, files)
    middle = write_llama(tmp_path / "Tiny3-2B-F32.gguf", n_embd=128, n_layer=20, name="Tiny3 2B")
    hub.add_repo("maker/Tiny3-2B-GGUF", {middle.name: middle})
    document = command("pair", TARGET, "--json").document
    first, second, *refused = document["candidates"]
    assert first["label"] == f"{DRAFT}:F32" and first["refusal"] is None and first["cost_ratio"] < 0.25
    assert second["method"] == "ngram"
    assert [one["label"] for one in refused] == ["maker/Tiny3-2B-GGUF:F32"]
    done = command("pair", TARGET)
    assert done.code == 0
    assert f"1. {DRAFT}:F32: Same family" in done.out
    assert "Cost: what a draft step reads" in done.out
    assert "maker/Tiny3-2B-GGUF:F32: too dear to pay: it reads 0.62 of what a target step reads" in done.out
    assert is_spared(hub)


def test_pair_local_asks_nobody(hub: TestHub, files: Files, command: CommandLine, data: Path) -> None:
    add_models(hub, files)
    for path in (files.target, files.draft):
        (data / path.name).write_bytes(path.read_bytes())
    document = command("pair", "Tiny3-8B", "--local", "--json").document
    assert [(one["label"], one["source"]) for one in document["candidates"]] == [
        ("Tiny3-1B-F32", "local"),
        ("n-grams of the text", "built in"),
    ]
    assert hub.requests == ()


def test_offline_what_is_here_works_and_the_rest_says_why(
    hub: TestHub, files: Files, command: CommandLine, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_models(hub, files)
    for path in (files.target, files.draft):
        (data / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = command("pair", "Tiny3-8B")
    assert done.code == 0 and "1. Tiny3-1B-F32: " in done.out
    assert done.err.count("note: Only this machine was searched: ") == 1
    assert command("pair", "Tiny3-8B", "Tiny3-1B").code == 0
    for arguments in (
        ("search", "x"),
        ("show", TARGET),
        ("pull", TARGET),
        ("pair", TARGET),
        ("pair", "Tiny3-8B", DRAFT),
    ):
        assert "HF_HUB_OFFLINE" in command(*arguments).fails(1).err
    assert hub.requests == ()


def test_no_route_is_a_message_at_once(hub: TestHub, command: CommandLine) -> None:
    hub.close()
    for arguments in (("search", "x"), ("show", TARGET), ("pull", TARGET)):
        assert "cannot be reached: connection refused" in command(*arguments).fails(1).err


@pytest.mark.parametrize(
    ("status", "words"), [(500, "has a problem"), (429, "too many requests"), (200, "not the Hub's")]
)
def test_a_hub_that_goes_wrong(status: int, words: str, hub: TestHub, command: CommandLine) -> None:
    if status == 200:
        hub.fault(html=True)
    else:
        hub.fault(status=status)
    assert words in command("search", "x").fails(1).err
    assert words in command("show", TARGET).fails(1).err


def test_models_lists_everything_with_its_state(hub: TestHub, files: Files, command: CommandLine, data: Path) -> None:
    assert "There are no models here yet." in command("models").out
    write_llama(data / "whole-F32.gguf", template=CHATML)
    (data / "broken-Q8_0.gguf").write_bytes(b"GGUF and no more")
    split = write_llama(data / "split-F32.gguf", shards=3)
    split.with_name("split-F32-00002-of-00003.gguf").unlink()
    document = command("models", "--json").document
    models = {model["name"]: model for model in document["models"]}
    assert sorted(models) == ["broken-Q8_0", "split-F32", "whole-F32"]
    assert models["whole-F32"]["facts"]["architecture"] == "llama" and models["whole-F32"]["failure"] is None
    assert models["broken-Q8_0"]["failure"] and models["broken-Q8_0"]["hint"]
    assert models["split-F32"]["missing"] == ["split-F32-00002-of-00003.gguf"]
    done = command("models")
    assert done.code == 0
    assert "split-F32-00002-of-00003.gguf" in done.out and "broken-Q8_0: " in done.out
    assert hub.requests == ()


def test_show_of_local_files(command: CommandLine, files: Files, data: Path) -> None:
    split = write_llama(data / "split-F32.gguf", shards=3, name="In three parts")
    done = command("show", "split")
    assert done.code == 0 and "In three parts" in done.out
    assert [line.split() for line in done.out.splitlines() if line.startswith("shards")] == [["shards", "3"]]
    assert "In three parts" in command("show", str(split)).out
    assert command("show", str(files.target), "--json").document["facts"]["title"] == "Tiny3 8B"
    split.with_name("split-F32-00002-of-00003.gguf").unlink()
    assert "split-F32-00002-of-00003.gguf" in command("show", "split").fails(1).err
    (data / "broken.gguf").write_bytes(b"no model at all")
    command("show", "broken").fails(1)
    assert "is a folder" in command("show", str(data)).fails(1).err


def test_a_split_model_of_the_hub(hub: TestHub, files: Files, command: CommandLine, tmp_path: Path) -> None:
    first = write_llama(tmp_path / "Tiny3-8B-F32.gguf", n_embd=256, n_layer=8, shards=3, name="Tiny3 8B")
    shards = sorted(tmp_path.glob("Tiny3-8B-F32-*.gguf"))
    hub.add_repo(TARGET, {f"F32/{path.name}": path for path in shards})
    document = command("show", TARGET, "--json").document
    assert document["facts"]["file_bytes"] == sum(path.stat().st_size for path in shards)
    assert [len(offer["files"]) for offer in document["offers"]] == [3]
    assert hub.bytes_sent(f"F32/{shards[1].name}") <= MIB
    pulled = command("pull", TARGET, "--draft", "none", "--yes", "--json").document
    [model] = pulled["models"]
    assert Path(model["path"]).name == first.name
    assert command("show", TARGET, "--json").document["is_remote"] is False


def test_a_hostile_server_claims_a_petabyte(hub: TestHub, files: Files, command: CommandLine) -> None:
    hub.add_repo(TARGET, {"README.md": b""})
    hub.add_virtual(TARGET, "huge-Q4_0.gguf", 1 << 50, b"GGUF" + b"\xff" * 4096)
    command("show", TARGET).fails(1)
    assert hub.bytes_sent("huge-Q4_0.gguf") <= 2 * MIB


def test_wrong_usage_has_no_traceback(command: CommandLine) -> None:
    for arguments in (("search",), ("show",), ("pull",), ("kit", "export"), ("completion", "tcsh"), ("pull", "a", "b")):
        done = command(*arguments)
        assert done.code == 2 and "Traceback" not in done.text
    assert "no repository on the Hub" in command("pull", "not a repo").fails().err
    assert "Nothing to remove was named" in command("remove").fails().err


def test_json_is_one_line_without_the_table(hub: TestHub, files: Files, command: CommandLine) -> None:
    add_models(hub, files)
    for arguments in (("search", "tiny3"), ("show", TARGET), ("pair", TARGET, DRAFT), ("pair", TARGET), ("models",)):
        done = command(*arguments, "--json")
        assert json.loads(done.out)["schema"] == 1
        assert done.out.count("\n") == 1
        assert done.err.strip()


def test_draft_only_files_are_offered_as_such(hub: TestHub, files: Files, command: CommandLine) -> None:
    hub.add_repo(DRAFT, {DRAFT_FILE: files.draft, "eagle3-x.gguf": files.draft})
    done = command("show", DRAFT)
    assert done.code == 0
    assert "eagle3 draft only" in done.out


def test_a_draft_with_a_text_twice_is_refused_in_words(
    hub: TestHub, files: Files, command: CommandLine, tmp_path: Path
) -> None:
    add_models(hub, files)
    twice = tmp_path / "Twice-1B-F32.gguf"
    twice.write_bytes(files.draft.read_bytes().replace(b"<0x0B>", b"<0x0C>", 1))
    hub.add_repo("evil/Twice-1B-GGUF", {twice.name: twice})
    reason = "the draft's vocabulary cannot be compared: tokens 14 and 15 have the same text"
    done = command("pull", TARGET, "--draft", "evil/Twice-1B-GGUF", "--yes").fails()
    assert f"{reason}.\n" in done.err.replace("\n       ", " ")
    assert ".." not in done.text
    done = command("pair", TARGET, "evil/Twice-1B-GGUF")
    assert done.code == 1 and "cannot be said" in done.out and reason in done.out.replace("\n  ", " ")
