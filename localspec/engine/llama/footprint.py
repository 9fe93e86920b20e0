"""What models take in memory, as llama.cpp itself computes it without allocating.

A model is opened with no_alloc from its header alone; a context with the very parameters of a real load is made
beside it, and llama.cpp's account of the two is read. What the account leaves out or lumps together is added here:
the buffer of logits, and which part of a context is recurrent state.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from localspec.catalog.facts import MTP_ARCHITECTURES, draft_kind, facts_of
from localspec.catalog.gguf_walk import printable
from localspec.catalog.header import GgufHeader
from localspec.catalog.heads import head_name
from localspec.engine.llama.accounts import FROM_LOG, Account, exact_account, logged_account
from localspec.engine.llama.breakdown import UnreadableBreakdown
from localspec.engine.llama.context_log import read_log
from localspec.engine.llama.header import read_header
from localspec.engine.llama.library import start_library
from localspec.engine.llama.params import MAX_OUTPUTS
from localspec.engine.llama.probe import ProbedContext, ProbedModel, check_placement
from localspec.engine.llama.recurrent import MAX_TOUCHED_BYTES, ROLLS_BACK, check_state
from localspec.engine.llama.stub import Stubs, name_of_content
from localspec.errors import LocalspecError, MissingSymbolError, ModelFileError, ModelLoadError
from localspec.planning.footprint import Footprint, ModelRole, PairFootprint, Placement

MAX_OPEN = 12
"""Models kept open, each a few MB; a search over layers opens one for each number of them."""

_STATE_CTX = 512
_Key = tuple[str, int, bool, bool]


@dataclass(frozen=True, slots=True)
class _State:
    """Recurrent state as it will be in a context, and what a real one would have."""

    bytes: Counter[str]
    """By buffer."""
    n_rs_seq: int
    """Snapshots to make the context with."""
    factor: int
    """How many times as much a real context has: llama.cpp allocates state for real, so large ones are multiplied."""


_NO_STATE = _State(Counter(), 0, 1)


class FootprintProbe:
    """Measures models, and keeps the last ones open. Nothing that it holds can run.

    Args:
        devices: ggml's handles of the only devices to place layers on; None leaves the choice to llama.cpp.
        stubs: where headers without vocabularies are kept; None for localspec's cache.
        account: llama.cpp's account of a context; tests replace it by one that fails.
    """

    def __init__(
        self,
        devices: Sequence[int] | None = None,
        stubs: Stubs | None = None,
        account: Callable[[Any], Account] = exact_account,
    ) -> None:
        start_library()
        self._devices = devices
        self._stubs = stubs or Stubs()
        self._account = account
        self._headers: dict[str, GgufHeader] = {}
        self._stubs_of: dict[str, set[str]] = {}
        """Files that stand for a model, by its path."""
        self._open: OrderedDict[_Key, ProbedModel] = OrderedDict()

    def measure(
        self, target_path: str, target: Placement, draft_path: str = "", draft: Placement | None = None
    ) -> PairFootprint:
        """Return what a target takes, with a draft if one is named.

        A draft that is a head of its target (EAGLE-3, DFlash, MTP) is measured on the target's context. The target's
        own path as a draft means the heads for multi-token prediction inside the file, if it has any. A head that
        cannot be measured is no failure but a note, with its weights counted from the file.

        Raises:
            UsageError: a placement is out of bounds.
            ModelFileError: a file is missing, damaged or not supported.
            ModelLoadError: llama.cpp refuses a model or its context, or it is none that runs alone.
        """
        with self._models_named():
            return self._measure(target_path, target, draft_path, draft)

    def _measure(self, target_path: str, target: Placement, draft_path: str, draft: Placement | None) -> PairFootprint:
        check_placement(target)
        header = self._header(target_path)
        kind = draft_kind(header)
        if kind is not None:
            # llama.cpp would end the process at the first context of its own.
            raise ModelLoadError(
                f"{printable(target_path)} is {head_name(kind)}, which cannot run alone.",
                "Choose the file of a whole model.",
            )
        has_heads = bool(draft) and draft_path == target_path and header.arch_integer("nextn_predict_layers") > 0
        model = self._model(target_path, target, load_mtp=has_heads)
        _check_decoder(model)
        state = self._state(model, target)
        with model.context(replace(target, n_rs_seq=state.n_rs_seq)) as context:
            whole = self._footprint(model, context, target, state, "target")
            if draft is None or not draft_path:
                return PairFootprint(whole, None)
            check_placement(draft)
            if has_heads:
                return PairFootprint(whole, self._heads(model, context, draft))
            draft_header = self._header(draft_path)
            if draft_kind(draft_header) is not None:
                return PairFootprint(whole, self._head_file(model, context, draft_path, draft_header, draft))
        return PairFootprint(whole, self._alone(draft_path, draft))

    def close(self) -> None:
        """Free everything. Safe to call twice."""
        while self._open:
            self._open.popitem()[1].close()

    def _alone(self, path: str, placement: Placement) -> Footprint:
        model = self._model(path, placement)
        _check_decoder(model)
        state = self._state(model, placement)
        with model.context(replace(placement, n_rs_seq=state.n_rs_seq)) as context:
            return self._footprint(model, context, placement, state, "draft")

    def _heads(self, model: ProbedModel, target: ProbedContext, placement: Placement) -> Footprint:
        """Measure the heads inside the target: they are counted among its weights."""
        try:
            with model.context(placement, is_mtp=True, other=target.handle) as context:
                found = self._footprint(model, context, placement, _NO_STATE, "draft")
                rows = tuple(replace(row, weights_bytes=0) for row in found.rows)
                return replace(found, rows=tuple(row for row in rows if row.total_bytes))
        except ModelLoadError as error:
            return self._unmeasured(model, placement, error.message, weights=False)

    def _head_file(
        self, target: ProbedModel, other: ProbedContext, path: str, header: GgufHeader, placement: Placement
    ) -> Footprint:
        is_mtp = draft_kind(header) == "mtp"
        model = self._model(path, placement, load_mtp=is_mtp)
        reason = _misfit(target.header, header)
        if reason:
            return self._unmeasured(model, placement, reason)
        try:
            with model.context(placement, is_mtp=is_mtp, other=other.handle) as context:
                return self._footprint(model, context, placement, _NO_STATE, "draft")
        except ModelLoadError as error:
            return self._unmeasured(model, placement, error.message)

    def _unmeasured(self, model: ProbedModel, placement: Placement, why: str, weights: bool = True) -> Footprint:
        """Return a footprint of weights alone, with the reason."""
        account = Account()
        if weights:
            account = logged_account(model.header, placement, read_log(model.lines), read_log(()), load_mtp=True)
        return _footprint_of(
            model, placement, account, n_ctx=placement.n_ctx, note=f"Only its weights are counted: {why}"
        )

    def _footprint(
        self,
        model: ProbedModel,
        context: ProbedContext,
        placement: Placement,
        state: _State,
        role: ModelRole,
    ) -> Footprint:
        logged = read_log(context.lines)
        note = ""
        try:
            account = self._account(context.handle)
        except (UnreadableBreakdown, MissingSymbolError):
            account = logged_account(model.header, placement, read_log(model.lines), logged, load_mtp=model.loads_mtp)
            note = FROM_LOG
        else:
            account.recurrent = Counter(account.context) if model.is_recurrent else Counter(state.bytes)
        account.multiply_state(state.factor)
        account.output[logged.output_buffer] += output_bytes(model.n_vocab, role)
        return _footprint_of(model, placement, account, n_ctx=context.n_ctx, note=note, is_exact=not note)

    def _state(self, model: ProbedModel, placement: Placement) -> _State:
        """Return the recurrent state of a hybrid model, and how its context is to be made."""
        if not (model.is_hybrid or model.header.architecture in ROLLS_BACK):
            return _State(Counter(), placement.n_rs_seq, 1)
        plain, num_rows = self._state_bytes(model, placement, 0), 1 + placement.n_rs_seq
        if plain.total() * num_rows <= MAX_TOUCHED_BYTES:
            return _State(self._state_bytes(model, placement, placement.n_rs_seq), placement.n_rs_seq, 1)
        return _State(plain, 0, num_rows if model.header.architecture in ROLLS_BACK else 1)

    def _state_bytes(self, model: ProbedModel, placement: Placement, n_rs_seq: int) -> Counter[str]:
        """Return the bytes of recurrent state by buffer.

        Attention caches are proportional to the number of cells, which is n_ctx where windows have their whole
        length too; state is not. So twice a context less one of double length is state alone, to the byte.
        """
        if n_rs_seq not in model.states:
            sizes = []
            for n_ctx in (_STATE_CTX, 2 * _STATE_CTX):
                short = replace(placement, n_ctx=n_ctx, type_k="f16", type_v="f16", n_rs_seq=n_rs_seq)
                with model.context(short, swa_full=True) as context:
                    try:
                        sizes.append(self._account(context.handle).context)
                    except (UnreadableBreakdown, MissingSymbolError):
                        return read_log(context.lines).recurrent
            once, twice = sizes
            model.states[n_rs_seq] = Counter({name: max(0, 2 * once[name] - twice[name]) for name in once})
        return model.states[n_rs_seq]

    @contextmanager
    def _models_named(self) -> Iterator[None]:
        """Let messages, llama.cpp's own among them, name the models and not the files that stand for them here."""
        try:
            yield
        except LocalspecError as error:
            error.message, error.hint = self._in_own_words(error.message), self._in_own_words(error.hint)
            error.args = (error.message, *error.args[1:])
            raise

    def _in_own_words(self, text: str) -> str:
        for path, stubs in self._stubs_of.items():
            for stub in stubs:
                text = text.replace(printable(stub), printable(path))
        return text

    def _header(self, path: str) -> GgufHeader:
        try:
            content = name_of_content(path)
        except OSError:
            raise ModelFileError(f"There is no file {printable(path)}.", "Check the path.") from None
        header = self._headers.get(content)
        if header is None:
            if len(self._headers) >= 4 * MAX_OPEN:
                self._headers.clear()
            header = self._headers[content] = self._stubs.header_of(path)
            check_state(header)
        if header.path != path:
            self._stubs_of.setdefault(path, set()).update(header.shards)
        return header

    def _model(self, path: str, placement: Placement, load_mtp: bool = False) -> ProbedModel:
        """Return an open model, and close the one unused for longest if there are too many."""
        header = self._header(path)
        most = header.arch_integer("block_count") + 1
        n_gpu_layers = placement.n_gpu_layers if 0 <= placement.n_gpu_layers < most else most
        key = (name_of_content(path), n_gpu_layers, placement.experts_on_cpu, load_mtp)
        model = self._open.get(key)
        if model is None:
            if len(self._open) >= MAX_OPEN:
                self._open.popitem(last=False)[1].close()
            model = self._open[key] = self._opened(path, header, placement, load_mtp)
        self._open.move_to_end(key)
        return model

    def _opened(self, path: str, header: GgufHeader, placement: Placement, load_mtp: bool) -> ProbedModel:
        with suppress(ModelLoadError):
            return ProbedModel(header, placement, self._devices, load_mtp=load_mtp)
        # Some architectures may want the vocabulary that the copy lacks.
        header = read_header(path)
        model = ProbedModel(header, placement, self._devices, load_mtp=load_mtp)
        self._headers[name_of_content(path)] = header
        return model


