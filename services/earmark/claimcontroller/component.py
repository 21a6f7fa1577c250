"""Composes the claim controller."""

from __future__ import annotations

from earmark.claimcontroller.controller import ClaimController
from earmark.claimcontroller.service import ClaimControllerService
from earmark.claimcontroller.settings import ClaimControllerSettings
from earmark.runtime.component import Environment, Server
from earmark.v1 import claim_controller_pb2_grpc


class ClaimControllerComponent:
    """The controller and the service that steers it."""

    name = "claimcontroller"

    def __init__(self, settings: ClaimControllerSettings, env: Environment) -> None:
        self._controller = ClaimController(settings, env)
        self._service = ClaimControllerService(self._controller, env.clock)

    def register(self, server: Server) -> None:
        """Register ClaimControllerService."""
        claim_controller_pb2_grpc.add_ClaimControllerServiceServicer_to_server(self._service, server)  # type: ignore[arg-type]

    async def start(self) -> None:
        """Start the controller."""
        self._controller.start()

    def ready(self) -> bool:
        """Whether the controller has seen everything and works."""
        return self._controller.synced

    async def stop(self) -> None:
        """Nothing is pending that the next start does not find again."""


def build(settings: ClaimControllerSettings, env: Environment) -> ClaimControllerComponent:
    """Compose the controller; nothing runs before start()."""
    return ClaimControllerComponent(settings, env)
