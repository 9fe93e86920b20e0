"""Models made up in closed form, measured as the engine measures real ones, and machines to plan them for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from localspec.errors import LocalspecError
from localspec.planning.devices import PlanDevice, check
from localspec.planning.fitting import padded, placements, plan_rows
from localspec.planning.footprint import Footprint, MemoryRow, PairFootprint, Placement
from localspec.planning.plan import DraftAlternative, MemoryPlan, TradeOffer, Wishes, make_plan

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True)
class MadeUpModel:
    """A model whose needs are linear in pieces, as llama.cpp's are."""

    num_blocks: int = 36
    block_bytes: int = 120 * MIB
    expert_bytes: int = 0
    """Of a block's weights."""
    output_bytes: int = 500 * MIB
    embedding_bytes: int = 350 * MIB
    kv_bytes: int = 4096
    """Of a position in one block, F16."""
    window: int = 0
    """Positions that half of the blocks keep; 0 for all."""
    recurrent_bytes: int = 0
    compute_bytes: int = 100 * MIB
    n_ctx_train: int = 32768

    def rows(self, placement: Placement, gpus: Sequence[PlanDevice]) -> tuple[MemoryRow, ...]:
        n_ctx = padded(placement.n_ctx)
        layers = self.num_blocks + 1
        wanted = layers if placement.n_gpu_layers < 0 else min(layers, placement.n_gpu_layers)
        on_gpus = wanted if gpus else 0
        shares = split(on_gpus, gpus)
        place = ["CPU"] * (layers - on_gpus) + [
            gpu.name for gpu, num in zip(gpus, shares, strict=True) for _ in range(num)
        ]
        weights = dict.fromkeys(["CPU", *(gpu.name for gpu in gpus)], 0)
        kv, recurrent = dict(weights), dict(weights)
        weights["CPU"] += self.embedding_bytes
        share = 34 / 64 if placement.type_k == "q8_0" else 1.0
        for block, device in enumerate(place[:-1]):
            experts = self.expert_bytes if placement.experts_on_cpu else 0
            weights[device] += self.block_bytes - experts
            weights["CPU"] += experts
            positions = min(n_ctx, self.window + 512) if self.window and block % 2 else n_ctx
            kv[device] += int(self.kv_bytes * share) * positions
            recurrent[device] += self.recurrent_bytes
        weights[place[-1]] += self.output_bytes
        scratch = 2 * self.kv_bytes * n_ctx if share < 1 else 0
        partly = 11 * MIB if 0 < on_gpus < layers else 0
        compute = max(self.compute_bytes, 48 * MIB + 1024 * n_ctx + scratch) + partly
        found = [
            MemoryRow(name, name, weights[name], kv[name], recurrent[name], compute, 0)
            for name in weights
            if name != "CPU"
        ]
        host_compute = compute if not gpus else 8 * MIB + 1024 * n_ctx
        found.append(MemoryRow("CPU", "CPU", weights["CPU"], kv["CPU"], recurrent["CPU"], host_compute, 0))
        # Pinned memory is a buffer of its own in the same memory.
        found.append(MemoryRow("CUDA_Host", "CPU", 0, 0, 0, 0, 4 * MIB))
        return tuple(found)


def split(num: int, gpus: Sequence[PlanDevice]) -> list[int]:
    """Return how many layers each GPU takes, by free memory."""
    total = sum(gpu.free_bytes for gpu in gpus) or 1
    ends = [round(num * sum(gpu.free_bytes for gpu in gpus[: index + 1]) / total) for index in range(len(gpus))]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


@dataclass
class Measuring:
    """Answers as the engine does, and keeps what it was asked."""

    devices: tuple[PlanDevice, ...]
    target: MadeUpModel
    draft: MadeUpModel | None = None
    asked: list[tuple[Placement, Placement | None]] = field(default_factory=list)
    refuses_q8_0: bool = False

    async def __call__(self, target: Placement, draft: Placement | None) -> PairFootprint:
        self.asked.append((target, draft))
        if self.refuses_q8_0 and target.type_k == "q8_0":
            raise LocalspecError("a head of 80 has no q8_0")
        return self.footprint(target, draft)

    def footprint(self, target: Placement, draft: Placement | None) -> PairFootprint:
        gpus = [device for device in self.devices if device.kind == "gpu"]

        def one(model: MadeUpModel, placement: Placement) -> Footprint:
            assert placement.n_ctx > 0
            return Footprint(
                placement,
                model.rows(placement, gpus),
                padded(placement.n_ctx),
                model.n_ctx_train,
                model.num_blocks + 1,
                8 if model.expert_bytes else 0,
                True,
            )

        return PairFootprint(
            one(self.target, target), one(self.draft, draft) if self.draft is not None and draft is not None else None
        )

    def fits(self, wishes: Wishes) -> bool:
        return not check(plan_rows(self.footprint(*placements(wishes)), self.devices), self.devices)


def gpu(gib: float, name: str = "HYPO0", shares_host_memory: bool = False) -> PlanDevice:
    return PlanDevice(name, "RTX 4070", "gpu", int(gib * GIB), int(gib * GIB), GIB, shares_host_memory)


def host(gib: float = 32) -> PlanDevice:
    return PlanDevice("CPU", "", "host", int(gib * GIB), int(gib * GIB), GIB)


TARGET = MadeUpModel()
DRAFT = MadeUpModel(28, 10 * MIB, output_bytes=120 * MIB, embedding_bytes=120 * MIB, compute_bytes=60 * MIB)
MIXTURE = MadeUpModel(24, 480 * MIB, expert_bytes=440 * MIB)


def gib_up(size_bytes: int) -> str:
    return f"{-(-size_bytes * 10 // GIB) / 10:.1f} GiB"


def wishes_for(n_ctx: int = 16384, draft: bool = True, **more: int) -> Wishes:
    return Wishes(Placement(n_ctx), Placement(0) if draft else None, **more)


async def planned(
    devices: Sequence[PlanDevice],
    wishes: Wishes,
    target: MadeUpModel = TARGET,
    draft: MadeUpModel | None = DRAFT,
    with_offers: bool = False,
    alternatives: Sequence[DraftAlternative] = (),
) -> tuple[MemoryPlan, Measuring]:
    measuring = Measuring(tuple(devices), target, draft if wishes.draft is not None else None)
    plan = await make_plan(devices, measuring, wishes, with_offers=with_offers, alternatives=alternatives)
    assert len(set(measuring.asked)) == len(measuring.asked), "measured twice"
    return plan, measuring


def offers_of(plan: MemoryPlan) -> dict[str, TradeOffer]:
    assert len({offer.code for offer in plan.offers}) == len(plan.offers)
    return {offer.code: offer for offer in plan.offers}
