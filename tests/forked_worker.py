"""Engine processes that are forked from one which has imported everything: what a start takes most of its time for.

The program that an EngineClient starts, `python forked_worker.py SOCKET`, hands its stdin, stdout and stderr to the
process that waits at the socket. That forks, the fork is the worker, and its exit status becomes the program's. Not
for tests of how an engine process starts or dies: a signal meets the program, and the worker ends with its stdin.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MOST_BYTES = 1 << 20


@contextmanager
def waiting_process(path: Path) -> Iterator[tuple[str, ...]]:
    """Run the process that forks, and yield the command of a worker."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "GGML_NO_BACKTRACE": "1"}
    root = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", "from tests.forked_worker import _serve; _serve()", str(path)]
    with subprocess.Popen(command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            assert server.stdout.readline() == b"ready\n"
            yield sys.executable, "-I", "-S", __file__, str(path)
        finally:
            server.terminate()


def _serve() -> None:
    """Fork a keeper for whoever connects, who forks the worker and passes its exit status on."""
    import signal

    from localspec.engine import worker

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        print("ready", flush=True)
        while True:
            asking, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                text, descriptors, _, _ = socket.recv_fds(asking, _MOST_BYTES, 3)
                pid = os.fork()
                if pid == 0:
                    asking.close()
                    for number, descriptor in enumerate(descriptors):
                        os.dup2(descriptor, number)
                        os.close(descriptor)
                    order = json.loads(text)
                    os.environ.clear()
                    os.environ.update(order["environment"])
                    os.chdir(order["folder"])
                    worker._EVENTS = worker._take_stdout()
                    os._exit(worker.main())
                for descriptor in descriptors:
                    os.close(descriptor)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                asking.sendall(str(code).encode())
                os._exit(0)
            asking.close()


def _ask() -> int:
    order = json.dumps({"environment": dict(os.environ), "folder": os.getcwd()}).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(sys.argv[1])
        socket.send_fds(server, [order], [0, 1, 2])
        for descriptor in (0, 1):
            os.close(descriptor)
        code = int(server.recv(16) or b"1")
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    os._exit(_ask())
