"""DeviceClasses, ResourceSlices and DeviceTaintRules, and the parts that claims share with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from earmark.apiserver import names
from earmark.apiserver.errors import (
    Cause,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from earmark.apiserver.strategies.base import Data, Strategy, View, immutable
from earmark.apiserver.strategies.podrules import validate_node_selector
from earmark.kube.quantity import parse_quantity

MOST_SELECTORS = 32
LONGEST_EXPRESSION_BYTES = 10 * 1024
MOST_DEVICES = 128
# Devices that carry taints or consume counters are bigger.
MOST_COMPLEX_DEVICES = 64
MOST_COUNTER_SETS = 8
MOST_COUNTERS = 32
MOST_ATTRIBUTES_AND_CAPACITIES = 32
MOST_CONSUMED_SETS = 2
MOST_TAINTS = 16
LONGEST_VALUE = 64
_TAINT_EFFECTS = ("NoExecute", "NoSchedule", "None")


# --- shared parts ----------------------------------------------------------------------------------------------------


def validate_selectors(selectors: Sequence[Data], path: str, view: View) -> list[Cause]:
    """Check device selectors: each has an expression that compiles."""
    causes: list[Cause] = []
    if len(selectors) > MOST_SELECTORS:
        causes.append(too_many(path, len(selectors), MOST_SELECTORS))
    for index, selector in enumerate(selectors):
        cel = selector.get("cel")
        if cel is None:
            causes.append(required(f"{path}[{index}].cel"))
        elif not cel.get("expression"):
            causes.append(required(f"{path}[{index}].cel.expression"))
        elif len(cel["expression"].encode()) > LONGEST_EXPRESSION_BYTES:
            causes.append(too_long(f"{path}[{index}].cel.expression", LONGEST_EXPRESSION_BYTES))
        elif problem := view.selector_problem(cel["expression"]):
            causes.append(invalid(f"{path}[{index}].cel.expression", cel["expression"], problem))
    return causes


def default_device_tolerations(tolerations: Sequence[Data]) -> None:
    """Set the operator of device tolerations."""
    for toleration in tolerations:
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"


def validate_device_tolerations(tolerations: Sequence[Data], path: str) -> list[Cause]:
    """Check device tolerations."""
    causes: list[Cause] = []
    if len(tolerations) > MOST_TAINTS:
        causes.append(too_many(path, len(tolerations), MOST_TAINTS))
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        operator, key = toleration.get("operator", "Equal"), toleration.get("key", "")
        if operator not in ("Equal", "Exists"):
            causes.append(not_supported(f"{here}.operator", operator, ("Equal", "Exists")))
        elif operator == "Exists" and toleration.get("value"):
            causes.append(invalid(f"{here}.value", toleration["value"], "must be empty when operator is `Exists`"))
        elif operator == "Equal" and not key:
            causes.append(required(f"{here}.key", "must be set when operator is `Equal`"))
        if key and not names.is_qualified(key):
            causes.append(invalid(f"{here}.key", key, "must be a qualified name"))
        if toleration.get("effect", "") not in ("", "NoExecute", "NoSchedule"):
            causes.append(not_supported(f"{here}.effect", toleration["effect"], ("NoExecute", "NoSchedule")))
    return causes


def validate_class_configs(configs: Sequence[Data], path: str) -> list[Cause]:
    """Check opaque configurations."""
    causes: list[Cause] = []
    for index, config in enumerate(configs):
        opaque = config.get("opaque")
        if opaque is None:
            causes.append(required(f"{path}[{index}].opaque"))
            continue
        causes += validate_driver(opaque.get("driver", ""), f"{path}[{index}].opaque.driver")
        if not isinstance(opaque.get("parameters"), dict):
            causes.append(required(f"{path}[{index}].opaque.parameters", "must be an object"))
    return causes


def validate_driver(driver: str, path: str) -> list[Cause]:
    """Check a driver's name."""
    if not driver:
        return [required(path)]
    if names.is_subdomain(driver.lower()) and len(driver) <= 63:
        return []
    return [invalid(path, driver, "must be a DNS subdomain of at most 63 characters")]


