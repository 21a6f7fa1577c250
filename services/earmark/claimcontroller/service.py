"""Translates the RPCs of ClaimControllerService."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import grpc

from earmark.claimcontroller.controller import ClaimController
from earmark.kube.clock import Clock
from earmark.v1 import claim_controller_pb2, claim_controller_pb2_grpc

# A delay beyond a day is a slip of the pen.
LONGEST_DELAY_SECONDS = 86_400


class ClaimControllerService(claim_controller_pb2_grpc.ClaimControllerServiceServicer):
    """GetStatus, Pause, Resume and SetDelays."""

    def __init__(self, controller: ClaimController, clock: Clock) -> None:
        self._controller = controller
        self._clock = clock
        self._paused_since: datetime | None = None

    async def GetStatus(
        self, request: claim_controller_pb2.GetStatusRequest, context: Any
    ) -> claim_controller_pb2.GetStatusResponse:
        """Say whether the controller works, and on what."""
        response = claim_controller_pb2.GetStatusResponse(
            paused=self._paused_since is not None,
            queue_length=len(self._controller.queue),
            deallocating=[f"{namespace}/{name}" for namespace, name in self._controller.deallocating],
        )
        response.deallocation_delay.FromTimedelta(timedelta(seconds=self._controller.deallocation_seconds))
        if self._paused_since is not None:
            response.paused_since.FromDatetime(self._paused_since)
        return response

    async def Pause(
        self, request: claim_controller_pb2.PauseRequest, context: Any
    ) -> claim_controller_pb2.PauseResponse:
        """Stop all work. Idempotent."""
        if self._paused_since is None:
            self._paused_since = self._clock.now()
            self._controller.queue.pause()
        return claim_controller_pb2.PauseResponse()

    async def Resume(
        self, request: claim_controller_pb2.ResumeRequest, context: Any
    ) -> claim_controller_pb2.ResumeResponse:
        """Go on, with what happened meanwhile. Idempotent."""
        self._paused_since = None
        self._controller.queue.resume()
        return claim_controller_pb2.ResumeResponse()

    async def SetDelays(
        self, request: claim_controller_pb2.SetDelaysRequest, context: Any
    ) -> claim_controller_pb2.SetDelaysResponse:
        """Change the delay, also for what waits already."""
        if not request.HasField("deallocation"):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "deallocation: want a duration")
        # Not by timedelta, which a number that is too large for it would break.
        seconds = request.deallocation.seconds + request.deallocation.nanos / 1e9
        if not 0 <= seconds <= LONGEST_DELAY_SECONDS:
            text = f"deallocation: want 0s to {LONGEST_DELAY_SECONDS}s, got {seconds:g}s"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
        self._controller.set_deallocation_seconds(seconds)
        return claim_controller_pb2.SetDelaysResponse()
