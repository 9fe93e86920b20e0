"""A chat as a document; the terminal app writes the same."""

from localspec.session.chat_markdown import SCHEMA, chat_markdown, chat_record, model_names

__all__ = ["SCHEMA", "chat_markdown", "chat_record", "model_names"]
