"""Faults for simulations and tests: refused, late and lost answers, chosen by verb, kind, name and subresource.

Nothing is injected unless somebody asks for it. Which faults hit which request is a function of the order of requests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from earmark.apiserver.errors import StatusError
from earmark.kube.api import ApiUnavailable
from earmark.kube.clock import Clock

# Both are writes of an object that exists; which of them a client uses is its own affair.
_SAME = {"update": "write", "patch": "write"}

_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
    422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RequestMatch:
    """Which requests are meant; empty fields match all.

    `verb` is get, list, watch, create, update, patch or delete (update and patch are the same here); binding a pod is
    a create of the subresource "binding".
    """

    verb: str = ""
    kind: str = ""
    name: str = ""
    subresource: str = ""

    def matches(self, verb: str, kind: str, name: str, subresource: str) -> bool:
        """Whether a request is meant."""
        return (
            (not self.verb or _SAME.get(self.verb, self.verb) == _SAME.get(verb, verb))
            and (not self.kind or self.kind == kind)
            and (not self.name or self.name == name)
            and (not self.subresource or self.subresource == subresource)
        )


@dataclass(slots=True)
class _Counted:
    match: RequestMatch
    times: int
    status: int = 0
    after: bool = False


@dataclass(slots=True)
class Faults:
    """The faults that are set at present."""

    _refusals: list[_Counted] = field(default_factory=list)
    _losses: list[_Counted] = field(default_factory=list)
    _delays: dict[RequestMatch, float] = field(default_factory=dict)

    def fail(self, match: RequestMatch, *, times: int, status: int) -> None:
        """Answer the next `times` matching requests with an HTTP status and do nothing."""
        self._refusals.append(_Counted(match, times, status))

    def lose(self, match: RequestMatch, *, times: int, done: bool) -> None:
        """Break the connection of the next `times` matching requests, after they took effect if `done`."""
        self._losses.append(_Counted(match, times, after=done))

    def delay(self, match: RequestMatch, seconds: float) -> None:
        """Handle matching requests that many seconds later from now on; 0 ends it."""
        if seconds > 0:
            self._delays[match] = seconds
        else:
            self._delays.pop(match, None)

    def clear(self) -> None:
        """Forget all faults."""
        self._refusals.clear()
        self._losses.clear()
        self._delays.clear()

    async def before(self, clock: Clock, verb: str, kind: str, name: str, subresource: str = "") -> None:
        """Let the faults act before a request is handled.

        Raises StatusError for a refusal and ApiUnavailable for a connection that breaks.
        """
        if self._delays:
            seconds = [wait for match, wait in self._delays.items() if match.matches(verb, kind, name, subresource)]
            if seconds:
                await clock.sleep(max(seconds))
        if self._refusals and (hit := _take(self._refusals, verb, kind, name, subresource)) is not None:
            reason = _REASONS.get(hit.status, "Unknown")
            raise StatusError(hit.status, reason, f"injected fault: {verb} of {kind} {name!r} answered {hit.status}")
        if self._losses and _take(self._losses, verb, kind, name, subresource, after=False) is not None:
            raise ApiUnavailable(f"injected fault: connection lost before {verb} of {kind} {name!r}")

    def after(self, verb: str, kind: str, name: str, subresource: str = "") -> None:
        """Let the faults act after a request took effect; raises ApiUnavailable if the answer is to be lost."""
        if self._losses and _take(self._losses, verb, kind, name, subresource, after=True) is not None:
            raise ApiUnavailable(f"injected fault: connection lost after {verb} of {kind} {name!r}")


def _take(
    faults: list[_Counted], verb: str, kind: str, name: str, subresource: str, *, after: bool | None = None
) -> _Counted | None:
    for fault in faults:
        if (after is None or fault.after is after) and fault.match.matches(verb, kind, name, subresource):
            fault.times -= 1
            if fault.times <= 0:
                faults.remove(fault)
            return fault
    return None
