"""What the end of the engine process means, in words."""

from __future__ import annotations

import signal

_AGAIN = "Try again."

_SIGNALS: dict[str, tuple[str, str]] = {
    "SIGKILL": (
        "was killed (signal 9): often the system ran out of memory",
        "Use a smaller model, a shorter context or a smaller KV type, then try again.",
    ),
    "SIGSEGV": ("crashed in native code (signal {n}, invalid memory access)", f"The log file may say where. {_AGAIN}"),
    "SIGABRT": (
        "aborted (signal {n}): llama.cpp stopped at an internal error",
        f"The last log lines name it; often a smaller context or other settings avoid it. {_AGAIN}",
    ),
    "SIGILL": (
        "met an instruction that this CPU does not have (signal {n})",
        "Reinstall llama-cpp-python so that it is compiled on this machine.",
    ),
    "SIGBUS": (
        "could not read a page of memory (signal {n}): often a model file was cut short or its disk went away",
        f"Check the model file and its disk. {_AGAIN}",
    ),
    "SIGFPE": ("crashed in native code (signal {n}, arithmetic error)", f"The log file may say where. {_AGAIN}"),
    "SIGTERM": ("was ended from outside (signal {n})", _AGAIN),
    "SIGINT": ("was interrupted from outside (signal {n})", _AGAIN),
}

_WINDOWS: dict[int, str] = {
    0xC0000005: "SIGSEGV",
    0xC000001D: "SIGILL",
    0xC0000094: "SIGFPE",
    0xC0000409: "SIGABRT",
    0xC000013A: "SIGINT",
}


def describe_exit(exit_code: int | None) -> tuple[str, str]:
    """Return a sentence on how the engine process ended, and a hint.

    Args:
        exit_code: exit status; negative for the signal that ended it; None if it is not known.
    """
    if exit_code is None:
        return "The engine process ended.", _AGAIN
    if exit_code == 0:
        return "The engine process ended before it had answered (exit code 0).", _AGAIN
    number = -exit_code if exit_code < 0 else exit_code & 0xFFFFFFFF
    name = _signal_name(number) if exit_code < 0 else _WINDOWS.get(number, "")
    if name in _SIGNALS:
        words, hint = _SIGNALS[name]
        if exit_code > 0:
            words = words.replace("signal {n}", f"code {number:#x}")
        return f"The engine process {words.replace('{n}', str(number))}.", hint
    if exit_code < 0:
        return f"The engine process was ended by signal {number}{f' ({name})' if name else ''}.", _AGAIN
    return f"The engine process failed (exit code {exit_code}).", f"The log file may say why. {_AGAIN}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
