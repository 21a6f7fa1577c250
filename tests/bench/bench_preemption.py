"""How long a preemption takes from Preempt to the decision, and what the gate costs where nothing is nominated (E107).

    python tests/bench/bench_preemption.py [--json FILE] [--nodes 1000] [--repeat 3] [--docs] [SECTION ...]

All services run in one process and one event loop, on the embedded API in memory; the calls between them go in process or
over Unix sockets. Times are CPU time of the process, which on an idle machine is the time that passes: a decision is a
chain of calls that wait for each other. `--docs` writes the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import platform
import random
import statistics
import sys
import textwrap
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "tests") not in sys.path:
    sys.path.insert(0, str(ROOT / "tests"))

from earmark.apiserver.registry import Registry  # noqa: E402
from earmark.dynamicresources import component as dynamicresources  # noqa: E402
from earmark.dynamicresources.settings import Settings as DynamicResourcesSettings  # noqa: E402
from earmark.framework import component as framework  # noqa: E402
from earmark.framework.component import Framework  # noqa: E402
from earmark.framework.settings import FrameworkSettings  # noqa: E402
from earmark.kube import objects  # noqa: E402
from earmark.kube.api import PatchType  # noqa: E402
from earmark.kube.informer import InformerEvent  # noqa: E402
from earmark.kube.resources import BY_KIND  # noqa: E402
from earmark.preemption import component as preemption  # noqa: E402
from earmark.preemption.settings import PreemptionSettings  # noqa: E402
from earmark.runtime.clock import LoopClock  # noqa: E402
from support.contract_stack import Stack  # noqa: E402

DOCUMENT = ROOT / "docs" / "performance.md"
BEGIN = "<!-- preemption: written by make bench-preemption ARGS=--docs -->"
END = "<!-- end of preemption -->"

DEVICES = 8
DRIVER = "gpu.example.com"
# Enough candidates are all of them.
EVERY_NODE = PreemptionSettings(min_candidate_nodes_percentage=100, round_chunk_nodes=10_000)

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Victim:
    """A pod that holds devices."""

    devices: int
    cpu: int
    priority: str = "low"


Fill = Sequence[Victim]


@dataclass(frozen=True)
class Taken:
    """What one preemption took."""

    cpu_ms: float
    wall_ms: float
    # Calls between preemption and framework, Preempt included.
    calls: int
    candidates: int


def fills(kinds: int) -> list[Fill]:
    """Return so many different fills of a node with eight devices; one kind is eight equal victims."""
    if kinds == 1:
        return [[Victim(1, 250)] * DEVICES]
    chance = random.Random(5690)
    found: list[Fill] = []
    for number in range(kinds):
        left, victims = DEVICES, list[Victim]()
        while left:
            devices = min(left, chance.choice((1, 1, 1, 2, 2, 3)))
            victims.append(Victim(devices, 100 + number, chance.choice(("low", "low", "middle"))))
            left -= devices
        found.append(victims)
    return found


# --- the cluster -----------------------------------------------------------------------------------------------------


class Cluster:
    """Writes objects as they would be in the API after their pods have been bound."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def put(self, kind: str, name: str, spec: Manifest, status: Manifest | None = None, **metadata: Any) -> None:
        resource = BY_KIND[kind]
        namespace = "default" if resource.namespaced else ""
        body: Manifest = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": name, **metadata}}
        body |= spec if kind == "PriorityClass" else {"spec": spec}
        self._registry.create(resource, namespace, body)
        if status is not None:
            patch = {"status": status}
            self._registry.patch(resource, namespace, name, patch, PatchType.MERGE, subresource="status")

    def basics(self) -> None:
        """Make classes and templates."""
        for name, value in (("low", 0), ("middle", 10), ("high", 100)):
            self.put("PriorityClass", name, {"value": value})
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        self.put("DeviceClass", "gpu", {"selectors": [selector]})

    def node(self, name: str, fill: Fill) -> None:
        """Make a node with its devices and the pods that hold them."""
        room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        self.put("Node", name, {}, {"capacity": room, "allocatable": room}, labels={"kubernetes.io/hostname": name})
        devices = [{"name": f"gpu-{number}"} for number in range(DEVICES)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        self.put(
            "ResourceSlice", f"{name}-gpus", {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": devices}
        )
        begin = 0
        for number, victim in enumerate(fill):
            self.holder(f"{name}-v{number}", name, victim, begin)
            begin += victim.devices

    def holder(self, name: str, node: str, victim: Victim, begin: int) -> None:
        """Make a pod that runs, with its claim."""
        self.pod(name, victim.priority, victim.devices, victim.cpu, node)
        results = [
            {"request": "gpus", "driver": DRIVER, "pool": node, "device": f"gpu-{number}"}
            for number in range(begin, begin + victim.devices)
        ]
        uid = self._registry.lookup("Pod", "default", name)["metadata"]["uid"]  # type: ignore[index]
        expression = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation = {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [expression]}]},
        }
        reserved = [{"resource": "pods", "name": name, "uid": uid}]
        self._registry.patch(
            BY_KIND["ResourceClaim"],
            "default",
            f"{name}-claim",
            {"status": {"allocation": allocation, "reservedFor": reserved}},
            PatchType.MERGE,
            subresource="status",
        )

    def pod(self, name: str, priority: str, devices: int, cpu: int, node: str = "") -> None:
        """Make a pod with a claim of its own."""
        request = {"name": "gpus", "exactly": {"deviceClassName": "gpu", "count": devices}}
        finalizers = ["resource.kubernetes.io/delete-protection"]
        self.put("ResourceClaim", f"{name}-claim", {"devices": {"requests": [request]}}, finalizers=finalizers)
        resources = {"requests": {"cpu": f"{cpu}m"}, "claims": [{"name": "gpus"}]}
        spec: Manifest = {
            "priorityClassName": priority,
            "containers": [{"name": "main", "image": "example.com/work:1", "resources": resources}],
            "resourceClaims": [{"name": "gpus", "resourceClaimName": f"{name}-claim"}],
        }
        status = None
        if node:
            spec["nodeName"] = node
            status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        self.put("Pod", name, spec, status)


