"""ResourceClaims and their templates: defaults, validation, and the rules of a claim's status."""

from __future__ import annotations

from typing import Any

from earmark.apiserver import names
from earmark.apiserver.errors import Cause, duplicate, forbidden, invalid, not_supported, required, too_many
from earmark.apiserver.metadata import validate_annotations, validate_labels
from earmark.apiserver.strategies.base import Data, Strategy, View, immutable, read
from earmark.apiserver.strategies.devices import (
    default_device_tolerations,
    validate_class_configs,
    validate_device_tolerations,
    validate_qualified_attribute,
    validate_selectors,
)
from earmark.apiserver.strategies.podrules import validate_node_selector
from earmark.kube.quantity import parse_quantity

MOST_REQUESTS = 32
MOST_FIRST_AVAILABLE = 8
MOST_CONSTRAINTS = 32
MOST_CONSUMERS = 256
MOST_RESULTS = 32
_MODES = ("All", "ExactCount")


def default_claim_spec(spec: Data) -> None:
    """Set the defaults of requests: ExactCount, one device, tolerations with Equal."""
    for request in spec.get("devices", {}).get("requests", ()):
        exact = request.get("exactly")
        for part in ([exact] if exact is not None else []) + list(request.get("firstAvailable", ())):
            if not part.get("allocationMode"):
                part["allocationMode"] = "ExactCount"
            if part["allocationMode"] == "ExactCount" and not part.get("count"):
                part["count"] = 1
            default_device_tolerations(part.get("tolerations", ()))


def validate_claim_spec(spec: Data, path: str, view: View) -> list[Cause]:
    """Check a claim's spec."""
    devices = spec.get("devices", {})
    where = f"{path}.devices"
    causes: list[Cause] = []
    requests = devices.get("requests", [])
    if len(requests) > MOST_REQUESTS:
        causes.append(too_many(f"{where}.requests", len(requests), MOST_REQUESTS))
    known: set[str] = set()
    for index, request in enumerate(requests):
        here = f"{where}.requests[{index}]"
        causes += _request(request, here, view)
        name = request.get("name", "")
        if name in known:
            causes.append(duplicate(f"{here}.name", name))
        known.add(name)
        known.update(f"{name}/{sub.get('name', '')}" for sub in request.get("firstAvailable", ()))
    constraints = devices.get("constraints", [])
    if len(constraints) > MOST_CONSTRAINTS:
        causes.append(too_many(f"{where}.constraints", len(constraints), MOST_CONSTRAINTS))
    for index, constraint in enumerate(constraints):
        here = f"{where}.constraints[{index}]"
        causes += _references(constraint.get("requests", []), known, f"{here}.requests")
        attributes = [key for key in ("matchAttribute", "distinctAttribute") if constraint.get(key)]
        if len(attributes) != 1:
            causes.append(required(f"{here}.matchAttribute"))
        for key in attributes:
            causes += validate_qualified_attribute(constraint[key], f"{here}.{key}")
    for index, config in enumerate(devices.get("config", [])):
        causes += _references(config.get("requests", []), known, f"{where}.config[{index}].requests")
    causes += validate_class_configs(devices.get("config", []), f"{where}.config")
    return causes


def _request(request: Data, path: str, view: View) -> list[Cause]:
    causes: list[Cause] = []
    causes += _label(request.get("name", ""), f"{path}.name")
    exact, choices = request.get("exactly"), request.get("firstAvailable", [])
    if (exact is None) == (not choices):
        causes.append(
            invalid(path, request.get("name", ""), "exactly one of `exactly` or `firstAvailable` is required")
            if exact is not None
            else required(path, "exactly one of `exactly` or `firstAvailable` is required")
        )
    if exact is not None:
        causes += _device_part(exact, f"{path}.exactly", view)
    if len(choices) > MOST_FIRST_AVAILABLE:
        causes.append(too_many(f"{path}.firstAvailable", len(choices), MOST_FIRST_AVAILABLE))
    seen: set[str] = set()
    for index, choice in enumerate(choices):
        here = f"{path}.firstAvailable[{index}]"
        causes += _label(choice.get("name", ""), f"{here}.name")
        if choice.get("name", "") in seen:
            causes.append(duplicate(f"{here}.name", choice.get("name", "")))
        seen.add(choice.get("name", ""))
        causes += _device_part(choice, here, view)
    return causes


