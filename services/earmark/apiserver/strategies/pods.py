"""Pods: defaults (priority from its class, requests from limits, QoS), validation, what an update may change.

Only what earmark, kubectl and clients use is validated; volumes and probes are kept as they are given.
"""

from __future__ import annotations

from typing import Any

from earmark.apiserver import names
from earmark.apiserver.errors import Cause, StatusError, duplicate, forbidden, invalid, not_supported, required
from earmark.apiserver.strategies.base import Data, Strategy, View
from earmark.apiserver.strategies.podrules import (
    validate_affinity,
    validate_container,
    validate_resource_claims,
    validate_tolerations,
)
from earmark.kube.quantity import parse_quantity

DEFAULT_GRACE_SECONDS = 30
_TERMINAL = ("Succeeded", "Failed")
_UPDATABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class PodStrategy(Strategy):
    """The rules of pods."""

    tracks_generation = True
    returns_deleted = True
    # Upstream keeps these from a status write too; a nomination and its record can go in one write.
    status_metadata = ("labels", "annotations", "finalizers")
    selectable = {  # noqa: RUF012
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    }

    def prepare_create(self, data: Data, view: View) -> None:
        """Set defaults and the priority."""
        spec = data.setdefault("spec", {})
        default_spec(spec)
        _admit_priority(spec, data["metadata"].get("name", ""), view, self)
        status: Data = {"phase": "Pending"}
        if spec.get("schedulingGates"):
            # Upstream shows a gated pod as such from the start.
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]
        status["qosClass"] = qos_class(spec)
        data["status"] = status

    def prepare_update(self, new: Data, old: Data, view: View) -> None:
        """Keep the status, and what may not be unset."""
        super().prepare_update(new, old, view)
        default_spec(new.setdefault("spec", {}))
        for key in ("priority", "preemptionPolicy"):
            if key in old["spec"]:
                new["spec"].setdefault(key, old["spec"][key])

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check a new pod."""
        spec = data["spec"]
        causes: list[Cause] = []
        claims = [entry.get("name", "") for entry in spec.get("resourceClaims", ())]
        if not spec.get("containers"):
            causes.append(required("spec.containers"))
        seen: set[str] = set()
        for group in ("containers", "initContainers"):
            for index, container in enumerate(spec.get(group, ())):
                path = f"spec.{group}[{index}]"
                causes += validate_container(container, path, claims)
                name = container.get("name", "")
                if name in seen:
                    causes.append(duplicate(f"{path}.name", name))
                seen.add(name)
        for key, known in (
            ("restartPolicy", ("Always", "OnFailure", "Never")),
            ("preemptionPolicy", ("PreemptLowerPriority", "Never")),
        ):
            if key in spec and spec[key] not in known:
                causes.append(not_supported(f"spec.{key}", spec[key], known))
        if spec.get("nodeName") and not names.is_subdomain(spec["nodeName"]):
            causes.append(invalid("spec.nodeName", spec["nodeName"], "must be a lowercase RFC 1123 subdomain"))
        if spec.get("terminationGracePeriodSeconds", 0) < 0:
            causes.append(
                invalid(
                    "spec.terminationGracePeriodSeconds",
                    spec["terminationGracePeriodSeconds"],
                    "must be greater than or equal to 0",
                )
            )
        for key, value in spec.get("nodeSelector", {}).items():
            if not names.is_qualified(key):
                causes.append(invalid("spec.nodeSelector", key, "must be a qualified name"))
            if not names.is_label_value(value):
                causes.append(invalid("spec.nodeSelector", value, "must be a valid label value"))
        causes += validate_tolerations(spec.get("tolerations", ()), "spec.tolerations")
        causes += validate_affinity(spec.get("affinity", {}), "spec.affinity")
        causes += validate_resource_claims(spec.get("resourceClaims", ()), "spec.resourceClaims")
        gates: set[str] = set()
        for index, gate in enumerate(spec.get("schedulingGates", ())):
            path = f"spec.schedulingGates[{index}]"
            if not names.is_qualified(gate.get("name", "")):
                causes.append(invalid(f"{path}.name", gate.get("name", ""), "must be a qualified name"))
            if gate.get("name") in gates:
                causes.append(duplicate(path, gate["name"]))
            gates.add(gate.get("name", ""))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            causes.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
        return causes

    def validate_update(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Check that only what may change has changed."""
        before, after = old["spec"], new["spec"]
        causes: list[Cause] = []
        if before == after:
            return causes
        allowed = dict(after)
        for group in ("containers", "initContainers"):
            old_containers, new_containers = before.get(group, []), after.get(group, [])
            if len(old_containers) != len(new_containers):
                causes.append(forbidden(f"spec.{group}", "pod updates may not add or remove containers"))
                return causes
            if old_containers:
                allowed[group] = [
                    {**new_container, "image": old_container.get("image")}
                    if "image" in old_container
                    else new_container
                    for old_container, new_container in zip(old_containers, new_containers, strict=True)
                ]
                for index, container in enumerate(new_containers):
                    if not container.get("image"):
                        causes.append(required(f"spec.{group}[{index}].image"))
        _allow(allowed, before, "activeDeadlineSeconds")
        if before.get("terminationGracePeriodSeconds", 0) < 0 and after.get("terminationGracePeriodSeconds") == 1:
            _allow(allowed, before, "terminationGracePeriodSeconds")
        causes += _tolerations_only_added(before, after)
        _allow(allowed, before, "tolerations")
        causes += _gates_only_removed(before, after)
        _allow(allowed, before, "schedulingGates")
        if before.get("schedulingGates"):
            # While a pod is gated its node selection may still be narrowed; that it is narrower is not checked.
            _allow(allowed, before, "nodeSelector")
            _allow(allowed, before, "affinity")
            causes += validate_affinity(after.get("affinity", {}), "spec.affinity")
        if allowed != before:
            causes.append(forbidden("spec", _UPDATABLE))
        return causes

    def validate_status(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Check a status."""
        status = new.get("status", {})
        causes: list[Cause] = []
        phases = ("", "Pending", "Running", "Succeeded", "Failed", "Unknown")
        if status.get("phase", "") not in phases:
            causes.append(not_supported("status.phase", status["phase"], phases[1:]))
        if (node := status.get("nominatedNodeName", "")) and not names.is_subdomain(node):
            causes.append(invalid("status.nominatedNodeName", node, "must be a lowercase RFC 1123 subdomain"))
        entries = {entry.get("name") for entry in old.get("spec", {}).get("resourceClaims", ())}
        for index, entry in enumerate(status.get("resourceClaimStatuses", ())):
            if entry.get("name") not in entries:
                path = f"status.resourceClaimStatuses[{index}].name"
                causes.append(
                    invalid(path, entry.get("name"), "must match the name of an entry in `spec.resourceClaims`")
                )  # fmt: skip
        if old.get("status", {}).get("qosClass") and "qosClass" not in status and "status" in new:
            new["status"]["qosClass"] = old["status"]["qosClass"]
        for index, condition in enumerate(status.get("conditions", ())):
            for key in ("type", "status"):
                if not condition.get(key):
                    causes.append(required(f"status.conditions[{index}].{key}"))
        return causes

    def grace_seconds(self, data: Data, requested: int | None) -> int:
        """An unbound or finished pod goes at once; else the period asked for, or the pod's own."""
        if not data["spec"].get("nodeName") or data.get("status", {}).get("phase") in _TERMINAL:
            return 0
        if requested is not None:
            return requested
        own: int = data["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
        return 1 if own < 0 else own


def default_spec(spec: Data) -> None:
    """Set a pod spec's defaults."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    spec.setdefault("enableServiceLinks", True)
    for group in ("containers", "initContainers"):
        for container in spec.get(group, ()):
            _default_container(container, spec)
    if "resources" in spec:
        _requests_from_limits(spec["resources"])


def _default_container(container: Data, spec: Data) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = container.get("image", "")
    if "imagePullPolicy" not in container:
        tag = image.rsplit("/", 1)[-1]
        latest = ":" not in tag or tag.endswith(":latest")
        container["imagePullPolicy"] = "Always" if latest and "@" not in tag else "IfNotPresent"
    _requests_from_limits(container.setdefault("resources", {}))
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if spec.get("hostNetwork") and "containerPort" in port:
            port.setdefault("hostPort", port["containerPort"])


def _requests_from_limits(resources: Data) -> None:
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **resources.get("requests", {})}


def qos_class(spec: Data) -> str:
    """Return the QoS class that upstream computes from cpu and memory of all containers."""
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    asks, guaranteed = False, bool(containers)
    for container in containers:
        resources = container.get("resources", {})
        requests, limits = resources.get("requests", {}), resources.get("limits", {})
        for name in ("cpu", "memory"):
            request, limit = _positive(requests.get(name)), _positive(limits.get(name))
            asks = asks or request is not None or limit is not None
            guaranteed = guaranteed and limit is not None and request == limit
    return "BestEffort" if not asks else "Guaranteed" if guaranteed else "Burstable"


def _positive(text: str | None) -> str | None:
    # Quantities are canonical here, so equal amounts of one format have equal texts.
    return text if text is not None and parse_quantity(text).sign > 0 else None


def _admit_priority(spec: Data, name: str, view: View, strategy: Strategy) -> None:
    """Set priority and preemptionPolicy from the PriorityClass, as the Priority admission plugin does."""
    class_name = spec.get("priorityClassName", "")
    if class_name:
        found = view.lookup("PriorityClass", "", class_name)
        if found is None:
            raise _forbidden(strategy, name, f"no PriorityClass with name {class_name} was found")
    else:
        defaults = [item for item in view.all("PriorityClass") if item.get("globalDefault")]
        found = min(defaults, key=lambda item: item["value"]) if defaults else None
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    value = 0 if found is None else found["value"]
    policy = "PreemptLowerPriority" if found is None else found.get("preemptionPolicy", "PreemptLowerPriority")
    if spec.setdefault("priority", value) != value:
        raise _forbidden(
            strategy,
            name,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name",
        )
    if spec.setdefault("preemptionPolicy", policy) != policy:
        raise _forbidden(
            strategy,
            name,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )


def _forbidden(strategy: Strategy, name: str, message: str) -> StatusError:
    details: dict[str, Any] = {"name": name, "kind": strategy.resource.plural}
    return StatusError(403, "Forbidden", f'pods "{name}" is forbidden: {message}', details=details)


def _allow(spec: Data, before: Data, key: str) -> None:
    if key in before:
        spec[key] = before[key]
    else:
        spec.pop(key, None)


def _tolerations_only_added(before: Data, after: Data) -> list[Cause]:
    new = after.get("tolerations", [])

    def kept(toleration: Data) -> bool:
        # How long a taint is tolerated may change.
        shape = {key: value for key, value in toleration.items() if key != "tolerationSeconds"}
        return any({key: value for key, value in item.items() if key != "tolerationSeconds"} == shape for item in new)

    if all(kept(toleration) for toleration in before.get("tolerations", ())):
        return validate_tolerations(new, "spec.tolerations")
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _gates_only_removed(before: Data, after: Data) -> list[Cause]:
    old = {gate.get("name") for gate in before.get("schedulingGates", ())}
    added = [gate.get("name", "") for gate in after.get("schedulingGates", ()) if gate.get("name") not in old]
    if not added:
        return []
    return [forbidden("spec.schedulingGates", f"only deletion is allowed, but found new scheduling gates {added}")]
