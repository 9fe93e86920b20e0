"""Profiles: made of runs, kept by name, checked when read, and used by other commands."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.requests import Configure, Generate, LoadModels
from localspec.errors import LocalspecError, UsageError
from localspec.session.loading import draft_context_settings
from localspec.session.profiles import evidence_notes, file_notes, make_profile, profile_flags, read_profile
from localspec.settings import load_settings
from localspec.store.database import Database
from localspec.store.profiles import Profiles, check_name
from localspec.store.runs import Runs
from localspec.store.values import Profile, StoredRun
from tests.profile_kit import CONTEXT, DRAFT_CONTEXT, SAMPLING, arm, drafting, model, named_profile, profile_of, run_of
from tests.profile_kit import workload as a_workload
from tests.scripted_engine import EchoEngine

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "store.sqlite3") as opened:
        yield opened


def made(stored: StoredRun, arm: str = "", workload: str = "") -> dict[str, Any]:
    return make_profile("quick", stored, NOW, arm=arm, workload=workload).document


# Names


@pytest.mark.parametrize("name", ["quick", "Qwen3 8B + 0.6B".replace("+", "-"), "a", "größer", "v1.2_x", "x" * 60])
def test_names_that_go(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "-x", ".x", "a ", "a/b", "a\nb", "a[b]", "../x", "x" * 61, "\x1b[31m", "a;b"]
)
def test_names_that_do_not(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a profile's name"):
        check_name(name)


@given(st.text(max_size=70))
def test_a_name_never_holds_what_a_path_or_shell_reads(name: str) -> None:
    try:
        check_name(name)
    except UsageError:
        return
    assert 0 < len(name) <= 60 and not set(name) & set("/\\'\"$`\n\r\t;&|<>*?[]{}()!#~\0")


# The store


def test_profiles_come_back_as_they_were_kept(database: Database) -> None:
    profiles = Profiles(database)
    for name in ("b", "A", "c"):
        profiles.save(profile_of(name))
    assert [profile.name for profile in profiles.all()] == ["A", "b", "c"]
    assert profiles.get("a") == profile_of("A")


def test_capitals_do_not_make_another_name(database: Database) -> None:
    profiles = Profiles(database)
    profiles.save(profile_of("Größe"))
    with pytest.raises(UsageError, match=r"There is a profile 'Größe' already"):
        profiles.save(profile_of("GRÖßE"))
    profiles.save(profile_of("GRÖßE"), replaces=True)
    assert [profile.name for profile in profiles.all()] == ["GRÖßE"]
    assert profiles.get("größe").name == "GRÖßE"


def test_renaming(database: Database) -> None:
    profiles = Profiles(database)
    profiles.save(profile_of("one"))
    profiles.save(profile_of("two"))
    with pytest.raises(UsageError, match="already"):
        profiles.rename("one", "TWO")
    profiles.rename("ONE", "One")
    profiles.rename("two", "three")
    assert [profile.name for profile in profiles.all()] == ["One", "three"]
    with pytest.raises(UsageError, match="cannot be"):
        profiles.rename("One", "a/b")
    with pytest.raises(UsageError, match="no profile 'two'"):
        profiles.rename("two", "four")


def test_a_name_that_is_not_there(database: Database) -> None:
    profiles = Profiles(database)
    with pytest.raises(UsageError) as refusal:
        profiles.get("any")
    assert "profile save" in refusal.value.hint
    profiles.save(profile_of("Quick chat"))
    with pytest.raises(UsageError) as refusal:
        profiles.get("quick chats")
    assert refusal.value.hint == "Did you mean 'Quick chat'?"
    with pytest.raises(UsageError):
        profiles.delete("else")
    profiles.delete("QUICK CHAT")
    assert profiles.all() == ()


def test_a_profile_outlives_its_run(database: Database) -> None:
    runs, profiles = Runs(database), Profiles(database)
    run_id = runs.start("bench", {})
    kept = profile_of("quick")
    profiles.save(Profile(kept.name, kept.created_at, run_id, kept.document))
    runs.delete(run_id)
    assert profiles.get("quick") == kept


def test_damaged_text_is_a_failure_with_words(database: Database) -> None:
    profiles = Profiles(database)
    profiles.save(profile_of("quick"))
    database.connection.execute("UPDATE profiles SET document = '{'")
    with pytest.raises(LocalspecError, match="damaged"):
        profiles.get("quick")


# From a run


def test_the_best_over_all_workloads_is_taken() -> None:
    stored = run_of(
        a_workload("edit", arm("draft", "draft", 1.5, "faster", n_max=5), arm("ngram", "ngram", 2.0, "faster")),
        a_workload("chat", arm("draft", "draft", 1.3, "faster", n_max=5), arm("ngram", "ngram", 0.5, "slower")),
    )
    document = made(stored)
    assert document["speculation"] == drafting("draft", n_max=5)
    assert (document["target"]["path"], document["draft"]["path"]) == ("/models/target.gguf", "/models/draft.gguf")
    assert document["draft_context"] == DRAFT_CONTEXT
    assert document["context"] == CONTEXT and document["sampling"] == SAMPLING
    evidence = document["evidence"]
    assert (evidence["workload"], evidence["speedup"]["median"], evidence["device"]) == ("edit", 1.5, "Processor")
    assert [result["workload"] for result in evidence["results"]] == ["edit", "chat"]
    read_profile(make_profile("quick", stored, NOW))


def test_one_workload_or_arm_may_be_named() -> None:
    warm = {**SAMPLING, "temperature": 0.8}
    stored = run_of(
        a_workload("edit", arm("draft", "draft", 1.5, "faster"), arm("ngram", "ngram", 2.0, "faster")),
        a_workload("chat", arm("draft", "draft", 1.3, "faster"), arm("ngram", "ngram", 0.5, "slower"), sampling=warm),
    )
    document = made(stored, workload="EDIT")
    assert document["speculation"]["method"] == "ngram"
    assert document["draft"] is None and document["draft_context"] is None
    assert made(stored, workload="chat")["sampling"]["temperature"] == 0.8
    assert made(stored, arm="NGRAM")["speculation"]["method"] == "ngram"
    off = made(stored, arm="off")
    assert off["speculation"]["method"] == "off" and off["evidence"]["speedup"] is None


def test_an_arm_that_ran_on_one_workload_of_several_is_best_for_none_but_that() -> None:
    stored = run_of(
        a_workload("quote", arm("auto", "auto", 1.4, "faster"), arm("suffix n_max 8", "suffix", 3.0, "faster")),
        a_workload("chat", arm("auto", "auto", 1.1, "faster"), arm("ngram n_max 1", "ngram", 1.2, "faster")),
    )
    assert made(stored)["speculation"]["method"] == "auto"
    assert made(stored, workload="quote")["speculation"]["method"] == "suffix"


def test_what_was_measured_on_battery_or_hot_is_marked() -> None:
    device = {"description": "Processor", "power_source": "battery", "throttling": "the hardware slowed itself down"}
    stored = run_of(a_workload("edit", arm("draft", "draft", 1.5, "faster")), device=device)
    profile = read_profile(make_profile("quick", stored, NOW))
    assert profile.document.evidence is not None
    assert profile.document.evidence.marks == ["on battery", "while the hardware slowed itself down"]
    (note,) = evidence_notes(profile.document.evidence)
    assert note.startswith(
        "Measured on battery and while the hardware slowed itself down: it may be otherwise on mains"
    )
    quiet = run_of(a_workload("edit", arm("draft", "draft", 1.5, "faster")))
    assert evidence_notes(read_profile(make_profile("quick", quiet, NOW)).document.evidence) == ()
    assert evidence_notes(None) == ()


def test_what_cannot_be_taken_is_said() -> None:
    slow = run_of(
        a_workload("edit", arm("draft", "draft", 0.8, "slower"), arm("ngram", "ngram", 1.1, "no_clear_difference"))
    )
    with pytest.raises(UsageError, match="No way of drafting was clearly faster in run 7") as refusal:
        made(slow)
    assert "off, draft, ngram" in refusal.value.hint
    with pytest.raises(UsageError, match="no arm 'nothing'"):
        made(slow, arm="nothing")
    with pytest.raises(UsageError, match="no workload 'nothing'"):
        made(slow, workload="nothing")
    failed = run_of(a_workload("edit", arm("draft", "draft", has_run=False, reason="it is damaged.")))
    with pytest.raises(UsageError, match="has not run: it is damaged"):
        made(failed, arm="draft")


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": 5},
        {"target": {}},
        {"workloads": [{"name": "edit", "arms": [{"name": "x", "method": "magic", "n_max": 4}]}]},
    ],
)
def test_a_damaged_run_is_a_failure_with_words(changes: dict[str, Any]) -> None:
    with pytest.raises(LocalspecError, match="What is kept of run 7"):
        made(run_of(a_workload("edit"), **changes))


# Reading


@pytest.mark.parametrize(
    "changes",
    [
        {"target": {"path": 5}},
        {"speculation": drafting(n_max=99)},
        {"speculation": drafting(n_min=9)},
        {"speculation": drafting("magic")},
        {"speculation": None},
        {"context": {**CONTEXT, "type_k": "q9"}},
        {"context": {**CONTEXT, "n_ctx": -1}},
        {"sampling": {**SAMPLING, "temperature": "hot"}},
        {"draft": None},
    ],
)
def test_damaged_profiles_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(LocalspecError, match="profile 'quick' is damaged"):
        named_profile(**changes)


def test_names_of_another_release_are_passed_over() -> None:
    profile = named_profile(
        speculation={**drafting(), "verification": "exact", "later": 1}, context={**CONTEXT, "later": 1}, later={}
    )
    assert profile.document.speculation.n_max == 5


def test_settings_go_back_to_where_they_came_from() -> None:
    own = {"n_ctx": 1024, "n_threads": 2, "n_gpu_layers": 3, "type_k": "q8_0", "type_v": "f16"}
    profile = named_profile(
        speculation=drafting(n_max=7, p_min=0.5), draft_context=own, sampling={**SAMPLING, "frequency_penalty": 0.5}
    )
    settings = load_settings(profile_flags(profile))
    assert (settings.draft.n_max, settings.draft.p_min, settings.draft.n_ctx) == (7, 0.5, 1024)
    assert (settings.draft.type_k, settings.context.n_threads, settings.draft.n_threads) == ("q8_0", 4, 2)
    drafting_context = draft_context_settings(settings)
    assert (drafting_context.n_threads, drafting_context.n_threads_batch) == (2, 4)
    assert settings.sampling.frequency_penalty == 0.5


def test_a_profile_of_before_says_nothing_of_the_drafts_threads() -> None:
    own = {name: DRAFT_CONTEXT[name] for name in ("n_ctx", "n_gpu_layers", "type_k", "type_v")}
    settings = load_settings(profile_flags(named_profile(draft_context=own)))
    assert settings.draft.n_threads == 0
    assert draft_context_settings(settings).n_threads == settings.context.n_threads == 4


def test_files_that_are_gone_or_changed_are_told_of(tmp_path: Path) -> None:
    target = tmp_path / "target.gguf"
    target.write_bytes(b"GGUF")
    facts = target.stat()
    kept = model(str(target), file_bytes=4, modified_ns=facts.st_mtime_ns)
    profile = named_profile(target=kept, draft=model(str(tmp_path / "gone.gguf")))
    assert file_notes(profile) == (f"The profile's draft is gone: there is no file {tmp_path / 'gone.gguf'}.",)
    # A profile that does not draft with a model does not need one.
    profile = named_profile(target=kept, speculation=drafting("ngram"))
    assert file_notes(profile) == ()
    os.utime(target, ns=(0, 0))
    assert "written anew" in file_notes(profile)[0]
    target.write_bytes(b"GGUF2")
    assert "of 5 bytes instead of 4" in file_notes(profile)[0]


# Commands


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    for name in ("DATA", "CACHE", "CONFIG", "LOG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    target, draft = tmp_path / "target.gguf", tmp_path / "draft.gguf"
    for path in (target, draft):
        path.write_bytes(b"GGUF" + bytes(100))
    return target, draft


def keep(name: str, target: Path, draft: Path, **changes: Any) -> None:
    with Database() as database:
        Profiles(database).save(profile_of(name, target=model(str(target)), draft=model(str(draft)), **changes))


def test_from_a_run_to_a_chat(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, draft = files
    bench = ["bench", str(target), "--draft", str(draft), "--workload", "edit", "--max-tokens", "24", "--n-max", "3"]
    assert run([*bench, "--top-k", "7"], Services(EchoEngine)) == 0
    assert run(["profile", "save", "My best", "--arm", "draft"]) == 0
    out = capsys.readouterr().out
    assert "draft n_max 3" in out and "localspec chat --profile 'My best'" in out
    assert run(["profile", "list", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["profiles"]
    assert (entry["name"], entry["run_id"], entry["speculation"]["n_max"]) == ("My best", 1, 3)
    assert entry["target"]["sha256"] and entry["target"]["file_bytes"] == 104 and entry["notes"] == []
    engine = EchoEngine()
    monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
    assert run(["chat", "--profile", "my BEST", "--n-max", "2"], Services(lambda: engine)) == 0
    (load,) = (request for request in engine.requests if isinstance(request, LoadModels))
    assert (load.target_path, load.draft_path) == (str(target), str(draft))
    # What stands on the command line goes first.
    assert (load.speculation.method, load.speculation.n_max) == ("draft", 2)
    (asked,) = (request for request in engine.requests if isinstance(request, Generate))
    assert asked.sampling.top_k == 7


def test_bench_measures_a_profile(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    target, draft = files
    keep("quick", target, draft, context={**CONTEXT, "n_ctx": 512, "n_batch": 256, "n_ubatch": 128})
    engine = EchoEngine()
    options = ["--workload", "story", "--max-tokens", "12", "--pairs", "1", "--json"]
    assert run(["bench", "--profile", "QUICK", *options], Services(lambda: engine)) == 0
    document = json.loads(capsys.readouterr().out)
    assert [item["name"] for item in document["workloads"][0]["arms"]] == ["off", "draft"]
    # The profile's temperature is 0, and the workload's own holds.
    assert document["workloads"][0]["temperature"] == 0.8
    (load,) = (request for request in engine.requests if isinstance(request, LoadModels))
    assert (load.context.n_ctx, load.context.n_batch, load.context.n_ubatch) == (512, 256, 128)
    assert any(isinstance(item, Configure) and item.speculation.n_max == 5 for item in engine.requests)
    with Database() as database:
        assert Runs(database).summaries()[0].profile == "quick"


def test_another_target_leaves_the_draft_behind(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, draft = files
    keep("quick", target, draft)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    engine = EchoEngine()
    assert run(["chat", str(draft), "--profile", "quick"], Services(lambda: engine)) == 0
    (load,) = (request for request in engine.requests if isinstance(request, LoadModels))
    assert (load.target_path, load.draft_path) == (str(draft), "")
    assert load.speculation.method == "auto" and load.speculation.n_max == 5


def test_changed_files_are_said_when_a_profile_is_used(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, draft = files
    keep("quick", target, draft)
    with Database() as database:
        Profiles(database).save(
            profile_of("quick", target=model(str(target), file_bytes=5), draft=model(str(draft))), replaces=True
        )
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert run(["chat", "--profile", "quick"], Services(EchoEngine)) == 0
    assert "another file now, of 104 bytes instead of 5" in capsys.readouterr().err


def test_show_rename_and_delete(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    target, draft = files
    keep("quick", target, draft)
    assert run(["profile", "show", "quick", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["evidence"]["workload"] == "edit"
    assert "1.50x (1.40 to 1.60)" in captured.err and "run" in captured.err
    assert "n_ctx 4096, threads 4, layers on the GPU 0" in " ".join(captured.err.split())
    assert run(["profile", "rename", "quick", "slow"]) == 0
    assert run(["profile", "show", "quick"]) == 2
    assert "There is no profile 'quick'" in capsys.readouterr().err
    assert run(["profile", "delete", "slow"]) == 0
    assert run(["profile", "list"]) == 0
    assert "no profiles yet" in capsys.readouterr().out


def test_without_a_run_nothing_is_saved(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", "save", "quick"]) == 2
    assert "No run is kept yet" in capsys.readouterr().err
    assert run(["profile", "save", "a/b"]) == 2
    assert "cannot be a profile's name" in capsys.readouterr().err
    for word in ("0", "-1", "nine", "9" * 30):
        assert run(["profile", "save", "quick", f"--run={word}"]) == 2
    assert run(["chat", "--profile", "none"]) == 2


def test_a_damaged_profile_does_not_hide_the_others(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    target, draft = files
    keep("good", target, draft)
    keep("odd", target, draft, speculation=None)
    assert run(["profile", "list", "--json"]) == 0
    captured = capsys.readouterr()
    good, odd = json.loads(captured.out)["profiles"]
    assert good["name"] == "good" and "damaged" in odd["failure"]
    assert "draft n_max 5" in captured.err


def test_export_prints_or_writes(files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, draft = files
    keep("quick", target, draft)
    assert run(["export", "quick", "--to", "llama-server", "--shell", "sh"]) == 0
    out = capsys.readouterr().out
    assert f"--model {target}" in out and "--spec-type draft-simple" in out
    file = tmp_path / "start.sh"
    command = ["export", "quick", "--to", "llama-server", "--shell", "sh", "-o", str(file)]
    assert run(command) == 0
    assert file.read_text(encoding="utf-8") == out
    assert run(command) == 2
    assert "already" in capsys.readouterr().err
    assert run([*command[:4], "--shell", "powershell", "-o", str(file), "--force"]) == 0
    assert " `\n" in file.read_text(encoding="utf-8")
    assert run([*command[:-1], str(tmp_path / "none" / "x.sh")]) == 1
    draft.unlink()
    assert run(["export", "quick", "--to", "json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["name"] == "quick" and "draft is gone" in captured.err
