"""Status: the result of a plugin's extension point, as a value (upstream A1)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace


class Code(enum.IntEnum):
    """The codes of the scheduler framework, with the numbers of earmark.v1.StatusCode."""

    SUCCESS = 1
    ERROR = 2
    UNSCHEDULABLE = 3
    UNSCHEDULABLE_AND_UNRESOLVABLE = 4
    WAIT = 5
    SKIP = 6
    PENDING = 7


_REJECTED = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


@dataclass(frozen=True, slots=True)
class Status:
    """A code, the reasons for people, and the plugin that decided."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def success(self) -> bool:
        """Whether the code is SUCCESS."""
        return self.code is Code.SUCCESS

    @property
    def rejected(self) -> bool:
        """Whether the pod was refused; an error is no rejection (upstream A1.2)."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        """The reasons as one text (upstream A1.6)."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return the status with its plugin set, unless one is set already."""
        return self if self.plugin else replace(self, plugin=plugin)


SUCCESS = Status(Code.SUCCESS)


def unschedulable(*reasons: str) -> Status:
    """A rejection that removing pods might cure."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """A rejection that removing pods does not cure."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """An internal fault."""
    return Status(Code.ERROR, reasons)
