"""Sessions: one scheduler, fenced by an epoch that only rises, and any number of sandboxes that end by silence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from earmark.dynamicresources.core import Core


class UnknownSession(Exception):
    """The session does not exist (any more)."""


class StaleEpoch(Exception):
    """A newer scheduler session has taken over."""


@dataclass(slots=True)
class Session:
    """An open session. `scheduler` says which kind it is; `used` is monotonic seconds."""

    id: str
    scheduler: bool
    epoch: int
    core: Core
    used: float


class Sessions:
    """All open sessions."""

    def __init__(self, new_id: Callable[[], str], monotonic: Callable[[], float], sandbox_timeout: float) -> None:
        """`sandbox_timeout` is in seconds."""
        self._new_id = new_id
        self._monotonic = monotonic
        self._timeout = sandbox_timeout
        self._sessions: dict[str, Session] = {}
        self._highest_epoch = 0

    def open_scheduler(self, epoch: int, core: Core) -> Session:
        """Open the scheduler's session; an earlier one ends. Raises StaleEpoch for an epoch below one seen before."""
        if epoch < self._highest_epoch:
            raise StaleEpoch(f"epoch {epoch}: epoch {self._highest_epoch} has been seen")
        self._highest_epoch = epoch
        for session_id in [session.id for session in self._sessions.values() if session.scheduler]:
            del self._sessions[session_id]
        return self._add(True, epoch, core)

    def open_sandbox(self, core: Core) -> Session:
        """Open a sandbox over a core of its own."""
        self._sweep()
        return self._add(False, 0, core)

    def _add(self, scheduler: bool, epoch: int, core: Core) -> Session:
        session = Session(self._new_id(), scheduler, epoch, core, self._monotonic())
        self._sessions[session.id] = session
        return session

    def get(self, session_id: str, epoch: int) -> Session:
        """Return an open session and note that it is in use.

        Raises UnknownSession, and StaleEpoch where a newer scheduler session has fenced this one off.
        """
        self._sweep()
        session = self._sessions.get(session_id)
        if session is None:
            if 0 < epoch < self._highest_epoch:
                raise StaleEpoch(f"epoch {epoch}: epoch {self._highest_epoch} has taken over")
            raise UnknownSession(f"unknown session {session_id!r}")
        if session.scheduler and epoch != session.epoch:
            raise StaleEpoch(f"epoch {epoch}: the session has epoch {session.epoch}")
        session.used = self._monotonic()
        return session

    def close(self, session_id: str) -> None:
        """End a session. Idempotent."""
        self._sessions.pop(session_id, None)

    def _sweep(self) -> None:
        # Looked at whenever a session is used: an idle process needs no timer for it.
        oldest = self._monotonic() - self._timeout
        for session_id in [item.id for item in self._sessions.values() if not item.scheduler and item.used < oldest]:
            del self._sessions[session_id]
