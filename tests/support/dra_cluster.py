"""A small cluster for tests of the dynamicresources plugin: objects by short names, and a Core fed by hand.

The API's part (resourceVersions, who sees what when) is played by the methods of Cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from earmark.dynamicresources.allocator import NodeFacts
from earmark.dynamicresources.core import Core
from earmark.dynamicresources.cycles import Cycle
from earmark.dynamicresources.facts import PodRef, pod_facts
from earmark.dynamicresources.filtering import NodeCheck, Verdict
from earmark.dynamicresources.happened import Happened
from earmark.dynamicresources.nominating import Proposal, Proposed, Removal
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.solving import Solver, allocator_features
from earmark.dynamicresources.state import (
    World,
    claim_deleted,
    claim_seen,
    devices_changed,
    node_seen,
    pod_deleted,
    pod_seen,
)
from earmark.dynamicresources.statuses import Code
from earmark.kube import objects

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DRIVER = "gpu.example.com"


class EverythingMatches:
    """A judge of selectors for tests that have none."""

    def evaluate(self, expression: str, view: object, position: int) -> bool | str:
        return True

    def derive(self, expression: str, view: object, position: int) -> None:
        return None

    def reads(self, expression: str) -> frozenset[str] | None:
        return frozenset()


class Cluster:
    """A Core and a clockless API."""

    def __init__(self, *, gate: bool = True, **settings: Any) -> None:
        self.settings = Settings(feature_gates={"DRAPreemption": gate}, **settings)
        self._ids = 0
        self.revision = 100
        self.generation = 0
        self.happened: list[Happened] = []
        solver = Solver(
            allocator_features(self.settings.gate),
            lambda: self.new_id("share"),
            lambda: lambda: False,
            EverythingMatches(),
        )
        self.solver = solver
        self.core = Core(World(), self.settings, solver, lambda: self.new_id("cycle"))
        self.core.listen(lambda _world, happened: self.happened.extend(happened))
        self.pods: dict[str, objects.Pod] = {}
        self.claims: dict[str, objects.ResourceClaim] = {}
        self.add_class("gpu")

    def new_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}"

    def _version(self) -> str:
        self.revision += 1
        return str(self.revision)

    @property
    def world(self) -> World:
        return self.core.world

    # --- what there is -----------------------------------------------------------------------------------------------

    def add_class(self, name: str) -> None:
        value = objects.DeviceClass(metadata=objects.ObjectMeta(name=name))
        inventory = self.world.inventory.with_class(value)
        self.core.commit(devices_changed(self.world, inventory, "DeviceClass", name))

    def add_node(self, name: str, **labels: str) -> None:
        self.core.commit((node_seen(self.world, NodeFacts(name, labels)), ()))

    def add_slice(
        self,
        node: str | None,
        devices: Sequence[objects.Device | str],
        *,
        pool: str | None = None,
        counters: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """A slice of one pool; `counters` makes a second slice with one shared counter set, "set"."""
        pool = pool if pool is not None else node or "net"
        if node is not None and node not in self.world.nodes:
            self.add_node(node)
        slices = 2 if counters else 1
        where: dict[str, Any] = {"node_name": node} if node is not None else {"all_nodes": True}
        common = {
            "driver": DRIVER,
            "pool": objects.ResourcePool(name=pool, generation=1, resource_slice_count=slices),
            **where,
        }
        values = tuple(objects.Device(name=item) if isinstance(item, str) else item for item in devices)
        self._put_slice(pool, objects.ResourceSliceSpec(devices=values, **{**common, **spec}))
        if counters:
            sets = (
                objects.CounterSet(name="set", counters={k: objects.Counter(value=v) for k, v in counters.items()}),
            )
            self._put_slice(f"{pool}-counters", objects.ResourceSliceSpec(shared_counters=sets, **common))

    def _put_slice(self, name: str, spec: objects.ResourceSliceSpec) -> None:
        value = objects.ResourceSlice(metadata=objects.ObjectMeta(name=name), spec=spec)
        inventory = self.world.inventory.with_slice(value)
        self.core.commit(devices_changed(self.world, inventory, "ResourceSlice", name))

    def remove_slice(self, name: str) -> None:
        inventory = self.world.inventory.without_slice(name)
        self.core.commit(devices_changed(self.world, inventory, "ResourceSlice", name, gone=True))

    # --- claims ------------------------------------------------------------------------------------------------------

    def add_claim(
        self, name: str, *, count: int = 1, request: objects.DeviceRequest | None = None, uid: str = ""
    ) -> str:
        """A named claim for `count` devices; returns its UID."""
        asked = request if request is not None else exactly(count=count)
        value = objects.ResourceClaim(
            metadata=objects.ObjectMeta(
                name=name, namespace="default", uid=uid or f"uid-{name}", resource_version=self._version()
            ),
            spec=objects.ResourceClaimSpec(devices=objects.DeviceClaim(requests=(asked,))),
        )
        self._put_claim(value)
        return value.metadata.uid

    def _put_claim(self, value: objects.ResourceClaim) -> None:
        self.claims[value.metadata.name] = value
        self.core.commit(claim_seen(self.world, value))

    def change_claim(self, name: str, *, status: objects.ResourceClaimStatus | None = None, **meta: Any) -> None:
        """Replace a claim's status or metadata with a new resourceVersion, and let the watch deliver it."""
        old = self.claims[name]
        metadata = msgspec.structs.replace(old.metadata, resource_version=self._version(), **meta)
        new = msgspec.structs.replace(old, metadata=metadata)
        if status is not None:
            new = msgspec.structs.replace(new, status=status)
        self._put_claim(new)

    def allocate(
        self, name: str, devices: Sequence[str], pods: Sequence[str] = (), *, pool: str = "n1", **extra: Any
    ) -> None:
        """The claim is allocated and reserved for pods, as another cycle's PreBind would have written it."""
        allocation = allocated(devices, pool=pool, **extra)
        self.change_claim(
            name, status=objects.ResourceClaimStatus(allocation=allocation, reserved_for=self._refs(pods))
        )

    def _refs(self, pods: Iterable[str]) -> tuple[objects.ResourceClaimConsumerReference, ...]:
        return tuple(
            objects.ResourceClaimConsumerReference(resource="pods", name=name, uid=f"uid-{name}") for name in pods
        )

    def reserve_for(self, name: str, pods: Sequence[str]) -> None:
        """Replace reservedFor."""
        status = msgspec.structs.replace(self.claims[name].status, reserved_for=self._refs(pods))
        self.change_claim(name, status=status)

    def deallocate(self, name: str) -> None:
        """What the claim controller does when the last consumer is gone."""
        self.change_claim(name, status=objects.ResourceClaimStatus())

    def delete_claim(self, name: str) -> None:
        self.core.commit(claim_deleted(self.world, self.claims.pop(name)))

    # --- pods --------------------------------------------------------------------------------------------------------

    def add_pod(
        self, name: str, claims: Sequence[str] = (), *, priority: int = 0, node: str = "", **spec: Any
    ) -> PodRef:
        """A pod that uses named claims."""
        value = objects.Pod(
            metadata=objects.ObjectMeta(
                name=name, namespace="default", uid=f"uid-{name}", resource_version=self._version()
            ),
            spec=objects.PodSpec(
                node_name=node,
                priority=priority,
                resource_claims=tuple(
                    objects.PodResourceClaim(name=f"c{index}", resource_claim_name=claim)
                    for index, claim in enumerate(claims)
                ),
                **spec,
            ),
        )
        self._put_pod(value)
        return ref(name)

    def _put_pod(self, value: objects.Pod) -> None:
        self.pods[value.metadata.name] = value
        self.core.commit(pod_seen(self.world, pod_facts(value)))

    def terminate(self, name: str) -> None:
        old = self.pods[name]
        meta = msgspec.structs.replace(old.metadata, deletion_timestamp=NOW, resource_version=self._version())
        self._put_pod(msgspec.structs.replace(old, metadata=meta))

    def delete_pod(self, name: str) -> None:
        self.core.commit(pod_deleted(self.world, pod_facts(self.pods.pop(name))))

    def running(
        self, name: str, devices: Sequence[str], *, node: str = "n1", priority: int = 0, **extra: Any
    ) -> PodRef:
        """A bound pod with a claim of its own, "<name>-claim", that holds devices of the node's pool."""
        self.add_claim(f"{name}-claim", count=max(1, len(devices)))
        self.add_pod(name, [f"{name}-claim"], priority=priority, node=node)
        self.allocate(f"{name}-claim", devices, [name], pool=node, **extra)
        return ref(name)

    def pending(
        self, name: str, *, count: int = 1, priority: int = 100, request: objects.DeviceRequest | None = None
    ) -> PodRef:
        """A pod that waits, with a claim of its own, "<name>-claim"."""
        self.add_claim(f"{name}-claim", count=count, request=request)
        return self.add_pod(name, [f"{name}-claim"], priority=priority)

    # --- calls -------------------------------------------------------------------------------------------------------

    def pre_filter(self, name: str) -> Cycle:
        facts = self.world.pods.get(f"uid-{name}")
        assert facts is not None
        return self.core.pre_filter(facts)

    def filter(self, cycle: Cycle, *nodes: str, nominated: Sequence[str] = ()) -> list[Verdict]:
        checks = [NodeCheck(node, (), tuple(f"uid-{name}" for name in nominated)) for node in nodes]
        return self.core.filter(cycle, checks, NOW)

    def dry_run(self, cycle: Cycle, node: str, removed: Sequence[str] = (), nominated: Sequence[str] = ()) -> Verdict:
        check = NodeCheck(node, tuple(f"uid-{name}" for name in removed), tuple(f"uid-{name}" for name in nominated))
        return self.core.filter_forks(cycle, [check], NOW)[0]

    def propose(self, name: str, node: str, victims: Sequence[str] = (), nominated: Sequence[str] = ()) -> Proposed:
        self.generation += 1
        facts = self.world.pods.get(f"uid-{name}")
        assert facts is not None
        return self.core.add_nominated_pod(
            Proposal(
                pod=facts,
                priority=facts.priority,
                node=node,
                victims=tuple(ref(victim) for victim in victims),
                generation=self.generation,
                nominated=tuple(f"uid-{other}" for other in nominated),
                at=NOW,
            )
        )

    def nominate(self, name: str, node: str, victims: Sequence[str] = (), nominated: Sequence[str] = ()) -> Proposed:
        """Propose and confirm; the proposal has to succeed."""
        answer = self.propose(name, node, victims, nominated)
        assert answer.status.code is Code.SUCCESS, answer.status
        self.core.confirm_nominated_pod(f"uid-{name}", self.generation)
        return answer

    def remove(
        self, name: str, reason: Removal, not_deleted: Sequence[str] = (), generation: int | None = None
    ) -> None:
        self.core.remove_nominated_pod(
            f"uid-{name}",
            self.generation if generation is None else generation,
            reason,
            [f"uid-{victim}" for victim in not_deleted],
        )

    def held(self, name: str) -> tuple[str, ...] | None:
        """The device names that are held for a pod."""
        nomination = self.world.nominations.get(f"uid-{name}")
        return None if nomination is None else tuple(device.rsplit("/", 1)[1] for device in nomination.devices)

    def victim_claims(self, node: str) -> list[str]:
        return [item.key[1] for item in self.world.victim_claims.on(node)]

    def sleep(self, name: str) -> None:
        """Make a pod a sleeper."""
        self.core.wake_ups.sleep(ref(name))

    def woken(self) -> list[tuple[str, bool]]:
        """Return (pod, at once) of every wake-up since the last call."""
        log = self.core.wake_ups
        items = [item for item in log._sent if item.number > getattr(self, "_read", 0)]
        self._read = log.last_number
        return [(pod.name, item.at_once) for item in items for pod in item.pods]


def ref(name: str) -> PodRef:
    """The reference of a test's pod."""
    return PodRef("default", name, f"uid-{name}")


def exactly(*, count: int = 1, name: str = "gpu", **fields: Any) -> objects.DeviceRequest:
    """A request for `count` devices of the class gpu."""
    request = objects.ExactDeviceRequest(device_class_name="gpu", allocation_mode="ExactCount", count=count, **fields)
    return objects.DeviceRequest(name=name, exactly=request)


def allocated(
    devices: Sequence[str],
    *,
    pool: str = "n1",
    request: str = "gpu",
    consumed: Mapping[str, str] | None = None,
    admin: bool = False,
    shares: Sequence[str] = (),
) -> objects.AllocationResult:
    """An allocation as the API has it."""
    results = tuple(
        objects.DeviceRequestAllocationResult(
            request=request,
            driver=DRIVER,
            pool=pool,
            device=device,
            admin_access=True if admin else None,
            consumed_capacity=dict(consumed) if consumed is not None else None,
            share_id=shares[index] if shares else None,
        )
        for index, device in enumerate(devices)
    )
    return objects.AllocationResult(devices=objects.DeviceAllocationResult(results=results))
