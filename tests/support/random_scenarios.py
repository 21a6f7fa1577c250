"""Random scenarios: a cluster, pods that come and go, and what may go wrong meanwhile. A function of the seed.

A scenario is made as the document that a scenario file would hold, so that one that fails can be written out and played
again by `earmark simulate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml

from earmark.simulation.document import Field
from earmark.simulation.manifests import read_manifest, read_manifests
from earmark.simulation.scenario import API_VERSION, KIND, Delays, Manifest, Scenario, TimelineEntry
from earmark.simulation.steps.registry import READERS
from support.random_world import TAINT, World, node, node_slices, pod, random_world

SERVICES = ("nodes", "claimcontroller", "dynamicresources", "preemption", "framework")

# What the API may refuse: verb, kind, subresource and with which statuses.
_REFUSALS = (
    ("delete", "Pod", "", (403, 429, 500, 503)),
    ("patch", "Pod", "status", (409, 500, 503)),
    ("patch", "ResourceClaim", "", (409, 500, 503)),
    ("patch", "ResourceClaim", "status", (409, 500, 503)),
    ("create", "Pod", "binding", (409, 500, 503)),
    ("create", "ResourceClaim", "", (500, 503)),
    ("list", "ResourceClaim", "", (503,)),
    ("watch", "Pod", "", (500,)),
)
_SLOW = (
    ("patch", "Pod"),
    ("delete", "Pod"),
    ("patch", "ResourceClaim"),
    ("create", "ResourceClaim"),
    ("create", "Pod"),
)


@dataclass(frozen=True)
class Trouble:
    """What a scenario file cannot say: how the services hear of what happens. 0: at once."""

    late: float = 0.0
    longest_seconds: float = 0.0
    broken: float = 0.0


@dataclass(frozen=True)
class RandomScenario:
    """A scenario as a document, its seed and its trouble."""

    seed: int
    spec: Mapping[str, Any]
    trouble: Trouble
    # Steps that the cluster may refuse, by their position in the timeline.
    optional: frozenset[int] = field(default_factory=frozenset)

    @property
    def name(self) -> str:
        """The scenario's name."""
        return f"random-{self.seed}"

    def scenario(self) -> Scenario:
        """Return what is played; the steps are those of the document, in its order."""
        timeline = tuple(self._entry(entry) for entry in self.spec["timeline"])
        delays = Delays(**{key: float(value.rstrip("s")) for key, value in self.spec["delays"].items()})
        return Scenario(self.name, "", self.spec["featureGates"], delays, self._objects(), timeline)

    def _objects(self) -> tuple[Manifest, ...]:
        return tuple(read_manifest(_field(data)) for data in self.spec["objects"])

    @staticmethod
    def _entry(entry: Mapping[str, Any]) -> TimelineEntry:
        key = next(key for key in entry if key != "at")
        at = None if entry["at"] == "end" else float(entry["at"].rstrip("s"))
        return TimelineEntry(at, READERS[key](_field(entry[key]), _Context()))

    def write(self, folder: Path, refused: frozenset[int], complaints: list[str]) -> Path:
        """Write the scenario as a file without the steps that were refused; return its path."""
        kept = [entry for number, entry in enumerate(self.spec["timeline"]) if number not in refused]
        kept += [{"at": "end", "restart": "framework"}, {"at": "end", "expect": {}}]
        spec = {"description": "\n".join(complaints) or f"Seed {self.seed}.", **self.spec, "timeline": kept}
        document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": self.name}, "spec": spec}
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.yaml"
        heading = f"# Watches of this run: {self.trouble}\n" if self.trouble != Trouble() else ""
        path.write_text(heading + yaml.safe_dump(document, sort_keys=False, width=140), encoding="utf-8")
        return path


class _Context:
    def manifests(self, field: Field) -> tuple[Manifest, ...]:
        return read_manifests(field, Path())


def _field(value: Any) -> Field:
    return Field("generated", (), value, {})


def random_scenario(seed: int) -> RandomScenario:
    """Return the scenario of a seed."""
    random = Random(f"earmark scenario {seed}")
    world = random_world(random)
    story = _Story(random, world)
    story.tell()
    trouble = Trouble()
    if random.random() < 0.3:
        trouble = Trouble(0.3, random.choice((0.2, 1.0, 3.0)), random.choice((0.0, 0.02, 0.05)))
    spec = {
        "featureGates": {"DRAPreemption": True},
        "delays": {
            "deallocation": f"{random.choice((0, 0, 1, 5, 10, 45, 90))}s",
            "startup": f"{random.choice((0, 0, 1, 5))}s",
        },
        "objects": list(world.objects),
        "timeline": [entry for _, entry, _ in story.steps],
    }
    optional = frozenset(number for number, (_, _, may_fail) in enumerate(story.steps) if may_fail)
    return RandomScenario(seed, spec, trouble, optional)


