"""Steps that stop and start services: stop, start, restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from earmark.simulation.document import Field
from earmark.simulation.stage import Stage
from earmark.simulation.steps.base import ReadContext, read_service


@dataclass(frozen=True, slots=True)
class _ServiceStep:
    service: str

    def describe(self) -> Mapping[str, Any]:
        """Return the service's name."""
        return {"target": self.service}


@dataclass(frozen=True, slots=True)
class Stop(_ServiceStep):
    """Kill a service."""

    key: ClassVar[str] = "stop"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Stop:
        """Read a service's name."""
        return cls(read_service(field))

    async def run(self, stage: Stage) -> None:
        """Kill it."""
        await stage.stop(self.service)


@dataclass(frozen=True, slots=True)
class Start(_ServiceStep):
    """Start a service that is stopped."""

    key: ClassVar[str] = "start"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Start:
        """Read a service's name."""
        return cls(read_service(field))

    async def run(self, stage: Stage) -> None:
        """Start it."""
        await stage.start(self.service)


@dataclass(frozen=True, slots=True)
class Restart(_ServiceStep):
    """Kill a service and start it at once."""

    key: ClassVar[str] = "restart"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Restart:
        """Read a service's name."""
        return cls(read_service(field))

    async def run(self, stage: Stage) -> None:
        """Kill it and start it."""
        await stage.stop(self.service)
        await stage.start(self.service)
