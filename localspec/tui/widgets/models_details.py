"""What is known of one model: facts, and what is wrong with it."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.plain_text import one_line
from localspec.tui.model_rows import ModelRow, fact_rows

_NAME_WIDTH = 13


class ModelsDetails(Widget):
    """Renders the facts of one model as lines with names."""

    DEFAULT_CSS = """
    ModelsDetails { height: auto; }
    """

    row: reactive[ModelRow | None] = reactive[ModelRow | None](None, layout=True)
    """The model; None for none."""

    def render(self) -> Content:
        """Return the lines."""
        if self.row is None:
            return Content.styled("No model is selected.", "dim")
        return details_content(self.row)


def details_content(row: ModelRow) -> Content:
    """Return name, trouble and facts of a model, one below the other."""
    entry = row.entry
    lines = [Content.styled(one_line(row.name), "bold")]
    if entry.failure:
        lines.append(Content.assemble(("cannot be used: ", "bold $text-error"), one_line(entry.failure)))
        if entry.hint:
            lines.append(Content.styled(one_line(entry.hint), "dim"))
    elif entry.facts is None:
        lines.append(Content.styled("its header is not read yet", "dim"))
    for name, value in fact_rows(entry):
        lines.append(Content.assemble((f"{name:<{_NAME_WIDTH}}", "dim"), one_line(value)))
    return Content("\n").join(lines)
