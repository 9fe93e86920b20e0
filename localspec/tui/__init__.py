"""The terminal app: models, fit, chat, compare, runs."""