def output_bytes(n_vocab: int, role: ModelRole) -> int:
    """Return the size to which the buffer of logits grows: a row for each token of a verification, one for a draft.

    Source: output_reserve in src/llama-context.cpp, without embeddings and sampling on the device. A new context
    has one row.
    """
    return 4 * n_vocab * (MAX_OUTPUTS if role == "target" else 1)


def _footprint_of(
    model: ProbedModel, placement: Placement, account: Account, *, n_ctx: int, note: str, is_exact: bool = False
) -> Footprint:
    header = model.header
    return Footprint(
        placement=placement,
        rows=account.rows(),
        n_ctx=n_ctx,
        n_ctx_train=model.n_ctx_train,
        num_layers=header.arch_integer("block_count") + 1,
        num_experts=header.arch_integer("expert_count"),
        is_exact=is_exact,
        note=note,
    )


def _check_decoder(model: ProbedModel) -> None:
    if not model.can_generate:
        raise ModelLoadError(
            f"{printable(model.header.path)} is a {printable(model.header.architecture)} model, which does not "
            "generate text token by token.",
            "Choose a decoder model.",
        )


def _misfit(target: GgufHeader, draft: GgufHeader) -> str:
    """Return why a head cannot stand on this target, whose insides it would read: llama.cpp checks it by ending."""
    wanted, width = facts_of(draft).target_hidden_size, target.arch_integer("embedding_length")
    architecture = MTP_ARCHITECTURES.get(draft.architecture, draft.architecture)
    if draft_kind(draft) == "mtp" and architecture != target.architecture:
        return f"it is made for {printable(architecture)}, not for {printable(target.architecture)}."
    if wanted != width:
        return f"it is made for hidden states of width {wanted or 'unknown'}, and the target's is {width}."
    return ""
