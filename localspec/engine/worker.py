"""The engine process: `python -m localspec.engine.worker`. Requests come on stdin, events go to fd 1's first owner.

The very first act is to move fd 1 away, so that nothing that C or Python prints can get between the events. The
process ends when stdin does: when its parent closes it, or dies.
"""

from __future__ import annotations

import gc
import os
import queue
import sys
import threading
from time import perf_counter
from typing import BinaryIO


def _take_stdout() -> BinaryIO:
    """Return a private copy of fd 1, and let fd 1 be stderr from now on."""
    events = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return events


_EVENTS = _take_stdout() if __name__ == "__main__" else None

import logging  # noqa: E402

from localspec.engine import wire  # noqa: E402
from localspec.engine.event_writer import EventWriter  # noqa: E402
from localspec.engine.events import (  # noqa: E402
    DevicesRegistered,
    EngineFailed,
    FootprintMeasured,
    HeaderRead,
    PairsChecked,
    Probed,
    Quantized,
    QuantizeProgress,
    Unloaded,
)
from localspec.engine.llama import library, log  # noqa: E402
from localspec.engine.llama.abort import AbortFlag  # noqa: E402
from localspec.engine.llama.footprint import FootprintProbe  # noqa: E402
from localspec.engine.llama.header import read_header  # noqa: E402
from localspec.engine.llama.pairs import check_pairs  # noqa: E402
from localspec.engine.llama.quantize import quantize  # noqa: E402
from localspec.engine.llama.runtime import Runtime  # noqa: E402
from localspec.engine.model import Cancelled  # noqa: E402
from localspec.engine.requests import (  # noqa: E402
    Cancel,
    CheckPairs,
    Configure,
    ExplainDifference,
    Generate,
    LoadModels,
    MeasureFootprint,
    MeasureSteps,
    Probe,
    Quantize,
    ReadHeader,
    RegisterDevices,
    Request,
    Unload,
)
from localspec.errors import LocalspecError, UsageError  # noqa: E402
from localspec.hardware.cores import read_cores  # noqa: E402

_BUG_HINT = "The log file has the details. Please report it as a bug."


