"""Every failure that a user may see.

LocalspecError
├── UsageError        the request cannot be carried out as written
├── SettingsError     a settings file, flag or environment variable is wrong
├── ModelFileError    a GGUF file is missing, damaged or not supported
├── ModelLoadError    llama.cpp could not load a readable file
├── TemplateError     the model's chat template objects to the conversation
├── DecodeError       llama.cpp refused or failed a step
├── MissingSymbolError  this build of llama.cpp lacks a function that is needed
├── HubError          the Hub could not be asked, or refused
│   ├── OfflineError  there is no network, or it is switched off
│   └── AccessError   the Hub wants a token, or one that may read this repository
├── DownloadError     a file could not be fetched whole
│   └── DiskFullError there is no room for it
├── StoreError        what is kept could not be read or written
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


class HubError(LocalspecError):
    """The Hub could not be asked, or refused."""


class OfflineError(HubError):
    """There is no network, or it is switched off."""


class AccessError(HubError):
    """The Hub wants a token, or one that may read this repository."""


class DownloadError(LocalspecError):
    """A file could not be fetched whole."""


class DiskFullError(DownloadError):
    """There is no room for a file."""


class StoreError(LocalspecError):
    """What is kept could not be read or written."""
