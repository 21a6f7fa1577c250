"""Namespaces, nodes, priority classes, disruption budgets, leases and events."""

from __future__ import annotations

from earmark.apiserver import names
from earmark.apiserver.errors import Cause, duplicate, forbidden, invalid, not_supported, required, too_long
from earmark.apiserver.metadata import validate_labels
from earmark.apiserver.strategies.base import Data, Strategy, View, immutable
from earmark.apiserver.strategies.podrules import validate_amounts, validate_label_selector

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PREFIX = "system-"
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
KEPT_NAMESPACES = ("default", "kube-system")
LONGEST_NOTE_BYTES = 1024
_NODE_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class NamespaceStrategy(Strategy):
    """The rules of namespaces."""

    status_metadata = ("labels", "annotations")
    selectable = {"status.phase": ""}  # noqa: RUF012

    def prepare_create(self, data: Data, view: View) -> None:
        """A new namespace is active, and labelled with its name."""
        meta = data["metadata"]
        meta["labels"] = {**meta.get("labels", {}), "kubernetes.io/metadata.name": meta.get("name", "")}
        data["status"] = {"phase": "Active"}

    def validate_name(self, name: str) -> list[Cause]:
        """A namespace is a DNS label."""
        return [] if names.is_label(name) else [invalid("metadata.name", name, "must be a lowercase RFC 1123 label")]

    def may_delete(self, data: Data) -> str:
        """Some namespaces stay."""
        return "this namespace may not be deleted" if data["metadata"]["name"] in KEPT_NAMESPACES else ""


class NodeStrategy(Strategy):
    """The rules of nodes."""

    status_metadata = ("labels", "annotations", "finalizers")
    selectable = {"spec.unschedulable": "false"}  # noqa: RUF012

    def prepare_create(self, data: Data, view: View) -> None:
        """A node may be created with its status; what is allocatable is the capacity where nothing else is said."""
        status = data.get("status", {})
        if status.get("capacity"):
            status.setdefault("allocatable", dict(status["capacity"]))

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check taints and amounts."""
        causes: list[Cause] = []
        seen: set[tuple[str, str]] = set()
        for index, taint in enumerate(data.get("spec", {}).get("taints", ())):
            here = f"spec.taints[{index}]"
            key, effect = taint.get("key", ""), taint.get("effect", "")
            if not names.is_qualified(key):
                causes.append(invalid(f"{here}.key", key, "must be a qualified name"))
            if not names.is_label_value(taint.get("value", "")):
                causes.append(invalid(f"{here}.value", taint["value"], "must be a valid label value"))
            if not effect:
                causes.append(required(f"{here}.effect"))
            elif effect not in _NODE_EFFECTS:
                causes.append(not_supported(f"{here}.effect", effect, _NODE_EFFECTS))
            if (key, effect) in seen:
                causes.append(duplicate(here, f"{key}:{effect}"))
            seen.add((key, effect))
        return causes + _node_amounts(data)

    def validate_status(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Check amounts."""
        return _node_amounts(new)


def _node_amounts(data: Data) -> list[Cause]:
    status = data.get("status", {})
    return validate_amounts(status.get("capacity", {}), "status.capacity") + validate_amounts(
        status.get("allocatable", {}), "status.allocatable"
    )


class PriorityClassStrategy(Strategy):
    """The rules of priority classes."""

    tracks_generation = True

    def prepare_create(self, data: Data, view: View) -> None:
        """Set the policy."""
        data.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def prepare_update(self, new: Data, old: Data, view: View) -> None:
        """Set the policy."""
        new.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check value, name and policy, and that there is one default at most."""
        causes: list[Cause] = []
        name, value = data["metadata"].get("name", ""), data.get("value")
        if value is None:
            # The field has no default of its own; Kubernetes reads a missing value as 0.
            data["value"] = value = 0
        if name.startswith(SYSTEM_PREFIX):
            if SYSTEM_CLASSES.get(name) != value:
                causes.append(
                    forbidden(
                        "metadata.name", "priority class names with 'system-' prefix are reserved for system use only"
                    )
                )
        elif value > HIGHEST_USER_PRIORITY:
            causes.append(
                forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}")
            )  # fmt: skip
        if not -(2**31) <= value < 2**31:
            causes.append(invalid("value", value, "must be a 32-bit integer"))
        policies = ("PreemptLowerPriority", "Never")
        if data.get("preemptionPolicy") not in policies:
            causes.append(not_supported("preemptionPolicy", data.get("preemptionPolicy"), policies))
        if data.get("globalDefault"):
            for other in view.all("PriorityClass"):
                if other.get("globalDefault") and other["metadata"]["name"] != name:
                    causes.append(
                        forbidden(
                            "globalDefault",
                            f"PriorityClass {other['metadata']['name']} is already marked as globalDefault. "
                            "Only one default can exist",
                        )
                    )
        return causes

    def validate_update(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Check, and refuse a change of value and policy."""
        causes = self.validate(new, view)
        for key in ("value", "preemptionPolicy"):
            if new.get(key) != old.get(key):
                causes.append(forbidden(key, "may not be changed in an update."))
        return causes

    def may_delete(self, data: Data) -> str:
        """The classes of the system stay."""
        return "this is a system priority class and cannot be deleted" if data["metadata"]["name"] in SYSTEM_CLASSES else ""  # fmt: skip  # noqa: E501


