"""FrameworkService: RPCs translated into the framework's own calls."""

from __future__ import annotations

from typing import Any, NoReturn

import grpc

from earmark.framework import wire
from earmark.framework.binding import Binder
from earmark.framework.core import Core
from earmark.framework.cycle import AttemptError
from earmark.framework.dry_runs import BadQuery, DryRuns, UnknownCycle, manifest_of
from earmark.framework.explain import Explanations
from earmark.framework.hooks import NominationHook
from earmark.framework.remote import PluginError
from earmark.framework.writer import PodWriter
from earmark.kube.quantity import QuantityError
from earmark.v1 import common_pb2, framework_pb2, framework_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


async def _named(context: Context, text: str, field: str) -> str:
    """Return a name, or end the call with INVALID_ARGUMENT where it is empty."""
    return text or await _fail(context, grpc.StatusCode.INVALID_ARGUMENT, f"{field}: must not be empty")


async def _fail(context: Context, code: grpc.StatusCode, text: str) -> NoReturn:
    await context.abort(code, text)
    raise AssertionError("abort returned")


class FrameworkServicer(framework_pb2_grpc.FrameworkServiceServicer):
    """See the module."""

    def __init__(
        self,
        core: Core,
        dry_runs: DryRuns,
        binder: Binder,
        explanations: Explanations,
        hook: NominationHook,
        writer: PodWriter,
    ) -> None:
        self._core = core
        self._dry_runs = dry_runs
        self._binder = binder
        self._explanations = explanations
        self._hook = hook
        self._writer = writer

    # --- dry runs ----------------------------------------------------------------------------------------------------

    async def DryRunFilter(
        self, request: framework_pb2.DryRunFilterRequest, context: Context
    ) -> framework_pb2.DryRunFilterResponse:
        """Answer one round of filter questions for a preemption."""
        await _named(context, request.cycle_id, "cycle_id")
        try:
            verdicts = await self._dry_runs.dry_run_filter(request.cycle_id, request.queries)
        except UnknownCycle:
            await _fail(
                context, grpc.StatusCode.FAILED_PRECONDITION, f"cycle_id: no cycle {request.cycle_id!r} is open"
            )
        except BadQuery as error:
            await _fail(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except (PluginError, AttemptError) as error:
            await _fail(context, grpc.StatusCode.UNAVAILABLE, str(error))
        return framework_pb2.DryRunFilterResponse(verdicts=verdicts)

    async def OpenDryRun(
        self, request: framework_pb2.OpenDryRunRequest, context: Context
    ) -> framework_pb2.OpenDryRunResponse:
        """Run an attempt for a pod beside the scheduler and keep its cycle for a dry run."""
        wanted = request.pod.pod
        try:
            if request.pod.manifest:
                pod = manifest_of(request.pod, self._core.env.ids.uuid)
            else:
                await _named(context, wanted.name, "pod.pod.name")
                found = self._core.pods.get(wanted.namespace, wanted.name)
                if found is None or wanted.uid not in ("", found.metadata.uid):
                    await _fail(context, grpc.StatusCode.NOT_FOUND, f"pod.pod: no pod {wanted.namespace}/{wanted.name}")
                pod = found
            message, fits_on = await self._dry_runs.open_sandbox(pod, request.pod.manifest)
        except BadQuery as error:
            await _fail(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except QuantityError as error:
            await _fail(context, grpc.StatusCode.INVALID_ARGUMENT, f"pod.manifest: {error}")
        except (PluginError, AttemptError) as error:
            await _fail(context, grpc.StatusCode.UNAVAILABLE, str(error))
        return framework_pb2.OpenDryRunResponse(input=message, fits_on=fits_on)

    async def CloseDryRun(
        self, request: framework_pb2.CloseDryRunRequest, context: Context
    ) -> framework_pb2.CloseDryRunResponse:
        """End what OpenDryRun opened. Idempotent."""
        await self._dry_runs.close_sandbox(await _named(context, request.cycle_id, "cycle_id"))
        return framework_pb2.CloseDryRunResponse()

    # --- preemption --------------------------------------------------------------------------------------------------

    async def PreemptPod(
        self, request: framework_pb2.PreemptPodRequest, context: Context
    ) -> framework_pb2.PreemptPodResponse:
        """Take a pod out of PreBind; one that is bound, or being bound, has to be deleted."""
        await _named(context, request.pod.uid, "pod.uid")
        by = f"{request.preemptor.namespace}/{request.preemptor.name}"
        return framework_pb2.PreemptPodResponse(preempted=self._binder.preempt(request.pod.uid, by))

    async def ClearNominations(
        self, request: framework_pb2.ClearNominationsRequest, context: Context
    ) -> framework_pb2.ClearNominationsResponse:
        """Clear the nominations of lower priority on a node, in memory and in the API."""
        core = self._core
        await _named(context, request.node_name, "node_name")
        response = framework_pb2.ClearNominationsResponse()
        for nomination in core.nominator.on_node(request.node_name):
            if nomination.priority >= request.below_priority:
                continue
            self._hook.changed(core.nominator.clear(nomination.uid))
            response.pods.append(wire.nominated_reference(nomination))
            pod = core.pods.get(nomination.namespace, nomination.name)
            if pod is None or pod.metadata.uid != nomination.uid:
                continue
            await self._writer.clear_nomination(pod)
            core.nomination_gone(pod, nomination.node)
        await self._hook.delivered()
        core.notify()
        return response

    async def ActivatePods(
        self, request: framework_pb2.ActivatePodsRequest, context: Context
    ) -> framework_pb2.ActivatePodsResponse:
        """Move pods to the active queue without backoff."""
        for index, pod in enumerate(request.pods):
            await _named(context, pod.uid or pod.name, f"pods[{index}]")
        self._core.queue.activate([self._uid(pod) for pod in request.pods], self._core.now())
        self._core.notify()
        return framework_pb2.ActivatePodsResponse()

    def _uid(self, reference: common_pb2.PodReference) -> str:
        if reference.uid:
            return reference.uid
        pod = self._core.pods.get(reference.namespace, reference.name)
        return pod.metadata.uid if pod is not None else ""

    # --- for people --------------------------------------------------------------------------------------------------

    async def ExplainPod(
        self, request: framework_pb2.ExplainPodRequest, context: Context
    ) -> framework_pb2.ExplainPodResponse:
        """Say where a pod is and why."""
        pod = request.pod
        await _named(context, pod.name, "pod.name")
        return self._explanations.explain(pod.namespace or "default", pod.name, pod.uid)

    async def ListQueue(
        self, request: framework_pb2.ListQueueRequest, context: Context
    ) -> framework_pb2.ListQueueResponse:
        """List all pending pods, higher priority first."""
        return framework_pb2.ListQueueResponse(pods=self._explanations.queue())
