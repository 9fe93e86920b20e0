"""What can go wrong with the Hub, in words.

No text of a foreign exception is passed on: the addresses in it may be signed, the headers may hold the token. Whoever
calls here raises the result outside of its `except` block, so that no chain leads back to the original either.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from localspec.errors import AccessError, DownloadError, HubError, LocalspecError, OfflineError

_WITHOUT = "Everything local works without it."
_LOG_IN = "Log in with `hf auth login`, or set HF_TOKEN."
_LATER = "Try again later."
_LONGEST_WAIT_S = 3600.0


class TransientHubError(HubError):
    """A failure that may be gone at the next try."""

    is_transient = True

    def __init__(self, message: str, hint: str = _LATER, retry_after_s: float | None = None) -> None:
        super().__init__(message, hint)
        self.retry_after_s = retry_after_s
        """Seconds that the Hub wants us to wait; None where it does not say."""


class ForeignRefusalError(HubError):
    """A host that is not the Hub refused, as it does when a signed address has run out."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of the Hub, for messages."""

    endpoint: str
    """Without user name and password."""
    repo: str = ""
    revision: str = ""
    path: str = ""
    has_token: bool = False
    is_body: bool = False
    """Whether a file's content was asked for, which may come from a host that is not the Hub."""

    @property
    def what(self) -> str:
        """Name it for people."""
        return f"{self.repo}/{self.path}" if self.path else self.repo or "The search"


def translated(error: BaseException, asked: Asked) -> LocalspecError:
    """Return the failure that a person gets to see for an exception of huggingface_hub or of what it stands on."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    if isinstance(error, LocalspecError):
        return error
    if isinstance(error, OfflineModeIsEnabled):
        return offline_mode()
    if isinstance(error, HfHubHTTPError):
        return _refused(error, asked)
    if isinstance(error, HFValidationError):
        return HubError(f"{asked.repo!r} is no name of a repository.", "Write OWNER/NAME.")
    if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL | OSError):
        return _unreachable(error, asked)
    if isinstance(error, UnicodeEncodeError):
        return _unsendable()
    # What is left is an answer that could be fetched but not understood: no JSON, or without what must be in it.
    return not_the_hub(asked)


def offline_mode() -> OfflineError:
    """Return the failure of asking the Hub while HF_HUB_OFFLINE forbids it."""
    return OfflineError(
        "The Hub was not asked: HF_HUB_OFFLINE is set.", f"Unset HF_HUB_OFFLINE to go online. {_WITHOUT}"
    )


def not_the_hub(asked: Asked) -> HubError:
    """Return the failure of an answer that is not what the Hub would say."""
    return HubError(
        f"{asked.endpoint} answered with something that is not the Hub's.",
        "A login page of the network or a proxy may stand in between; also check HF_ENDPOINT.",
    )


def status_failure(status: int, headers: Mapping[str, str], asked: Asked) -> LocalspecError:
    """Return the failure that an HTTP status stands for; `headers` are the answer's, case-insensitive."""
    code, said = headers.get("X-Error-Code", ""), headers.get("X-Error-Message", "")
    if status == 429 or status == 408 or status >= 500:
        return _busy(status, headers)
    if status == 416:
        return DownloadError(f"{asked.what} has no bytes from there on.", "The file may have changed: try again.")
    if code == "GatedRepo":
        return _gated(asked)
    if said == "Access to this resource is disabled.":
        return HubError(f"The Hub has disabled {asked.repo}.", "Look for another repository of the model.")
    if status == 401 and asked.has_token and said.startswith("Invalid"):
        return AccessError("The Hub does not accept your token.", f"It may have expired. {_LOG_IN}")
    if code == "RevisionNotFound":
        return _no_revision(asked)
    if code == "EntryNotFound":
        return HubError(f"{asked.repo} has no file {asked.path}.", "List what it has with `localspec show REPO`.")
    if asked.repo and (code == "RepoNotFound" or status in (401, 404)):
        kind = AccessError if status == 401 else HubError
        hint = "Check the name." if asked.has_token else f"Check the name. If it is private: {_LOG_IN[0].lower()}"
        rest = "" if asked.has_token else _LOG_IN[1:]
        return kind(f"There is no repository {asked.repo} on the Hub, or it is private.", hint + rest)
    if status in (401, 403):
        hint = "Check the rights of your token." if asked.has_token else _LOG_IN
        return AccessError(f"The Hub does not let you read {asked.what}.", hint)
    return HubError(f"The Hub answered with status {status}.", "Check the name and HF_ENDPOINT.")


def _no_revision(asked: Asked) -> HubError:
    revision = asked.revision or "main"
    if asked.path:
        # Files are asked for by the commit that a listing has just named.
        return HubError(
            f"{asked.repo} no longer has the commit {revision[:12]}.", "It has just been replaced: run this again."
        )
    if revision == "main":
        return HubError(f"{asked.repo} has no main branch.", "Name a branch, tag or commit after an @.")
    return HubError(f"{asked.repo} has no revision {revision}.", "Check the part after the @.")


