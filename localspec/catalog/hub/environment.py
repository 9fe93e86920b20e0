"""The environment variables that decide how the Hub is reached: what is wrong with them, before they are used.

huggingface_hub reads most of them while it is imported, and fails then in words for its own developers.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from localspec.errors import SettingsError

_ENDPOINT = "HF_ENDPOINT"
_TIMEOUTS = ("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT")
_HEADERS = {"HF_TOKEN": "token", "HUGGING_FACE_HUB_TOKEN": "token", "HF_HUB_USER_AGENT_ORIGIN": "user agent"}
"""What is sent as part of a header."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
_PORTS = {"http": 80, "https": 443}
_MAX_TIMEOUT_S = 86_400
_MAYBE_EMPTY = ("HF_", "HUGGING", "XDG_CACHE_HOME")


def import_library(environ: MutableMapping[str, str] = os.environ) -> None:
    """Import huggingface_hub, having checked the environment that it reads. Empty variables count as not set.

    Raises:
        SettingsError: a variable is wrong; the message names it.
    """
    check_environment(environ)
    with _without_empty(environ):
        import huggingface_hub.constants  # noqa: F401


def check_environment(environ: Mapping[str, str] = os.environ) -> None:
    """Check all variables that have a say in how the Hub is reached.

    Raises:
        SettingsError: one is wrong; the message names it.
    """
    if (endpoint := environ.get(_ENDPOINT)) and not _is_web_address(endpoint):
        raise SettingsError(f"{_ENDPOINT} is no web address.", "Set it to one with https://, or unset it.")
    for name in _TIMEOUTS:
        _check_timeout(name, environ.get(name, ""))
    for name, what in _HEADERS.items():
        text = environ.get(name, "").replace("\r", "").replace("\n", "").strip()
        if not (text.isascii() and text.isprintable()):
            raise SettingsError(f"{name} holds signs that no {what} has.", "Set it again, or unset it.")
    home = os.path.expandvars(os.path.expanduser(environ.get("HF_HOME", "")))
    if home and os.path.lexists(home) and not os.path.isdir(home):
        raise SettingsError(f"HF_HOME names {home}, which is no folder.", "Set it to a folder, or unset it.")
    for name in _PROXIES:
        for spelling in (name.lower(), name):
            _check_proxy(spelling, environ.get(spelling, ""))
    _check_certificates(environ.get("SSL_CERT_FILE", ""))


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of an address.

    Raises:
        ValueError: it has none, or is not of http or https.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("no web address")
    return parts.scheme, parts.hostname.lower(), parts.port or _PORTS[parts.scheme]


def _is_web_address(text: str) -> bool:
    try:
        origin(text)
    except ValueError:
        return False
    return text.isprintable()


def _check_timeout(name: str, text: str) -> None:
    if not text:
        return
    try:
        seconds = int(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= _MAX_TIMEOUT_S:
        raise SettingsError(f"{name} is no number of seconds.", "Set it to a whole number such as 10, or unset it.")


def _check_proxy(name: str, text: str) -> None:
    if not text:
        return
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        scheme, is_address = parts.scheme, bool(parts.hostname) and (parts.port or 1) > 0 and text.isprintable()
    except ValueError:
        scheme, is_address = "", False
    if scheme not in _PROXY_SCHEMES or not is_address:
        raise SettingsError(f"{name} is no address of a proxy.", "Set it to one such as http://HOST:PORT, or unset it.")
    if scheme.startswith("socks") and find_spec("socksio") is None:
        raise SettingsError(
            f"{name} names a SOCKS proxy, which needs the Python package socksio.",
            "Install that beside localspec, or set an http:// proxy, or unset it.",
        )


def _check_certificates(text: str) -> None:
    if not text:
        return
    reason = ""
    if not Path(text).is_file():
        reason = "which is not there" if not os.path.lexists(text) else "which is no file"
    else:
        try:
            ssl.create_default_context(cafile=text)
        except (OSError, ValueError):
            reason = "which holds no certificates that can be read"
    if reason:
        raise SettingsError(f"SSL_CERT_FILE names {text}, {reason}.", "Set it to a file of certificates, or unset it.")


@contextmanager
def _without_empty(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Hide empty variables: huggingface_hub would take them for the current folder, or for a number."""
    hidden = [name for name, value in environ.items() if not value and name.startswith(_MAYBE_EMPTY)]
    for name in hidden:
        del environ[name]
    try:
        yield
    finally:
        environ.update(dict.fromkeys(hidden, ""))
