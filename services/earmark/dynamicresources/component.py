"""The dynamicresources service, composed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

import grpc

from earmark.dynamicresources import windowrecord
from earmark.dynamicresources.binding import Binder
from earmark.dynamicresources.caches import Caches
from earmark.dynamicresources.core import Core
from earmark.dynamicresources.explanationservice import ExplanationServicer
from earmark.dynamicresources.ledger import Ledger
from earmark.dynamicresources.metrics import AllocatorMetrics, WindowGauges
from earmark.dynamicresources.nominationservice import NominationExtensionsServicer
from earmark.dynamicresources.plugin import Plugin
from earmark.dynamicresources.postfilter import PostFilter
from earmark.dynamicresources.service import SchedulerPluginServicer
from earmark.dynamicresources.sessions import Sessions
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.settlementservice import SettlementServicer
from earmark.dynamicresources.settling import Metrics, SettlementTracker
from earmark.dynamicresources.solving import Solver, allocator_features
from earmark.dynamicresources.state import World
from earmark.dynamicresources.vanished import VanishedDevices
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable
from earmark.kube.recorder import EventRecorder
from earmark.runtime.component import Environment, Server
from earmark.runtime.retry import retrying
from earmark.v1.explanation_pb2_grpc import add_ExplanationServiceServicer_to_server
from earmark.v1.nomination_extensions_pb2_grpc import add_NominationExtensionsServiceServicer_to_server
from earmark.v1.scheduler_plugin_pb2_grpc import add_SchedulerPluginServiceServicer_to_server
from earmark.v1.settlement_pb2_grpc import add_SettlementServiceServicer_to_server

_REPORTING_CONTROLLER = "earmark-dynamicresources"

_log = logging.getLogger(__name__)


class DynamicResources:
    """The component: caches, core, servicers."""

    name = "dynamicresources"

    def __init__(self, settings: Settings, env: Environment, core_type: type[Core] = Core) -> None:
        """Compose; nothing runs before start(). `core_type`: a Core that decides otherwise, for comparisons."""
        self._env = env
        self._settings = settings
        measures = AllocatorMetrics(env.metrics, env.clock.monotonic)
        features = allocator_features(settings.gate)
        solver = Solver(features, env.ids.uuid, self._deadline, searching=measures.searching)
        world = World(ledger=Ledger(consumable_capacity=settings.gate("DRAConsumableCapacity")))
        # The one state of the process; simulations and checks may look at it.
        self.core = core_type(world, settings, solver, env.ids.uuid)
        recorder = EventRecorder(env.api, env.clock, controller=_REPORTING_CONTROLLER)
        self._tracker = SettlementTracker(
            settings,
            env.clock,
            env.telemetry,
            Metrics(env.metrics),
            recorder,
            env.tasks,
        )
        env.metrics.register(WindowGauges(self._tracker.windows))
        self.core.listen(self._tracker.happened)
        self.core.listen(VanishedDevices(recorder, env.tasks).happened)
        self._caches = Caches(env.api, env.clock, self.core, settings)
        self._plugin = Plugin(
            settings=settings,
            core=self.core,
            caches=self._caches,
            binder=Binder(self.core, env.api, env.clock, env.ids, env.tasks, settings, recorder),
            post_filter=PostFilter(env.api, env.ids, settings),
            sessions=Sessions(env.ids.uuid, env.clock.monotonic, settings.sandbox_timeout_seconds),
            clock=env.clock,
            new_core=lambda: core_type(self.core.world, settings, solver, env.ids.uuid),
            template=self._template,
            instance_id=env.ids.uuid(),
        )

    async def _template(self, namespace: str, name: str) -> objects.ResourceClaimTemplate | None:
        try:
            return await self._env.api.get(objects.ResourceClaimTemplate, name, namespace)
        except ApiError as refusal:
            if refusal.not_found:
                return None
            raise

    def _deadline(self) -> Callable[[], bool]:
        seconds = self._settings.filter_timeout_seconds
        if seconds <= 0 or not self._settings.gate("DRASchedulerFilterTimeout"):
            return lambda: False
        end = self._env.clock.monotonic() + seconds
        return lambda: self._env.clock.monotonic() > end

    def register(self, server: Server) -> None:
        """Register the servicers."""
        # Generated code names grpc's own server types; the in-process server has their shape.
        target = cast(grpc.aio.Server, server)
        add_SchedulerPluginServiceServicer_to_server(SchedulerPluginServicer(self._plugin), target)
        add_NominationExtensionsServiceServicer_to_server(NominationExtensionsServicer(self._plugin), target)
        add_SettlementServiceServicer_to_server(SettlementServicer(self._tracker), target)
        add_ExplanationServiceServicer_to_server(ExplanationServicer(self._plugin, self._tracker), target)

    async def start(self) -> None:
        """Begin to follow the API."""
        self._caches.start(self._env.tasks)
        if self._settings.settlement_events:
            self._env.tasks.spawn(self._restore_windows(), "restore settling windows")

    async def _restore_windows(self) -> None:
        """Take past windows from the Events that told of their ends; without them only the history is shorter."""
        try:
            events = await retrying(
                lambda: self._env.api.list(objects.Event), clock=self._env.clock, ids=self._env.ids
            )  # fmt: skip
        except (ApiError, ApiUnavailable) as error:
            _log.warning("past settling windows are not known: events cannot be listed: %s", error)
            return
        self._tracker.restore(window for event in events.items if (window := windowrecord.read(event)) is not None)

    def ready(self) -> bool:
        """Whether the caches have synced."""
        return self._caches.synced

    async def stop(self) -> None:
        """Nothing to finish: writes that are under way are tasks of the environment."""


def build(settings: Settings, env: Environment, core_type: type[Core] = Core) -> DynamicResources:
    """Compose the service."""
    return DynamicResources(settings, env, core_type)
