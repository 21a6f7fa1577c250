"""Server-side tables: what `kubectl get` prints of each kind. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from earmark.kube.resources import Resource

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, the cell of an object, and whether only `-o wide` shows it."""

    name: str
    cell: Callable[[Data, datetime], Any]
    wide: bool = False
    type: str = "string"


@dataclass(frozen=True, slots=True)
class Form:
    """The Table form that a request wants; `include` is how much of the objects goes into the rows."""

    version: str
    include: str

    def one(self, resource: Resource, body: bytes, now: datetime) -> bytes:
        """Return one object as a table."""
        data = _decode(body)
        meta = {"resourceVersion": data["metadata"].get("resourceVersion", "")}
        return self._table(resource, [data], meta, now)

    def many(self, resource: Resource, items: Sequence[bytes], meta: Data, now: datetime) -> bytes:
        """Return a list as a table."""
        return self._table(resource, [_decode(item) for item in items], meta, now)

    def _table(self, resource: Resource, items: Sequence[Data], meta: Data, now: datetime) -> bytes:
        columns = _COLUMNS.get(resource.kind, _DEFAULT)
        return _encode(
            {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{self.version}",
                "metadata": meta,
                "columnDefinitions": [
                    {
                        "name": column.name,
                        "type": column.type,
                        "format": "name" if column.name == "Name" else "",
                        "description": "",
                        "priority": 1 if column.wide else 0,
                    }
                    for column in columns
                ],
                "rows": [self._row(columns, item, now) for item in items],
            }
        )

    def _row(self, columns: Sequence[Column], item: Data, now: datetime) -> Data:
        row: Data = {"cells": [column.cell(item, now) for column in columns]}
        if self.include == "Object":
            row["object"] = item
        elif self.include != "None":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": f"meta.k8s.io/{self.version}",
                "metadata": item["metadata"],
            }
        return row


def wanted(accept: str, include: str) -> Form | None:
    """Return the form that an Accept header asks for first; None for plain objects."""
    first = accept.split(",", 1)[0]
    fields = {part.strip() for part in first.split(";")}
    if "as=Table" not in fields or "g=meta.k8s.io" not in fields or "application/json" not in fields:
        return None
    return Form("v1beta1" if "v=v1beta1" in fields else "v1", include or "Metadata")


def age(text: str | None, now: datetime) -> str:
    """Return how long ago a time is, as kubectl prints it; "<unknown>" without one."""
    if not text:
        return "<unknown>"
    seconds = int((now - datetime.fromisoformat(text).astimezone(UTC)).total_seconds())
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    return f"{days // 365}y{days % 365}d" if days < 2920 and days % 365 else f"{days // 365}y"


# --- cells -----------------------------------------------------------------------------------------------------------


def _at(path: str, default: Any = "<none>") -> Callable[[Data, datetime], Any]:
    parts = path.split(".")

    def cell(item: Data, now: datetime) -> Any:
        value: Any = item
        for part in parts:
            value = value.get(part) if isinstance(value, dict) else None
        return default if value in (None, "") else value

    return cell


def _age(item: Data, now: datetime) -> str:
    return age(item["metadata"].get("creationTimestamp"), now)


def _pod_ready(item: Data, now: datetime) -> str:
    statuses = item.get("status", {}).get("containerStatuses", ())
    containers = item["spec"].get("containers", ())
    ready = sum(1 for status in statuses if status.get("ready"))
    if not statuses and _condition(item, "Ready") == "True":
        # Emulated kubelets need not report every container.
        ready = len(containers)
    return f"{ready}/{len(containers)}"


def _pod_status(item: Data, now: datetime) -> str:
    status = item.get("status", {})
    if item["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for condition in status.get("conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "Unknown")


def _restarts(item: Data, now: datetime) -> int:
    return sum(status.get("restartCount", 0) for status in item.get("status", {}).get("containerStatuses", ()))


def _condition(item: Data, kind: str) -> str:
    for condition in item.get("status", {}).get("conditions", ()):
        if condition.get("type") == kind:
            return str(condition.get("status", ""))
    return ""