class Worker:
    """Carries out requests in order on the main thread, while another reads stdin and hears Cancel at once."""

    def __init__(self, requests: BinaryIO, events: BinaryIO) -> None:
        """Take the two ends of the wire."""
        self._requests = requests
        self._queue: queue.SimpleQueue[tuple[Request, float] | None] = queue.SimpleQueue()
        self._abort = AbortFlag()
        self._lock = threading.Lock()
        self._running_id: int | None = None
        self._cancelled_ids: set[int] = set()
        self._n_threads = read_cores().physical
        self.emit = EventWriter(events).write
        self._runtime = Runtime(self.emit, self._abort, self._n_threads)
        self._probe: FootprintProbe | None = None
        self._devices: tuple[int, ...] | None = None
        """Hypothetical devices, once there are any: from then on this process plans and does nothing else."""

    def run(self) -> None:
        """Serve until Unload or the end of stdin."""
        library.start_library()
        # What the imports left is never garbage; a full collection over it took 6.6 ms, the time of half a token.
        gc.freeze()
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        while (item := self._queue.get()) is not None:
            request, received_s = item
            if not self._begin(request):
                self._fail(request, Cancelled())
                continue
            try:
                self._carry_out(request, received_s)
            except (LocalspecError, Cancelled) as error:
                self._fail(request, error)
            except MemoryError:
                self._fail(
                    request, LocalspecError("This machine has no memory left.", "Use a smaller model or context.")
                )
            except BrokenPipeError:
                raise
            except Exception as error:
                # The outermost edge: a bug ends this request with words, and the process goes on serving.
                logging.getLogger("localspec.engine").exception("request %s", request.type)
                self._fail(request, LocalspecError(f"The engine failed in a way it should not: {error!r}", _BUG_HINT))
            finally:
                self._end(request)
            if isinstance(request, Unload):
                break

    def _begin(self, request: Request) -> bool:
        with self._lock:
            if request.id in self._cancelled_ids:
                return False
            self._running_id = request.id
            self._abort.clear()
            return True

    def _end(self, request: Request) -> None:
        with self._lock:
            self._running_id = None
            self._cancelled_ids.discard(request.id)

    def _read(self) -> None:
        for line in self._requests:
            received_s = perf_counter()
            try:
                request = wire.decode_request(line)
            except LocalspecError as error:
                self.emit(EngineFailed(0, type(error).__name__, error.message, error.hint))
                continue
            if not isinstance(request, Cancel):
                self._queue.put((request, received_s))
                continue
            with self._lock:
                self._cancelled_ids.add(request.request_id)
                if self._running_id == request.request_id:
                    self._abort.set()
        # Nobody listens any more, and the main thread may be inside a long step of llama.cpp.
        os._exit(0)

    def _carry_out(self, request: Request, received_s: float) -> None:
        match request:
            case Probe():
                self.emit(Probed(request.id, library.build_info(), library.devices()))
            case ReadHeader():
                header = read_header(request.path, request.with_tensors, request.max_array)
                self.emit(HeaderRead(request.id, header))
            case CheckPairs():
                verdicts = check_pairs(request.target_path, request.draft_paths, lambda: self._abort.is_set)
                self.emit(PairsChecked(request.id, verdicts))
            case RegisterDevices():
                self._register(request)
            case MeasureFootprint():
                self._measure(request)
            case LoadModels():
                self._check_devices()
                self._drop_probe()
                self._runtime.load_models(request)
            case Configure():
                if request.draft_path is not None:
                    self._drop_probe()
                self._runtime.configure(request)
            case Generate():
                self._runtime.generate(request, received_s)
            case ExplainDifference():
                self._runtime.explain_difference(request)
            case MeasureSteps():
                self._runtime.measure_steps(request)
            case Quantize():
                self._quantize(request)
            case Unload():
                self._drop_probe()
                self._runtime.close()
                self.emit(Unloaded(request.id))
            case Cancel():
                pass

    def _register(self, request: RegisterDevices) -> None:
        # Ctypes structures by the dozen, which no other process needs.
        from localspec.engine.llama import hypothetical

        if self._probe is not None:
            raise UsageError("Hypothetical devices come before anything is measured.", "Start another engine for them.")
        hypothetical.register(request.devices)
        self._devices = hypothetical.handles()
        self.emit(DevicesRegistered(request.id, library.devices()))

    def _measure(self, request: MeasureFootprint) -> None:
        if self._probe is None:
            self._probe = FootprintProbe(self._devices)
        footprint = self._probe.measure(request.target_path, request.target, request.draft_path, request.draft)
        self.emit(FootprintMeasured(request.id, footprint))

    def _check_devices(self) -> None:
        if self._devices is not None:
            raise UsageError(
                "This engine process has hypothetical devices, on which nothing can run.",
                "Load the models in another engine.",
            )

    def _drop_probe(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    def _quantize(self, request: Quantize) -> None:
        size_bytes = quantize(
            request.source_path,
            request.destination_path,
            request.quantisation,
            request.prune_layers,
            request.n_threads or self._n_threads,
            lambda num_done, num_total: self.emit(QuantizeProgress(request.id, num_done, num_total)),
        )
        self.emit(Quantized(request.id, request.destination_path, size_bytes))

    def _fail(self, request: Request, error: LocalspecError | Cancelled) -> None:
        if isinstance(error, Cancelled):
            self.emit(EngineFailed(request.id, "Cancelled", "Cancelled.", ""))
            return
        self.emit(
            EngineFailed(request.id, type(error).__name__, error.message, error.hint, log_tail=tuple(log.tail(20)))
        )


def main() -> int:
    """Run the process and return its exit status."""
    if _EVENTS is None:
        raise RuntimeError("run it as a program: python -m localspec.engine.worker")
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        Worker(sys.stdin.buffer, _EVENTS).run()
    except BrokenPipeError:
        return 0
    finally:
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    # llama.cpp's destructors at interpreter exit are not needed, and can hang on some GPU drivers.
    os._exit(main())
