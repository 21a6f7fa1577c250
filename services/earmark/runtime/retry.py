"""Bounded retries of calls that may succeed when repeated, on our own clock and our own randomness."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
import tenacity

from earmark.kube.api import ApiError, ApiUnavailable
from earmark.kube.clock import Clock
from earmark.runtime.component import Ids

T = TypeVar("T")

_RETRYABLE_CODES = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED})


def transient(error: BaseException) -> bool:
    """Return whether a repeated call may succeed: UNAVAILABLE, ABORTED, a conflict, an API that is away."""
    if isinstance(error, grpc.aio.AioRpcError):
        return error.code() in _RETRYABLE_CODES
    return isinstance(error, ApiUnavailable) or (isinstance(error, ApiError) and (error.conflict or error.uncertain))


async def retrying(
    operation: Callable[[], Awaitable[T]],
    *,
    clock: Clock,
    ids: Ids,
    attempts: int = 5,
    first_wait: float = 0.1,
    longest_wait: float = 5.0,
    retryable: Callable[[BaseException], bool] = transient,
) -> T:
    """Return the result of `operation`, tried up to `attempts` times.

    Waits are in seconds; each is drawn from the upper half of a span that doubles from `first_wait` to `longest_wait`.
    Raises the last error.
    """

    def wait(state: tenacity.RetryCallState) -> float:
        span = min(longest_wait, first_wait * 2.0 ** (state.attempt_number - 1))
        return span * (0.5 + ids.random() / 2)

    async for attempt in tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(attempts),
        wait=wait,
        sleep=clock.sleep,
        retry=tenacity.retry_if_exception(retryable),
        reraise=True,
    ):
        with attempt:
            return await operation()
    raise AssertionError("tenacity ended without a result")
