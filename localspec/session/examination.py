"""What this machine is, joined from the system's facts and the engine's."""

from __future__ import annotations

from dataclasses import dataclass

from localspec.engine.events import Probed
from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import Probe
from localspec.engine.values import BuildInfo
from localspec.errors import LocalspecError
from localspec.hardware.profile import HardwareProfile, read_profile
from localspec.planning.budgets import plan_devices
from localspec.planning.devices import PlanDevice
from localspec.planning.notes import Note, machine_facts, notes_on
from localspec.session.memory_devices import host_memory, reported_devices


@dataclass(frozen=True, slots=True)
class Examination:
    """The machine, the build of llama.cpp, and what follows from them."""

    profile: HardwareProfile
    build: BuildInfo | None
    """None if the engine could not be asked."""
    notes: tuple[Note, ...]
    failure: LocalspecError | None
    """Why the engine could not be asked."""

    def memories(self, reserve_bytes: int) -> tuple[PlanDevice, ...]:
        """Return what memory plans may use of this machine, the host last."""
        return plan_devices(self.profile.devices, host_memory(self.profile.host), reserve_bytes)


async def examine(engine: Engine) -> Examination:
    """Ask the engine for its build and devices, and say what they mean for speculation.

    An engine that fails is a finding and no exception.
    """
    try:
        answer = await last_event(engine, Probe(id=engine.next_id()))
    except LocalspecError as error:
        return Examination(read_profile(), None, (), error)
    if not isinstance(answer, Probed):
        failure = LocalspecError("The engine gave another answer than the one asked for.", "Install localspec again.")
        return Examination(read_profile(), None, (), failure)
    build = answer.build
    profile = read_profile(reported_devices(answer.devices))
    return Examination(
        profile, build, notes_on(machine_facts(profile, build.supports_gpu_offload, build.system_info)), None
    )
