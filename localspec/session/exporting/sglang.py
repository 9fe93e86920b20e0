"""For SGLang. Names and meanings: speculative_decoding and server_arguments in the documentation of SGLang."""

from __future__ import annotations

from localspec.session.exporting.values import (
    NOTHING_DRAFTED,
    Command,
    Option,
    draft_path,
    drafting_remarks,
    sampling_remark,
    target_path,
)
from localspec.session.profiles import NamedProfile


def sglang_command(profile: NamedProfile) -> Command:
    """Return SGLang's command line.

    Raises:
        UsageError: a path holds what does not show.
    """
    document = profile.document
    context, drafting = document.context, document.speculation
    options: list[Option] = [
        ("--model-path", target_path(profile)),
        ("--load-format", "gguf"),
        ("--context-length", str(context.n_ctx)),
        ("--random-seed", str(document.sampling.seed)),
    ]
    remarks = [
        "Where you can, name the original model (OWNER/NAME) instead of the GGUF file, and leave out --load-format."
    ]
    if drafting.method == "draft":
        options += [
            ("--speculative-algorithm", "STANDALONE"),
            ("--speculative-draft-model-path", draft_path(profile)),
            ("--speculative-num-steps", str(drafting.n_max)),
            # One branch is a plain sequence of drafts, and the only one that the overlap scheduler takes.
            ("--speculative-eagle-topk", "1"),
            # The drafts, and the token that they follow.
            ("--speculative-num-draft-tokens", str(drafting.n_max + 1)),
        ]
        remarks.append(
            "It is not documented that a draft may be a GGUF file: name its original model if SGLang refuses the file."
        )
    elif drafting.method == "ngram":
        options += [
            ("--speculative-algorithm", "NGRAM"),
            ("--speculative-num-draft-tokens", str(drafting.n_max)),
        ]
        remarks.append(
            "NGRAM drafts from a store of earlier text, on CUDA only; --speculative-ngram-max-trie-depth bounds what "
            "it matches."
        )
    elif drafting.method == "off":
        remarks.append(NOTHING_DRAFTED)
    remarks += drafting_remarks(profile, ())
    if (context.type_k, context.type_v) != ("f16", "f16"):
        remarks.append(f"The cache types {context.type_k} and {context.type_v} have no equivalent here.")
    remarks.append("Threads, batch sizes, layers on the GPU and flash attention are SGLang's own affair.")
    return Command("python3 -m sglang.launch_server", tuple(options), (*remarks, sampling_remark(profile)))
