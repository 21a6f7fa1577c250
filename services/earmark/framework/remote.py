"""A remote plugin: its stubs, what it said of itself, its session, and the calls of a cycle.

Errors of calls become PluginError; statuses are values. What is called when is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

import grpc

from earmark.framework import wire
from earmark.framework.settings import FrameworkSettings, PluginSettings
from earmark.framework.status import Status
from earmark.v1 import (
    common_pb2,
    nomination_extensions_pb2,
    nomination_extensions_pb2_grpc,
    scheduler_plugin_pb2,
    scheduler_plugin_pb2_grpc,
)

R = TypeVar("R")

PROTOCOL_VERSION = "v1"

_log = logging.getLogger(__name__)


class PluginError(Exception):
    """A call to a plugin failed. The attempt ends with an error and is repeated by backoff."""

    def __init__(self, plugin: str, method: str, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"plugin {plugin}: {method}: {code.name}: {details}")
        self.plugin = plugin
        self.code = code

    @property
    def transient(self) -> bool:
        """Whether the same call may succeed a little later."""
        return self.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED)


class RemotePlugin:
    """See the module."""

    def __init__(self, plugin: PluginSettings, channel: grpc.aio.Channel, settings: FrameworkSettings) -> None:
        self.name = plugin.name
        self.service = plugin.service
        self._settings = settings
        self.stub = scheduler_plugin_pb2_grpc.SchedulerPluginServiceStub(channel)
        self.nominations = nomination_extensions_pb2_grpc.NominationExtensionsServiceStub(channel)
        self.description = scheduler_plugin_pb2.DescribeResponse()
        self.session: common_pb2.SessionReference | None = None
        # The process that the session was opened with.
        self.instance = ""
        # A call said that session, cycle or connection is not what this side believes: look before the next attempt.
        self.doubtful = False
        # The nominator has to be told anew, in a new session, even if the plugin is the same process.
        self.refresh = False
        self.last_wake_up = 0
        # Set by each new session; the wake-up stream waits for it.
        self.opened = asyncio.Event()

    def has(self, point: scheduler_plugin_pb2.ExtensionPoint.ValueType) -> bool:
        """Whether the plugin takes part in an extension point."""
        return point in self.description.extension_points

    @property
    def extends_pre_filter(self) -> bool:
        """Whether it can take pods away and add them (FilterForks)."""
        return self.has(scheduler_plugin_pb2.EXTENSION_POINT_PRE_FILTER_EXTENSIONS)

    @property
    def extends_nominations(self) -> bool:
        """Whether it has NominationExtensions."""
        return self.has(scheduler_plugin_pb2.EXTENSION_POINT_NOMINATION)

    def malformed(self, method: str, text: str) -> PluginError:
        """Return the error for an answer that breaks the contract."""
        return PluginError(self.name, method, grpc.StatusCode.INTERNAL, text)

    async def call(self, method: Callable[..., Awaitable[R]], request: Any, timeout: float | None = None) -> R:
        """Call a method of a stub.

        Raises:
            PluginError: if the call failed.
        """
        try:
            return await method(request, timeout=timeout or self._settings.call_timeout_seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAVAILABLE):
                self.doubtful = True
            name = type(request).__name__.removesuffix("Request")
            raise PluginError(self.name, name, error.code(), error.details() or "") from error

    # --- sessions ----------------------------------------------------------------------------------------------------

    async def describe(self) -> scheduler_plugin_pb2.DescribeResponse:
        """Ask the plugin what it is; the answer is kept.

        Raises:
            PluginError: also for a plugin of another name or protocol.
        """
        answer = await self.call(self.stub.Describe, scheduler_plugin_pb2.DescribeRequest())
        for what, have, want in (
            ("name", answer.name, self.name),
            ("protocol_version", answer.protocol_version, PROTOCOL_VERSION),
        ):
            if have != want:
                text = f"{what} is {have!r}, want {want!r}"
                raise PluginError(self.name, "Describe", grpc.StatusCode.FAILED_PRECONDITION, text)
        self.description = answer
        return answer

    def session_request(
        self, kind: scheduler_plugin_pb2.SessionKind.ValueType
    ) -> scheduler_plugin_pb2.OpenSessionRequest:
        """Return the handshake without what only the scheduler's session has."""
        return scheduler_plugin_pb2.OpenSessionRequest(
            kind=kind,
            protocol_version=PROTOCOL_VERSION,
            feature_gates=dict(self._settings.feature_gates),
            configuration={"nominationPersistence": self._settings.nomination_persistence},
        )

    # --- batches over nodes ------------------------------------------------------------------------------------------

    async def filter(
        self,
        cycle: RemoteCycle,
        queries: Sequence[tuple[str, Sequence[str], Sequence[str]]],
        *,
        forks: bool,
    ) -> list[tuple[Status | None, bool]]:
        """Filter nodes, in chunks; for each its status (None: success) and whether it is pass 1's.

        Args:
            cycle: the plugin's cycle.
            queries: node, UIDs of removed pods, UIDs of the nominated pods of pass 1.
            forks: whether to work on forks, which leaves nothing behind in the cycle.
        """
        answers: list[tuple[Status | None, bool]] = []
        for chunk in _chunks(queries, self._settings.nodes_per_call):
            nodes, uids, messages = _tables(chunk)
            verdicts = await (self._forks if forks else self._nodes)(cycle, nodes, uids, messages)
            if len(verdicts.verdicts) != len(chunk):
                raise self.malformed("Filter", f"{len(verdicts.verdicts)} verdicts for {len(chunk)} queries")
            statuses = [_rejection(wire.to_status(status, self.name)) for status in verdicts.statuses]
            firsts = list(verdicts.with_nominated) or [False] * len(chunk)
            if len(firsts) != len(chunk) or max(verdicts.verdicts) >= len(statuses):
                raise self.malformed("Filter", "verdicts that point past their tables")
            answers += [(statuses[index], first) for index, first in zip(verdicts.verdicts, firsts, strict=True)]
        return answers

    async def _nodes(
        self, cycle: RemoteCycle, nodes: list[str], uids: list[str], queries: list[common_pb2.NodeQuery]
    ) -> common_pb2.NodeVerdicts:
        request = scheduler_plugin_pb2.FilterRequest(
            session=cycle.session, cycle_id=cycle.cycle_id, nodes=nodes, pod_uids=uids, queries=queries
        )
        answer = await self.call(self.stub.Filter, request, self._settings.filter_timeout_seconds)
        return answer.verdicts

    async def _forks(
        self, cycle: RemoteCycle, nodes: list[str], uids: list[str], queries: list[common_pb2.NodeQuery]
    ) -> common_pb2.NodeVerdicts:
        request = scheduler_plugin_pb2.FilterForksRequest(
            session=cycle.session, cycle_id=cycle.cycle_id, nodes=nodes, pod_uids=uids, queries=queries
        )
        answer = await self.call(self.stub.FilterForks, request, self._settings.filter_timeout_seconds)
        return answer.verdicts

    async def remove_nominated(self, request: nomination_extensions_pb2.RemoveNominatedPodRequest) -> None:
        """Tell that a nomination is gone."""
        await self.call(self.nominations.RemoveNominatedPod, request)


