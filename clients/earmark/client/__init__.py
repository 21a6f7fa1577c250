"""A typed client of all RPCs of earmark, asynchronous and (earmark.client.blocking) for callers without a loop.

Not here: the Kubernetes API (earmark.kube) and any decision.
"""

from earmark.client.errors import CallFailed, InvalidRequest, PreconditionFailed, ServiceUnavailable, TimedOut
from earmark.client.sandbox import Cycle, Fork, Sandbox, Verdict
from earmark.client.services import EarmarkClient, NotRunning, connect

__all__ = [
    "CallFailed",
    "Cycle",
    "EarmarkClient",
    "Fork",
    "InvalidRequest",
    "NotRunning",
    "PreconditionFailed",
    "Sandbox",
    "ServiceUnavailable",
    "TimedOut",
    "Verdict",
    "connect",
]
