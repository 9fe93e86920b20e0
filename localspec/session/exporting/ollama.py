"""For Ollama, as a Modelfile: docs/modelfile.mdx, parser/parser.go and llm/llama_server.go of ollama/ollama."""

from __future__ import annotations

from localspec.methods import is_adaptive, longest_draft
from localspec.session.exporting.shells import comment
from localspec.session.exporting.values import drafting_remarks, heading, number, target_path
from localspec.session.profiles import NamedProfile


def ollama_file(profile: NamedProfile) -> str:
    """Return a Modelfile with the target and its settings, and why nothing is drafted.

    Raises:
        UsageError: the target's path holds what does not show.
    """
    document = profile.document
    context, sampling, drafting = document.context, document.sampling, document.speculation
    remarks = ["Ollama: ollama create NAME -f THIS_FILE"]
    if drafting.method == "draft" and document.draft is not None:
        remarks.append(
            f"Drafting with {document.draft.name} has no equivalent: Ollama's DRAFT and draft_num_predict take MTP and "
            "DFlash files made for their target, not an ordinary small model, so the draft is left out."
        )
    elif drafting.method == "ngram":
        remarks.append("Drafting by n-grams has no setting in Ollama: nothing is drafted.")
    elif drafting.method != "off":
        remarks.append(drafting_remarks(profile, ("verification",))[-1])
    if drafting.method != "off":
        longest = longest_draft(drafting.method, drafting.n_max)
        length = (
            f"drafts of up to {longest} tokens" if is_adaptive(drafting.method, drafting.pacing) else f"n_max {longest}"
        )
        remarks.append(f"So {length} and the gain that was measured do not come along.")
    remarks.append(
        f"Flash attention ({'on' if context.flash_attn else 'off'}) and the cache type ({context.type_k}) are set for "
        "the whole server, by OLLAMA_FLASH_ATTENTION and OLLAMA_KV_CACHE_TYPE."
    )
    if sampling.grammar:
        remarks.append("The profile's grammar has no equivalent here.")
    parameters: list[tuple[str, str]] = [
        ("num_ctx", str(context.n_ctx)),
        ("num_batch", str(context.n_batch)),
        ("temperature", number(sampling.temperature)),
        ("top_k", str(sampling.top_k)),
        ("top_p", number(sampling.top_p)),
        ("min_p", number(sampling.min_p)),
        ("repeat_penalty", number(sampling.repeat_penalty)),
        ("repeat_last_n", str(sampling.repeat_last_n)),
        ("seed", str(sampling.seed)),
    ]
    if context.n_gpu_layers >= 0:
        parameters.append(("num_gpu", str(context.n_gpu_layers)))
    if context.n_threads:
        parameters.append(("num_thread", str(context.n_threads)))
    lines = [comment(line) for line in (*heading(profile), *remarks)]
    lines.append(f"FROM {_argument(target_path(profile))}")
    lines += [f"PARAMETER {name} {value}" for name, value in parameters]
    return "\n".join(lines) + "\n"


def _argument(path: str) -> str:
    # The rest of the line is the argument, but for spaces at its ends; quotes keep those.
    return f'"{path}"' if path != path.strip() else path
