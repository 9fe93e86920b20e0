"""Text from models, files and users, made safe for a terminal; the terminal app shows it alike."""

from localspec.session.plain_text import one_line, printable

__all__ = ["one_line", "printable"]
