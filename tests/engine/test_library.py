"""The loaded llama.cpp, its log and the names it uses."""

from __future__ import annotations

import ctypes
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from localspec.catalog.gguf_walk import printable
from localspec.catalog.quantisation import FILE_TYPES, file_type_name, file_type_number
from localspec.engine.llama import ggml, log
from localspec.engine.llama.library import build_info, devices, start_library, system_info
from localspec.engine.llama.log import LineLog
from localspec.engine.llama.names import KV_TYPES, kv_type_number
from localspec.errors import MissingSymbolError

ROOT = Path(__file__).parents[2]


def test_build_info_is_filled_in() -> None:
    build = build_info()
    assert build.llama_cpp_python
    assert build.system_info == system_info() != ""


def test_there_is_a_cpu() -> None:
    cpus = [device for device in devices() if device.type == "cpu"]
    assert len(cpus) == 1
    assert cpus[0].backend == "CPU"
    assert cpus[0].total_bytes >= cpus[0].free_bytes > 0


def test_a_missing_function_is_named() -> None:
    with pytest.raises(MissingSymbolError, match="ggml_does_not_exist") as caught:
        ggml.symbol("ggml_does_not_exist", ctypes.c_int, ())
    assert "llama-cpp-python" in caught.value.hint


def test_numbers_are_those_of_the_library() -> None:
    for kind, number in KV_TYPES.items():
        assert ggml.type_name(number) == kind
        assert kv_type_number(kind) == number
    for name, number in FILE_TYPES.items():
        stated = ggml.text(ggml.symbol("llama_ftype_name", ctypes.c_char_p, (ctypes.c_int,))(number))
        family = name.removesuffix("_S").removesuffix("_M").removesuffix("_L").removesuffix("_MOE")
        assert family.startswith("IQ3") or family in stated, (name, stated)


def test_file_type_names() -> None:
    assert file_type_number("q4_k") == file_type_number("Q4_K_M") == 15
    assert file_type_number("nonsuch") is None
    assert file_type_name(7) == file_type_name(7 + 1024) == "Q8_0"
    assert file_type_name(9999) == ""


def test_pieces_become_lines() -> None:
    lines = LineLog()
    lines.write(2, b"[   1/  39] token_embd")
    lines.write(2, b"")
    lines.write(5, b".weight, size = ")
    lines.write(5, b"1 MiB\nnext")
    lines.write(4, b"error: one\nerror: two\n")
    lines.write(5, b"after")
    lines.write(5, b"wards\n\n")
    assert lines.lines() == (
        "[   1/  39] token_embd",
        ".weight, size = 1 MiB",
        "next",
        "error: one",
        "error: two",
        "afterwards",
    )
    assert lines.lines(levels={"error"}) == ("error: one", "error: two", "afterwards")
    assert lines.lines(since=5) == ("afterwards",)


def test_only_the_last_lines_are_kept() -> None:
    lines = LineLog(num_kept=3)
    for number in range(10):
        lines.write(2, b"%d\n" % number)
    assert lines.lines() == ("7", "8", "9")
    assert lines.position == 10


def test_a_listener_that_fails_harms_nobody() -> None:
    lines, heard = LineLog(), []

    def fails(line: str) -> None:
        heard.append(line)
        raise RuntimeError(line)

    with lines.listening(fails):
        lines.write(2, b"one\n")
    lines.write(2, b"two\n")
    assert heard == ["one"]
    assert lines.lines() == ("one", "two")


def test_control_characters_are_replaced() -> None:
    assert printable("a\x1b[31mb\tc\u202e") == "a\N{REPLACEMENT CHARACTER}[31mb c\N{REPLACEMENT CHARACTER}"


def test_errors_reach_memory_and_logger(caplog: pytest.LogCaptureFixture) -> None:
    start_library()
    mark = log.position()
    with caplog.at_level(logging.ERROR, logger="localspec.llama"), pytest.raises(ValueError, match="nonsuch"):
        ggml.GgufContext("/nonsuch.gguf")
    assert "failed to open GGUF file" in log.last_error(mark)
    assert log.recent_errors(mark) == log.tail(since=mark)
    assert "failed to open GGUF file" in caplog.text
    assert log.last_error(log.position()) == ""


def test_nothing_is_printed(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests import tiny_gguf\n"
        "from localspec.engine.llama.library import start_library, devices\n"
        "from localspec.engine.llama.quantize import quantize\n"
        "from localspec.engine.llama import ggml, log\n"
        "start_library()\n"
        "path = tiny_gguf.write_llama(Path(sys.argv[1]) / 'a.gguf', n_embd=64)\n"
        "quantize(str(path), str(path.with_name('b.gguf')), 'Q8_0')\n"
        "try:\n"
        "    ggml.GgufContext('/nonsuch.gguf')\n"
        "except ValueError:\n"
        "    sys.exit(0 if log.tail() else 3)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60)
    assert (child.returncode, child.stdout, child.stderr) == (0, b"", b"")
