"""The client for callers without an event loop: the same names, and every call waits for its answer.

    with blocking.connect() as client:
        for pod in client.queue():
            print(pod.pod.name, pod.queue)

It drives the asynchronous client in a thread of its own, which also keeps the sandbox alive between the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from earmark.client import pods, sandbox, services
from earmark.client.blocking_rpcs import (
    BlockingClaimControllerRpcs,
    BlockingExplanationRpcs,
    BlockingFrameworkRpcs,
    BlockingNodesRpcs,
    BlockingNominationExtensionsRpcs,
    BlockingPreemptionRpcs,
    BlockingSchedulerPluginRpcs,
    BlockingSettlementRpcs,
)
from earmark.client.portal import Portal
from earmark.client.sandbox import Verdict
from earmark.v1 import common_pb2, framework_pb2, nomination_extensions_pb2, scheduler_plugin_pb2, settlement_pb2


class BlockingClient:
    """EarmarkClient, as a context manager. See there."""

    def __init__(self, client: services.EarmarkClient, portal: Portal | None = None) -> None:
        """Drive `client` in a thread of its own, or in that of `portal`."""
        self._portal = portal or Portal()
        self._client = client
        self.claim_controller = BlockingClaimControllerRpcs(self._portal, client.claim_controller)
        self.explanation = BlockingExplanationRpcs(self._portal, client.explanation)
        self.framework = BlockingFrameworkRpcs(self._portal, client.framework)
        self.nodes = BlockingNodesRpcs(self._portal, client.nodes)
        self.nominations = BlockingNominationExtensionsRpcs(self._portal, client.nominations)
        self.preemption = BlockingPreemptionRpcs(self._portal, client.preemption)
        self.plugin = BlockingSchedulerPluginRpcs(self._portal, client.plugin)
        self.settlement = BlockingSettlementRpcs(self._portal, client.settlement)

    def __enter__(self) -> BlockingClient:
        self._portal.call(self._client.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._portal.call(self._client.__aexit__(kind, error, traceback))
        finally:
            self._portal.close()

    def sandbox(self) -> BlockingSandbox:
        """Return the client's own sandbox, opened now if it was not."""
        return BlockingSandbox(self._portal, self._portal.call(self._client.sandbox()))

    def new_sandbox(self) -> BlockingSandbox:
        """Return another sandbox, which sees the present state; to be entered with `with`."""
        return BlockingSandbox(self._portal, self._client.new_sandbox())

    @contextmanager
    def cycle(self, pod: pods.PodLike, *, nominated_node_name: str = "") -> Iterator[BlockingCycle]:
        """Open a scheduling cycle in the client's own sandbox."""
        with self.sandbox().cycle(pod, nominated_node_name=nominated_node_name) as cycle:
            yield cycle

    def pod(self, name: str, namespace: str = "default") -> common_pb2.PodInput:
        """Return a pod of the API as cycles and forks want it. Raises ApiError where there is none."""
        return self._portal.call(self._client.pod(name, namespace))

    @staticmethod
    def made_up_pod(manifest: Mapping[str, Any], *, priority: int = 0) -> common_pb2.PodInput:
        """Return a pod that is not in the API, for sandboxes."""
        return pods.made_up(manifest, priority=priority)

    def queue(self) -> Sequence[framework_pb2.QueuedPod]:
        """Return the pods of the scheduling queue."""
        return self._portal.call(self._client.queue())

    def explain(self, namespace: str, name: str) -> framework_pb2.ExplainPodResponse:
        """Return why a pod is where it is."""
        return self._portal.call(self._client.explain(namespace, name))

    def settlements(self, *, open_only: bool = False) -> Sequence[settlement_pb2.Settlement]:
        """Return the settling windows, or only those that are open."""
        return self._portal.call(self._client.settlements(open_only=open_only))

    def watch_settlements(self) -> Iterator[settlement_pb2.Settlement]:
        """Iterate over open settling windows and then over every change."""
        return self._portal.iterate(self._client.watch_settlements())


