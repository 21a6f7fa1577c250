"""Composes the preemption service."""

from __future__ import annotations

from earmark.kube.informer import Informer
from earmark.kube.objects import PodDisruptionBudget
from earmark.preemption.evaluate import Evaluator
from earmark.preemption.execute import Executor
from earmark.preemption.loops import EvictionLoops
from earmark.preemption.metrics import PreemptionMetrics
from earmark.preemption.peers import Framework, NominationPlugins
from earmark.preemption.service import PreemptionService
from earmark.preemption.settings import PreemptionSettings
from earmark.preemption.trace import WindowSpans
from earmark.runtime.component import Environment, Server
from earmark.v1 import preemption_pb2_grpc


class PreemptionComponent:
    """The service with its one informer, of PodDisruptionBudgets."""

    name = "preemption"

    def __init__(self, settings: PreemptionSettings, env: Environment) -> None:
        self._tasks = env.tasks
        self._budgets = Informer(env.api, PodDisruptionBudget, env.clock)
        framework = Framework(env.channels, settings)
        plugins = NominationPlugins(env.channels, settings)
        metrics, spans = PreemptionMetrics(env.metrics), WindowSpans(env.telemetry)
        loops = EvictionLoops(
            rounds=settings.eviction_loop_rounds,
            first_wait=settings.eviction_loop_wait_seconds,
            longest_wait=settings.eviction_loop_longest_wait_seconds,
            remembered=settings.remembered_executions,
        )
        self._service = PreemptionService(
            env=env,
            framework=framework,
            plugins=plugins,
            evaluator=Evaluator(framework, plugins, env.ids, settings),
            executor=Executor(framework, env, settings, metrics, spans, loops),
            loops=loops,
            budgets=self._budgets,
            metrics=metrics,
            spans=spans,
        )

    def register(self, server: Server) -> None:
        """Register PreemptionService."""
        preemption_pb2_grpc.add_PreemptionServiceServicer_to_server(self._service, server)  # type: ignore[arg-type]

    async def start(self) -> None:
        """Follow the budgets."""
        self._budgets.start(self._tasks)

    def ready(self) -> bool:
        """Whether the budgets are known."""
        return self._budgets.synced

    async def stop(self) -> None:
        """Nothing is pending: executions end with the calls that wait for them."""


def build(settings: PreemptionSettings, env: Environment) -> PreemptionComponent:
    """Compose the service; nothing runs before start()."""
    return PreemptionComponent(settings, env)