def validate_qualified_attribute(name: str, path: str) -> list[Cause]:
    """Check an attribute's name with its domain."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return [invalid(path, name, "must include a domain")]
    return _attribute_name(domain, identifier, name, path)


def _attribute_name(domain: str, identifier: str, name: str, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if not names.is_subdomain(domain):
        causes.append(invalid(path, name, "the domain must be a DNS subdomain"))
    if not names.is_c_identifier(identifier):
        causes.append(invalid(path, name, "a valid C identifier of at most 32 characters must be used as name"))
    return causes


def _name_in_driver_domain(name: str, path: str) -> list[Cause]:
    """Check the key of an attribute or capacity, which may leave out the driver's domain."""
    domain, slash, identifier = name.partition("/")
    return _attribute_name(domain if slash else "x", identifier if slash else domain, name, path)


def validate_taint(taint: Data, path: str) -> list[Cause]:
    """Check a device taint."""
    causes: list[Cause] = []
    if not names.is_qualified(taint.get("key", "")):
        causes.append(invalid(f"{path}.key", taint.get("key", ""), "must be a qualified name"))
    if not names.is_label_value(taint.get("value", "")):
        causes.append(invalid(f"{path}.value", taint["value"], "must be a valid label value"))
    effect = taint.get("effect", "")
    if not effect:
        causes.append(required(f"{path}.effect"))
    elif effect not in _TAINT_EFFECTS:
        causes.append(not_supported(f"{path}.effect", effect, _TAINT_EFFECTS))
    return causes


# --- DeviceClass -----------------------------------------------------------------------------------------------------


