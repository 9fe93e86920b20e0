"""A model with its context, and what llama.cpp says of the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from localspec.catalog.facts import draft_kind
from localspec.catalog.gguf_walk import printable
from localspec.catalog.heads import head_name
from localspec.catalog.quantisation import header_quantisation
from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.chat import ChatFormat
from localspec.engine.llama.context import LlamaContext
from localspec.engine.llama.header import read_header
from localspec.engine.llama.model import LlamaModel
from localspec.engine.llama.token_texts import check_texts
from localspec.engine.values import (
    MAX_BATCH,
    MAX_CTX,
    MAX_DRAFT_TOKENS,
    MAX_LAYERS,
    MAX_THREADS,
    ContextSettings,
    ModelInfo,
)
from localspec.errors import ModelLoadError


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Weights, context and chat format that are used together."""

    model: LlamaModel
    context: LlamaContext
    chat: ChatFormat
    can_roll_back: bool

    @property
    def info(self) -> ModelInfo:
        """What is loaded, read back from llama.cpp."""
        model, context, settings = self.model, self.context, self.context.settings
        return ModelInfo(
            path=model.header.path,
            name=model.name,
            architecture=model.header.architecture,
            description=model.description,
            quantisation=header_quantisation(model.header),
            num_params=model.num_params,
            size_bytes=model.size_bytes,
            n_vocab=model.vocabulary.n_tokens,
            n_ctx=context.n_ctx,
            n_ctx_train=model.n_ctx_train,
            n_threads=context.n_threads,
            n_threads_batch=context.n_threads_batch,
            n_gpu_layers=settings.n_gpu_layers,
            type_k=settings.type_k,
            type_v=settings.type_v,
            flash_attn=settings.flash_attn,
            can_roll_back=self.can_roll_back,
            template=self.chat.source,
            end_tokens=tuple(sorted(model.vocabulary.end_tokens)),
        )

    def close(self) -> None:
        """Free the context, then the weights."""
        self.context.close()
        self.model.close()


def load(
    path: str, settings: ContextSettings, n_threads: int, abort: AbortFlag, progress: Callable[[float], bool]
) -> LoadedModel:
    """Load a model and make its context.

    Args:
        path: a GGUF, or any shard of a split one.
        settings: placement and context.
        n_threads: physical cores, for thread counts of 0.
        abort: stops the context's steps.
        progress: called with a fraction from 0 to 1; returning False cancels.

    Raises:
        ModelFileError: the file is missing or damaged.
        ModelLoadError: llama.cpp could not load it, or it cannot generate.
        TemplateError: its chat template is not Jinja.
        Cancelled: progress said so.
    """
    _check(settings)
    header = read_header(path, with_tensors=False, max_array=0)
    kind = draft_kind(header)
    if kind is not None:
        # llama.cpp would end the process at the first context of its own.
        raise ModelLoadError(
            f"{printable(path)} is {head_name(kind)}, which cannot run alone.", "Choose the file of a whole model."
        )
    check_texts(header)
    model = LlamaModel(header, settings, progress)
    try:
        if not model.can_generate:
            raise ModelLoadError(
                f"{model.name} is a {header.architecture} model, which does not generate text token by token.",
                "Choose a decoder model.",
            )
        context = LlamaContext(model, settings, n_threads, abort)
        try:
            return LoadedModel(
                model, context, ChatFormat(model.handle, model.vocabulary, abort), context.can_roll_back()
            )
        except BaseException:
            context.close()
            raise
    except BaseException:
        model.close()
        raise


def _check(settings: ContextSettings) -> None:
    least = MAX_DRAFT_TOKENS + 1
    if not least <= settings.n_ubatch <= settings.n_batch:
        raise ModelLoadError(
            f"n_batch is {settings.n_batch} and n_ubatch is {settings.n_ubatch}.",
            f"They must keep {least} <= n_ubatch <= n_batch, so that a verification fits one step.",
        )
    for name, value, low, high in (
        ("n_ctx", settings.n_ctx, 0, MAX_CTX),
        ("n_batch", settings.n_batch, least, MAX_BATCH),
        ("n_threads", settings.n_threads, 0, MAX_THREADS),
        ("n_threads_batch", settings.n_threads_batch, 0, MAX_THREADS),
        ("n_gpu_layers", settings.n_gpu_layers, -1, MAX_LAYERS),
    ):
        if not low <= value <= high:
            raise ModelLoadError(f"{name} is {value}.", f"It must lie between {low} and {high}.")
