"""llama.cpp's C++ map is read if it is laid out as known, and otherwise not believed."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import pytest

from localspec.engine.llama import breakdown, library
from localspec.engine.llama.breakdown import LIBCXX, LIBSTDCXX, MAX_BYTES, Layout, UnreadableBreakdown, read_map
from localspec.engine.llama.buffers import known_buffer_types
from localspec.engine.llama.header import read_header
from localspec.engine.llama.probe import ProbedModel
from localspec.planning.footprint import Placement
from tests.tiny_gguf import write_llama

NODE_BYTES = 64
KEYS = (0x1000, 0x2000, 0x3000)


class Tree:
    """A map with a root and up to two children in memory of our own."""

    def __init__(self, layout: Layout, rows: Sequence[tuple[int, int, int, int]]) -> None:
        self.memory = ctypes.create_string_buffer(NODE_BYTES * 3 + 8)
        base = -(-ctypes.addressof(self.memory) // 8) * 8
        self.nodes = [base + NODE_BYTES * index for index in range(len(rows))]
        for node, row in zip(self.nodes, rows, strict=True):
            for index, value in enumerate(row):
                self.put(node + 32 + 8 * index, value)
        middle = len(rows) // 2
        root = self.nodes[middle]
        if middle:
            self.put(root + layout.left, self.nodes[0])
        if len(rows) > 2:
            self.put(root + layout.right, self.nodes[2])
        self.words = [0] * 8
        self.words[layout.root] = root
        self.words[layout.count] = len(rows)
        self.words[layout.first] = self.nodes[0]

    def put(self, address: int, value: int) -> None:
        ctypes.c_size_t.from_address(address).value = value


ROWS = ((0x1000, 1, 2, 3), (0x2000, 4, 5, 6), (0x3000, 7, 8, 9))
LAYOUTS = pytest.mark.parametrize("layout", [LIBSTDCXX, LIBCXX], ids=["libstdc++", "libc++"])


@LAYOUTS
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_sound_map_is_read_in_order(layout: Layout, count: int) -> None:
    tree = Tree(layout, ROWS[:count])
    assert read_map(tree.words, layout, KEYS) == tuple((row[0], row[1:]) for row in ROWS[:count])


@LAYOUTS
@pytest.mark.parametrize("claimed", [0, 2, 4, 65, 2**40])
def test_a_false_count_is_not_believed(layout: Layout, claimed: int) -> None:
    tree = Tree(layout, ROWS)
    tree.words[layout.count] = claimed
    with pytest.raises(UnreadableBreakdown, match=str(claimed)):
        read_map(tree.words, layout, KEYS)


@LAYOUTS
def test_a_ring_of_nodes_ends(layout: Layout) -> None:
    tree = Tree(layout, ROWS)
    for side in (layout.left, layout.right):
        tree.put(tree.nodes[0] + side, tree.nodes[1])
        with pytest.raises(UnreadableBreakdown):
            read_map(tree.words, layout, KEYS)
        tree.put(tree.nodes[0] + side, 0)


@LAYOUTS
@pytest.mark.parametrize("pointer", [3, 8, 2**60, 2**64 - 8])
def test_what_is_no_pointer_is_not_followed(layout: Layout, pointer: int) -> None:
    tree = Tree(layout, ROWS)
    tree.words[layout.root] = pointer
    with pytest.raises(UnreadableBreakdown, match="no pointers"):
        read_map(tree.words, layout, KEYS)


@LAYOUTS
def test_foreign_keys_and_absurd_sizes_are_not_believed(layout: Layout) -> None:
    tree = Tree(layout, ROWS)
    with pytest.raises(UnreadableBreakdown, match="buffer type"):
        read_map(tree.words, layout, KEYS[:2])
    tree.words[layout.first] = tree.nodes[1]
    with pytest.raises(UnreadableBreakdown):
        read_map(tree.words, layout, KEYS)
    for rows in (((0x1000, 1, 2, MAX_BYTES + 1),), (ROWS[0], ROWS[0])):
        tree = Tree(layout, rows)
        with pytest.raises(UnreadableBreakdown):
            read_map(tree.words, layout, KEYS)


def test_the_other_layout_of_a_sound_map_is_refused() -> None:
    for ours, other in ((LIBSTDCXX, LIBCXX), (LIBCXX, LIBSTDCXX)):
        with pytest.raises(UnreadableBreakdown):
            read_map(Tree(ours, ROWS).words, other, KEYS)


@pytest.mark.skipif("sys.platform == 'win32'", reason="not tried there")
def test_a_missing_function_is_unreadable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library.start_library()
    model = ProbedModel(read_header(str(write_llama(tmp_path / "model.gguf"))), Placement(512))
    with model.context(Placement(512)) as context:
        found = breakdown.memory_breakdown(context.handle)
        assert breakdown.is_available()
        assert {use.buffer for use in found} <= set(known_buffer_types().values())
        assert sum(use.model_bytes for use in found) > 0
        monkeypatch.setattr(breakdown, "SYMBOLS", ("no_such_function",))
        assert not breakdown.is_available()
        with pytest.raises(UnreadableBreakdown, match="this build has none"):
            breakdown.memory_breakdown(context.handle)
    model.close()
