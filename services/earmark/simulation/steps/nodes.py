"""Steps that act as kubelets and device drivers: hold, release, attach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from earmark.simulation.document import Field
from earmark.simulation.stage import Stage
from earmark.simulation.steps.base import DEFAULT_NAMESPACE, ReadContext


@dataclass(frozen=True, slots=True)
class Hold:
    """Stop a node's kubelet."""

    node: str
    key: ClassVar[str] = "hold"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Hold:
        """Read a node's name."""
        return cls(field.string())

    def describe(self) -> Mapping[str, Any]:
        """Return the node's name."""
        return {"node": self.node}

    async def run(self, stage: Stage) -> None:
        """Hold it."""
        await stage.hold(self.node)


@dataclass(frozen=True, slots=True)
class Release:
    """Let a node's kubelet go on."""

    node: str
    key: ClassVar[str] = "release"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Release:
        """Read a node's name."""
        return cls(field.string())

    def describe(self) -> Mapping[str, Any]:
        """Return the node's name."""
        return {"node": self.node}

    async def run(self, stage: Stage) -> None:
        """Release it."""
        await stage.release(self.node)


@dataclass(frozen=True, slots=True)
class Attach:
    """Set a condition on all devices of a claim."""

    namespace: str
    claim: str
    condition: str
    status: str = "True"
    reason: str = ""
    message: str = ""
    key: ClassVar[str] = "attach"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Attach:
        """Read {claim, condition, namespace?, status?, reason?, message?}; the claim is named as in `expect`."""
        known = {"claim", "namespace", "condition", "status", "reason", "message"}
        fields = field.mapping(known, required=("claim", "condition"))
        return cls(
            namespace=fields["namespace"].string() if "namespace" in fields else DEFAULT_NAMESPACE,
            claim=fields["claim"].string(),
            condition=fields["condition"].string(),
            status=_read_status(fields["status"]) if "status" in fields else "True",
            reason=fields["reason"].string() if "reason" in fields else "",
            message=fields["message"].string() if "message" in fields else "",
        )

    def describe(self) -> Mapping[str, Any]:
        """Return the claim and the condition."""
        return {"claim": self.claim, "condition": self.condition, "status": self.status}

    async def run(self, stage: Stage) -> None:
        """Set the condition."""
        await stage.attach(self.namespace, self.claim, self.condition, self.status, self.reason, self.message)


def _read_status(field: Field) -> str:
    value = field.value
    if isinstance(value, bool):
        # `status: True` without quotes is a boolean in YAML and means the same.
        return str(value)
    return field.string(one_of=("True", "False", "Unknown"))
