"""What the plugin's servicers share: its parts, and how a call ends that cannot be answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

import grpc

from earmark.dynamicresources.binding import Binder
from earmark.dynamicresources.caches import Caches
from earmark.dynamicresources.convert import InvalidField
from earmark.dynamicresources.core import Core, UnknownCycle
from earmark.dynamicresources.cycles import Cycle
from earmark.dynamicresources.postfilter import PostFilter
from earmark.dynamicresources.sessions import Session, Sessions, StaleEpoch, UnknownSession
from earmark.dynamicresources.settings import Settings
from earmark.kube import objects
from earmark.kube.clock import Clock
from earmark.v1 import common_pb2

R = TypeVar("R")

Context = grpc.aio.ServicerContext[Any, Any]


class Plugin:
    """Sessions, the scheduler's core and its way to the API."""

    def __init__(
        self,
        settings: Settings,
        core: Core,
        caches: Caches,
        binder: Binder,
        post_filter: PostFilter,
        sessions: Sessions,
        clock: Clock,
        new_core: Callable[[], Core],
        template: Callable[[str, str], Awaitable[objects.ResourceClaimTemplate | None]],
        instance_id: str,
    ) -> None:
        """`new_core` makes a sandbox's core over the present state; `template` finds one by namespace and name."""
        self.settings = settings
        self.core = core
        self.caches = caches
        self.binder = binder
        self.post_filter = post_filter
        self.sessions = sessions
        self.clock = clock
        self.new_core = new_core
        self.template = template
        self.instance_id = instance_id

    async def session(self, reference: common_pb2.SessionReference, context: Context) -> Session:
        """Return the session or end the call with FAILED_PRECONDITION."""
        try:
            return self.sessions.get(reference.id, reference.epoch)
        except (UnknownSession, StaleEpoch) as reason:
            await fail(context, grpc.StatusCode.FAILED_PRECONDITION, f"session: {reason}")

    async def cycle(self, session: Session, cycle_id: str, context: Context) -> Cycle:
        """Return the cycle or end the call with FAILED_PRECONDITION."""
        try:
            return session.core.cycle(cycle_id)
        except UnknownCycle as reason:
            await fail(context, grpc.StatusCode.FAILED_PRECONDITION, f"cycle_id: {reason}")


async def fail(context: Context, code: grpc.StatusCode, text: str) -> NoReturn:
    """End the call."""
    await context.abort(code, text)
    raise AssertionError("abort returned")


async def not_found(context: Context, text: str) -> NoReturn:
    """End the call because what it names is not there."""
    await fail(context, grpc.StatusCode.NOT_FOUND, text)


async def valid(context: Context, read: Callable[[], R]) -> R:
    """Return what `read` reads from the request, or end the call with INVALID_ARGUMENT naming the field."""
    try:
        return read()
    except InvalidField as reason:
        await fail(context, grpc.StatusCode.INVALID_ARGUMENT, str(reason))
