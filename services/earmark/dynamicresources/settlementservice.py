"""The RPCs of SettlementService: the settling windows, listed and watched."""

from __future__ import annotations

from collections.abc import AsyncIterator

from earmark.dynamicresources import convert
from earmark.dynamicresources.plugin import Context
from earmark.dynamicresources.settling import SettlementTracker
from earmark.v1 import settlement_pb2, settlement_pb2_grpc


class SettlementServicer(settlement_pb2_grpc.SettlementServiceServicer):
    """SettlementService."""

    def __init__(self, tracker: SettlementTracker) -> None:
        self._tracker = tracker

    async def ListSettlements(
        self, request: settlement_pb2.ListSettlementsRequest, context: Context
    ) -> settlement_pb2.ListSettlementsResponse:
        """List the newest windows, or those that are open."""
        windows = [item for item in self._tracker.windows() if item.ended is None or not request.open_only]
        return settlement_pb2.ListSettlementsResponse(
            settlements=[convert.settlement_message(item) for item in windows]
        )

    async def WatchSettlements(
        self, request: settlement_pb2.WatchSettlementsRequest, context: Context
    ) -> AsyncIterator[settlement_pb2.WatchSettlementsResponse]:
        """Send every open window, then each that changes."""
        watch = self._tracker.watch()
        try:
            while True:
                window = await watch.get()
                yield settlement_pb2.WatchSettlementsResponse(settlement=convert.settlement_message(window))
        finally:
            self._tracker.unwatch(watch)
