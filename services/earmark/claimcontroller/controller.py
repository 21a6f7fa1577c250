"""Follows pods, claims and templates and does what the pure modules plan, through a work queue with backoff."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from earmark.claimcontroller import claimsync, podsync
from earmark.claimcontroller.claimsync import ClaimPlan, Fate
from earmark.claimcontroller.ends import Ends
from earmark.claimcontroller.index import Name, OwnedClaims, PodIndex
from earmark.claimcontroller.metrics import ClaimMetrics
from earmark.claimcontroller.names import claim_names, done, uses_claims
from earmark.claimcontroller.settings import ClaimControllerSettings
from earmark.kube.api import ApiError, EventType, PatchType
from earmark.kube.informer import Informer, InformerEvent
from earmark.kube.objects import Pod, ResourceClaim, ResourceClaimTemplate
from earmark.kube.recorder import WARNING, EventRecorder, reference_to
from earmark.kube.workqueue import Retry, WorkQueue
from earmark.runtime import semconv
from earmark.runtime.awaiting import Preemptors, awaiting_claim
from earmark.runtime.component import AttributeValue, Environment, SpanIdentity

CREATION_FAILED = "FailedResourceClaimCreation"

# What is to be looked at: "pod" or "claim", namespace, name (upstream C1.1: by name, not by UID).
Key = tuple[str, str, str]

_log = logging.getLogger(__name__)


class ClaimController:
    """The controller's state: caches, indices, remembered ends, the queue."""

    def __init__(self, settings: ClaimControllerSettings, env: Environment) -> None:
        self._settings = settings
        self._env = env
        self._delay = settings.deallocation_seconds
        self._pods = Informer(env.api, Pod, env.clock)
        self._preemptors = Preemptors()
        self._claims = Informer(env.api, ResourceClaim, env.clock)
        self._templates = Informer(env.api, ResourceClaimTemplate, env.clock)
        self._users = PodIndex()
        self._owned = OwnedClaims()
        self._ends = Ends(settings.remembered_ends)
        self._metrics = ClaimMetrics(env.metrics, self._claims.items)
        self._recorder = EventRecorder(env.api, env.clock, controller=settings.reporting_controller)
        self._told: dict[tuple[str, str], str] = {}
        # Claims with a reservation whose delay has not passed.
        self._deallocating: dict[Name, None] = {}
        self._queue: WorkQueue[Key] = WorkQueue(env.clock, self._work, "claimcontroller")

    # --- steering ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Follow the API, and work once everything has been listed (upstream C1.3)."""
        self._pods.add_handler(self._preemptors.on_pod)
        self._pods.add_handler(self._on_pod)
        self._claims.add_handler(self._on_claim)
        self._templates.add_handler(self._on_template)
        for informer in (self._pods, self._claims, self._templates):
            informer.start(self._env.tasks)
        self._env.tasks.spawn(self._begin(), "begin")

    async def _begin(self) -> None:
        for informer in (self._pods, self._claims, self._templates):
            await informer.wait_synced()
        self._queue.start(self._env.tasks, self._settings.workers)

    @property
    def synced(self) -> bool:
        """Whether everything has been listed."""
        return self._pods.synced and self._claims.synced and self._templates.synced

    @property
    def queue(self) -> WorkQueue[Key]:
        """The queue, to pause and resume."""
        return self._queue

    @property
    def deallocation_seconds(self) -> float:
        """The present delay from the end of a consumer to its release."""
        return self._delay

    def set_deallocation_seconds(self, seconds: float) -> None:
        """Change the delay, also for consumers that have ended already."""
        self._delay = seconds
        for namespace, name in tuple(self._deallocating):
            self._queue.add(("claim", namespace, name))

    @property
    def deallocating(self) -> tuple[Name, ...]:
        """Claims with a reservation that waits for the delay to pass, sorted."""
        return tuple(sorted(self._deallocating))

    # --- events ------------------------------------------------------------------------------------------------------

    def _on_pod(self, event: InformerEvent[Pod]) -> None:
        old, new = event.old, event.new
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._release(old)
            self._users.drop(old)
            self._forget_told(old)
        if new is not None:
            self._users.put(new)
            self._consider(new)

    def _consider(self, pod: Pod) -> None:
        """Queue what a pod's state asks for (upstream C1.6, C1.10)."""
        if not uses_claims(pod):
            return
        if done(pod):
            self._release(pod)
        elif not self._plan_pod(pod).empty:
            self._queue.add(("pod", *pod.key))

    def _release(self, pod: Pod) -> None:
        if uses_claims(pod):
            self._ends.note(pod.metadata.uid, self._env.clock.monotonic())
            owned = (claim.metadata.name for claim in self._owned.of(pod.metadata.uid))
            for name in dict.fromkeys((*claim_names(pod), *owned)):
                self._queue.add(("claim", pod.metadata.namespace, name))

    def _on_claim(self, event: InformerEvent[ResourceClaim]) -> None:
        if event.new is not None:
            self._owned.seen(event.new)
            self._queue.add(("claim", *event.new.key))
        if event.old is not None and event.type is EventType.DELETED:
            self._owned.gone(event.old)
            self._deallocating.pop(event.old.key, None)
        for key in self._users.users_of_claim(event.object.key):
            self._consider_key(key)

    def _on_template(self, event: InformerEvent[ResourceClaimTemplate]) -> None:
        if event.new is not None:
            for key in self._users.users_of_template(event.new.key):
                self._consider_key(key)

    def _consider_key(self, key: Name) -> None:
        pod = self._pods.get(*key)
        if pod is not None:
            self._consider(pod)

    # --- work --------------------------------------------------------------------------------------------------------

    async def _work(self, key: Key) -> None:
        kind, namespace, name = key
        if kind == "pod":
            await self._sync_pod(namespace, name)
        else:
            await self._sync_claim(namespace, name)

    def _plan_pod(self, pod: Pod) -> podsync.PodPlan:
        namespace = pod.metadata.namespace
        return podsync.plan_pod(
            pod,
            claim=lambda name: self._claims.get(namespace, name) or self._owned.unseen((namespace, name)),
            owned=self._owned.of(pod.metadata.uid),
            template=lambda name: self._templates.get(namespace, name),
        )

    async def _sync_pod(self, namespace: str, name: str) -> None:
        pod = self._pods.get(namespace, name)
        if pod is None:
            return
        plan = self._plan_pod(pod)
        names, problems = list(plan.adopt), list(plan.problems)
        for entry, wanted in plan.create:
            try:
                claim = await self._env.api.create(wanted)
            except ApiError as error:
                self._metrics.created(success=False)
                problems.append((entry, f"create ResourceClaim: {error}"))
                continue
            self._metrics.created(success=True)
            self._owned.created(claim)
            names.append((entry, claim.metadata.name))
        if names:
            await self._write_names(pod, names)
        for claim in plan.reserve:
            await self._patch_status(claim, claimsync.reservation_patch(claim, podsync.reservation(pod)))
        for entry, problem in problems:
            await self._tell(pod, entry, problem)
        if problems:
            raise Retry("; ".join(problem for _, problem in problems))

    async def _write_names(self, pod: Pod, names: list[tuple[str, str]]) -> None:
        patch = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"resourceClaimStatuses": msgspec.to_builtins(podsync.claim_statuses(pod, names))},
        }
        try:
            await self._env.api.patch(
                Pod, pod.metadata.name, pod.metadata.namespace, patch, subresource="status", patch_type=PatchType.MERGE
            )
        except ApiError as error:
            # The pod went meanwhile; what was created for it is collected as an orphan.
            if not error.not_found:
                raise

    async def _tell(self, pod: Pod, entry: str, problem: str) -> None:
        """Put a problem into an event, once as long as it stays the same."""
        if self._told.get((pod.metadata.uid, entry)) == problem:
            return
        self._told[(pod.metadata.uid, entry)] = problem
        await self._recorder.record(
            reference_to(pod),
            type_=WARNING,
            reason=CREATION_FAILED,
            action="CreateResourceClaim",
            note=f"PodResourceClaim {entry}: {problem}",
        )

    def _forget_told(self, pod: Pod) -> None:
        for entry in pod.spec.resource_claims:
            self._told.pop((pod.metadata.uid, entry.name), None)

    async def _sync_claim(self, namespace: str, name: str) -> None:
        claim = self._claims.get(namespace, name)
        if claim is None:
            return
        waits = await self._waits(claim)
        plan = claimsync.plan_claim(claim, waits, owner=await self._owner_fate(claim))
        if plan.wait_seconds is None:
            self._deallocating.pop(claim.key, None)
        else:
            self._deallocating[claim.key] = None
            self._queue.add_after(("claim", namespace, name), plan.wait_seconds)
        try:
            claim = await self._write(claim, plan)
            if plan.delete:
                await self._env.api.delete(ResourceClaim, name, namespace, uid=claim.metadata.uid)
        except ApiError as error:
            if not error.not_found:
                raise

    async def _waits(self, claim: ResourceClaim) -> Mapping[str, float]:
        """Return for each consumer that has ended how long its release has to wait."""
        now = self._env.clock.monotonic()
        waits: dict[str, float] = {}
        for entry in claim.status.reserved_for:
            if entry.is_pod and await self._fate(claim, entry.name, entry.uid) is Fate.ENDED:
                # To the microsecond: sums of fractions of seconds must meet at the instant that is meant.
                waits[entry.uid] = round(self._ends.note(entry.uid, now) + self._delay - now, 6)
        return waits

    async def _owner_fate(self, claim: ResourceClaim) -> Fate | None:
        owner = claimsync.owner_of(claim)
        return None if owner is None else await self._fate(claim, owner.name, owner.uid)

    async def _fate(self, claim: ResourceClaim, name: str, uid: str) -> Fate:
        namespace = claim.metadata.namespace
        fate = claimsync.fate_of_pod(uid, self._pods.get(namespace, name), self._ends)
        if fate is not Fate.LOOK_UP:
            return fate
        try:
            found: Pod | None = await self._env.api.get(Pod, name, namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            found = None
        return claimsync.fate_of_found(uid, found)

    async def _write(self, claim: ResourceClaim, plan: ClaimPlan) -> ResourceClaim:
        if plan.deallocate:
            attributes: dict[str, AttributeValue] = {
                "earmark.claim": f"{claim.metadata.namespace}/{claim.metadata.name}",
                "earmark.claim.uid": claim.metadata.uid,
            }
            awaiting = awaiting_claim(self._preemptors.pods(), claim.metadata.uid)
            since, telemetry = self._env.clock.now(), self._env.telemetry
            with telemetry.span(semconv.CLAIM_CONTROLLER_DEALLOCATE, attributes):
                claim = await self._write_deallocation(claim, plan)
                if awaiting is not None:
                    trace, parent = awaiting
                    current = telemetry.current()
                    telemetry.emit(
                        semconv.CLAIM_CONTROLLER_DEALLOCATE,
                        since,
                        self._env.clock.now(),
                        attributes,
                        identity=SpanIdentity(trace, telemetry.span_id(), parent),
                        links=() if current is None else (current,),
                    )
            self._metrics.deallocated()
            _log.info("deallocated claim %s/%s", *claim.key)
        elif plan.writes_status:
            claim = await self._patch_status(claim, claimsync.status_patch(claim, plan))
        if plan.remove_finalizer:
            claim = await self._env.api.patch(
                ResourceClaim,
                claim.metadata.name,
                claim.metadata.namespace,
                claimsync.finalizer_patch(claim),
                patch_type=PatchType.MERGE,
            )
        return claim

    async def _write_deallocation(self, claim: ResourceClaim, plan: ClaimPlan) -> ResourceClaim:
        if not (self._settings.two_writes and plan.reserved_for is not None):
            return await self._patch_status(claim, claimsync.status_patch(claim, plan))
        claim = await self._patch_status(claim, claimsync.status_patch(claim, plan, keep_allocation=True))
        return await self._patch_status(claim, claimsync.deallocation_patch(claim))

    async def _patch_status(self, claim: ResourceClaim, patch: dict[str, object]) -> ResourceClaim:
        return await self._env.api.patch(
            ResourceClaim,
            claim.metadata.name,
            claim.metadata.namespace,
            patch,
            subresource="status",
            patch_type=PatchType.MERGE,
        )
