"""Random allocation problems as JSON lines, small and tight, so that a search must go back; hypothesis shrinks them.

The devices of several pools, with shared counters, shares of capacities, taints and lists of attributes; claims with
several requests, alternatives and constraints; and what is in use already.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

GPU = "gpu.example.com"
NIC = "nic.example.com"

Json = dict[str, Any]

DEFAULT_FEATURES = [
    "AdminAccess",
    "ConsumableCapacity",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "FractionalCapacityRange",
    "PartitionableDevices",
    "PrioritizedList",
]

_EXPRESSIONS = [
    f'device.driver == "{GPU}"',
    f'device.attributes["{GPU}"].index < 2',
    f'device.attributes["{GPU}"].index % 2 == 0',
    f'device.attributes["{GPU}"].zone == "a"',
    f'"{GPU}" in device.attributes && device.attributes["{GPU}"].index >= 1',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("2Gi")) >= 0',
    "device.allowMultipleAllocations == true",
]


def rarely(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The value one time in six, else None. Shrinks to None."""
    return st.integers(0, 5).flatmap(lambda number: value if number == 5 else st.none())


def without_nones(fields: Json) -> Json:
    """Leave out what was not drawn."""
    return {name: value for name, value in fields.items() if value is not None}


amounts = st.sampled_from(["1", "2", "3", "4"])
counters = st.builds(lambda m, n: {"m": {"value": m}, "n": {"value": n}}, amounts, amounts)
taints = st.builds(
    lambda key, effect: [{"key": key, "value": "v", "effect": effect}],
    st.sampled_from("kl"),
    st.sampled_from(["NoSchedule", "NoExecute"]),
)


@st.composite
def capacities(draw: st.DrawFn, shareable: bool) -> Json:
    """The memory of a device, with a policy where shares can be had."""
    memory: Json = {"value": draw(st.sampled_from(["1Gi", "2Gi", "4Gi"]))}
    if shareable and draw(st.booleans()):
        policies: list[Json] = [
            {"default": "1Gi"},
            {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}},
            {"default": "1Gi", "validRange": {"min": "512Mi", "max": "3Gi"}},
            {"default": "1Gi", "validValues": ["1Gi", "3Gi"]},
        ]
        memory["requestPolicy"] = draw(st.sampled_from(policies))
    return {"memory": memory}


@st.composite
def devices(draw: st.DrawFn, name: str, counted: bool) -> Json:
    """One device; `counted`: it may take from the pool's counter set."""
    shareable = draw(st.integers(0, 3)) == 3
    attributes: Json = {"index": {"int": draw(st.integers(0, 3))}, "zone": {"string": draw(st.sampled_from("abc"))}}
    if draw(st.integers(0, 5)) == 5:
        del attributes["zone"]
    tags = draw(rarely(st.lists(st.sampled_from("xyz"), min_size=1, max_size=2, unique=True)))
    if tags is not None:
        attributes["tags"] = {"strings": tags}
    uses = draw(st.none() | st.builds(lambda taken: [{"counterSet": "cs", "counters": taken}], counters))
    return without_nones(
        {
            "name": name,
            "attributes": attributes,
            "capacity": draw(capacities(shareable)),
            "allowMultipleAllocations": True if shareable else None,
            "consumesCounters": uses if counted else None,
            "taints": draw(rarely(taints)),
            "bindingConditions": draw(rarely(st.just(["ready"]))),
        }
    )


@st.composite
def pools(draw: st.DrawFn, name: str, driver: str) -> list[Json]:
    """The slices of one pool on the node."""
    counted = draw(st.booleans())
    members = [draw(devices(f"d{number}", counted)) for number in range(draw(st.integers(1, 5)))]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 2 if counted else 1}
    if draw(st.integers(0, 30)) == 30:
        pool["resourceSliceCount"] = 3
    where = draw(st.sampled_from([{"nodeName": "node-1"}, {"nodeName": "node-1"}, {"allNodes": True}]))
    spec: Json = {"driver": driver, "pool": pool, **where}
    slices = [{"metadata": {"name": f"{name}-devices"}, "spec": {**spec, "devices": members}}]
    if counted:
        total = st.sampled_from(["2", "4", "6", "9"])
        sets = [{"name": "cs", "counters": {"m": {"value": draw(total)}, "n": {"value": draw(total)}}}]
        slices.append({"metadata": {"name": f"{name}-counters"}, "spec": {**spec, "sharedCounters": sets}})
    return slices


