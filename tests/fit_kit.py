"""An engine that measures made-up models in closed form, for tests of what stands on memory plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from localspec.catalog.header import GgufHeader, TensorInfo
from localspec.engine.events import (
    DevicesRegistered,
    EngineFailed,
    Event,
    FootprintMeasured,
    HeaderRead,
    Probed,
)
from localspec.engine.requests import LoadModels, MeasureFootprint, Probe, ReadHeader, RegisterDevices, Request
from localspec.engine.values import DeviceInfo
from localspec.planning.devices import PlanDevice
from tests.made_up_machine import BUILD, DEVICE
from tests.plan_kit import MIB, MadeUpModel, Measuring
from tests.scripted_engine import ScriptedEngine

TARGET = MadeUpModel(8, 20 * MIB, 0, 20 * MIB, 10 * MIB, kv_bytes=1024, compute_bytes=8 * MIB)
"""On a GPU 228 MiB, and 9 KiB for each position."""
DRAFT = MadeUpModel(4, 2 * MIB, 0, 4 * MIB, 4 * MIB, kv_bytes=512, compute_bytes=8 * MIB)
"""60 MiB and 3 KiB."""
HUGE = MadeUpModel(80, 64 << 30)
"""5 TiB: fits no machine."""

MODELS = {"big": TARGET, "small": DRAFT, "huge": HUGE}


def card(size_mib: int, name: str = "CUDA0") -> DeviceInfo:
    """A GPU that is here."""
    size = size_mib * MIB
    return DeviceInfo(name, "GeForce [bold]", "gpu", "CUDA", size, size)


@dataclass
class FitEngine(ScriptedEngine):
    """Knows models by their files' names, as in MODELS."""

    gpus: tuple[DeviceInfo, ...] = ()
    """Of this machine."""
    num_deaths: int = 0
    """So many questions about footprints kill it."""
    registered: list[str] = field(default_factory=list)
    """Names of hypothetical devices, for the life of the process."""

    def __post_init__(self) -> None:
        self.needs_draft = self.echoes = True
        self.answer = self.answer_fit

    @property
    def loaded(self) -> LoadModels:
        """The last request to load."""
        return [request for request in self.requests if isinstance(request, LoadModels)][-1]

    def answer_fit(self, request: Request) -> list[Event] | None:
        match request:
            case Probe():
                return [Probed(request.id, BUILD, (*self.gpus, DEVICE))]
            case RegisterDevices():
                assert not self.registered, "registered twice in one process"
                self.registered = [f"HYPO{index}" for index in range(len(request.devices))]
                return [DevicesRegistered(request.id, (DEVICE,))]
            case ReadHeader():
                return [HeaderRead(request.id, header(request.path))]
            case MeasureFootprint():
                return [self._measured(request)]
        return None

    def _measured(self, request: MeasureFootprint) -> Event:
        if self.num_deaths:
            self.num_deaths -= 1
            self.registered = []
            return EngineFailed(request.id, "EngineDiedError", "It was killed.", "", is_fatal=True)
        if Path(request.target_path).stem not in MODELS:
            return EngineFailed(request.id, "ModelFileError", "This is no model.", "")
        names = self.registered or [gpu.name for gpu in self.gpus]
        gpus = tuple(PlanDevice(name, "", "gpu", MIB, MIB, 0) for name in names)
        draft = MODELS[Path(request.draft_path).stem] if request.draft_path else None
        measuring = Measuring(gpus, MODELS[Path(request.target_path).stem], draft)
        return FootprintMeasured(request.id, measuring.footprint(request.target, request.draft))


def header(path: str) -> GgufHeader:
    """A header of a model that was trained for 32768 positions."""
    return GgufHeader(
        path=path,
        version=3,
        file_bytes=MIB,
        data_offset=0,
        shards=(path,),
        metadata={"general.architecture": "llama", "llama.context_length": 32768},
        tensors=(TensorInfo("output.weight", "Q4_0", (32, 1), 0, MIB),),
        num_tensors=1,
        num_params=MIB,
        tensor_bytes=MIB,
        vocabulary_fingerprint="v",
    )


def write_models(folder: Path) -> dict[str, Path]:
    """Write files of these names that hold nothing."""
    paths = {name: folder / f"{name}.gguf" for name in MODELS}
    for path in paths.values():
        path.write_bytes(b"GGUF")
    return paths
