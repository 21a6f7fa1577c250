"""Says by itself, from what the API holds, whether a pod fits and whether evicting others would help.

Written plainly and apart from the services: all ways to give devices to requests are tried. It knows the devices and
requests of support.random_world, nothing else. Used when nothing is left to happen.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from earmark.apiserver.registry import Registry
from support import random_world

Data = dict[str, Any]
Place = tuple[str, str, str]

_UNITS = {"m": Fraction(1, 1000), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "": Fraction(1)}
# Attribute, its kind and its value, by expression.
_SELECTORS = {
    random_world.MODEL_A: ("model", "string", "a"),
    random_world.HALF: ("size", "int", 1),
    random_world.WHOLE: ("size", "int", 2),
}


def amount(text: str) -> Fraction:
    """Return a quantity of the few forms that random worlds use."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(m|Ki|Mi|Gi|)", text)
    assert found is not None, text
    return Fraction(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class Photo:
    """What the API holds at one moment, by name."""

    pods: dict[str, Data]
    nodes: dict[str, Data]
    claims: dict[str, Data]
    slices: list[Data]
    # Of the namespace "default" only.
    priorities: dict[str, int] = field(default_factory=dict)

    @property
    def pending(self) -> dict[str, Data]:
        """Pods that are to be scheduled."""
        return {
            name: pod
            for name, pod in self.pods.items()
            if not pod["spec"].get("nodeName")
            and not pod["metadata"].get("deletionTimestamp")
            and pod["status"].get("phase", "Pending") == "Pending"
        }

    @property
    def busy(self) -> list[str]:
        """What still goes on: pods that terminate, claims that wait for their end, pods that are being bound."""
        # Where the node is gone there is no kubelet that ends the pod.
        going = [
            name
            for name, pod in self.pods.items()
            if pod["metadata"].get("deletionTimestamp") and pod["spec"].get("nodeName") in self.nodes
        ]
        going += [name for name, claim in self.claims.items() if claim["metadata"].get("deletionTimestamp")]
        for name, pod in self.pending.items():
            if any(pod["metadata"]["uid"] in _users(claim) for claim in self.claims.values()):
                going.append(name)
        return going


def take_photo(registry: Registry) -> Photo:
    """Return what the API holds now."""

    def all_of(kind: str) -> dict[str, Data]:
        return {item["metadata"]["name"]: dict(item) for item in registry.all(kind)}

    return Photo(all_of("Pod"), all_of("Node"), all_of("ResourceClaim"), list(all_of("ResourceSlice").values()))


def _users(claim: Data) -> list[str]:
    return [entry["uid"] for entry in claim.get("status", {}).get("reservedFor", [])]


def _results(claim: Data) -> list[Data]:
    allocation = claim.get("status", {}).get("allocation")
    return [] if allocation is None else list(allocation["devices"]["results"])


@dataclass
class _Devices:
    """The devices that a node's pods can use, and what is taken of all devices."""

    offered: dict[Place, Data] = field(default_factory=dict)
    # What a device is tied to: a node's name, or "" for those that several nodes reach.
    home: dict[Place, str] = field(default_factory=dict)
    counters: dict[tuple[str, str, str], Fraction] = field(default_factory=dict)
    held: dict[Place, int] = field(default_factory=lambda: defaultdict(int))
    consumed: dict[Place, Fraction] = field(default_factory=lambda: defaultdict(Fraction))

    def take(self, place: Place, share: Fraction, sign: int = 1) -> None:
        self.held[place] += sign
        self.consumed[place] += sign * share

    def free(self, place: Place, share: Fraction) -> bool:
        """Whether this much of the device can be taken."""
        device = self.offered[place]
        if device.get("taints"):
            return False
        if device.get("allowMultipleAllocations"):
            room = amount(device["capacity"]["bytes"]["value"]) - self.consumed[place]
            return share <= room
        if self.held[place] > 0:
            return False
        for needed in device.get("consumesCounters", []):
            for name, value in needed["counters"].items():
                if amount(value["value"]) > self._left(place, needed["counterSet"], name):
                    return False
        return True

    def _left(self, place: Place, counter_set: str, name: str) -> Fraction:
        left = self.counters.get((f"{place[0]}/{place[1]}", counter_set, name), Fraction(0))
        for other, times in self.held.items():
            if times > 0 and other[:2] == place[:2] and other in self.offered:
                for used in self.offered[other].get("consumesCounters", []):
                    if used["counterSet"] == counter_set and name in used["counters"]:
                        left -= amount(used["counters"][name]["value"])
        return left


def _reaches(photo: Photo, spec: Data, node: str) -> bool:
    if spec.get("allNodes"):
        return True
    if "nodeSelector" in spec:
        return _selected(photo, spec["nodeSelector"], node)
    return bool(spec.get("nodeName") == node)


def _selected(photo: Photo, selector: Data, node: str) -> bool:
    labels = photo.nodes[node]["metadata"].get("labels", {})
    for term in selector["nodeSelectorTerms"]:
        expressions = [(e["key"], e["values"], labels) for e in term.get("matchExpressions", [])]
        expressions += [(e["key"], e["values"], {"metadata.name": node}) for e in term.get("matchFields", [])]
        if all(known.get(key) in values for key, values, known in expressions):
            return True
    return False


def _devices(photo: Photo, node: str, released: Collection[str]) -> _Devices:
    """Return the devices of a node when these claims are released."""
    devices = _Devices()
    newest: dict[tuple[str, str], int] = defaultdict(int)
    pieces: dict[tuple[str, str], list[Data]] = defaultdict(list)
    for piece in photo.slices:
        pool = piece["spec"]["pool"]
        key = (piece["spec"]["driver"], pool["name"])
        newest[key] = max(newest[key], pool.get("generation", 0))
        pieces[key].append(piece["spec"])
    for key, found in pieces.items():
        current = [spec for spec in found if spec["pool"].get("generation", 0) == newest[key]]
        if len(current) != current[0]["pool"]["resourceSliceCount"]:
            continue
        for spec in current:
            for counters in spec.get("sharedCounters", []):
                for name, value in counters["counters"].items():
                    devices.counters[f"{key[0]}/{key[1]}", counters["name"], name] = amount(value["value"])
            for device in spec.get("devices", []):
                place = (*key, device["name"])
                devices.home[place] = spec.get("nodeName", "")
                if _reaches(photo, spec, node):
                    devices.offered[place] = device
    for name, claim in photo.claims.items():
        if name not in released:
            for result in _results(claim):
                place = (result["driver"], result["pool"], result["device"])
                share = result.get("consumedCapacity", {}).get("bytes", "0")
                devices.take(place, amount(share))
    return devices


def _ways(devices: _Devices, request: Data) -> Iterator[list[tuple[Place, Fraction]]]:
    """Yield the ways to satisfy a request; each holds its devices while it is looked at."""
    for option in request.get("firstAvailable") or [request["exactly"]]:
        yield from _picks(devices, option, int(option.get("count", 1)), [])


def _picks(
    devices: _Devices, option: Data, count: int, picked: list[tuple[Place, Fraction]]
) -> Iterator[list[tuple[Place, Fraction]]]:
    if count == 0:
        yield picked
        return
    tests = [_SELECTORS[item["cel"]["expression"]] for item in option.get("selectors", [])]
    for place, device in devices.offered.items():
        attributes = device.get("attributes", {})
        if place[0] != f"{option['deviceClassName']}.example.org" or any(
            attributes.get(name, {}).get(kind) != value for name, kind, value in tests
        ):
            continue
        share = Fraction(0)
        if device.get("allowMultipleAllocations"):
            default = device["capacity"]["bytes"]["requestPolicy"]["default"]
            share = amount(option.get("capacity", {}).get("requests", {}).get("bytes", default))
        if devices.free(place, share):
            devices.take(place, share)
            yield from _picks(devices, option, count - 1, [*picked, (place, share)])
            devices.take(place, share, -1)


def _all_fit(devices: _Devices, requests: list[Data]) -> bool:
    if not requests:
        return True
    return any(_all_fit(devices, requests[1:]) for _ in _ways(devices, requests[0]))


def claims_of(photo: Photo, pod: Data) -> list[str] | None:
    """Return the names of the pod's claims; None if one does not exist."""
    made = {item["name"]: item.get("resourceClaimName") for item in pod["status"].get("resourceClaimStatuses", [])}
    names = [
        entry.get("resourceClaimName") or made.get(entry["name"]) for entry in pod["spec"].get("resourceClaims", [])
    ]
    return None if any(name not in photo.claims for name in names) else [str(name) for name in names]


def cpu_of(pod: Data) -> Fraction:
    """Return what the pod requests of CPU."""
    return sum((amount(c["resources"]["requests"]["cpu"]) for c in pod["spec"]["containers"]), Fraction(0))


def obstacle(photo: Photo, pod: Data, node: str, removed: Collection[str] = (), released: Collection[str] = ()) -> str:
    """Return what keeps the pod from the node when these pods and claims are gone; "" if nothing does."""
    spec = photo.nodes[node].get("spec", {})
    labels = photo.nodes[node]["metadata"].get("labels", {})
    tolerated = bool(pod["spec"].get("tolerations")) and any(
        item.get("key") == random_world.TAINT["key"] for item in pod["spec"]["tolerations"]
    )
    if spec.get("unschedulable"):
        return "cordoned"
    if any(taint["key"] == random_world.TAINT["key"] for taint in spec.get("taints", [])) and not tolerated:
        return "tainted"
    if any(labels.get(key) != value for key, value in pod["spec"].get("nodeSelector", {}).items()):
        return "not selected"
    there = [
        other
        for name, other in photo.pods.items()
        if node in (other["spec"].get("nodeName"), _holds(photo, pod, other))
        and name not in removed
        and other["status"].get("phase") not in ("Succeeded", "Failed")
    ]
    room = amount(photo.nodes[node]["status"]["allocatable"]["cpu"])
    if sum(map(cpu_of, there), cpu_of(pod)) > room:
        return "cpu"
    names = claims_of(photo, pod)
    assert names is not None
    uid = pod["metadata"]["uid"]
    # A claim that nobody else uses is deallocated where it is of no use.
    own = [name for name in names if not set(_users(photo.claims[name])) - {uid}]
    needed = [name for name in names if name in own or not _results(photo.claims[name])]
    devices = _devices(photo, node, {*released, *own})
    requests = [request for name in needed for request in photo.claims[name]["spec"]["devices"]["requests"]]
    if not _all_fit(devices, requests):
        return "devices"
    for name in names:
        allocation = photo.claims[name].get("status", {}).get("allocation")
        if name in needed or allocation is None:
            continue
        if "nodeSelector" in allocation and not _selected(photo, allocation["nodeSelector"], node):
            return "claim elsewhere"
        if not _attached(photo.claims[name]):
            return "claim elsewhere"
    return ""


def _attached(claim: Data) -> bool:
    """Whether the drivers have said of all devices that they are ready, and of none that it has failed."""
    said = {
        (item["driver"], item["pool"], item["device"]): {c["type"] for c in item.get("conditions", []) if c["status"] == "True"}
        for item in claim["status"].get("devices", [])
    }  # fmt: skip
    for result in _results(claim):
        true = said.get((result["driver"], result["pool"], result["device"]), set())
        if not true.issuperset(result.get("bindingConditions", [])) or true & set(
            result.get("bindingFailureConditions", [])
        ):
            return False
    return True


def _holds(photo: Photo, pod: Data, other: Data) -> str:
    """Return the node on which another pod holds room against this one."""
    if (
        other is pod
        or other["spec"].get("nodeName")
        or other["spec"].get("priority", 0) < pod["spec"].get("priority", 0)
    ):
        return ""
    return str(other["status"].get("nominatedNodeName", ""))


def fits(photo: Photo, pod: Data) -> list[str]:
    """Return the nodes on which the pod fits as things are."""
    return [node for node in photo.nodes if not obstacle(photo, pod, node)]


def helped(photo: Photo, pod: Data, *, shared: bool = True) -> list[str]:
    """Return the nodes on which the pod fits if all pods of lower priority go; claims with names only if `shared`."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return []
    mine = pod["spec"].get("priority", 0)
    found = []
    for node in photo.nodes:
        lower = [
            name
            for name, other in photo.pods.items()
            if other["spec"].get("nodeName") == node and other["spec"].get("priority", 0) < mine
        ]
        if lower and not obstacle(photo, pod, node, lower, _released(photo, pod, node, lower, shared=shared)):
            found.append(node)
    return found


def _released(photo: Photo, pod: Data, node: str, lower: Collection[str], *, shared: bool) -> list[str]:
    """Return the claims that come free when these pods go."""
    if "schedulingGroup" in pod["spec"]:
        return []
    by_uid = {other["metadata"]["uid"]: (name, other) for name, other in photo.pods.items()}
    homes = _devices(photo, node, ()).home
    own = claims_of(photo, pod) or []
    found = []
    for name, claim in photo.claims.items():
        if not shared and not claim["metadata"].get("ownerReferences"):
            continue
        users = [by_uid.get(uid) for uid in _users(claim)]
        if not users or name in own or any(user is not None and "schedulingGroup" in user[1]["spec"] for user in users):
            continue
        places = [(item["driver"], item["pool"], item["device"]) for item in _results(claim)]
        leaving = all(
            user is None or user[0] in lower or "deletionTimestamp" in user[1]["metadata"] for user in users
        )  # fmt: skip
        if leaving and any(user and user[0] in lower for user in users) and all(homes.get(p) == node for p in places):
            found.append(name)
    return found


def unanswered(photo: Photo) -> Iterator[str]:
    """Yield what is wrong when nothing is left to happen: pods that wait though they need not."""
    if photo.busy:
        yield f"still going on: {', '.join(photo.busy)}"
        return
    for name, pod in photo.pending.items():
        condition = _condition(pod)
        if pod["status"].get("nominatedNodeName"):
            yield f"{name} is nominated to {pod['status']['nominatedNodeName']}, and nothing goes on"
        if condition is None or condition.get("status") != "False" or not condition.get("message"):
            yield f"{name} waits without being told why"
        if claims_of(photo, pod) is None:
            continue
        if nodes := fits(photo, pod):
            yield f"{name} fits on {', '.join(nodes)} and is not bound: {_message(pod)}"
        elif nodes := helped(photo, pod, shared=False):
            yield f"{name} would fit on {', '.join(nodes)} if those of lower priority went: {_message(pod)}"


def for_the_flush(photo: Photo) -> list[str]:
    """Return the pods that only the flush tries again.

    A shared claim that loses a user may be freed by preemption from then on. Nothing comes free by that, and as upstream
    nobody is woken; such a pod is no lost one.
    """
    return [
        name
        for name, pod in photo.pending.items()
        if claims_of(photo, pod) is not None and helped(photo, pod) and not helped(photo, pod, shared=False)
    ]


def _condition(pod: Data) -> Data | None:
    return next((c for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"), None)


def _message(pod: Data) -> str:
    condition = _condition(pod)
    return "" if condition is None else str(condition.get("message", ""))


# The words of a condition and what stands in the way.
_WORDS = {
    "node(s) were unschedulable": "cordoned",
    "node(s) had untolerated taint(s)": "tainted",
    "node(s) didn't match Pod's node affinity/selector": "not selected",
    "Insufficient cpu": "cpu",
    "cannot allocate all claims": "devices",
    "resourceclaim not available on the node": "claim elsewhere",
}


def explained(photo: Photo) -> Iterator[str]:
    """Yield the conditions that do not tell the truth, where all pending pods have just been tried."""
    if photo.busy:
        return
    for name, pod in photo.pending.items():
        if claims_of(photo, pod) is None:
            continue
        told = _told(_message(pod))
        if told is None:
            continue
        true: dict[str, int] = defaultdict(int)
        for node in photo.nodes:
            true[obstacle(photo, pod, node)] += 1
        if told != true:
            yield f"{name}: {_message(pod)!r}, but it is {dict(true)}"


def _told(message: str) -> dict[str, int] | None:
    """Return how many nodes a condition counts for each obstacle; None where it uses other words."""
    head = message.partition(". preemption:")[0].partition(": ")[2].rstrip(".")
    told: dict[str, int] = {}
    for part in head.split(", "):
        count, _, words = part.partition(" ")
        if words not in _WORDS or not count.isdigit():
            return None
        told[_WORDS[words]] = told.get(_WORDS[words], 0) + int(count)
    return told
