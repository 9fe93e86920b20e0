"""Watching what Python processes do on the network: an audit hook that every interpreter below installs at its start.

The hook is a sitecustomize.py on PYTHONPATH, so that child processes have it too, the engine among them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = "NETWORK_AUDIT_FOLDER"

WATCHED_PACKAGES = ("huggingface_hub", "httpx2", "hf_xet")
"""Packages that have no business in a process without network."""

_HOOK = """
import json, os, socket, sys

def _start():
    folder, packages = os.environ["NETWORK_AUDIT_FOLDER"], @PACKAGES@
    calls = {
        "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo",
        "socket.sendto", "socket.sendmsg", "socket.bind",
    }
    log = os.open(os.path.join(folder, f"{os.getpid()}.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    seen = set()

    def write(kind, *facts):
        os.write(log, (json.dumps([kind, *map(str, facts)]) + "\\n").encode())

    def hook(event, arguments):
        if event in calls:
            family = getattr(arguments[0], "family", None)
            if family is None or family != getattr(socket, "AF_UNIX", None):
                write("call", event, arguments)
        elif event == "exec":
            # Every module's code is carried out this way, however its import came about.
            parts = getattr(arguments[0], "co_filename", "").replace(os.sep, "/").split("/")
            for package in packages:
                if package in parts and package not in seen:
                    seen.add(package)
                    write("import", package)

    write("start", *sys.orig_argv)
    sys.addaudithook(hook)

_start()
"""


@dataclass(frozen=True, slots=True)
class Audit:
    """What a command and all its Python child processes did."""

    returncode: int
    stdout: str
    stderr: str
    processes: tuple[tuple[str, ...], ...]
    """Command lines."""
    calls: tuple[tuple[str, ...], ...]
    """Uses of the network: event and arguments. Sockets between processes of this machine do not count."""
    packages: frozenset[str]
    """Those of WATCHED_PACKAGES that were imported."""


def audited_environment(folder: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which every interpreter reports to a new folder.

    Args:
        folder: for the hook and the reports; made.
        base: the environment otherwise.
    """
    (folder / "reports").mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(_HOOK.replace("@PACKAGES@", repr(WATCHED_PACKAGES)), "utf-8")
    path = os.pathsep.join([str(folder), *filter(None, [base.get("PYTHONPATH")])])
    return {**base, _FOLDER: str(folder / "reports"), "PYTHONPATH": path}


def run_audited(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str = "", timeout_s: float = 100
) -> Audit:
    """Run a command to its end, and return what it did.

    Args:
        command: it and its arguments.
        folder: new; for the reports, and below it the current folder of the command.
        environment: without the hook.
        stdin: what it reads.
        timeout_s: seconds until it is killed.
    """
    environment = audited_environment(folder, environment)
    here = folder / "here"
    here.mkdir()
    done = subprocess.run(
        command,
        cwd=here,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout_s,
        check=False,
    )
    reports = [report for path in sorted((folder / "reports").iterdir()) for report in _read(path)]
    return Audit(
        returncode=done.returncode,
        stdout=done.stdout,
        stderr=done.stderr,
        processes=_of_kind("start", reports),
        calls=_of_kind("call", reports),
        packages=frozenset(facts[0] for facts in _of_kind("import", reports)),
    )


def _read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _of_kind(kind: str, reports: Sequence[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(report[1:]) for report in reports if report[0] == kind)
