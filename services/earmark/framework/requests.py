"""What a pod asks of a node: its effective resource requests and host ports.

CPU counts in thousandths, everything else in whole units. Rules: upstream's PodRequests (init containers, sidecars,
pod-level resources, overhead).
"""

from __future__ import annotations

from collections.abc import Mapping

from earmark.kube import objects
from earmark.kube.quantity import parse_quantity

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

# Scoring pretends that a container without requests asks for this much, or such pods would all land on one node.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024

Amounts = dict[str, int]
HostPort = tuple[str, str, int]
"""Address, protocol and port."""


def amounts(quantities: Mapping[str, str]) -> Amounts:
    """Return quantities as integers: thousandths for CPU, rounded up.

    Raises:
        QuantityError: for a text that is no quantity.
    """
    return {
        name: parse_quantity(text).milli_value() if name == CPU else parse_quantity(text).value()
        for name, text in quantities.items()
    }


def _container(container: objects.Container, defaults: bool) -> Amounts:
    # The API sets a missing request to the limit; objects that never went through it get the same here.
    asked = amounts({**container.resources.limits, **container.resources.requests})
    if defaults:
        asked.setdefault(CPU, DEFAULT_MILLI_CPU)
        asked.setdefault(MEMORY, DEFAULT_MEMORY)
    return asked


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Amounts, floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        if amount > total.get(name, 0):
            total[name] = amount


def pod_requests(pod: objects.Pod, *, defaults: bool = False) -> Amounts:
    """Return what the pod needs at its peak.

    Containers and sidecars run together; an init container runs beside the sidecars started before it. Pod-level
    resources replace the sum where they are set; overhead comes on top.

    Args:
        pod: the pod.
        defaults: whether containers without CPU or memory requests count with the scoring defaults.
    """
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _container(container, defaults))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        asked = _container(container, defaults)
        if container.restart_policy == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            asked = dict(sidecars)
        else:
            _add(asked, sidecars)
        _raise(peak, asked)
    _raise(total, peak)
    if pod.spec.resources is not None:
        total.update(amounts({**pod.spec.resources.limits, **pod.spec.resources.requests}))
    _add(total, amounts(pod.spec.overhead))
    return total


def host_ports(pod: objects.Pod) -> tuple[HostPort, ...]:
    """Return the host ports of containers and sidecars."""
    sidecars = (c for c in pod.spec.init_containers if c.restart_policy == "Always")
    return tuple(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in (*sidecars, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Whether two host ports cannot both be taken on one node."""
    return one[1:] == other[1:] and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))