class BlockingSandbox:
    """Sandbox, as a context manager. See there."""

    def __init__(self, portal: Portal, inner: sandbox.Sandbox) -> None:
        self._portal = portal
        self._inner = inner
        self.plugin = BlockingSchedulerPluginRpcs(portal, inner.plugin)
        self.nominations = BlockingNominationExtensionsRpcs(portal, inner.nominations)

    def __enter__(self) -> BlockingSandbox:
        self._portal.call(self._inner.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._portal.call(self._inner.__aexit__(kind, error, traceback))

    @property
    def session(self) -> common_pb2.SessionReference:
        """The session. Raises PreconditionFailed where it was lost."""
        return self._inner.session

    @property
    def newest_generation(self) -> int:
        """The highest generation that has been given or seen here."""
        return self._inner.newest_generation

    def next_generation(self) -> int:
        """Return a generation that no nomination of this sandbox has."""
        return self._inner.next_generation()

    def cycle(self, pod: pods.PodLike, *, nominated_node_name: str = "") -> BlockingCycle:
        """Return a scheduling cycle of a pod, to be entered with `with`."""
        return BlockingCycle(self._portal, self._inner.cycle(pod, nominated_node_name=nominated_node_name))

    def pod_eligible_to_preempt(
        self, pod: pods.PodLike, node_name: str
    ) -> nomination_extensions_pb2.PodEligibleToPreemptResponse:
        """Return whether a pod that is nominated to a node may preempt again, and why not."""
        return self._portal.call(self._inner.pod_eligible_to_preempt(pod, node_name))

    def remove_nominated_pod(
        self,
        pod: pods.PodLike,
        reason: nomination_extensions_pb2.RemoveReason.ValueType = nomination_extensions_pb2.REMOVE_REASON_CLEARED,
        *,
        generation: int = 0,
        victims_not_deleted: Iterable[str] = (),
    ) -> None:
        """Remove a pod's nomination; `generation` 0 takes the newest that this sandbox can know."""
        self._portal.call(
            self._inner.remove_nominated_pod(
                pod, reason, generation=generation, victims_not_deleted=victims_not_deleted
            )
        )  # fmt: skip

    def held(self) -> nomination_extensions_pb2.ListNominationsResponse:
        """Return what is held in this sandbox."""
        return self._portal.call(self._inner.held())


class BlockingCycle:
    """Cycle, as a context manager. See there."""

    def __init__(self, portal: Portal, inner: sandbox.Cycle) -> None:
        self._portal = portal
        self._inner = inner

    def __enter__(self) -> BlockingCycle:
        self._portal.call(self._inner.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._portal.call(self._inner.__aexit__(kind, error, traceback))

    @property
    def id(self) -> str:
        """The cycle's id."""
        return self._inner.id

    @property
    def status(self) -> common_pb2.Status:
        """What PreFilter said."""
        return self._inner.status

    def filter(self, nodes: Sequence[str], *, nominated: Iterable[pods.PodLike] = ()) -> tuple[Verdict, ...]:
        """Run both filter passes; `nominated` are the pods that pass 1 adds on every node."""
        return self._portal.call(self._inner.filter(nodes, nominated=nominated))

    def fork(self, node_name: str) -> BlockingFork:
        """Return the fork of one node, to be entered with `with`."""
        return BlockingFork(self._portal, self._inner.fork(node_name))

    def reserve(self, node_name: str) -> scheduler_plugin_pb2.ReserveResponse:
        """Take the node's result in flight, in this sandbox."""
        return self._portal.call(self._inner.reserve(node_name))

    def add_nominated_pod(
        self,
        node_name: str,
        victims: Iterable[pods.PodLike],
        *,
        generation: int = 0,
        nominated: Iterable[pods.PodLike] = (),
    ) -> nomination_extensions_pb2.AddNominatedPodResponse:
        """Propose the cycle's pod for a node whose victims have to go; the answer has the status and the record."""
        return self._portal.call(
            self._inner.add_nominated_pod(node_name, victims, generation=generation, nominated=nominated)
        )

    def confirm_nominated_pod(self, generation: int = 0) -> None:
        """Confirm a proposal, by default the newest, so that it outlives the cycle."""
        self._portal.call(self._inner.confirm_nominated_pod(generation))


class BlockingFork:
    """Fork, as a context manager. See there."""

    def __init__(self, portal: Portal, inner: sandbox.Fork) -> None:
        self._portal = portal
        self._inner = inner

    def __enter__(self) -> BlockingFork:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._portal.call(self._inner.__aexit__(kind, error, traceback))

    def add_pod(self, pod: pods.PodLike) -> None:
        """Take RemovePod back, or apply what is held for a nominated pod."""
        self._portal.call(self._inner.add_pod(pod))

    def remove_pod(self, pod: pods.PodLike) -> None:
        """Release what only this pod, and pods that were removed before, hold."""
        self._portal.call(self._inner.remove_pod(pod))

    def filter(self) -> Verdict:
        """Run both filter passes on the fork as it is now."""
        return self._portal.call(self._inner.filter())


def connect(
    state_dir: str | Path | None = None, *, config: str | Path | None = None, timeout: float = 5.0
) -> BlockingClient:
    """Return a client of the earmark that runs in a state folder. As earmark.client.connect."""
    return BlockingClient(services.connect(state_dir, config=config, timeout=timeout))