class _Story:
    """Makes the timeline."""

    def __init__(self, random: Random, world: World) -> None:
        self._random = random
        self._world = world
        self._length = random.choice((60, 120, 120, 240))
        self.steps: list[tuple[float, dict[str, Any], bool]] = []

    def tell(self) -> None:
        """Fill `steps`, in the order of time."""
        random = self._random
        early, all_pods = random.randint(3, 10), random.randint(8, 18)
        for number in range(1, all_pods + 1):
            self._pod(f"p{number}", late=number > early)
        for _ in range(random.choice((0, 0, 0, 1, 2, 3))):
            random.choice((self._cordon, self._taint, self._lose_node, self._new_slice))()
        for _ in range(random.choice((0, 0, 1, 2))):
            self._outage()
        for _ in range(random.choice((0, 0, 0, 1, 2, 3))):
            self._refuse()
        if random.random() < 0.2:
            self._slow()
        for name in self._world.nodes:
            if random.random() < 0.15:
                self._hold(name)
        # Stable: what was thought of first comes first.
        self.steps.sort(key=lambda step: step[0])

    def _moment(self, last: float | None = None) -> float:
        # Half of all things happen at the same few moments.
        at = self._random.random() * (self._length if last is None else last)
        return round(at / 10) * 10.0 if self._random.random() < 0.5 else round(at, 1)

    def _add(self, at: float, key: str, value: Any, *, optional: bool = False) -> None:
        self.steps.append((at, {"at": f"{at:g}s", key: value}, optional))

    def _pod(self, name: str, *, late: bool) -> None:
        random = self._random
        at = 0.0 if random.random() < 0.5 else self._moment(self._length * 0.3)
        if late:
            at = self._moment(self._length * 0.9)
        manifest = pod(random, self._world, name, late=late)
        self._add(at, "apply", [manifest])
        if random.random() < (0.2 if late else 0.3):
            self._add(at + self._moment(), "delete", {"kind": "Pod", "name": name})
        if random.random() < 0.1:
            self._add(at + self._moment(), "patch", self._patch("Pod", name, {"metadata": {"labels": {"x": "y"}}}))
        for entry in manifest["spec"]["resourceClaims"]:
            if "fabric" not in self._world.kinds:
                continue
            claim = entry.get("resourceClaimName", f"{name}/{entry['name']}")
            for _ in range(random.choice((0, 1, 3))):
                self._attach(at + self._moment(), claim)
            for later in range(12):
                self._attach(2.0 * self._length + 15.0 * later, claim)

    def _attach(self, at: float, claim: str) -> None:
        condition = "broken" if self._random.random() < 0.03 else "attached"
        self._add(at, "attach", {"claim": claim, "condition": condition}, optional=True)

    @staticmethod
    def _patch(kind: str, name: str, merge: dict[str, Any]) -> dict[str, Any]:
        return {"kind": kind, "name": name, "merge": merge}

    def _some_node(self) -> str:
        names: Sequence[str] = self._world.nodes
        return self._random.choice(names)

    def _cordon(self) -> None:
        name, at = self._some_node(), self._moment()
        self._add(at, "patch", self._patch("Node", name, {"spec": {"unschedulable": True}}), optional=True)
        if self._random.random() < 0.85:
            later = at + self._moment()
            self._add(later, "patch", self._patch("Node", name, {"spec": {"unschedulable": None}}), optional=True)

    def _taint(self) -> None:
        name, at = self._some_node(), self._moment()
        self._add(at, "patch", self._patch("Node", name, {"spec": {"taints": [TAINT]}}), optional=True)
        if self._random.random() < 0.85:
            later = at + self._moment()
            self._add(later, "patch", self._patch("Node", name, {"spec": {"taints": None}}), optional=True)

    def _lose_node(self) -> None:
        name, at = self._some_node(), self._moment()
        self._add(at, "delete", {"kind": "Node", "name": name})
        if self._random.random() < 0.6:
            self._add(at + self._moment(), "apply", [node(self._random, name)])

    def _new_slice(self) -> None:
        kinds = [kind for kind in self._world.kinds if kind not in ("net", "part")]
        if kinds:
            kind, name = self._random.choice(kinds), self._some_node()
            manifests = list(node_slices(self._random, kind, name, self._random.choice((2, 3))))
            self._add(self._moment(), "apply", manifests)

    def _outage(self) -> None:
        """Restart a service, or leave it away for a while; one that is away already stays so until it is started."""
        service, at = self._random.choice(SERVICES), self._moment()
        if self._random.random() < 0.6:
            self._add(at, "restart", service, optional=True)
            return
        self._add(at, "stop", service, optional=True)
        self._add(at + self._random.choice((1.0, 5.0, 20.0, 60.0)), "start", service, optional=True)

    def _refuse(self) -> None:
        verb, kind, subresource, statuses = self._random.choice(_REFUSALS)
        value: dict[str, Any] = {"verb": verb, "kind": kind}
        if subresource:
            value["subresource"] = subresource
        value |= {"times": self._random.choice((1, 1, 2, 5)), "status": self._random.choice(statuses)}
        self._add(self._moment(), "fail", value)

    def _slow(self) -> None:
        verb, kind = self._random.choice(_SLOW)
        at = self._moment()
        self._add(at, "delay", {"verb": verb, "kind": kind, "by": f"{self._random.choice((0.5, 2.0, 6.0)):g}s"})
        self._add(2.0 * self._length, "delay", {"verb": verb, "kind": kind, "by": "0s"})

    def _hold(self, name: str) -> None:
        at = self._moment()
        self._add(at, "hold", name, optional=True)
        self._add(at + self._moment(), "release", name, optional=True)
