"""What a failed call tells: which service at which address, which method, and the field where one is to blame."""

from __future__ import annotations

import re

import grpc

# "pod.uid: ...", "nominations[2].node_name: ...", "feature_gates[DRAPreemption]: ...": how services name a field.
_FIELD = re.compile(r"^([a-z][a-z0-9_]*(?:\[[^\]]*\])*(?:\.[a-z][a-zA-Z0-9_]*(?:\[[^\]]*\])*)*): ")


class CallFailed(Exception):
    """A call failed. The text is one line for people."""

    def __init__(
        self, text: str, *, service: str, address: str, method: str, code: grpc.StatusCode, details: str
    ) -> None:
        super().__init__(text)
        self.service = service
        """The process that was called: "framework", "dynamicresources", ..."""
        self.address = address
        self.method = method
        """As in "SchedulerPluginService/PreFilter"."""
        self.code = code
        self.details = details
        """What the service said."""

    @property
    def field(self) -> str:
        """The field of the request that is to blame; "" where none is named."""
        found = _FIELD.match(self.details)
        return found.group(1) if found else ""


class ServiceUnavailable(CallFailed):
    """Nobody answers at the address, or the service is not ready. The call may be repeated."""


class InvalidRequest(CallFailed):
    """The request cannot be used; `field` names what is wrong with it. Repeating it is useless."""


class PreconditionFailed(CallFailed):
    """The session or the cycle does not exist (any more), or an epoch is old. Begin anew."""


class TimedOut(CallFailed):
    """The answer did not come within the call's timeout. Whether it was done is unknown."""


_KINDS: dict[grpc.StatusCode, type[CallFailed]] = {
    grpc.StatusCode.UNAVAILABLE: ServiceUnavailable,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.FAILED_PRECONDITION: PreconditionFailed,
    grpc.StatusCode.DEADLINE_EXCEEDED: TimedOut,
}


def call_failed(service: str, address: str, method: str, error: grpc.aio.AioRpcError) -> CallFailed:
    """Return the error of a call that gRPC ended with a status."""
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.UNAVAILABLE and _connection(details):
        text = f"{service} does not answer at {address}; is it running? (make run)"
    else:
        text = f"{service} at {address}: {method}: {code.name}: {details}"
    kind = _KINDS.get(code, CallFailed)
    return kind(text, service=service, address=address, method=method, code=code, details=details)


def _connection(details: str) -> bool:
    """Whether gRPC itself says that nobody is there, and not a service that something is not ready."""
    return any(sign in details for sign in ("failed to connect", "Socket closed", "no server", "GOAWAY", "Connection"))