@st.composite
def wanted(draw: st.DrawFn, *, sub: bool) -> Json:
    """The body of a request or of an alternative."""
    mode = draw(st.sampled_from(["ExactCount"] * 9 + ["All"]))
    selectors = draw(st.lists(st.sampled_from(_EXPRESSIONS), max_size=2, unique=True))
    memory = draw(rarely(st.sampled_from(["1Gi", "1536Mi", "3Gi"])))
    return without_nones(
        {
            "deviceClassName": draw(st.sampled_from(["any", "any", "gpu"])),
            "allocationMode": mode,
            "count": draw(st.integers(1, 3)) if mode == "ExactCount" else None,
            "selectors": [{"cel": {"expression": text}} for text in selectors] or None,
            "capacity": None if memory is None else {"requests": {"memory": memory}},
            "tolerations": draw(rarely(st.just([{"operator": "Exists"}]))),
            "adminAccess": None if sub else draw(rarely(st.just(True))),
        }
    )


@st.composite
def claims(draw: st.DrawFn, name: str) -> Json:
    """A claim with its constraints."""
    requests: list[Json] = []
    for number in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 5)) == 5:
            alternatives = [{"name": f"s{k}", **draw(wanted(sub=True))} for k in range(draw(st.integers(1, 2)))]
            requests.append({"name": f"r{number}", "firstAvailable": alternatives})
        else:
            requests.append({"name": f"r{number}", "exactly": draw(wanted(sub=False))})
    constraints = []
    for _ in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(["matchAttribute", "matchAttribute", "distinctAttribute"]))
        constraint: Json = {kind: f"{GPU}/{draw(st.sampled_from(['zone', 'index', 'tags']))}"}
        if draw(st.integers(0, 3)) == 3:
            constraint["requests"] = ["r0"]
        constraints.append(constraint)
    spec = without_nones({"requests": requests, "constraints": constraints or None})
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": {"devices": spec}}


@st.composite
def in_use(draw: st.DrawFn, slices: list[Json]) -> Json:
    """Devices that are held as a whole, and shares of others."""
    held: list[Json] = []
    shared: list[Json] = []
    taken: Json = {}
    for slice_ in slices:
        driver, pool = slice_["spec"]["driver"], slice_["spec"]["pool"]["name"]
        for device in slice_["spec"].get("devices", ()):
            if draw(st.integers(0, 3)) != 3:
                continue
            place = {"driver": driver, "pool": pool, "device": device["name"]}
            if device.get("allowMultipleAllocations"):
                shared.append({**place, "shareID": f"{len(shared):08d}-0000-4000-8000-000000000000"})
                taken[f"{driver}/{pool}/{device['name']}"] = {"memory": "1Gi"}
            else:
                held.append(place)
    return {"allocated_devices": held, "allocated_shared_device_ids": shared, "aggregated_capacity": taken}


@st.composite
def problems(draw: st.DrawFn) -> Json:
    """One problem in the form of `earmark allocate`."""
    slices = draw(pools("pool-a", GPU))
    if draw(st.booleans()):
        slices += draw(pools("pool-b", draw(st.sampled_from([GPU, NIC]))))
    gpu = {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}]}
    return without_nones(
        {
            "id": 1,
            "node": {"metadata": {"name": "node-1"}},
            "slices": slices,
            "classes": [{"metadata": {"name": "any"}, "spec": {}}, {"metadata": {"name": "gpu"}, "spec": gpu}],
            "claims": [draw(claims(f"c{number}")) for number in range(draw(st.integers(1, 2)))],
            "allocated_state": draw(in_use(slices)),
            "features": draw(st.sampled_from([None, DEFAULT_FEATURES])),
        }
    )
