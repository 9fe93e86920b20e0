"""Every failure that a user may see.

LocalspecError
├── UsageError        the request cannot be carried out as written
├── SettingsError     a settings file, flag or environment variable is wrong
├── ModelFileError    a GGUF file is missing, damaged or not supported
├── ModelLoadError    llama.cpp could not load a readable file
├── TemplateError     the model's chat template objects to the conversation
├── DecodeError       llama.cpp refused or failed a step
├── MissingSymbolError  this build of llama.cpp lacks a function that is needed
└── EngineDiedError   the engine process ended without being asked to
"""


class LocalspecError(Exception):
    """A failure with words for the user: what happened, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(LocalspecError):
    """The request cannot be carried out as written."""


class SettingsError(LocalspecError):
    """A settings file, flag or environment variable is wrong."""


class ModelFileError(LocalspecError):
    """A GGUF file is missing, damaged or not supported."""


class ModelLoadError(LocalspecError):
    """llama.cpp could not load a readable file."""


class TemplateError(LocalspecError):
    """The model's chat template objects to the conversation."""


class DecodeError(LocalspecError):
    """llama.cpp refused or failed a step."""


class MissingSymbolError(LocalspecError):
    """This build of llama.cpp lacks a function that is needed."""


class EngineDiedError(LocalspecError):
    """The engine process ended without being asked to."""
