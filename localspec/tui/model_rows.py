"""What the table and the details of models show, as plain text and numbers. Texts are foreign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from localspec.session.figures import DASH, bytes_text, context_text, count_text

if TYPE_CHECKING:
    from localspec.catalog.facts import ModelFacts
    from localspec.catalog.places import PlaceKind
    from localspec.session.library import ModelEntry

Column = Literal["name", "architecture", "parameters", "quantisation", "size", "context", "where"]

COLUMNS: dict[Column, str] = {
    "name": "Name",
    "architecture": "Architecture",
    "parameters": "Params",
    "quantisation": "Quant",
    "size": "Size",
    "context": "Context",
    "where": "Where",
}
"""Columns with their headings, from left to right."""

NUMERIC: frozenset[Column] = frozenset({"parameters", "size", "context"})

WHERE: Mapping[PlaceKind, str] = {
    "localspec": "own",
    "demo": "demo",
    "hugging face": "hub",
    "lm studio": "LM Studio",
    "ollama": "Ollama",
    "folder": "folder",
}


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model of the table."""

    entry: ModelEntry
    cells: Mapping[Column, str]
    order: Mapping[Column, str | int]
    """What each column is sorted by."""

    @property
    def name(self) -> str:
        """What the user calls it by; unique."""
        return self.entry.found.name

    @property
    def path(self) -> Path:
        """Its first file."""
        return self.entry.found.path


def row_of(entry: ModelEntry) -> ModelRow:
    """Return a model as the table shows it."""
    found, facts = entry.found, entry.facts
    quantisation = (facts.quantisation if facts is not None else "") or found.quantisation
    cells: dict[Column, str] = {
        "name": found.name,
        "architecture": facts.architecture if facts is not None else DASH,
        "parameters": count_text(facts.num_params) if facts is not None else DASH,
        "quantisation": quantisation or DASH,
        "size": bytes_text(found.file_bytes),
        "context": context_text(facts.n_ctx_train) if facts is not None else DASH,
        "where": WHERE[found.place],
    }
    order: dict[Column, str | int] = {
        **{column: text.casefold() for column, text in cells.items()},
        "parameters": facts.num_params if facts is not None else 0,
        "size": found.file_bytes,
        "context": facts.n_ctx_train if facts is not None else 0,
    }
    return ModelRow(entry, cells, order)


def matching(rows: Sequence[ModelRow], words: str) -> tuple[ModelRow, ...]:
    """Return the rows in which every word occurs somewhere, in any case."""
    wanted = words.casefold().split()
    return tuple(row for row in rows if all(any(word in cell.casefold() for cell in _texts(row)) for word in wanted))


def ordered(rows: Sequence[ModelRow], column: Column, is_descending: bool) -> tuple[ModelRow, ...]:
    """Return the rows sorted by a column, equal ones by name."""
    by_name = sorted(rows, key=lambda row: row.name.casefold())
    # Compared as a pair, since mypy cannot know that one column holds one type.
    return tuple(sorted(by_name, key=lambda row: _key(row.order[column]), reverse=is_descending))


def remark(facts: ModelFacts) -> str:
    """Return what is unusual about a model, in a few words."""
    parts = []
    if facts.draft_only is not None:
        parts.append(f"{facts.draft_only} draft only")
    elif facts.num_mtp_layers:
        parts.append(f"{facts.num_mtp_layers} MTP layer{'s' if facts.num_mtp_layers > 1 else ''}")
    return ", ".join(parts)


def fact_rows(entry: ModelEntry) -> tuple[tuple[str, str], ...]:
    """Return what is known of a model, as lines with names."""
    found, facts = entry.found, entry.facts
    place = [("file", str(found.path))]
    if len(found.shards) > 1:
        place.append(("shards", str(len(found.shards))))
    if facts is None:
        return (("size", bytes_text(found.file_bytes)), ("where", WHERE[found.place]), *place)
    rows = [
        ("title", facts.title or DASH),
        ("architecture", facts.architecture or DASH),
        ("parameters", _parameters(facts)),
        ("quantisation", facts.quantisation or DASH),
        ("size", f"{bytes_text(found.file_bytes)}, {bytes_text(facts.active_bytes)} read per token"),
        ("context", f"{facts.n_ctx_train:,} positions trained" if facts.n_ctx_train else DASH),
        ("layers", f"{facts.n_layer}, width {facts.n_embd}"),
        ("vocabulary", f"{facts.n_vocab:,} tokens, {facts.vocabulary_fingerprint[:8] or 'no fingerprint'}"),
        ("template", "in the file" if facts.template_fingerprint else "none: chat needs another format"),
        ("licence", facts.licence or "not stated in the file"),
    ]
    if facts.num_experts:
        rows.insert(3, ("experts", f"{facts.num_experts_used} of {facts.num_experts} used for a token"))
    if remark(facts):
        rows.append(("remarks", remark(facts)))
    if facts.draft_only is not None and facts.target_hidden_size:
        rows.append(("made for", f"a target of width {facts.target_hidden_size}"))
    if facts.base_models:
        rows.append(("made from", ", ".join(facts.base_models)))
    return (*rows, ("where", WHERE[found.place]), *place)


def _parameters(facts: ModelFacts) -> str:
    total, active = count_text(facts.num_params), count_text(facts.num_active_params)
    is_sparse = facts.num_experts > 0 and 0 < facts.num_active_params < facts.num_params
    return f"{total} ({active} active)" if is_sparse else total


def _texts(row: ModelRow) -> tuple[str, ...]:
    facts = row.entry.facts
    return (*row.cells.values(), facts.title if facts is not None else "")


def _key(value: str | int) -> tuple[int, str]:
    return (value, "") if isinstance(value, int) else (0, value)
