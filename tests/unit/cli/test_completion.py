from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from localspec.cli.bash_completion import joined_words

BASH = shutil.which("bash")
COMMIT = "c" * 40


@pytest.mark.parametrize(
    ("words", "index", "expected"),
    [
        (["localspec", "mo"], 1, ([], "mo", "")),
        (["localspec"], 1, ([], "", "")),
        (["localspec", "show", "o/m", ":"], 3, (["show"], "o/m:", "o/m:")),
        (["localspec", "show", "o/m", ":", "Q4"], 4, (["show"], "o/m:Q4", "o/m:")),
        (["localspec", "show", "o/m", ":", "Q4", "@", "c0"], 6, (["show"], "o/m:Q4@c0", "o/m:Q4@")),
        (["localspec", "pair", "o/m", ":", "Q4", "dr"], 5, (["pair", "o/m:Q4"], "dr", "")),
        (["localspec", "pair", "o/m", ":", "Q4"], 5, (["pair", "o/m:Q4"], "", "")),
        (["localspec", "pair", "o/m", ":"], 4, (["pair", "o/m:"], "", "")),
        (["localspec", "pair", "o/m:Q4", "dr"], 3, (["pair", "o/m:Q4"], "dr", "")),
        (["localspec", "show", "o/m:Q"], 2, (["show"], "o/m:Q", "")),
        (["localspec", "show", "x", "later", "words"], 2, (["show"], "x", "")),
    ],
)
def test_words_that_bash_broke_are_joined(
    words: Sequence[str], index: int, expected: tuple[list[str], str, str]
) -> None:
    assert joined_words(words, index) == expected


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A machine with a few models, and `localspec` on its PATH."""
    folder = tmp_path / "data" / "models"
    folder.mkdir(parents=True)
    odd = ("has space", "has$(dollar)", "has*", "has?", "has[1]", "has!", "~has", "has{1,2}", "-has", "--help")
    for name in ("tiny-8B-Q4_K_M", "tiny-1B-Q8_0", *odd):
        (folder / f"{name}.gguf").write_bytes(b"GGUF")
    snapshot = tmp_path / "hf" / "hub" / "models--maker--Tiny-GGUF" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for quantisation in ("Q4_K_M", "Q8_0"):
        (snapshot / f"t-{quantisation}.gguf").write_bytes(b"GGUF" + quantisation.encode())
    program = tmp_path / "bin" / "localspec"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m localspec "$@"\n', "utf-8")
    program.chmod(0o755)
    return os.environ | {
        "LOCALSPEC_DATA": str(tmp_path / "data"),
        "LOCALSPEC_CACHE": str(tmp_path / "cache"),
        "LOCALSPEC_CONFIG": str(tmp_path / "config"),
        "HF_HOME": str(tmp_path / "hf"),
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }


def ask(environment: dict[str, str], *words: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Ask as click's script for bash does; the last word is at the cursor."""
    asked = {"_LOCALSPEC_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    return subprocess.run(
        [sys.executable, *options, "-m", "localspec"],
        env=environment | asked,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def answers(environment: dict[str, str], *words: str) -> list[str]:
    done = ask(environment, *words)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_commands_and_options(environment: dict[str, str]) -> None:
    assert answers(environment, "localspec", "p") == [
        "plain,pair",
        "plain,probe",
        "plain,profile",
        "plain,pull",
    ]
    assert answers(environment, "localspec", "kit", "ex") == ["plain,export"]
    assert "plain,--json" in answers(environment, "localspec", "models", "--")


def test_names_of_models(environment: dict[str, str]) -> None:
    assert answers(environment, "localspec", "show", "tiny-") == [
        # The Hub's are found without their owner.
        "plain,Tiny-GGUF:Q4_K_M",
        "plain,Tiny-GGUF:Q8_0",
        "plain,tiny-1B-Q8_0",
        "plain,tiny-8B-Q4_K_M",
    ]
    assert answers(environment, "localspec", "pair", "maker/Tiny-GGUF", ":", "Q8") == ["plain,Q8_0"]
    assert answers(environment, "localspec", "remove", "tiny-8") == ["plain,tiny-8B-Q4_K_M"]
    # No name of a model: the shell looks for files.
    assert answers(environment, "localspec", "show", "./x") == ["file,./x"]
    # What a shell would take apart is not offered.
    for word in ("has", "~", "tiny-8B*"):
        assert answers(environment, "localspec", "show", word) == [f"file,{word}"]
    # Nor is what would be an option.
    assert "plain,-has" not in answers(environment, "localspec", "show", "-")
    assert "plain,-has" not in answers(environment, "localspec", "show", "")


def test_broken_models_are_not_offered_and_workloads_are(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "data" / "models"
    (folder / "tiny-2B-Q8_0.gguf").write_bytes(b"no model")
    (folder / "tiny-3B-Q8_0-00001-of-00002.gguf").write_bytes(b"GGUF")
    assert answers(environment, "localspec", "show", "tiny-2") == ["file,tiny-2"]
    assert answers(environment, "localspec", "show", "tiny-3") == ["file,tiny-3"]
    assert answers(environment, "localspec", "bench", "x", "--workload", "s") == ["plain,story", "plain,summary"]


def test_a_shell_gets_no_error_from_broken_settings(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.toml").write_text("[models\n", "utf-8")
    assert answers(environment, "localspec", "show", "tiny-8") == ["file,tiny-8"]


def test_nothing_slow_is_imported(environment: dict[str, str]) -> None:
    done = ask(environment, "localspec", "show", "tiny-8", options=["-X", "importtime"])
    assert done.stdout == "plain,tiny-8B-Q4_K_M\n"
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "localspec.catalog.scan" in modules
    slow = ("huggingface_hub", "httpx2", "llama_cpp", "numpy", "textual", "localspec.engine.client")
    assert [name for name in slow if name in modules] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_says_where_it_belongs(shell: str, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "localspec", "completion", shell],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith(f"# {shell}")
    assert f"_LOCALSPEC_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.skipif(BASH is None or sys.platform == "win32", reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["localspec", "kit", ""], ["export", "import"]),
        (["localspec", "mod"], ["models"]),
        (["localspec", "chat", "tiny-8"], ["tiny-8B-Q4_K_M"]),
        (["localspec", "pair", "tiny-8B-Q4_K_M", "maker"], ["maker/Tiny-GGUF:Q4_K_M", "maker/Tiny-GGUF:Q8_0"]),
        (["localspec", "show", "maker/Tiny-GGUF", ":"], ["Q4_K_M", "Q8_0"]),
        (["localspec", "bench", "maker/Tiny-GGUF", ":", "Q4_K_M", "--draft", "tiny-1"], ["tiny-1B-Q8_0"]),
        (["localspec", "show", "nothing"], []),
    ],
)
def test_bash_completes(words: list[str], expected: list[str], environment: dict[str, str]) -> None:
    assert BASH is not None
    code = """
    eval "$(localspec completion bash)"
    function=$(complete -p localspec | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    compopt() { :; }
    "$function" localspec
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        [BASH, "--norc", "-c", code, "bash", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    assert sorted(done.stdout.split()) == sorted(expected)
