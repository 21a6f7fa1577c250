"""Every RPC of the contract, from the descriptors of the generated code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor

from earmark.v1 import (
    claim_controller_pb2,
    explanation_pb2,
    framework_pb2,
    nodes_pb2,
    nomination_extensions_pb2,
    preemption_pb2,
    scheduler_plugin_pb2,
    settlement_pb2,
)

_FILES = (
    claim_controller_pb2,
    explanation_pb2,
    framework_pb2,
    nodes_pb2,
    nomination_extensions_pb2,
    preemption_pb2,
    scheduler_plugin_pb2,
    settlement_pb2,
)

# Which process serves which service.
PROCESS = {
    "ClaimControllerService": "claimcontroller",
    "ExplanationService": "dynamicresources",
    "FrameworkService": "framework",
    "NodesService": "nodes",
    "NominationExtensionsService": "dynamicresources",
    "PreemptionService": "preemption",
    "SchedulerPluginService": "dynamicresources",
    "SettlementService": "dynamicresources",
}


@dataclass(frozen=True)
class Rpc:
    """One method of one service."""

    service: str
    method: str
    streaming: bool
    request: Any
    response: Any

    @property
    def process(self) -> str:
        """The process that serves it."""
        return PROCESS[self.service]

    @property
    def name(self) -> str:
        """As in metrics and logs, without the package."""
        return f"{self.service}/{self.method}"

    def on(self, channel: grpc.aio.Channel) -> Any:
        """The callable of this method on a channel."""
        make: Any = channel.unary_stream if self.streaming else channel.unary_unary
        return make(f"/earmark.v1.{self.name}", self.request.SerializeToString, self.response.FromString)


def _rpc(service: str, method: MethodDescriptor) -> Rpc:
    return Rpc(
        service,
        method.name,
        method.server_streaming,
        message_factory.GetMessageClass(method.input_type),
        message_factory.GetMessageClass(method.output_type),
    )


RPCS: dict[str, Rpc] = {
    rpc.name: rpc
    for file in _FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for rpc in (_rpc(service.name, method) for method in service.methods)
}
