"""Enumerates the steps of an actuation, and ends a service before or after one of them.

A step is a write to the API or a call between services. A run without crashes lists them; the same scenario played
again goes the same way up to the step at which a service is ended, because a run is a function of scenario and seed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc

from earmark.kube import objects
from earmark.kube.api import KubeApi, PatchType
from earmark.kube.clock import Clock
from earmark.kube.resources import BY_STRUCT
from earmark.simulation.hooks import Crashes, Hooks
from earmark.simulation.passthrough import PassThroughApi

T = TypeVar("T", bound=objects.Object)

# Events are only for people, and come in tasks of their own.
_UNCOUNTED_KINDS = ("Event", "Lease")
# The simulation's own, at the end of a run.
_QUESTIONS = ("ListNominations", "ListSettlements")
# What begins an actuation.
_FIRST = "call preemption.Preempt"


@dataclass(frozen=True)
class Kill:
    """End services at a step of the list, before or after it, for so many seconds."""

    services: tuple[str, ...]
    step: int
    after: bool
    seconds: float


@dataclass
class Steps:
    """Sees all steps of a run from the first Preempt on, and ends services where it is asked to."""

    kill: Kill | None = None
    seen: list[str] = field(default_factory=list)
    # What dynamicresources said when it was asked last for what it holds.
    held: Any = None
    _crashes: list[Crashes] = field(default_factory=list)
    _counting: bool = False

    def hooks(self) -> Hooks:
        """What a run needs for it."""
        return Hooks(api=self._api, interceptors=self._interceptors, crashes=self._crashes.append)

    def _api(self, client: str, api: KubeApi, clock: Clock) -> KubeApi:
        return _Writes(api, client, self)

    def _interceptors(self, service: str) -> Sequence[grpc.aio.ServerInterceptor[Any, Any]]:
        return (_Calls(service, self),)

    @asynccontextmanager
    async def step(self, name: str) -> Any:
        """Run a block that is one step."""
        self._counting = self._counting or name == _FIRST
        if not self._counting:
            yield
            return
        number = len(self.seen)
        self.seen.append(name)
        await self._strike(number, after=False)
        yield
        await self._strike(number, after=True)

    async def _strike(self, number: int, *, after: bool) -> None:
        kill = self.kill
        if kill is None or kill.step != number or kill.after != after:
            return
        for service in kill.services:
            self._crashes[0].crash(service, kill.seconds)
        # Whoever was ended by this gets to know it here.
        await asyncio.sleep(0)


class _Calls(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Makes a step of each call that a service serves."""

    def __init__(self, service: str, steps: Steps) -> None:
        self._service = service
        self._steps = steps

    async def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any) -> Any:
        handler = await continuation(handler_call_details)
        method = str(handler_call_details.method).rpartition("/")[2]
        if handler is None or handler.response_streaming:
            return handler

        async def serve(request: Any, context: Any) -> Any:
            if method in _QUESTIONS:
                response = await handler.unary_unary(request, context)
                self._steps.held = response if method == "ListNominations" else self._steps.held
                return response
            async with self._steps.step(f"call {self._service}.{method}"):
                return await handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(
            serve, handler.request_deserializer, handler.response_serializer
        )  # fmt: skip


class _Writes(PassThroughApi):
    """Makes a step of each write of a service."""

    def __init__(self, inner: KubeApi, client: str, steps: Steps) -> None:
        super().__init__(inner)
        self._client = client
        self._steps = steps

    def _step(self, verb: str, kind: type[Any], name: str, subresource: str = "") -> Any:
        kind_name = BY_STRUCT[kind].kind
        if kind_name in _UNCOUNTED_KINDS:
            return _no_step()
        what = f"{kind_name}/{subresource}" if subresource else kind_name
        return self._steps.step(f"write {self._client} {verb} {what} {name}")

    async def create(self, value: T) -> T:
        async with self._step("create", type(value), value.metadata.name):
            return await super().create(value)

    async def patch(
        self,
        kind: type[T],
        name: str,
        namespace: str,
        patch: dict[str, Any] | Sequence[dict[str, Any]],
        *,
        subresource: str = "",
        patch_type: PatchType = PatchType.MERGE,
    ) -> T:
        async with self._step("patch", kind, name, subresource):
            return await super().patch(kind, name, namespace, patch, subresource=subresource, patch_type=patch_type)

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        async with self._step("create", objects.Pod, name, "binding"):
            await super().bind(namespace, name, uid, node_name)

    async def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        async with self._step("delete", kind, name):
            await super().delete(
                kind,
                name,
                namespace,
                uid=uid,
                resource_version=resource_version,
                grace_period_seconds=grace_period_seconds,
            )


@asynccontextmanager
async def _no_step() -> Any:
    yield