class PodDisruptionBudgetStrategy(Strategy):
    """The rules of disruption budgets."""

    tracks_generation = True
    needs_version = True

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check the selector and the two ways to give the budget."""
        spec = data.get("spec", {})
        causes = validate_label_selector(spec.get("selector"), "spec.selector")
        if "minAvailable" in spec and "maxUnavailable" in spec:
            causes.append(
                invalid("spec", "minAvailable, maxUnavailable", "minAvailable and maxUnavailable cannot be both set")
            )  # fmt: skip
        for key in ("minAvailable", "maxUnavailable"):
            value = spec.get(key)
            if isinstance(value, int) and value < 0:
                causes.append(invalid(f"spec.{key}", value, "must be greater than or equal to 0"))
            elif isinstance(value, str) and not (
                value.endswith("%") and value[:-1].isdigit() and int(value[:-1]) <= 100
            ):
                causes.append(
                    invalid(f"spec.{key}", value, "a valid percent string must be a number from 0 to 100 and %")
                )
        return causes

    def validate_status(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Check that counts are not negative."""
        causes = []
        for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
            if (value := new.get("status", {}).get(key, 0)) < 0:
                causes.append(invalid(f"status.{key}", value, "must be greater than or equal to 0"))
        return causes


class LeaseStrategy(Strategy):
    """The rules of leases."""

    needs_version = True

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check the numbers."""
        spec = data.get("spec", {})
        causes = []
        if "leaseDurationSeconds" in spec and spec["leaseDurationSeconds"] <= 0:
            causes.append(
                invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0")
            )  # fmt: skip
        if spec.get("leaseTransitions", 0) < 0:
            causes.append(
                invalid("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0")
            )  # fmt: skip
        return causes


class EventStrategy(Strategy):
    """The rules of events."""

    selectable = {  # noqa: RUF012
        "reason": "",
        "type": "",
        "reportingController": "",
        "regarding.kind": "",
        "regarding.namespace": "",
        "regarding.name": "",
        "regarding.uid": "",
        "regarding.apiVersion": "",
    }

    def field(self, data: Data, name: str) -> str | None:
        """Events may also be selected by the names that core/v1 has for their fields."""
        return super().field(data, name.replace("involvedObject.", "regarding.", 1))

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check what events.k8s.io/v1 wants; events that came by core/v1 carry its fields and are not held to it."""
        causes: list[Cause] = []
        if "deprecatedSource" in data or "deprecatedFirstTimestamp" in data or "deprecatedCount" in data:
            return causes
        for key in ("eventTime", "reportingController", "reportingInstance", "action", "reason"):
            if not data.get(key):
                causes.append(required(key))
        if data.get("type") not in ("Normal", "Warning"):
            causes.append(not_supported("type", data.get("type", ""), ("Normal", "Warning")))
        if len(data.get("note", "").encode()) > LONGEST_NOTE_BYTES:
            causes.append(too_long("note", LONGEST_NOTE_BYTES))
        if "reportingController" in data and not names.is_qualified(data["reportingController"]):
            causes.append(invalid("reportingController", data["reportingController"], "must be a qualified name"))
        about = data.get("regarding", {}).get("namespace", "")
        if about and about != data["metadata"].get("namespace"):
            causes.append(invalid("regarding.namespace", about, "does not match event.namespace"))
        return causes

    def validate_update(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Only the series of an event may change."""
        causes: list[Cause] = []
        for key in ("regarding", "reason", "action", "reportingController", "reportingInstance", "type", "note"):
            causes += immutable(new, old, key)
        return causes + validate_labels(new["metadata"].get("labels", {}), "metadata.labels")
