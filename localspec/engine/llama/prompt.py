"""From a request to prompt tokens that fit the cache as well as they can."""

from __future__ import annotations

from collections.abc import Sequence

from localspec.engine.llama.loading import LoadedModel
from localspec.engine.llama.vocabulary import Vocabulary
from localspec.engine.requests import Generate
from localspec.errors import UsageError


def prompt_tokens(loaded: LoadedModel, request: Generate) -> list[int]:
    """Return the prompt's token ids.

    Raises:
        UsageError: there is no prompt, an id is out of range, or it does not fit the context.
        TemplateError: the chat template objects to the conversation.
    """
    vocabulary, context = loaded.model.vocabulary, loaded.context
    if request.messages:
        text = loaded.chat.render(request.messages)
        tokens = loaded.chat.tokenize(vocabulary, text)
        if not request.is_fresh:
            tokens = follow_cache(vocabulary, text, tokens, context.tokens)
    elif request.text is not None:
        tokens = vocabulary.tokenize(request.text, add_special=True, parse_special=False)
    else:
        tokens = list(request.tokens or ())
        for token in tokens:
            if not 0 <= token < vocabulary.n_tokens:
                raise UsageError(
                    f"Token id {token} is not in this vocabulary of {vocabulary.n_tokens}.", "Use ids of this model."
                )
    if not tokens:
        raise UsageError("The prompt is empty.", "Give some text.")
    if len(tokens) > context.n_ctx:
        raise UsageError(
            f"The prompt has {len(tokens)} tokens, and the context holds {context.n_ctx}.",
            "Shorten it, start a new conversation, or use a larger context (--n-ctx).",
        )
    return tokens


def follow_cache(vocabulary: Vocabulary, text: str, tokens: list[int], cached: Sequence[int]) -> list[int]:
    """Return ids of `text` that share as much as they can with the cache.

    A model may spell its answer with other tokens than the tokeniser would, and then a repeated answer no
    longer matches the cache from there on. So a cached sequence whose bytes begin the text is taken as it is, up to
    a border where either the cache ends or a special token follows, and only the rest is tokenised.
    """
    raw = text.encode("utf-8", "replace")
    position = best_count = best_position = 0
    for count, token in enumerate(cached):
        if count and vocabulary.is_control(token):
            best_count, best_position = count, position
        piece = vocabulary.piece(token, with_special=True)
        if count == 0 and token == vocabulary.bos and not raw.startswith(piece):
            continue
        if not raw.startswith(piece, position):
            break
        position += len(piece)
    else:
        best_count, best_position = len(cached), position
    shared = 0
    for ours, theirs in zip(tokens, cached, strict=False):
        if ours != theirs:
            break
        shared += 1
    if best_count <= shared:
        return tokens
    rest = raw[best_position:].decode("utf-8", "replace")
    following = vocabulary.tokenize(rest, add_special=False, parse_special=True)
    # Tokenisers may put a space before plain text, so a border in front of plain text would change the prompt.
    return [*cached[:best_count], *following] if following and vocabulary.is_control(following[0]) else tokens
