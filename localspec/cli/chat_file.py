"""Files that a person asks for; the terminal app writes them alike."""

from localspec.session.new_file import write_new

__all__ = ["write_new"]