class DeviceClassStrategy(Strategy):
    """The rules of DeviceClasses."""

    tracks_generation = True

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check selectors and configurations."""
        spec = data.setdefault("spec", {})
        causes = validate_selectors(spec.get("selectors", ()), "spec.selectors", view)
        causes += validate_class_configs(spec.get("config", ()), "spec.config")
        extended = spec.get("extendedResourceName")
        if extended is not None and ("/" not in extended or not names.is_qualified(extended)):
            causes.append(invalid("spec.extendedResourceName", extended, "must be a valid extended resource name"))
        return causes


# --- ResourceSlice ---------------------------------------------------------------------------------------------------


class ResourceSliceStrategy(Strategy):
    """The rules of ResourceSlices."""

    tracks_generation = True
    selectable = {"spec.nodeName": "", "spec.driver": ""}  # noqa: RUF012

    def prepare_create(self, data: Data, view: View) -> None:
        """Date the taints."""
        _date_taints(data, view)

    def prepare_update(self, new: Data, old: Data, view: View) -> None:
        """Date new taints."""
        _date_taints(new, view)

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check the spec."""
        return validate_slice_spec(data.get("spec", {}))

    def validate_update(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Check the spec, and that driver, pool and node stay."""
        causes = self.validate(new, view)
        for path in ("spec.driver", "spec.pool.name", "spec.nodeName"):
            causes += immutable(new, old, path)
        return causes


def _date_taints(data: Data, view: View) -> None:
    for device in data.get("spec", {}).get("devices", ()):
        for taint in device.get("taints", ()):
            taint.setdefault("timeAdded", view.now().strftime("%Y-%m-%dT%H:%M:%SZ"))


def validate_slice_spec(spec: Data) -> list[Cause]:
    """Check a slice's spec."""
    causes = validate_driver(spec.get("driver", ""), "spec.driver")
    causes += _pool(spec.get("pool", {}), "spec.pool")
    given = [key for key in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection") if spec.get(key)]
    one_of = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not given:
        causes.append(required("spec", one_of))
    elif len(given) > 1:
        causes.append(invalid("spec", "{" + ", ".join(given) + "}", one_of))
    if spec.get("nodeName") and not names.is_subdomain(spec["nodeName"]):
        causes.append(invalid("spec.nodeName", spec["nodeName"], "must be a lowercase RFC 1123 subdomain"))
    if "nodeSelector" in spec:
        causes += validate_node_selector(spec["nodeSelector"], "spec.nodeSelector")
        if len(spec["nodeSelector"].get("nodeSelectorTerms", ())) != 1:
            causes.append(
                invalid("spec.nodeSelector.nodeSelectorTerms", len(spec["nodeSelector"].get("nodeSelectorTerms", ())),
                        "must have exactly one node selector term")
            )  # fmt: skip
    devices, counter_sets = spec.get("devices", []), spec.get("sharedCounters", [])
    if devices and counter_sets:
        causes.append(
            invalid("spec", "{devices, sharedCounters}", "only one of `sharedCounters` or `devices` is allowed")
        )  # fmt: skip
    complex_devices = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    limit = MOST_COMPLEX_DEVICES if complex_devices else MOST_DEVICES
    if len(devices) > limit:
        causes.append(too_many("spec.devices", len(devices), limit))
    seen: set[str] = set()
    for index, device in enumerate(devices):
        here = f"spec.devices[{index}]"
        causes += _device(device, here, per_device_nodes=bool(spec.get("perDeviceNodeSelection")))
        name = device.get("name", "")
        if name in seen:
            causes.append(duplicate(f"{here}.name", name))
        seen.add(name)
    causes += _counter_sets(counter_sets, "spec.sharedCounters")
    return causes


def _pool(pool: Data, path: str) -> list[Cause]:
    causes: list[Cause] = []
    name = pool.get("name", "")
    if not name:
        causes.append(required(f"{path}.name"))
    elif len(name) > 253 or not all(names.is_subdomain(part) for part in name.split("/")):
        causes.append(invalid(f"{path}.name", name, "must consist of DNS subdomains separated by slashes"))
    if pool.get("resourceSliceCount", 0) <= 0:
        causes.append(
            invalid(f"{path}.resourceSliceCount", pool.get("resourceSliceCount", 0), "must be greater than zero")
        )  # fmt: skip
    if pool.get("generation", 0) < 0:
        causes.append(invalid(f"{path}.generation", pool["generation"], "must be greater than or equal to zero"))
    return causes


def _device(device: Data, path: str, *, per_device_nodes: bool) -> list[Cause]:
    causes: list[Cause] = []
    name = device.get("name", "")
    if not name:
        causes.append(required(f"{path}.name"))
    elif not names.is_label(name):
        causes.append(invalid(f"{path}.name", name, "must be a lowercase RFC 1123 label"))
    attributes, capacity = device.get("attributes", {}), device.get("capacity", {})
    if len(attributes) + len(capacity) > MOST_ATTRIBUTES_AND_CAPACITIES:
        causes.append(
            invalid(path, len(attributes) + len(capacity),
                    f"the total number of attributes and capacities must not exceed {MOST_ATTRIBUTES_AND_CAPACITIES}")
        )  # fmt: skip
    for key, attribute in attributes.items():
        causes += _name_in_driver_domain(key, f"{path}.attributes")
        causes += _attribute(attribute, f"{path}.attributes[{key}]")
    shared = device.get("allowMultipleAllocations") is True
    for key, value in capacity.items():
        causes += _name_in_driver_domain(key, f"{path}.capacity")
        causes += _capacity(value, f"{path}.capacity[{key}]", shared=shared)
    consumed = device.get("consumesCounters", [])
    if len(consumed) > MOST_CONSUMED_SETS:
        causes.append(too_many(f"{path}.consumesCounters", len(consumed), MOST_CONSUMED_SETS))
    seen: set[str] = set()
    for index, consumption in enumerate(consumed):
        here = f"{path}.consumesCounters[{index}]"
        counter_set = consumption.get("counterSet", "")
        if not counter_set:
            causes.append(required(f"{here}.counterSet"))
        if counter_set in seen:
            causes.append(duplicate(f"{here}.counterSet", counter_set))
        seen.add(counter_set)
        causes += _counters(consumption.get("counters", {}), f"{here}.counters")
    nodes = [key for key in ("nodeName", "nodeSelector", "allNodes") if device.get(key)]
    one_of = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set"
    if per_device_nodes and len(nodes) != 1:
        causes.append(required(path, one_of) if not nodes else invalid(path, ", ".join(nodes), one_of))
    if not per_device_nodes:
        causes += [
            forbidden(f"{path}.{key}", "cannot be set unless `perDeviceNodeSelection` is set in the ResourceSlice spec")
            for key in nodes
        ]  # fmt: skip
    if len(device.get("taints", [])) > MOST_TAINTS:
        causes.append(too_many(f"{path}.taints", len(device["taints"]), MOST_TAINTS))
    for index, taint in enumerate(device.get("taints", [])):
        causes += validate_taint(taint, f"{path}.taints[{index}]")
    failing, waiting = device.get("bindingFailureConditions", []), device.get("bindingConditions", [])
    if bool(failing) != bool(waiting):
        missing = "bindingFailureConditions" if waiting else "bindingConditions"
        causes.append(
            required(f"{path}.{missing}", "bindingConditions and bindingFailureConditions must be set together")
        )  # fmt: skip
    return causes


def _attribute(attribute: Data, path: str) -> list[Cause]:
    kinds = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
    given = [key for key in kinds if key in attribute]
    if len(given) != 1:
        if not given:
            return [required(path, "exactly one value must be specified")]
        return [invalid(path, ", ".join(given), "exactly one value must be specified")]
    causes = []
    value: Any = attribute[given[0]]
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and len(text.encode()) > LONGEST_VALUE:
            causes.append(too_long(f"{path}.{given[0]}", LONGEST_VALUE))
    return causes


def _capacity(capacity: Data, path: str, *, shared: bool) -> list[Cause]:
    causes: list[Cause] = []
    if "value" not in capacity:
        causes.append(required(f"{path}.value"))
    policy = capacity.get("requestPolicy")
    if policy is None:
        return causes
    if not shared:
        causes.append(
            forbidden(f"{path}.requestPolicy", "may be set only if `allowMultipleAllocations` is true")
        )  # fmt: skip
    if policy.get("validValues") and policy.get("validRange"):
        causes.append(
            forbidden(f"{path}.requestPolicy", "exactly one policy can be specified: validValues or validRange")
        )  # fmt: skip
    if (policy.get("validValues") or policy.get("validRange")) and "default" not in policy:
        causes.append(required(f"{path}.requestPolicy.default"))
    bounds = policy.get("validRange")
    if bounds is not None:
        if "min" not in bounds:
            causes.append(required(f"{path}.requestPolicy.validRange.min"))
        elif "max" in bounds and parse_quantity(bounds["max"]) < parse_quantity(bounds["min"]):
            causes.append(
                invalid(f"{path}.requestPolicy.validRange.min", bounds["min"], "minimum must not exceed the maximum")
            )  # fmt: skip
    return causes


def _counter_sets(counter_sets: Sequence[Data], path: str) -> list[Cause]:
    causes: list[Cause] = []
    if len(counter_sets) > MOST_COUNTER_SETS:
        causes.append(too_many(path, len(counter_sets), MOST_COUNTER_SETS))
    seen: set[str] = set()
    for index, counter_set in enumerate(counter_sets):
        here = f"{path}[{index}]"
        name = counter_set.get("name", "")
        if not name:
            causes.append(required(f"{here}.name"))
        elif not names.is_label(name):
            causes.append(invalid(f"{here}.name", name, "must be a lowercase RFC 1123 label"))
        if name in seen:
            causes.append(duplicate(f"{here}.name", name))
        seen.add(name)
        causes += _counters(counter_set.get("counters", {}), f"{here}.counters")
    return causes


def _counters(counters: Data, path: str) -> list[Cause]:
    if not counters:
        return [required(path)]
    causes: list[Cause] = []
    if len(counters) > MOST_COUNTERS:
        causes.append(too_many(path, len(counters), MOST_COUNTERS))
    for name, counter in counters.items():
        if not names.is_label(name):
            causes.append(invalid(path, name, "must be a lowercase RFC 1123 label"))
        if "value" not in counter:
            causes.append(required(f"{path}[{name}].value"))
    return causes


# --- DeviceTaintRule -------------------------------------------------------------------------------------------------


class DeviceTaintRuleStrategy(Strategy):
    """The rules of DeviceTaintRules."""

    tracks_generation = True

    def prepare_create(self, data: Data, view: View) -> None:
        """Date the taint."""
        super().prepare_create(data, view)
        _date_rule(data, view)

    def prepare_update(self, new: Data, old: Data, view: View) -> None:
        """Date a new taint."""
        super().prepare_update(new, old, view)
        _date_rule(new, view)

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check taint and selector."""
        spec = data.get("spec", {})
        causes = validate_taint(spec["taint"], "spec.taint") if "taint" in spec else [required("spec.taint")]
        selector = spec.get("deviceSelector") or {}
        if selector.get("driver"):
            causes += validate_driver(selector["driver"], "spec.deviceSelector.driver")
        if selector.get("device") and not names.is_label(selector["device"]):
            causes.append(
                invalid("spec.deviceSelector.device", selector["device"], "must be a lowercase RFC 1123 label")
            )  # fmt: skip
        return causes


def _date_rule(data: Data, view: View) -> None:
    taint = data.get("spec", {}).get("taint")
    if taint is not None:
        taint.setdefault("timeAdded", view.now().strftime("%Y-%m-%dT%H:%M:%SZ"))
