"""What loaded models really take, to hold against what was planned for them."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import llama_cpp.llama_cpp as C

from localspec.engine.llama.accounts import exact_account
from localspec.engine.llama.breakdown import UnreadableBreakdown
from localspec.engine.llama.footprint import output_bytes
from localspec.engine.llama.loading import LoadedModel
from localspec.engine.llama.params import placement_of
from localspec.errors import MissingSymbolError
from localspec.planning.footprint import Footprint, ModelRole, PairFootprint

MAPPED = "Weights in host memory are pages of the file, which the system may take back."


def real_footprint(target: LoadedModel, draft: LoadedModel | None) -> PairFootprint | None:
    """Return what loaded models take; None where this build of llama.cpp does not say.

    Buffers of logits are counted as large as they grow. With a mapped file host rows have the mapped range for
    weights, gaps and all. Of hybrid models the recurrent share is from the log, right to 0.01 MiB; with the KV cache
    it makes up the exact sum.
    """
    with suppress(UnreadableBreakdown, MissingSymbolError):
        return PairFootprint(_footprint(target, "target"), _footprint(draft, "draft") if draft is not None else None)
    return None


def _footprint(loaded: LoadedModel, role: ModelRole) -> Footprint:
    model, context = loaded.model, loaded.context
    account = exact_account(context.handle)
    is_recurrent = bool(C.llama_model_is_recurrent(model.handle))
    account.recurrent = Counter(account.context if is_recurrent else context.log.recurrent)
    account.output[context.log.output_buffer] += output_bytes(context.n_vocab, role)
    return Footprint(
        placement=placement_of(context.settings),
        rows=account.rows(),
        n_ctx=context.n_ctx,
        n_ctx_train=model.n_ctx_train,
        num_layers=model.header.arch_integer("block_count") + 1,
        num_experts=model.header.arch_integer("expert_count"),
        is_exact=True,
        note=MAPPED if context.settings.use_mmap else "",
    )
