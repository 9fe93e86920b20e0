"""When a failed request is tried again, and after how long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from localspec.errors import LocalspecError, OfflineError

Sleep = Callable[[float], Awaitable[object]]

_DELAYS_S = (1.0, 2.0, 4.0, 8.0)
_MAX_IDLE_TRIES = 5
_LONGEST_WAIT_S = 300.0


class Retries:
    """The patience of one run of downloads: endless while bytes come, five tries in a row that bring none."""

    def __init__(self, sleep: Sleep) -> None:
        self._sleep = sleep
        self._num_idle = 0
        self._is_idle = True
        self._has_fetched = False

    def start_file(self) -> None:
        """Begin with another file, with new patience."""
        self._num_idle, self._is_idle = 0, True

    def note_bytes(self) -> None:
        """Say that this try brought bytes which were not there before."""
        self._is_idle, self._has_fetched = False, True

    async def pause(self, error: LocalspecError, on_wait: Callable[[], None]) -> None:
        """Wait before the next try, calling `on_wait` first; or raise `error`, if there is to be no other try."""
        self._num_idle = self._num_idle + 1 if self._is_idle else 0
        self._is_idle = True
        is_transient = getattr(error, "is_transient", False)
        if isinstance(error, OfflineError):
            # Without a network from the start, a person wants to know at once; a network that went may come again.
            is_transient = self._has_fetched
        delay_s = _DELAYS_S[min(max(self._num_idle, 1), len(_DELAYS_S)) - 1]
        wait_s = max(delay_s, getattr(error, "retry_after_s", None) or 0.0)
        if not is_transient or self._num_idle >= _MAX_IDLE_TRIES or wait_s > _LONGEST_WAIT_S:
            raise error
        on_wait()
        await self._sleep(wait_s)
