"""Files that are no GGUF though their name says so, known by how they begin."""

from __future__ import annotations

_STRANGERS = {
    b"version https://git-lfs": ("a Git LFS pointer, not the model itself", "Fetch the file with `git lfs pull`."),
    b"<!DOCTYPE": ("a web page", "Download the model file, not its page; a login may be needed."),
    b"<html": ("a web page", "Download the model file, not its page; a login may be needed."),
    b"PK\x03\x04": ("a zip or PyTorch file", "localspec runs GGUF files: look for a GGUF version of the model."),
    b"ggml": ("in an outdated format of llama.cpp", "Look for a GGUF version of the model."),
    b"lmgg": ("in an outdated format of llama.cpp", "Look for a GGUF version of the model."),
    b"tjgg": ("in an outdated format of llama.cpp", "Look for a GGUF version of the model."),
    b"FUGG": ("a big-endian GGUF", "Look for a little-endian version of the model."),
}


def recognise(start: bytes) -> tuple[str, str] | None:
    """Say what a file is and what to do about it, or return None for a GGUF.

    Args:
        start: its first 24 bytes, or all of a shorter one.
    """
    if start[:4] == b"GGUF":
        return None
    for signature, found in _STRANGERS.items():
        if start.startswith(signature):
            return found
    if start[8:9] == b"{":
        return "a safetensors file", "Look for a GGUF version of the model."
    return "not a GGUF file: it does not begin with GGUF", "Download it again, or choose another file."
