"""PreBind's and Unreserve's way to the API: writes that survive the RPC that asked for them, and their accounting.

A write that was sent is brought to an end in a task of its own. Where its outcome is unknown the claim stays in flight
until the API has answered, so that no device is given to somebody else meanwhile. What to write is writing.py's.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from earmark.dynamicresources.bindingconditions import Readiness, has_binding_conditions, readiness
from earmark.dynamicresources.core import Core
from earmark.dynamicresources.cycles import Cycle
from earmark.dynamicresources.facts import PodRef
from earmark.dynamicresources.happened import CleanUpFinished
from earmark.dynamicresources.reserving import ReservationText, release_in_flight
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.state import Reservation, claim_seen
from earmark.dynamicresources.statuses import SUCCESS, Status, error
from earmark.dynamicresources.writing import Done, Impossible, Write, next_bind_write, next_unreserve_write
from earmark.kube.api import ApiError, ApiUnavailable, KubeApi, PatchType
from earmark.kube.clock import Clock
from earmark.kube.objects import ResourceClaim
from earmark.kube.recorder import NORMAL, EventRecorder, pod_reference
from earmark.kube.spawner import Spawner
from earmark.runtime.component import Ids

_ATTEMPTS = 5
_CONFLICT_SECONDS = 0.01
_FIRST_BACKOFF_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 5.0
# Unreserve answers after this long at the latest; the clean-up goes on.
_UNRESERVE_PATIENCE_SECONDS = 2.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Binding:
    """The writes of one pod's PreBind."""

    pod: PodRef
    reservation: Reservation
    abandoned: bool = False
    # UIDs of claims for which a write is under way.
    writing: dict[str, None] = field(default_factory=dict)
    task: asyncio.Task[Status] | None = None