class RemoteCycle:
    """One plugin's part of a cycle."""

    def __init__(self, plugin: RemotePlugin, session: common_pb2.SessionReference, cycle_id: str) -> None:
        self.plugin = plugin
        self.session = session
        self.cycle_id = cycle_id
        # PreFilter answered SKIP: nothing more is asked in this cycle.
        self.skipped = False
        # Reserve was called, and what it answered.
        self.reserved = False
        self.reservation = ""

    @property
    def filters(self) -> bool:
        """Whether the plugin filters in this cycle."""
        return not self.skipped and self.plugin.has(scheduler_plugin_pb2.EXTENSION_POINT_FILTER)


def _rejection(status: Status) -> Status | None:
    return None if status.success else status


def _chunks(queries: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for begin in range(0, len(queries), size):
        yield queries[begin : begin + size]


def _tables(
    queries: Sequence[tuple[str, Sequence[str], Sequence[str]]],
) -> tuple[list[str], list[str], list[common_pb2.NodeQuery]]:
    """Nodes and pods are named once, queries by index."""
    uids: dict[str, None] = {}
    for _, removed, nominated in queries:
        uids.update(dict.fromkeys(removed))
        uids.update(dict.fromkeys(nominated))
    index = dict(zip(uids, range(len(uids)), strict=True)).__getitem__
    messages = [
        common_pb2.NodeQuery(node=number, removed=list(map(index, removed)), nominated=list(map(index, nominated)))
        for number, (_, removed, nominated) in enumerate(queries)
    ]
    return [node for node, _, _ in queries], list(uids), messages
