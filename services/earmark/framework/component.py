"""Composes the framework service."""

from __future__ import annotations

from earmark.framework.attempt import Scheduler
from earmark.framework.binding import Binder
from earmark.framework.core import Core
from earmark.framework.cycle import CycleRunner
from earmark.framework.dry_runs import DryRuns
from earmark.framework.explain import Explanations
from earmark.framework.failure import FailureHandler
from earmark.framework.history import Histories
from earmark.framework.hooks import NominationHook
from earmark.framework.loop import SchedulingLoop
from earmark.framework.preempting import Preempting
from earmark.framework.recovery import Recovery
from earmark.framework.service import FrameworkServicer
from earmark.framework.sessions import Sessions
from earmark.framework.settings import FrameworkSettings
from earmark.framework.wake_ups import WakeUpStream
from earmark.framework.watching import Watching
from earmark.framework.writer import PodWriter
from earmark.runtime.component import Environment, Server
from earmark.v1 import framework_pb2_grpc


class Framework:
    """The service. `core` is its state; checks may look at it."""

    name = "framework"

    def __init__(self, settings: FrameworkSettings, env: Environment) -> None:
        self.core = core = Core(settings, env)
        self._hook = hook = NominationHook(core.remotes, env.clock, env.ids)
        runner = CycleRunner(core)
        writer = PodWriter(core)
        histories = Histories()
        self._sessions = Sessions(core)
        dry_runs = DryRuns(core, runner)
        preempting = Preempting(core, dry_runs, hook, writer)
        failures = FailureHandler(core, runner, hook, writer)
        binder = Binder(core, runner, failures, hook)
        scheduler = Scheduler(core, runner, self._sessions, preempting, failures, binder, hook, histories)
        self._loop = SchedulingLoop(core, self._sessions, Recovery(core, preempting), scheduler)
        self._watching = Watching(core, binder, hook, histories)
        self._streams = tuple(WakeUpStream(core, plugin) for plugin in core.remotes)
        self._servicer = FrameworkServicer(core, dry_runs, binder, Explanations(core, binder, histories), hook, writer)

    def register(self, server: Server) -> None:
        """Register FrameworkService."""
        framework_pb2_grpc.add_FrameworkServiceServicer_to_server(self._servicer, server)  # type: ignore[arg-type]

    async def start(self) -> None:
        """Follow pods and nodes, and schedule."""
        core, tasks = self.core, self.core.env.tasks
        # Nodes first, so that pods of one list find theirs.
        core.nodes.add_handler(self._watching.node)
        core.pods.add_handler(self._watching.pod)
        core.nodes.start(tasks)
        core.pods.start(tasks)
        tasks.spawn(self._hook.run(), "nomination hook")
        for stream in self._streams:
            tasks.spawn(stream.run(), "wake-ups")
        tasks.spawn(self._loop.run(), "scheduling loop")

    def ready(self) -> bool:
        """Whether it schedules, and every plugin agrees with it on the nominations."""
        return self._loop.running and self._sessions.agreed

    async def stop(self) -> None:
        """Nothing has to be finished: a restarted scheduler takes up what is in the API."""


def build(settings: FrameworkSettings, env: Environment) -> Framework:
    """Compose the service; nothing runs before start()."""
    return Framework(settings, env)