def _device_part(part: Data, path: str, view: View) -> list[Cause]:
    causes: list[Cause] = []
    class_name = part.get("deviceClassName", "")
    if not class_name:
        causes.append(required(f"{path}.deviceClassName"))
    elif not names.is_subdomain(class_name):
        causes.append(invalid(f"{path}.deviceClassName", class_name, "must be a lowercase RFC 1123 subdomain"))
    causes += validate_selectors(part.get("selectors", []), f"{path}.selectors", view)
    mode, count = part.get("allocationMode", "ExactCount"), part.get("count", 0)
    if mode not in _MODES:
        causes.append(not_supported(f"{path}.allocationMode", mode, _MODES))
    elif mode == "All" and count != 0:
        causes.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        causes.append(invalid(f"{path}.count", count, "must be greater than zero"))
    causes += validate_device_tolerations(part.get("tolerations", []), f"{path}.tolerations")
    for key, amount in (part.get("capacity") or {}).get("requests", {}).items():
        if parse_quantity(amount).sign < 0:
            causes.append(invalid(f"{path}.capacity.requests[{key}]", amount, "must be greater than or equal to 0"))
    return causes


def _label(name: str, path: str) -> list[Cause]:
    if not name:
        return [required(path)]
    if names.is_label(name):
        return []
    return [invalid(path, name, "must be a lowercase RFC 1123 label")]


