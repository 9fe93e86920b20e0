"""What a model's name tells: its line, version, size and kind. No name is refused; a strange one tells little."""

from __future__ import annotations

import re
from dataclasses import dataclass

MIN_TIMES_SMALLER = 4
"""At a quarter of the cost, four drafted tokens pay only from an acceptance of 52 % on (metrics/prediction.py)."""

_VARIANTS = {
    "it": "instruct",
    "instruct": "instruct",
    "chat": "instruct",
    "base": "base",
    "pt": "base",
    "pretrain": "base",
    "coder": "coder",
    "code": "coder",
    "thinking": "thinking",
    "reasoning": "thinking",
    "math": "math",
    "vl": "vision",
    "vision": "vision",
    "omni": "omni",
    "audio": "audio",
    "small": "small",
    "medium": "medium",
    "large": "large",
    "mini": "mini",
    "nano": "nano",
    "micro": "micro",
    "tiny": "tiny",
    "lite": "lite",
    "embedding": "embedding",
    "embeddings": "embedding",
    "embed": "embedding",
    "reranker": "reranker",
    "rerank": "reranker",
    "reward": "reward",
    "rm": "reward",
    "prm": "reward",
    "guard": "guard",
    "mmproj": "projector",
    "tts": "speech",
    "asr": "speech",
    "lora": "adapter",
    "adapter": "adapter",
    "draft": "draft",
    "eagle": "eagle3",
    "eagle3": "eagle3",
    "dflash": "dflash",
    "dspark": "dspark",
    "mtp": "mtp",
}

_NO_DRAFTS = {
    "embedding": "an embedding model writes no text",
    "reranker": "a reranker writes no text",
    "reward": "a reward model writes no text",
    "guard": "a guard model writes verdicts and no text",
    "projector": "a projector for images writes no text",
    "speech": "a speech model writes no plain text",
    "adapter": "an adapter is no model of its own",
}

_OWNER = re.compile(
    r"(?:ai21labs|allenai|arcee-ai|baidu|bytedance-seed|coherelabs|deepseek-ai|google|huggingfacetb|ibm-granite|"
    r"internlm|lgai-exaone|liquidai|meta-llama|microsoft|minimaxai|mistralai|moonshotai|nousresearch|nvidia|openai|"
    r"openbmb|qwen|servicenow-ai|tencent|thudm|tiiuae|xai-org|zai-org)_",
    re.ASCII,
)
"""Who conversions put before a name with an underscore, as in `Qwen_Qwen3-8B-GGUF`."""

_PUBLISHERS = frozenset({"meta", "nvidia", "google", "openai"})
"""Words that may stand before a line's own name."""

_MAX_NAME = 200
"""Characters that are looked at; the Hub allows 96."""

_QUANTISATION = re.compile(
    r"(?<![a-z0-9])(?:ud-)?(?:i?q[1-8](?:_[a-z0-9]+)*|tq[12]_0|mxfp4(?:_moe)?|nvfp4|bf16|f16|f32|fp16|fp8|fp4|int[48]|[48]bit)"
    r"(?![a-z0-9])",
    re.ASCII,
)
_SHARD = re.compile(r"-[0-9]{5}-of-[0-9]{5}$", re.ASCII)
_PACKAGING = re.compile(r"(?<![a-z0-9])(?:i1|gguf|ggml|hf|qat|imatrix|unquantized|latest)(?![a-z0-9])", re.ASCII)
_SEPARATORS = re.compile(r"[^a-z0-9.]+|\.(?![0-9])|(?<![0-9])\.", re.ASCII)
_SIZE = re.compile(r"e?([0-9]{1,4}(?:\.[0-9]{1,4})?)([mbt])", re.ASCII)
_EXPERTS = re.compile(r"([0-9]{1,3})x([0-9]{1,4}(?:\.[0-9]{1,4})?)b", re.ASCII)
_ACTIVE = re.compile(r"a([0-9]{1,4}(?:\.[0-9]{1,4})?)b", re.ASCII)
_LENGTH = re.compile(r"[0-9]{1,4}k|[0-9]{1,4}e", re.ASCII)
"""A context such as 128k, or a number of experts such as 16E."""
_DATE = re.compile(r"[0-9]{3,}", re.ASCII)
_VERSION = re.compile(r"v?([0-9]{1,2}(?:\.[0-9]{1,2})*[a-z]?)", re.ASCII)
_WORD_AND_VERSION = re.compile(r"([a-z]{2,})([0-9]{1,2}(?:\.[0-9]{1,2})*[a-z]?)", re.ASCII)
_UNITS = {"m": 10**6, "b": 10**9, "t": 10**12}


