"""The faults that a timeline sets, on the embedded API's own."""

from __future__ import annotations

from earmark.apiserver.faults import Faults
from earmark.apiserver.faults import RequestMatch as ApiMatch
from earmark.simulation.stage import RequestMatch


class FaultBoard:
    """Sets faults for the requests of services; the scenario's own requests do not come by here."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def fail(self, match: RequestMatch, times: int, status: int) -> None:
        """Refuse the next matching requests with an HTTP status."""
        self._faults.fail(_api_match(match), times=times, status=status)

    def delay(self, match: RequestMatch, seconds: float) -> None:
        """Answer matching requests later; 0 ends it."""
        self._faults.delay(_api_match(match), seconds)


def _api_match(match: RequestMatch) -> ApiMatch:
    return ApiMatch(match.verb, match.kind, match.name or "", match.subresource or "")