def _references(requests: list[str], known: set[str], path: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, name in enumerate(requests):
        if name not in known:
            causes.append(
                invalid(f"{path}[{index}]", name, "must be the name of a request or a request/subrequest in the claim")
            )  # fmt: skip
        if name in seen:
            causes.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return causes


class ClaimStrategy(Strategy):
    """The rules of ResourceClaims."""

    def prepare_create(self, data: Data, view: View) -> None:
        """Set defaults; a new claim has no status."""
        super().prepare_create(data, view)
        default_claim_spec(data.setdefault("spec", {}))

    def prepare_update(self, new: Data, old: Data, view: View) -> None:
        """Set defaults, keep the status."""
        super().prepare_update(new, old, view)
        default_claim_spec(new.setdefault("spec", {}))

    def prepare_status(self, new: Data, old: Data, view: View) -> None:
        """Keep everything but the status, and drop what devices report that are no longer allocated."""
        super().prepare_status(new, old, view)
        status = new.get("status", {})
        if "allocation" in (old.get("status") or {}) and "devices" in status:
            allocated = _allocated(status)
            reported_before = (old.get("status") or {}).get("devices", [])
            kept = [
                device
                for device in status["devices"]
                if _device_key(device) in allocated or device not in reported_before
            ]
            if kept:
                status["devices"] = kept
            else:
                del status["devices"]

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check the spec."""
        return validate_claim_spec(data["spec"], "spec", view)

    def validate_update(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Refuse every change of the spec."""
        return immutable(new, old, "spec")

    def validate_status(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Check the rules of allocation, reservedFor and devices."""
        status, before = new.get("status", {}), old.get("status", {})
        causes: list[Cause] = []
        consumers = status.get("reservedFor", [])
        if len(consumers) > MOST_CONSUMERS:
            causes.append(too_many("status.reservedFor", len(consumers), MOST_CONSUMERS))
        seen: set[str] = set()
        for index, consumer in enumerate(consumers):
            here = f"status.reservedFor[{index}]"
            for key in ("resource", "name", "uid"):
                if not consumer.get(key):
                    causes.append(required(f"{here}.{key}"))
            uid = consumer.get("uid", "")
            if uid in seen:
                causes.append(duplicate(f"{here}.uid", uid))
            seen.add(uid)
        allocation, allocated_before = status.get("allocation"), before.get("allocation")
        if consumers and allocation is None:
            causes.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
        elif "deletionTimestamp" in old["metadata"]:
            known = {_consumer_key(item) for item in before.get("reservedFor", [])}
            if any(_consumer_key(item) not in known for item in consumers):
                causes.append(
                    forbidden(
                        "status.reservedFor",
                        "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
                    )
                )
        if allocation is not None and allocated_before is not None:
            if allocation != allocated_before:
                causes.append(invalid("status.allocation", allocation, "field cannot be modified once set"))
        elif allocation is not None:
            causes += _allocation(allocation, new.get("spec", {}))
        causes += _reported(status)
        return causes


def _consumer_key(consumer: Data) -> tuple[Any, ...]:
    return tuple(consumer.get(key, "") for key in ("apiGroup", "resource", "name", "uid"))


def _device_key(device: Data) -> tuple[Any, ...]:
    return tuple(device.get(key, "") for key in ("driver", "pool", "device", "shareID"))


def _allocated(status: Data) -> set[tuple[Any, ...]]:
    return {_device_key(result) for result in read(status, "allocation.devices.results") or ()}


def _allocation(allocation: Data, spec: Data) -> list[Cause]:
    path = "status.allocation"
    causes: list[Cause] = []
    known: set[str] = set()
    for request in spec.get("devices", {}).get("requests", ()):
        choices = request.get("firstAvailable", ())
        name = request.get("name", "")
        known.update([f"{name}/{choice.get('name', '')}" for choice in choices] if choices else [name])
    results = read(allocation, "devices.results") or []
    if len(results) > MOST_RESULTS:
        causes.append(too_many(f"{path}.devices.results", len(results), MOST_RESULTS))
    for index, result in enumerate(results):
        here = f"{path}.devices.results[{index}]"
        if result.get("request", "") not in known:
            causes.append(
                invalid(f"{here}.request", result.get("request", ""),
                        "must be the name of a request or a request/subrequest in the claim")
            )  # fmt: skip
        causes += _device_reference(result, here)
    if "nodeSelector" in allocation:
        causes += validate_node_selector(allocation["nodeSelector"], f"{path}.nodeSelector")
    return causes


def _device_reference(device: Data, path: str) -> list[Cause]:
    causes: list[Cause] = []
    driver, pool = device.get("driver", ""), device.get("pool", "")
    if not driver:
        causes.append(required(f"{path}.driver"))
    elif not names.is_subdomain(driver.lower()) or len(driver) > 63:
        causes.append(invalid(f"{path}.driver", driver, "must be a DNS subdomain of at most 63 characters"))
    if not pool:
        causes.append(required(f"{path}.pool"))
    elif not all(names.is_subdomain(part) for part in pool.split("/")):
        causes.append(invalid(f"{path}.pool", pool, "must consist of DNS subdomains separated by slashes"))
    causes += _label(device.get("device", ""), f"{path}.device")
    return causes


def _reported(status: Data) -> list[Cause]:
    causes: list[Cause] = []
    allocated = _allocated(status)
    seen: set[tuple[Any, ...]] = set()
    for index, device in enumerate(status.get("devices", [])):
        here = f"status.devices[{index}]"
        key = _device_key(device)
        if key not in allocated:
            causes.append(invalid(here, "/".join(map(str, key[:3])), "must be an allocated device in the claim"))
        if key in seen:
            causes.append(duplicate(here, "/".join(map(str, key[:3]))))
        seen.add(key)
    return causes


class ClaimTemplateStrategy(Strategy):
    """The rules of ResourceClaimTemplates."""

    def prepare_create(self, data: Data, view: View) -> None:
        """Set the defaults of the claims to be."""
        default_claim_spec(data.setdefault("spec", {}).setdefault("spec", {}))

    def prepare_update(self, new: Data, old: Data, view: View) -> None:
        """Set the defaults of the claims to be."""
        default_claim_spec(new.setdefault("spec", {}).setdefault("spec", {}))

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check the claims to be."""
        causes = validate_claim_spec(data["spec"]["spec"], "spec.spec", view)
        meta = data["spec"].get("metadata", {})
        causes += validate_labels(meta.get("labels", {}), "spec.metadata.labels")
        causes += validate_annotations(meta.get("annotations", {}), "spec.metadata.annotations")
        return causes

    def validate_update(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Refuse every change of the spec."""
        return immutable(new, old, "spec")
