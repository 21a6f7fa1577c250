"""The embedded API on a real socket, and the application without one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from prometheus_client import CollectorRegistry

from earmark.apiserver.app import ApiApplication
from earmark.apiserver.component import ApiServerComponent, build
from earmark.apiserver.registry import Registry
from earmark.apiserver.settings import ApiServerSettings
from earmark.kube.http import HttpApi
from earmark.runtime.clock import SystemClock
from earmark.runtime.component import Environment
from earmark.runtime.ids import SystemIds
from earmark.runtime.tasks import ComponentTasks

TOKEN = "the-token"


@contextlib.asynccontextmanager
async def component(state: Path, **settings: Any) -> AsyncIterator[ApiServerComponent]:
    """Run the API as its process would, with its files in `state`."""
    tasks = ComponentTasks("apiserver")
    unused = cast(Any, None)
    env = Environment(SystemClock(), SystemIds(), unused, unused, tasks, unused, CollectorRegistry())
    made = build(ApiServerSettings(**settings), env, state, state / "kubeconfig")
    try:
        await made.start()
        yield made
        await made.stop()
    finally:
        await tasks.cancel_all()


@contextlib.asynccontextmanager
async def served(state: Path) -> AsyncIterator[HttpApi]:
    """Return a client of an API that runs."""
    async with component(state), HttpApi.from_kubeconfig(state / "kubeconfig") as api:
        yield api


@dataclass(frozen=True)
class Response:
    """An answer of the application."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    application: ApiApplication, method: str, path: str, *, body: Any = None, query: str = "",
    headers: dict[str, str] | None = None, token: str = TOKEN,
) -> Response:  # fmt: skip
    """Send one request to the application, without a socket; data bodies are sent as JSON."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    sent = {"authorization": f"Bearer {token}", "content-type": "application/json", **(headers or {})}
    scope = {
        "type": "http", "method": method, "path": path, "query_string": query.encode(),
        "headers": [(key.encode(), value.encode("latin-1")) for key, value in sent.items()],
    }  # fmt: skip
    messages: list[Any] = [
        {"type": "http.request", "body": content[:1000], "more_body": True},
        {"type": "http.request", "body": content[1000:], "more_body": False},
    ]
    answer: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answer.append(message)

    await application(scope, receive, send)
    names = {key.decode(): value.decode() for key, value in answer[0]["headers"]}
    return Response(answer[0]["status"], names, b"".join(part["body"] for part in answer[1:]))


def application(registry: Registry, clock: Any) -> ApiApplication:
    """Return the application on a registry."""
    from earmark.apiserver.access import Guard

    return ApiApplication(registry, clock, Guard(TOKEN))