async def stack_with(kind: str, nodes: int, kinds: Sequence[Fill], *, gate: bool = True) -> Stack:
    """Return services that have seen a cluster of so many nodes, filled in turn."""
    stack = Stack(LoopClock(asyncio.get_running_loop(), datetime.now(UTC)), kind)
    cluster = Cluster(stack.world.registry)
    cluster.basics()
    for number in range(nodes):
        cluster.node(f"n{number:04d}", kinds[number % len(kinds)] if kinds else ())
    gates = {"DRAPreemption": gate}
    await stack.start("dynamicresources", dynamicresources.build, DynamicResourcesSettings(feature_gates=gates))
    await stack.start("preemption", preemption.build, EVERY_NODE)
    settings = FrameworkSettings(scheduler_names=("default-scheduler",), feature_gates=gates)
    await stack.start("framework", framework.build, settings)
    await stack.until(lambda: all(component.ready() for component in stack.components.values()), 300.0)
    # As a service process does once it has loaded its caches.
    gc.collect()
    gc.freeze()
    return stack


# --- Preempt ---------------------------------------------------------------------------------------------------------


class Timed:
    """PreemptionService as the framework calls it, with a watch."""

    def __init__(self, stub: Any, stack: Stack) -> None:
        self._stub = stub
        self._stack = stack
        self.taken: list[Taken] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stub, name)

    async def Preempt(self, request: Any, timeout: float) -> Any:
        """Measure one call."""
        self._stack.calls.clear()
        cpu, wall = time.process_time(), time.perf_counter()
        answer = await self._stub.Preempt(request, timeout=timeout)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        calls = sum(
            name.startswith(("/earmark.v1.FrameworkService/", "/earmark.v1.PreemptionService/"))
            for name, _ in self._stack.calls
        )
        self.taken.append(Taken(1000 * cpu, 1000 * wall, calls, len(answer.candidates)))
        return answer


async def preempt(kind: str, nodes: int, kinds: Sequence[Fill], wanted: int, repeat: int) -> list[Taken]:
    """Let a pod that wants so many devices preempt, as often as asked, each time in the same cluster."""
    stack = await stack_with(kind, nodes, kinds)
    try:
        service = stack.components["framework"]
        assert isinstance(service, Framework)
        timed = service.core.preemption = Timed(service.core.preemption, stack)  # type: ignore[assignment]
        cluster = Cluster(stack.world.registry)
        for number in range(repeat):
            # Each is more important than the last: no hold of the last stands in its way, and its victims terminate.
            cluster.put("PriorityClass", f"p{number}", {"value": 1000 + number})
            cluster.pod(f"preemptor{number}", f"p{number}", wanted, 250)
            await stack.until(lambda: len(timed.taken) > number, 120.0)  # noqa: B023
        return timed.taken
    finally:
        await stack.close()


# --- the gate --------------------------------------------------------------------------------------------------------


async def gate_cost(nodes: int, bursts: int, pods: int) -> tuple[list[float], list[float]]:
    """Return CPU milliseconds a pod with the gate on and off; both clusters take turns, burst by burst."""
    stacks = [await stack_with("inprocess", nodes, (), gate=gate) for gate in (True, False)]
    found: tuple[list[float], list[float]] = ([], [])
    try:
        for burst in range(bursts + 1):
            order = (0, 1) if burst % 2 else (1, 0)
            for which in order:
                stack = stacks[which]
                cluster = Cluster(stack.world.registry)
                gc.collect()
                bound = _bound(stack, pods)
                begun = time.process_time()
                for number in range(pods):
                    cluster.pod(f"b{burst}-{number}", "low", 1, 100)
                await asyncio.wait_for(bound, 300.0)
                if burst:
                    found[which].append(1000 * (time.process_time() - begun) / pods)
        return found
    finally:
        for stack in stacks:
            await stack.close()