@dataclass(frozen=True, slots=True)
class Family:
    """What a name says of a model. Empty texts and counts of 0 are unstated."""

    line: str
    """In lower case, such as `qwen`, `gpt-oss` or `deepseek-r1-distill-qwen`."""
    version: str
    """Such as `3`, `2.5` or `3n`."""
    size_params: int
    """All parameters."""
    active_params: int
    """Those that one token uses, where the name says so (`A3B`)."""
    variant: tuple[str, ...]
    """Kinds such as `coder`, `instruct`, `base`, `thinking`, `vision`, `embedding`; sorted."""
    spelling: str = ""
    """Line and version as a search wants them, such as `qwen2.5` or `llama-3.2`."""

    @property
    def step_params(self) -> int:
        """Parameters that one token uses; 0 where the name tells no size."""
        return self.active_params or self.size_params

    @property
    def name(self) -> str:
        """Line and version for people."""
        return self.spelling or "unknown"


def parse_family(name: str) -> Family:
    """Return what a repository id, a base model's id, a file name or a title says. Never raises."""
    line: list[str] = []
    variant: set[str] = set()
    version = spelling = ""
    size = active = 0
    is_line_open = True
    for word in _words(name):
        if word in _VARIANTS:
            variant.add(_VARIANTS[word])
            # A kind before the name, as in `EAGLE3-LLaMA3.1`, does not end a line that has not begun.
            is_line_open = is_line_open and not line
        elif match := _ACTIVE.fullmatch(word):
            active = active or round(float(match[1]) * 10**9)
        elif match := _EXPERTS.fullmatch(word):
            size = size or round(int(match[1]) * float(match[2]) * 10**9)
            is_line_open = False
        elif match := _SIZE.fullmatch(word):
            size = size or round(float(match[1]) * _UNITS[match[2]])
            is_line_open = False
        elif _LENGTH.fullmatch(word) or _DATE.fullmatch(word):
            continue
        elif match := _VERSION.fullmatch(word):
            if not version and line and (not size or word.startswith("v")):
                version = match[1]
                spelling = f"{'-'.join(line)}-{word}" if not size else ""
            is_line_open = False
        elif is_line_open and not version and (match := _WORD_AND_VERSION.fullmatch(word)):
            line.append(match[1])
            version = match[2]
            spelling = "-".join([*line[:-1], word])
            is_line_open = False
        elif is_line_open:
            line.append(word)
    return Family("-".join(line), version, size, active, tuple(sorted(variant)), spelling or "-".join(line))


def search_words(family: Family) -> tuple[str, ...]:
    """Return the searches that may find smaller siblings, the best first; none for a name that tells no line.

    The second is wider: it finds `Llama-3.2-1B` for a Llama 3.1, since the Hub looks for parts of names.
    """
    if not family.line:
        return ()
    wider = re.sub(r"\.[0-9.]+[a-z]?$", "", family.spelling)
    return tuple(dict.fromkeys((family.spelling, wider)))


def is_same_line(one: Family, other: Family) -> bool:
    """Whether two names are of one line and of versions that may share a vocabulary.

    Versions of one major number may (Llama 3.1 and 3.2 do, Qwen 3 and 3.5 do not): the headers decide.
    """
    return bool(one.line) and one.line == other.line and _major(one.version) == _major(other.version)


def is_sibling(target: Family, candidate: Family) -> bool:
    """Whether the names allow that the candidate drafts for the target.

    That is: one line, versions that may go together, a candidate that writes text, and smaller by at least
    MIN_TIMES_SMALLER in parameters per token. A size that a name does not tell rules nothing out.
    """
    if not is_same_line(target, candidate) or no_draft_reason(candidate):
        return False
    large, small = target.step_params, candidate.step_params
    return not large or not small or large >= MIN_TIMES_SMALLER * small


def no_draft_reason(family: Family) -> str:
    """Return why a model of this kind cannot draft, or nothing."""
    return next((_NO_DRAFTS[kind] for kind in family.variant if kind in _NO_DRAFTS), "")


def _major(version: str) -> str:
    return version.partition(".")[0].rstrip("abcdefghijklmnopqrstuvwxyz")


def _words(name: str) -> list[str]:
    """Return the parts of a name in lower case, without its owner, its quantisation and its file's ending."""
    parts = [part for part in name[-_MAX_NAME:].lower().split("/") if part]
    text = parts[-1] if parts else ""
    text = _SHARD.sub("", text.removesuffix(".gguf"))
    if owner := _OWNER.match(text):
        text = text[owner.end() :]
    text = _PACKAGING.sub(" ", _QUANTISATION.sub(" ", text))
    # `internlm2_5` is a version 2.5.
    text = re.sub(r"(?<=[a-z][0-9])_(?=[0-9](?![0-9a-z]))", ".", text)
    words = [word for word in _SEPARATORS.split(text) if word]
    return words[1:] if len(words) > 1 and words[0] in _PUBLISHERS else words
