"""The RPCs of NominationExtensionsService: messages in, core asked, messages out."""

from __future__ import annotations

from earmark.dynamicresources import convert, record
from earmark.dynamicresources.nominating import Proposal, Removal
from earmark.dynamicresources.plugin import Context, Plugin, valid
from earmark.v1 import nomination_extensions_pb2
from earmark.v1 import nomination_extensions_pb2_grpc as nomination_grpc

REMOVE_REASONS: dict[int, str] = {
    number: key.removeprefix("REMOVE_REASON_") for key, number in nomination_extensions_pb2.RemoveReason.items()
}
"""Values of the contract's enum, with their names as people say them."""


class NominationExtensionsServicer(nomination_grpc.NominationExtensionsServiceServicer):
    """NominationExtensionsService."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    async def AddNominatedPod(
        self, request: nomination_extensions_pb2.AddNominatedPodRequest, context: Context
    ) -> nomination_extensions_pb2.AddNominatedPodResponse:
        """Propose a nomination: what is held for the preemptor, and which claims its victims release."""
        plugin = self._plugin
        session = await plugin.session(request.session, context)
        cycle = await plugin.cycle(session, request.cycle_id, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        await valid(context, lambda: convert.same_pod(pod, cycle.pod.ref, "pod"))
        victims = await valid(
            context,
            lambda: tuple(convert.pod_ref(item, f"victims[{index}]") for index, item in enumerate(request.victims)),
        )
        node = await valid(context, lambda: convert.name(request.node_name, "node_name"))
        generation = await valid(context, lambda: convert.at_least(request.generation, 1, "generation"))
        answer = session.core.add_nominated_pod(
            Proposal(
                pod=cycle.pod,
                priority=request.priority,
                node=node,
                victims=victims,
                generation=generation,
                nominated=tuple(request.nominated_pod_uids),
                at=plugin.clock.now(),
            )
        )
        text = ""
        if answer.nomination is not None and plugin.settings.nomination_persistence == "api":
            text = record.write(answer.nomination, answer.victim_claims)
        return nomination_extensions_pb2.AddNominatedPodResponse(
            status=convert.status_message(answer.status), record=text
        )

    async def ConfirmNominatedPod(
        self, request: nomination_extensions_pb2.ConfirmNominatedPodRequest, context: Context
    ) -> nomination_extensions_pb2.ConfirmNominatedPodResponse:
        """Make a proposal the nomination. Idempotent."""
        session = await self._plugin.session(request.session, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        generation = await valid(context, lambda: convert.at_least(request.generation, 1, "generation"))
        session.core.confirm_nominated_pod(pod.uid, generation)
        return nomination_extensions_pb2.ConfirmNominatedPodResponse()

    async def RemoveNominatedPod(
        self, request: nomination_extensions_pb2.RemoveNominatedPodRequest, context: Context
    ) -> nomination_extensions_pb2.RemoveNominatedPodResponse:
        """Take a nomination back, and the claims of victims that were not deleted. Idempotent."""
        session = await self._plugin.session(request.session, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        generation = await valid(context, lambda: convert.at_least(request.generation, 0, "generation"))
        await valid(context, lambda: convert.one_of(request.reason, REMOVE_REASONS, "reason"))
        session.core.remove_nominated_pod(pod.uid, generation, Removal(request.reason), request.victims_not_deleted)
        return nomination_extensions_pb2.RemoveNominatedPodResponse()

    async def PodEligibleToPreempt(
        self, request: nomination_extensions_pb2.PodEligibleToPreemptRequest, context: Context
    ) -> nomination_extensions_pb2.PodEligibleToPreemptResponse:
        """Say whether a nominated pod may preempt again (KEP: Deferring further preemption)."""
        session = await self._plugin.session(request.session, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        eligible, reason = session.core.eligible_to_preempt(pod.uid, request.node_name)
        return nomination_extensions_pb2.PodEligibleToPreemptResponse(eligible=eligible, reason=reason)

    async def ListNominations(
        self, request: nomination_extensions_pb2.ListNominationsRequest, context: Context
    ) -> nomination_extensions_pb2.ListNominationsResponse:
        """List what is held and awaited, in the scheduler's state or in a sandbox."""
        core = self._plugin.core
        if request.session.id:
            core = (await self._plugin.session(request.session, context)).core
        return nomination_extensions_pb2.ListNominationsResponse(
            nominations=[convert.held_message(item) for item in core.nominations()],
            victim_claims=[convert.victim_claim_message(item) for item in core.world.victim_claims.all()],
        )