def _bound(stack: Stack, pods: int) -> asyncio.Future[None]:
    """Return what is done when the framework has seen so many more pods bound; nobody has to look again and again."""
    service = stack.components["framework"]
    assert isinstance(service, Framework)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = pods

    def heard(event: InformerEvent[objects.Pod]) -> None:
        nonlocal left
        if (
            event.new is not None
            and event.new.spec.node_name
            and event.old is not None
            and not event.old.spec.node_name
        ):
            left -= 1
            if left == 0:
                done.set_result(None)

    service.core.pods.add_handler(heard)
    return done


# --- sections --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    what: str
    measured: str
    limit: str
    holds: bool
    values: dict[str, Any]


def _preemption(what: str, limit_ms: float, taken: list[Taken], victims: int) -> Iterator[Row]:
    cpu = statistics.median(item.cpu_ms for item in taken)
    wall = statistics.median(item.wall_ms for item in taken)
    calls = max(item.calls for item in taken)
    values = {"cpu_ms": round(cpu, 1), "wall_ms": round(wall, 1), "candidates": taken[0].candidates}
    yield Row(what, f"{cpu / 1000:.2f} s", f"{limit_ms / 1000:g} s", cpu < limit_ms, values)
    most = victims + 3
    yield Row(f"{what}: calls", str(calls), str(most), calls <= most, {"calls": calls})


async def equal(options: argparse.Namespace) -> list[Row]:
    """Equal nodes, in process."""
    taken = await preempt("inprocess", options.nodes, fills(1), 4, options.repeat)
    return list(_preemption(f"{options.nodes} full equal nodes, in process", 1000, taken, DEVICES))


async def sockets(options: argparse.Namespace) -> list[Row]:
    """Equal nodes, over sockets."""
    taken = await preempt("socket", options.nodes, fills(1), 4, options.repeat)
    return list(_preemption(f"{options.nodes} full equal nodes, over sockets", 1500, taken, DEVICES))


async def different(options: argparse.Namespace) -> list[Row]:
    """Two hundred different fills."""
    kinds = fills(200)
    taken = await preempt("inprocess", options.nodes, kinds, 4, options.repeat)
    what = f"{options.nodes} nodes with 200 fills, in process"
    return list(_preemption(what, 3000, taken, max(map(len, kinds))))


async def gate(options: argparse.Namespace) -> list[Row]:
    """A cycle where nothing is nominated."""
    on, off = await gate_cost(200, 3 * options.repeat, 40)
    values = {"on_ms": round(statistics.median(on), 3), "off_ms": round(statistics.median(off), 3)}
    share = values["on_ms"] / values["off_ms"] - 1
    text = f"{values['on_ms']:.2f} ms against {values['off_ms']:.2f} ms ({100 * share:+.1f} %)"
    return [Row("a pod that fits, gate on against off", text, "± 5 %", abs(share) <= 0.05, values)]


SECTIONS: dict[str, Callable[[argparse.Namespace], Coroutine[Any, Any, list[Row]]]] = {
    "equal": equal,
    "sockets": sockets,
    "different": different,
    "gate": gate,
}


def table(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown."""
    lines = ["| what | measured | limit |", "| --- | ---: | ---: |"]
    lines += [f"| {row.what} | {row.measured} | {row.limit} |" for row in rows]
    return "\n".join(lines)


def write(rows: Sequence[Row]) -> None:
    """Put the table between its marks in the document; a new section goes to the end."""
    about = (
        "From Preempt to the decision: a pod that needs four devices, nodes with eight, every node a candidate. All "
        "services run in one process on the embedded API in memory; calls go in process or over Unix sockets. Seconds "
        "are CPU time of that process, both ends of every call included: on an idle machine a decision takes as long, "
        "for it is a chain of calls that wait for each other. Calls are those between `preemption` and `framework`, "
        f"`Preempt` included. Medians; CPython {platform.python_version()}, {os.cpu_count()} cores."
    )
    section = f"{BEGIN}\n\n{textwrap.fill(about, 120)}\n\n{table(rows)}\n\n{END}"
    text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else "# Performance\n"
    if BEGIN in text:
        before, _, rest = text.partition(BEGIN)
        text = before + section + rest.partition(END)[2]
    else:
        text = f"{text.rstrip()}\n\n## Preemption\n\n{section}\n"
    DOCUMENT.write_text(text, encoding="utf-8")


def main() -> int:
    """Measure, print and write; status 1 where a limit does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--docs", action="store_true", help="write the table into docs/performance.md")
    options = parser.parse_args()
    # The clusters are ended in the middle of what they do, which is nothing to read about.
    logging.disable(logging.CRITICAL)
    rows: list[Row] = []
    for name in options.sections or SECTIONS:
        for row in asyncio.run(SECTIONS[name](options)):
            rows.append(row)
            print(f"{row.what:<50} {row.measured:>40} {row.limit:>10}  {'' if row.holds else 'MISSED'}", flush=True)
        gc.unfreeze()
        gc.collect()
    if options.json is not None:
        found = [{"what": row.what, "holds": row.holds, **row.values} for row in rows]
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if options.docs:
        write(rows)
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
