"""Composes the emulated nodes."""

from __future__ import annotations

from earmark.nodes.kubelets import Kubelets
from earmark.nodes.service import NodesService
from earmark.nodes.settings import NodesSettings
from earmark.runtime.component import Environment, Server
from earmark.v1 import nodes_pb2_grpc


class NodesComponent:
    """The kubelets and the service that steers them."""

    name = "nodes"

    def __init__(self, settings: NodesSettings, env: Environment) -> None:
        self._kubelets = Kubelets(settings, env)
        self._service = NodesService(self._kubelets, env)

    def register(self, server: Server) -> None:
        """Register NodesService."""
        nodes_pb2_grpc.add_NodesServiceServicer_to_server(self._service, server)  # type: ignore[arg-type]

    async def start(self) -> None:
        """Start the kubelets."""
        self._kubelets.start()

    def ready(self) -> bool:
        """Whether all nodes and pods are known."""
        return self._kubelets.synced

    async def stop(self) -> None:
        """Nothing is pending that the next start does not find again."""


def build(settings: NodesSettings, env: Environment) -> NodesComponent:
    """Compose the emulated nodes; nothing runs before start()."""
    return NodesComponent(settings, env)
