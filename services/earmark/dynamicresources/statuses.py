"""The result of an extension point as a value, with the codes of the scheduler framework.

The plugin's own texts that more than one module uses stand here too; gRPC and protobuf are not known here.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

PLUGIN_NAME = "DynamicResources"

CANNOT_ALLOCATE = "cannot allocate all claims"
NOT_AVAILABLE = "resourceclaim not available on the node"
# F21: victims of another preemption are gone, their claims are not.
WAITING_FOR_DEVICES = "waiting for devices being reclaimed"
# F49, in the style of the sentence for terminating pods.
STILL_DEALLOCATING = "not eligible due to resource claims on the nominated node still being deallocated."
STATE_NOT_SEEN = "state not yet seen"
CLEANING_UP = "resource claims of an earlier attempt are still being released"


class Code(enum.IntEnum):
    """Codes of the scheduler framework; the numbers are the contract's."""

    SUCCESS = 1
    ERROR = 2
    UNSCHEDULABLE = 3
    UNSCHEDULABLE_AND_UNRESOLVABLE = 4
    WAIT = 5
    SKIP = 6
    PENDING = 7


@dataclass(frozen=True, slots=True)
class Status:
    """Code and reasons."""

    code: Code
    reasons: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """Whether the code is SUCCESS."""
        return self.code is Code.SUCCESS


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


def error(text: str) -> Status:
    """An internal fault: retried by backoff."""
    return Status(Code.ERROR, (text,))


def unschedulable(*reasons: str) -> Status:
    """Removing pods might help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Removing pods does not help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)