def _refused(error: BaseException, asked: Asked) -> LocalspecError:
    response = getattr(error, "response", None)
    if response is None:
        return not_the_hub(asked)
    return status_failure(response.status_code, response.headers, asked)


def _gated(asked: Asked) -> AccessError:
    page = f"{asked.endpoint}/{asked.repo}"
    if asked.has_token:
        return AccessError(
            f"{asked.repo} is gated, and your account has no access to it.",
            f"Accept its terms at {page}; some owners look at each request first.",
        )
    return AccessError(
        f"{asked.repo} is gated: it is open only to those who accepted its terms.",
        f"Accept them at {page}. Then: {_LOG_IN[0].lower()}{_LOG_IN[1:]}",
    )


def _busy(status: int, headers: Mapping[str, str]) -> TransientHubError:
    wait = retry_after_s(headers)
    hint = f"Try again in {wait:.0f} seconds." if wait else _LATER
    if status == 429:
        return TransientHubError("The Hub says that there were too many requests.", hint, wait)
    return TransientHubError(f"The Hub has a problem (status {status}).", hint, wait)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer wants us to wait, at most an hour."""
    from huggingface_hub.utils import parse_ratelimit_headers  # type: ignore[attr-defined]

    limit = parse_ratelimit_headers(headers)
    if limit is not None and limit.remaining == 0:
        return min(float(limit.reset_in_seconds), _LONGEST_WAIT_S)
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), _LONGEST_WAIT_S)
    try:
        moment = parsedate_to_datetime(value)
        return min(max(0.0, (moment - datetime.now(moment.tzinfo)).total_seconds()), _LONGEST_WAIT_S)
    except (TypeError, ValueError, OverflowError):
        return None


def _unreachable(error: BaseException, asked: Asked) -> LocalspecError:
    import httpx2

    chain = list(_chain(error))
    where = "the host of the file" if asked.is_body else f"the Hub at {asked.endpoint}"
    for link in chain:
        if isinstance(link, ssl.SSLError):
            reason = getattr(link, "verify_message", "") or link.reason or "the handshake failed"
            return HubError(
                f"The connection to {where} is not trusted: {str(reason).replace('_', ' ').lower()}.",
                "Check the clock of this machine and certificates; behind a proxy that opens TLS, set SSL_CERT_FILE.",
            )
    if isinstance(error, httpx2.ProxyError):
        return HubError("The proxy did not pass the request on.", "Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY.")
    if isinstance(error, httpx2.TooManyRedirects):
        return too_many_redirects(asked)
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        return no_web_address(asked)
    if isinstance(error, httpx2.LocalProtocolError):
        return _unsendable()
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return OfflineError(f"{_capital(where)} cannot be reached: {_reason(chain)}.", f"Check the network. {_WITHOUT}")
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return TransientHubError(f"{_capital(where)} stopped answering.", _LATER)
    if isinstance(error, httpx2.TransportError):
        return TransientHubError(f"The connection to {where} broke off.", _LATER)
    if isinstance(error, OSError) and error.strerror:
        return HubError(
            f"{_capital(where)} was not asked: {error.strerror.lower()}.",
            "Check HF_HOME, HF_TOKEN_PATH and SSL_CERT_FILE.",
        )
    return not_the_hub(asked)


def _unsendable() -> HubError:
    return HubError("The request cannot be sent as it stands.", "Check HF_TOKEN and proxy variables for odd signs.")


def too_long(asked: Asked, max_bytes: int) -> HubError:
    """Return the failure of an answer that is longer than any real one."""
    return HubError(
        f"{asked.what}: the Hub's answer is longer than {max_bytes >> 20} MiB.",
        "No repository needs that much; look for another one, and check HF_ENDPOINT.",
    )


def too_slow(asked: Asked, limit_s: float) -> TransientHubError:
    """Return the failure of an answer that did not come to its end in time."""
    return TransientHubError(f"The Hub at {asked.endpoint} did not answer within {limit_s:.0f} seconds.")


def too_many_redirects(asked: Asked) -> HubError:
    """Return the failure of being sent from address to address without an end."""
    return HubError(f"{asked.what}: the Hub sends us round in circles.", "Check HF_ENDPOINT and the proxy.")


def no_web_address(asked: Asked) -> HubError:
    """Return the failure of being sent to something like a file."""
    return HubError(
        f"{asked.what}: the Hub sends us to an address that is not a web address.", "Check HF_ENDPOINT and the proxy."
    )


def _reason(chain: list[BaseException]) -> str:
    for link in chain:
        if isinstance(link, socket.gaierror):
            return "its name is not known here"
    for link in chain:
        if isinstance(link, TimeoutError):
            return "no answer"
        if isinstance(link, ConnectionRefusedError):
            return "connection refused"
        # strerror is the system's own text and holds no address.
        if isinstance(link, OSError) and link.strerror:
            return link.strerror.lower()
    return "no connection"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(20):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
