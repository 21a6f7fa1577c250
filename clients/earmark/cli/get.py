"""`earmark get`: what the cluster has, as tables or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from earmark.cli.output import Terminal
from earmark.cli.running import open_api, run
from earmark.client import EarmarkClient
from earmark.kube import objects
from earmark.runtime.process import RuntimeSettings


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows under column names; a row's values are text or lists of text."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str | list[str], ...]]


def show(runtime: RuntimeSettings, what: str, namespace: str, as_json: bool) -> None:
    """Print one listing. Raises CommandError where the API or a service does not answer."""
    listing = run(_LISTINGS[what](runtime, namespace))
    if as_json:
        print(json.dumps([dict(zip(listing.columns, row, strict=True)) for row in listing.rows]))
        return
    if not listing.rows:
        print(_NOTHING.get(what, f"no {what}"))
        return
    terminal = Terminal()
    # A pipe gets whole lines: what reads them (grep, awk) has no width.
    print_table(listing, terminal, terminal.width if terminal.is_terminal else None)


def print_table(listing: Listing, terminal: Terminal, width: int | None) -> None:
    """Print one line a row. Where `width` (columns) is too narrow the last columns go below their rows, named."""
    rows = [tuple(", ".join(value) if isinstance(value, list) else value for value in row) for row in listing.rows]
    widths = [max(map(len, column)) for column in zip(listing.columns, *rows, strict=True)]
    beside = len(widths)
    while width is not None and beside > 1 and sum(widths[:beside]) + 2 * (beside - 1) > width:
        beside -= 1

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths[:beside], strict=False)).rstrip()

    terminal.print(line(listing.columns), style="bold", markup=False, soft_wrap=True)
    for row in rows:
        terminal.print(line(row), markup=False, soft_wrap=True)
        for column, cell in zip(listing.columns[beside:], row[beside:], strict=True):
            if cell:
                terminal.print_indented(f"    {column}: {cell}")


async def _nodes(runtime: RuntimeSettings, namespace: str) -> Listing:
    async with open_api(runtime) as api:
        nodes = (await api.list(objects.Node)).items
        pods = (await api.list(objects.Pod)).items
    rows: list[tuple[str | list[str], ...]] = []
    for node in sorted(nodes, key=lambda node: node.key):
        ready = next((c.status for c in node.status.conditions if c.type == "Ready"), "Unknown")
        state = "Ready" if ready == "True" else "NotReady"
        if node.spec.unschedulable:
            state += ",SchedulingDisabled"
        count = sum(1 for pod in pods if pod.spec.node_name == node.metadata.name and not pod.terminal)
        taints = [f"{taint.key}={taint.value}:{taint.effect}" for taint in node.spec.taints]
        cpu, memory = (node.status.allocatable.get(name, "") for name in ("cpu", "memory"))
        rows.append((node.metadata.name, state, str(count), cpu, memory, taints))
    return Listing(("NAME", "STATUS", "PODS", "CPU", "MEMORY", "TAINTS"), rows)


def _pod_state(pod: objects.Pod) -> str:
    if pod.metadata.deletion_timestamp is not None:
        return "Terminating"
    return pod.status.phase or "Pending"


def _pod_reason(pod: objects.Pod) -> str:
    condition = next((c for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "False"), None)
    return condition.message if condition is not None else ""


async def _pods(runtime: RuntimeSettings, namespace: str) -> Listing:
    async with open_api(runtime) as api:
        pods = (await api.list(objects.Pod, namespace)).items
        claims = (await api.list(objects.ResourceClaim, namespace)).items
    by_pod: dict[str, list[str]] = {}
    for claim in sorted(claims, key=lambda claim: claim.key):
        for consumer in claim.status.reserved_for:
            by_pod.setdefault(consumer.uid, []).extend(devices_of(claim))
    rows = [
        (
            pod.metadata.namespace,
            pod.metadata.name,
            _pod_state(pod),
            str(pod.priority),
            pod.spec.node_name,
            pod.status.nominated_node_name if not pod.spec.node_name else "",
            by_pod.get(pod.metadata.uid, []),
            _pod_reason(pod),
        )
        for pod in sorted(pods, key=lambda pod: pod.key)
    ]
    return Listing(("NAMESPACE", "NAME", "STATUS", "PRIORITY", "NODE", "NOMINATED", "DEVICES", "REASON"), rows)


def devices_of(claim: objects.ResourceClaim) -> list[str]:
    """Return the claim's devices as POOL/DEVICE."""
    if claim.status.allocation is None:
        return []
    return [f"{result.pool}/{result.device}" for result in claim.status.allocation.devices.results]


async def _claims(runtime: RuntimeSettings, namespace: str) -> Listing:
    async with open_api(runtime) as api:
        claims = (await api.list(objects.ResourceClaim, namespace)).items
    rows = [
        (
            claim.metadata.namespace,
            claim.metadata.name,
            "pending" if claim.status.allocation is None else "allocated",
            devices_of(claim),
            [consumer.name for consumer in claim.status.reserved_for],
        )
        for claim in sorted(claims, key=lambda claim: claim.key)
    ]
    return Listing(("NAMESPACE", "NAME", "STATE", "DEVICES", "RESERVED FOR"), rows)


async def _slices(runtime: RuntimeSettings, namespace: str) -> Listing:
    async with open_api(runtime) as api:
        slices = (await api.list(objects.ResourceSlice)).items
    rows = [
        (
            item.metadata.name,
            item.spec.driver,
            item.spec.pool.name,
            item.spec.node_name or ("all nodes" if item.spec.all_nodes else "by selector"),
            [device.name for device in item.spec.devices],
        )
        for item in sorted(slices, key=lambda item: item.key)
    ]
    return Listing(("NAME", "DRIVER", "POOL", "NODE", "DEVICES"), rows)


async def _nominations(runtime: RuntimeSettings, namespace: str) -> Listing:
    async with EarmarkClient(runtime) as client:
        settlements = await client.settlements(open_only=True)
    rows = [
        (
            f"{settlement.preemptor.namespace}/{settlement.preemptor.name}",
            settlement.node_name,
            list(settlement.devices),
            [victim.pod.name for victim in settlement.victims],
            [claim.name for claim in settlement.claims if not claim.HasField("deallocated")],
            settlement.t0.ToDatetime().isoformat(timespec="seconds") + "Z",
        )
        for settlement in settlements
        if namespace in ("", settlement.preemptor.namespace)
    ]
    return Listing(("PREEMPTOR", "NODE", "HELD", "VICTIMS", "WAITS FOR", "SINCE"), rows)


async def _queue(runtime: RuntimeSettings, namespace: str) -> Listing:
    async with EarmarkClient(runtime) as client:
        pods = await client.queue()
    rows = [
        (
            f"{entry.pod.namespace}/{entry.pod.name}",
            entry.queue,
            str(entry.priority),
            str(entry.attempts),
            entry.nominated_node_name,
            entry.message,
        )
        for entry in pods
        if namespace in ("", entry.pod.namespace)
    ]
    return Listing(("POD", "QUEUE", "PRIORITY", "ATTEMPTS", "NOMINATED", "MESSAGE"), rows)


_NOTHING = {"queue": "no pods in the queue", "nominations": "no nominations: nothing is held at the moment"}

_LISTINGS: dict[str, Callable[[RuntimeSettings, str], Coroutine[Any, Any, Listing]]] = {
    "nodes": _nodes,
    "pods": _pods,
    "claims": _claims,
    "slices": _slices,
    "nominations": _nominations,
    "queue": _queue,
}
