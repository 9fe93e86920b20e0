"""One run of the engine process: its pipes, its log, its end. Knows lines, not messages."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import localspec
from localspec.engine.logfile import RotatingLog

WORKER_COMMAND = (sys.executable, "-P", "-m", "localspec.engine.worker")
"""-P: a module in the current folder must not take the place of one of ours."""

LINE_LIMIT = 64 * 1024 * 1024
"""Longest line in bytes. A header with all tensors of a large split model is a few MB."""

_PIPE_GRACE_S = 1.0
"""How long after the exit the pipes may stay open. They outlive the process only if a child of it holds them."""


_KILL_S = 5.0
"""How long a killed process is waited for. One that hangs in a driver may stay for good."""


class LineTooLongError(Exception):
    """The process sent more than LINE_LIMIT bytes without an end of line."""


class _Protocol(SubprocessStreamProtocol):
    """Tells the exit apart from the closing of the pipes, which asyncio's own wait() does not in all versions."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=LINE_LIMIT, loop=loop)
        self.exited = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._closing_transport = transport

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()
        # A child of the process that still holds the pipes must not keep a reader waiting.
        asyncio.get_running_loop().call_later(_PIPE_GRACE_S, self._closing_transport.close)


class EngineProcess:
    """A started process. Every instance must be ended with `end`."""

    def __init__(self, transport: asyncio.SubprocessTransport, protocol: _Protocol, log: RotatingLog) -> None:
        assert protocol.stdin and protocol.stdout and protocol.stderr
        self._transport = transport
        self._exited = protocol.exited
        self._stdin: asyncio.StreamWriter = protocol.stdin
        self._stdout: asyncio.StreamReader = protocol.stdout
        self._stderr: asyncio.StreamReader = protocol.stderr
        self._log = log
        self.pid = transport.get_pid()
        log.begin(f"engine process {self.pid} started")
        self._logging = asyncio.create_task(self._write_log(), name="engine log")

    @classmethod
    async def start(cls, command: Sequence[str], log: RotatingLog) -> EngineProcess:
        """Start the process, out of reach of the terminal's Ctrl-C.

        Raises:
            OSError: the system refused.
        """
        loop = asyncio.get_running_loop()
        creation_flags = 0
        if sys.platform == "win32":
            creation_flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(loop),
            *command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(os.environ),
            start_new_session=sys.platform != "win32",
            creationflags=creation_flags,
        )
        return cls(transport, protocol, log)

    @property
    def is_running(self) -> bool:
        """Whether the process can still answer, as far as the event loop has heard."""
        return not self._exited.is_set() and not self._stdout.at_eof()

    @property
    def exit_code(self) -> int | None:
        """Exit status; negative for the signal that ended it; None while it runs."""
        return self._transport.get_returncode()

    def send(self, line: bytes) -> None:
        """Queue a line at once. A dead process is noticed when its answer is read."""
        if self.is_running and not self._stdin.is_closing():
            self._stdin.write(line)

    async def flush(self) -> None:
        """Wait until what was sent is in the pipe."""
        with suppress(BrokenPipeError, ConnectionResetError):
            await self._stdin.drain()

    async def read_line(self) -> bytes:
        """Return the next whole line, its end included; nothing at the end of the output.

        Raises:
            LineTooLongError: no end of line within LINE_LIMIT bytes.
        """
        try:
            line = await self._stdout.readline()
        except ValueError:
            raise LineTooLongError from None
        except OSError:
            return b""
        return line if line.endswith(b"\n") else b""

    async def wait(self, timeout_s: float) -> bool:
        """Wait for the exit; return whether it came in time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), timeout_s)
        return self._exited.is_set()

    def terminate(self) -> None:
        """Ask the process to end, by signal."""
        if sys.platform == "win32":
            self._signal(signal.SIGTERM)
        else:
            # A stopped process acts on SIGTERM only once it goes on.
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process without asking."""
        self._signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)

    async def end(self, grace_s: float) -> int | None:
        """Wait for the exit, kill when it does not come, close everything and return the exit code.

        May be called again, also while another call waits.
        """
        try:
            if not await self.wait(grace_s):
                self.kill()
                await self.wait(_KILL_S)
            await asyncio.wait({self._logging}, timeout=_PIPE_GRACE_S)
        finally:
            if not self._exited.is_set():
                self.kill()
                await self.wait(_PIPE_GRACE_S)
            self._logging.cancel()
            if not self._stdin.is_closing():
                self._stdin.transport.abort()
            self._transport.close()
            # Two turns of the loop, in which asyncio closes the pipes.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return self.exit_code

    def _signal(self, number: signal.Signals) -> None:
        # Not Popen.send_signal: it polls, and may so take the exit status away from asyncio.
        if not self._exited.is_set():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    async def _write_log(self) -> None:
        try:
            while data := await self._stderr.read(65_536):
                self._log.write(data)
        except OSError:
            return


def _environment(base: Mapping[str, str]) -> dict[str, str]:
    environment = dict(base)
    # A debugger that ggml attaches at an abort would hold the pipes, and may hang.
    environment |= {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "GGML_NO_BACKTRACE": "1"}
    root = Path(localspec.__file__).resolve().parent.parent
    if root.name not in ("site-packages", "dist-packages"):
        earlier = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{earlier}{os.pathsep}{root}" if earlier else str(root)
    return environment