def _node_status(item: Data, now: datetime) -> str:
    ready = _condition(item, "Ready")
    text = "Ready" if ready == "True" else "NotReady" if ready else "Unknown"
    return f"{text},SchedulingDisabled" if item.get("spec", {}).get("unschedulable") else text


def _roles(item: Data, now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = [key.removeprefix(prefix) for key in item["metadata"].get("labels", {}) if key.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def _claim_state(item: Data, now: datetime) -> str:
    status = item.get("status", {})
    states = ["allocated" if status.get("allocation") else "pending"]
    if status.get("reservedFor"):
        states.append("reserved")
    if item["metadata"].get("deletionTimestamp"):
        states = ["deleted", *states] if status.get("allocation") else ["deleted"]
    return ",".join(states)


def _claim_devices(item: Data, now: datetime) -> str:
    results = item.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return ",".join(f"{result.get('pool')}/{result.get('device')}" for result in results) or "<none>"


def _event_object(item: Data, now: datetime) -> str:
    about = item.get("regarding") or item.get("involvedObject") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _last_seen(item: Data, now: datetime) -> str:
    seen = (
        item.get("deprecatedLastTimestamp")
        or item.get("lastTimestamp")
        or item.get("eventTime")
        or item["metadata"].get("creationTimestamp")
    )
    return age(seen, now)


def _pool(item: Data, now: datetime) -> str:
    return str(item["spec"].get("pool", {}).get("name", ""))


_NAME = Column("Name", _at("metadata.name"))
_AGE = Column("Age", _age)
_DEFAULT = (_NAME, Column("Created At", _at("metadata.creationTimestamp")))

_COLUMNS: dict[str, tuple[Column, ...]] = {
    "Namespace": (_NAME, Column("Status", _at("status.phase")), _AGE),
    "Node": (
        _NAME, Column("Status", _node_status), Column("Roles", _roles), _AGE,
        Column("Version", _at("status.nodeInfo.kubeletVersion", "")),
    ),
    "Pod": (
        _NAME, Column("Ready", _pod_ready), Column("Status", _pod_status),
        Column("Restarts", _restarts, type="integer"), _AGE,
        Column("IP", _at("status.podIP"), wide=True), Column("Node", _at("spec.nodeName"), wide=True),
        Column("Nominated Node", _at("status.nominatedNodeName"), wide=True),
        Column("Readiness Gates", lambda item, now: "<none>", wide=True),
    ),
    "PriorityClass": (
        _NAME, Column("Value", _at("value", 0), type="integer"),
        Column("Global-Default", _at("globalDefault", False), type="boolean"), _AGE,
        Column("PreemptionPolicy", _at("preemptionPolicy")),
    ),
    "Event": (
        Column("Last Seen", _last_seen), Column("Type", _at("type", "")), Column("Reason", _at("reason", "")),
        Column("Object", _event_object),
        Column("Message", lambda item, now: item.get("note") or item.get("message") or ""),
        Column("Name", _at("metadata.name"), wide=True),
    ),
    "PodDisruptionBudget": (
        _NAME, Column("Min Available", _at("spec.minAvailable", "N/A")),
        Column("Max Unavailable", _at("spec.maxUnavailable", "N/A")),
        Column("Allowed Disruptions", _at("status.disruptionsAllowed", 0), type="integer"), _AGE,
    ),
    "Lease": (_NAME, Column("Holder", _at("spec.holderIdentity", "")), _AGE),
    "DeviceClass": (_NAME, _AGE),
    "ResourceSlice": (
        _NAME, Column("Node", _at("spec.nodeName")), Column("Driver", _at("spec.driver")), Column("Pool", _pool), _AGE,
    ),
    "ResourceClaim": (
        _NAME, Column("State", _claim_state), _AGE, Column("Devices", _claim_devices, wide=True),
    ),
    "ResourceClaimTemplate": (_NAME, _AGE),
    "DeviceTaintRule": (_NAME, _AGE),
}  # fmt: skip