class Binder:
    """Writes allocations and reservations, and takes them back."""

    def __init__(
        self,
        core: Core,
        api: KubeApi,
        clock: Clock,
        ids: Ids,
        tasks: Spawner,
        settings: Settings,
        recorder: EventRecorder,
    ) -> None:
        """Write for `core` through `api`; `tasks` keeps the writes when a call is cancelled."""
        self._core = core
        self._api = api
        self._clock = clock
        self._ids = ids
        self._tasks = tasks
        self._settings = settings
        self._recorder = recorder
        self._bindings: dict[str, _Binding] = {}
        self._cleaning: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        core.listen(lambda _world, _happened: self._changed.set())

    def cleaning(self, pod_uid: str) -> bool:
        """Whether what an earlier attempt of the pod wrote is still being taken back."""
        return pod_uid in self._cleaning

    def forget(self, pod_uid: str) -> None:
        """The pod is bound: there is nothing left to take back."""
        self._bindings.pop(pod_uid, None)

    # --- PreBind -----------------------------------------------------------------------------------------------------

    async def pre_bind(self, cycle: Cycle, node: str) -> Status:
        """Write what the pod's claims need, then wait for binding conditions (upstream B11)."""
        if not cycle.claims:
            return SUCCESS
        reservation = self._core.world.reservations.get(cycle.pod.uid)
        if reservation is None or reservation.node != node:
            return error(f"nothing is reserved for the pod on node {node}")
        binding = self._bindings.get(cycle.pod.uid)
        if binding is None or binding.reservation is not reservation:
            binding = _Binding(cycle.pod.ref, reservation)
            self._bindings[cycle.pod.uid] = binding
            binding.task = self._tasks.spawn(self._write_all(binding), f"prebind {cycle.pod.ref.name}")
        assert binding.task is not None
        # The task goes on when this call is cancelled: what it has sent has to be accounted for.
        status = await asyncio.shield(binding.task)
        if not status.success:
            return status
        return await self._wait_for_conditions(cycle, node)

    async def _write_all(self, binding: _Binding) -> Status:
        try:
            for uid in binding.reservation.claim_uids:
                if binding.abandoned:
                    return error("binding was given up")
                status = await self._bind_claim(binding, uid)
                if not status.success:
                    return status
            self._core.pre_bound(binding.pod.uid)
            return SUCCESS
        finally:
            if self._bindings.get(binding.pod.uid) is binding and binding.abandoned:
                del self._bindings[binding.pod.uid]

    async def _bind_claim(self, binding: _Binding, uid: str) -> Status:
        allocation = binding.reservation.allocations.get(uid)
        claim = self._core.world.claim_by_uid(uid)
        if claim is None:
            return error(f"claim {uid} got deleted in the meantime")
        conflicts = 0
        refused: tuple[str, ApiError] | None = None
        while True:
            step = next_bind_write(claim, binding.pod, allocation, self._clock.now(), timestamps=self._timestamps)
            if refused is not None and isinstance(step, Write) and step.what == refused[0]:
                # The server failed, and it has not done it all the same.
                return error(f"{refused[0]}: {refused[1]}")
            refused = None
            if isinstance(step, Done):
                return SUCCESS
            if isinstance(step, Impossible):
                return error(step.text)
            if binding.abandoned:
                return error("binding was given up")
            binding.writing[uid] = None
            try:
                claim = await self._send(claim, step)
            except ApiError as refusal:
                if refusal.uncertain:
                    refused = (step.what, refusal)
                else:
                    conflicts += 1
                    if not refusal.conflict or conflicts >= _ATTEMPTS:
                        return error(f"{step.what}: {refusal}")
                await self._clock.sleep(_CONFLICT_SECONDS * (1 + 0.1 * self._ids.random()))
                fresh = await self._read(claim)
                if isinstance(fresh, Status):
                    return fresh
                claim = fresh
            except ApiUnavailable:
                fresh = await self._read(claim)
                if isinstance(fresh, Status):
                    return fresh
                claim = fresh
            finally:
                binding.writing.pop(uid, None)

    @property
    def _timestamps(self) -> bool:
        return self._settings.gate("DRADeviceBindingConditions") and self._settings.gate("DRAResourceClaimDeviceStatus")

    async def _send(self, claim: ResourceClaim, write: Write) -> ResourceClaim:
        namespace, name = claim.key
        after = await self._api.patch(
            ResourceClaim, name, namespace, write.patch, subresource=write.subresource, patch_type=PatchType.MERGE
        )
        self._core.commit(claim_seen(self._core.world, after, written=True))
        return after

    async def _read(self, claim: ResourceClaim) -> ResourceClaim | Status:
        """Get the claim as it is, however long the API is away; a status where it is another one or gone."""
        namespace, name = claim.key
        backoff = _FIRST_BACKOFF_SECONDS
        while True:
            try:
                fresh = await self._api.get(ResourceClaim, name, namespace)
            except (ApiError, ApiUnavailable) as trouble:
                if isinstance(trouble, ApiError) and not trouble.uncertain:
                    return error(f"get updated claim {namespace}/{name} after conflict: {trouble}")
                await self._clock.sleep(backoff)
                backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)
                continue
            if fresh.metadata.uid != claim.metadata.uid:
                return error(f"claim {namespace}/{name} got deleted in the meantime")
            self._core.commit(claim_seen(self._core.world, fresh, written=True))
            return fresh

    async def _wait_for_conditions(self, cycle: Cycle, node: str) -> Status:
        if not self._timestamps:
            return SUCCESS
        started = self._clock.monotonic()
        told = False
        while True:
            self._changed.clear()
            status = self._conditions(cycle)
            if status is not None:
                return status
            if not told:
                told = True
                await self._tell_of_waiting(cycle.pod.ref, node)
                continue
            left = self._settings.binding_timeout_seconds - (self._clock.monotonic() - started)
            if left <= 0:
                return error(f"device binding timeout: claim={self._first_waiting(cycle)}")
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _tell_of_waiting(self, pod: PodRef, node: str) -> None:
        await self._recorder.record(
            pod_reference(pod.namespace, pod.name, pod.uid),
            type_=NORMAL,
            reason="BindingConditionsPending",
            action="Scheduling",
            note=f"waiting for binding conditions for device on node {node}",
        )

    def _conditions(self, cycle: Cycle) -> Status | None:
        """Return what the binding conditions say of the pod's claims, in order; None while they are waited for."""
        for claim in cycle.claims:
            live = self._core.world.claim_by_uid(claim.metadata.uid)
            if live is None:
                return error(f"claim {'/'.join(claim.key)} got deleted in the meantime")
            if not has_binding_conditions(live):
                continue
            verdict = readiness(live, self._clock.now(), self._settings.binding_timeout_seconds)
            if verdict.readiness is Readiness.WAITING:
                return None
            if verdict.readiness is not Readiness.READY:
                return error(verdict.text)
        return SUCCESS

    def _first_waiting(self, cycle: Cycle) -> str:
        for claim in cycle.claims:
            live = self._core.world.claim_by_uid(claim.metadata.uid)
            if live is not None and has_binding_conditions(live):
                verdict = readiness(live, self._clock.now(), self._settings.binding_timeout_seconds)
                if verdict.readiness is not Readiness.READY:
                    return live.metadata.name
        return ""

    # --- Unreserve ---------------------------------------------------------------------------------------------------

    async def unreserve(self, pod: PodRef, text: ReservationText | None, *, preempted: bool) -> None:
        """Undo Reserve at once and PreBind as far as it got. Idempotent; the clean-up survives this call."""
        binding = self._bindings.pop(pod.uid, None)
        reservation = self._core.world.reservations.get(pod.uid)
        claims = reservation.claim_uids if reservation is not None else text.claims if text is not None else ()
        allocates = tuple(reservation.allocations) if reservation is not None else text.allocates if text else ()
        uncertain: tuple[str, ...] = ()
        if binding is not None:
            binding.abandoned = True
            uncertain = tuple(binding.writing)
        self._core.unreserve(pod.uid, uncertain)
        if not claims:
            return
        task = self._cleaning.get(pod.uid)
        if task is None:
            task = self._tasks.spawn(
                self._clean(pod, claims, allocates if preempted else (), binding), f"unreserve {pod.name}"
            )
            self._cleaning[pod.uid] = task
        await asyncio.wait({task}, timeout=_UNRESERVE_PATIENCE_SECONDS)

    async def _clean(
        self, pod: PodRef, claims: tuple[str, ...], allocates: tuple[str, ...], binding: _Binding | None
    ) -> None:
        try:
            if binding is not None and binding.task is not None:
                await asyncio.wait({binding.task})
                left = [uid for uid in binding.reservation.allocations if uid in self._core.world.in_flight]
                if left and pod.uid not in self._core.world.reservations:
                    self._core.commit(release_in_flight(self._core.world, binding.reservation, left))
            for uid in claims:
                await self._clean_claim(pod, uid, deallocate=uid in allocates)
        finally:
            self._cleaning.pop(pod.uid, None)
        self._core.commit((self._core.world.changed(), (CleanUpFinished(pod),)))

    async def _clean_claim(self, pod: PodRef, uid: str, *, deallocate: bool) -> None:
        claim = self._core.world.claim_by_uid(uid)
        backoff = _FIRST_BACKOFF_SECONDS
        failures = 0
        while claim is not None:
            step = next_unreserve_write(claim, pod, deallocate=deallocate)
            if isinstance(step, Done):
                return
            try:
                claim = await self._send(claim, step)
                continue
            except ApiError as refusal:
                failures += refusal.uncertain
                if not (refusal.conflict or refusal.uncertain) or failures >= _ATTEMPTS:
                    # As upstream: the reservation stays, and the claim controller or the next attempt deals with it.
                    _log.warning("%s: %s", step.what, refusal)
                    return
            except ApiUnavailable as trouble:
                _log.warning("%s: %s; next try in %.1f s", step.what, trouble, backoff)
            await self._clock.sleep(backoff * (1 + 0.1 * self._ids.random()))
            backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)
            fresh = await self._read(claim)
            claim = None if isinstance(fresh, Status) else fresh

    def abandon_all(self) -> None:
        """A new scheduler session: nobody will go on with what an earlier one had reserved.

        Only what is in flight is given back. What has been written may belong to a pod that is bound by now.
        """
        for pod_uid, reservation in [*self._core.world.reservations.items()]:
            binding = self._bindings.pop(pod_uid, None)
            uncertain: tuple[str, ...] = ()
            if binding is not None:
                binding.abandoned = True
                uncertain = tuple(binding.writing)
                if pod_uid not in self._cleaning:
                    self._cleaning[pod_uid] = self._tasks.spawn(
                        self._clean(reservation.pod, (), (), binding), f"abandon {reservation.pod.name}"
                    )
            self._core.unreserve(pod_uid, uncertain)
