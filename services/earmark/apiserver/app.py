"""The API over HTTP: an ASGI application that turns requests into calls of the registry.

It is written against ASGI itself: one dispatch over the parts of a path is all that a framework's router would be used
for. What is told to a client is durable; every refusal, whatever was sent, is a Kubernetes Status.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from earmark.apiserver import discovery, errors, events, reviews, tables
from earmark.apiserver.access import Guard
from earmark.apiserver.errors import StatusError
from earmark.apiserver.eviction import evict
from earmark.apiserver.registry import Deleted, Registry
from earmark.apiserver.requests import (
    APPLY_PATCH,
    LARGEST_BODY_BYTES,
    Query,
    delete_options,
    media_type,
    read_applied,
    read_body,
    read_patch,
    read_query,
    write_options,
)
from earmark.apiserver.results import WriteOptions
from earmark.apiserver.routes import Route, route
from earmark.apiserver.storage import StoreError
from earmark.apiserver.streaming import WatchRequest, WatchStream
from earmark.kube.api import ApiUnavailable
from earmark.kube.clock import Clock
from earmark.kube.resources import BY_KIND, Resource

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Call:
    """A request on its way."""

    method: str
    path: str
    query: Query
    accept: str
    content_type: str
    body: bytes
    user_agent: str
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Answer:
    status: int
    body: bytes
    media_type: bytes = discovery.JSON


class _TooLarge(Exception):
    """A body is longer than what is taken."""


class _Gone(Exception):
    """The client went away before its request was complete."""


class ApiApplication:
    """The ASGI application."""

    def __init__(self, registry: Registry, clock: Clock, guard: Guard) -> None:
        self._registry = registry
        self._clock = clock
        self._guard = guard
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all watches, so that the server can stop."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return
        warnings: list[str] = []
        try:
            answer = await self._durable_answer(scope, receive, send, warnings)
        except _Gone:
            return
        except StatusError as error:
            answer = _Answer(error.code, _encode(error.body()))
        except ApiUnavailable as error:
            refusal = StatusError(503, "ServiceUnavailable", str(error))
            answer = _Answer(503, _encode(refusal.body()))
        except StoreError as error:
            refusal = StatusError(500, "InternalError", f"Internal error occurred: {error}")
            answer = _Answer(500, _encode(refusal.body()))
        except Exception as error:  # noqa: BLE001 - the last resort of the server: logged, and answered as a Status
            _log.exception("a request failed: %s %s", scope["method"], scope["path"])
            refusal = StatusError(500, "InternalError", f"Internal error occurred: {type(error).__name__}")
            answer = _Answer(500, _encode(refusal.body()))
        if answer is None:
            return
        headers = [
            (b"content-type", answer.media_type),
            (b"cache-control", b"no-cache, private"),
            (b"content-length", str(len(answer.body)).encode()),
        ]
        headers += [(b"warning", _warning(text)) for text in warnings]
        if answer.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _durable_answer(self, scope: Scope, receive: Receive, send: Send, warnings: list[str]) -> _Answer | None:
        """Answer; a refusal also waits for the state that it tells of (no such object, another version) to be kept."""
        try:
            return await self._answer(scope, receive, send, warnings)
        except RecursionError as error:
            # A few levels less than the decoder takes are still too many for who walks through them.
            raise errors.bad_request("the object is nested too deeply") from error
        except StatusError:
            registry = self._registry
            if registry.revision > registry.visible_revision:
                await registry.durable(registry.revision)
            raise

    async def _answer(self, scope: Scope, receive: Receive, send: Send, warnings: list[str]) -> _Answer | None:
        authorization = accept = content_type = user_agent = b""
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == b"accept":
                accept = value
            elif name == b"content-type":
                content_type = value
            elif name == b"user-agent":
                user_agent = value
        if not self._guard.admits(authorization):
            raise StatusError(401, "Unauthorized", "Unauthorized")
        method = scope["method"]
        try:
            body = await _read(receive) if method not in ("GET", "HEAD") else b""
        except _TooLarge as error:
            raise StatusError(
                413, "RequestEntityTooLarge", f"Request entity too large: limit is {LARGEST_BODY_BYTES}"
            ) from error
        call = _Call(
            method,
            scope["path"],
            read_query(scope["query_string"]),
            accept.decode("latin-1"),
            media_type(content_type),
            body,
            user_agent.decode("latin-1"),
            warnings,
        )
        target = route(call.path)
        if target is None:
            asked = reviews.review_at(call.path)
            return self._about(call) if asked is None else self._review(asked, call)
        if call.method == "GET":
            return await self._read_objects(target, call, receive, send)
        return await self._write(target, call)

    def _about(self, call: _Call) -> _Answer:
        """Answer what is said about the API itself."""
        found = discovery.document(call.path, call.accept)
        if found is None:
            raise errors.no_such_path()
        if call.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        return _Answer(200, found.body, found.media_type)

    def _review(self, resource: Resource, call: _Call) -> _Answer:
        if call.method != "POST":
            raise errors.method_not_allowed(resource)
        options = write_options(call.query, call.user_agent, call.warnings)
        asked = self._registry.read(resource, read_body(call.body, call.content_type), options)
        return _Answer(201, _encode(reviews.answer(resource, asked)))

    # --- reading -----------------------------------------------------------------------------------------------------

    async def _read_objects(self, target: Route, call: _Call, receive: Receive, send: Send) -> _Answer | None:
        registry, query = self._registry, call.query
        form = tables.wanted(call.accept, query.text("includeObject"))
        if target.name and not query.flag("watch"):
            if target.subresource in ("binding", "eviction"):
                raise errors.method_not_allowed(target.resource)
            await registry.faults.before(
                self._clock, "get", target.resource.kind, target.name, target.subresource
            )  # fmt: skip
            stored = registry.get(target.resource, target.namespace, target.name)
            if stored.revision > registry.visible_revision:
                await registry.durable(stored.revision)
            body = self._shown(target, stored.body)
            return _Answer(200, body if form is None else form.one(target.resource, body, self._clock.now()))
        if query.flag("watch"):
            await registry.faults.before(self._clock, "watch", target.resource.kind, target.name)
            request = WatchRequest.of(target, query)
            stream = WatchStream(registry, request, form, self._clock, self._shown, self._closing)
            await stream.serve(receive, send)
            return None
        await registry.faults.before(self._clock, "list", target.resource.kind, "")
        version = query.text("resourceVersion")
        if query.text("resourceVersionMatch") == "Exact" and version not in ("", str(registry.revision)):
            raise errors.expired(query.number("resourceVersion") or 0, registry.revision)
        page = registry.list(
            target.resource,
            target.namespace,
            label_selector=query.text("labelSelector"),
            field_selector=query.text("fieldSelector"),
            limit=max(query.number("limit") or 0, 0),
            continue_token=query.text("continue"),
        )
        if page.revision > registry.visible_revision:
            await registry.durable(page.revision)
        items = [self._shown(target, item) for item in page.items]
        meta: dict[str, Any] = {"resourceVersion": str(page.revision)}
        if page.continue_token:
            meta["continue"] = page.continue_token
            if page.remaining:
                meta["remainingItemCount"] = page.remaining
        if form is not None:
            return _Answer(200, form.many(target.resource, items, meta, self._clock.now()))
        head = {"kind": f"{target.resource.kind}List", "apiVersion": target.resource.api_version, "metadata": meta}
        return _Answer(200, _encode(head)[:-1] + b',"items":[' + b",".join(items) + b"]}")

    def _shown(self, target: Route, body: bytes) -> bytes:
        """Return an object in the terms of the version that was asked for."""
        return _encode(events.to_core(_decode(body))) if target.core_events else body

    # --- writing -----------------------------------------------------------------------------------------------------

    async def _write(self, target: Route, call: _Call) -> _Answer:
        handlers = {"POST": self._create, "PUT": self._update, "PATCH": self._patch, "DELETE": self._delete}
        handler = handlers.get(call.method)
        if handler is None:
            raise errors.method_not_allowed(target.resource)
        return await handler(target, call)

    async def _create(self, target: Route, call: _Call) -> _Answer:
        registry = self._registry
        if target.name and target.subresource not in ("binding", "eviction"):
            raise errors.method_not_allowed(target.resource)
        options = write_options(call.query, call.user_agent, call.warnings)
        data = read_body(call.body, call.content_type)
        kind, name = target.resource.kind, target.name or _name(data)
        await registry.faults.before(self._clock, "create", kind, name, target.subresource)
        if target.subresource == "binding":
            written = registry.bind(target.namespace, target.name, data, options)
            await registry.durable(written.revision)
            registry.faults.after("create", kind, name, target.subresource)
            return _Answer(201, _encode(_success(None)))
        if target.subresource == "eviction":
            written = evict(registry, target.namespace, target.name, data, options)
            await registry.durable(written.revision)
            registry.faults.after("create", kind, name, target.subresource)
            return _Answer(201, _encode(_success(None)))
        if target.resource.namespaced and not target.namespace:
            raise errors.method_not_allowed(target.resource)
        if target.core_events:
            data = events.from_core(data)
        written = registry.create(BY_KIND[kind], target.namespace, data, options)
        await registry.durable(written.revision)
        registry.faults.after("create", kind, name)
        return _Answer(201, self._shown(target, written.body))

    async def _update(self, target: Route, call: _Call) -> _Answer:
        registry = self._registry
        if not target.name or target.subresource not in ("", "status"):
            raise errors.method_not_allowed(target.resource)
        options = write_options(call.query, call.user_agent, call.warnings)
        data = read_body(call.body, call.content_type)
        if target.core_events:
            data = events.from_core(data)
        kind = target.resource.kind
        await registry.faults.before(self._clock, "update", kind, target.name, target.subresource)
        written = registry.update(
            BY_KIND[kind], target.namespace, target.name, data, subresource=target.subresource, options=options
        )
        await registry.durable(written.revision)
        registry.faults.after("update", kind, target.name, target.subresource)
        return _Answer(200, self._shown(target, written.body))

    async def _patch(self, target: Route, call: _Call) -> _Answer:
        registry = self._registry
        if not target.name or target.subresource not in ("", "status"):
            raise errors.method_not_allowed(target.resource)
        options = write_options(call.query, call.user_agent, call.warnings)
        if call.content_type == APPLY_PATCH:
            return await self._apply(target, call, options)
        if "force" in call.query.fields:
            cause = errors.forbidden("force", "may not be specified for non-apply patch")
            raise StatusError(422, "Invalid", f"force: {cause.message}", causes=[cause])
        patch, patch_type = read_patch(call.body, call.content_type)
        if target.core_events:
            patch = events.from_core(patch)
        kind = target.resource.kind
        await registry.faults.before(self._clock, "patch", kind, target.name, target.subresource)
        written = registry.patch(
            BY_KIND[kind],
            target.namespace,
            target.name,
            patch,
            patch_type,
            subresource=target.subresource,
            options=options,
        )
        await registry.durable(written.revision)
        registry.faults.after("patch", kind, target.name, target.subresource)
        return _Answer(200, self._shown(target, written.body))

    async def _apply(self, target: Route, call: _Call, options: WriteOptions) -> _Answer:
        registry = self._registry
        data = read_applied(call.query, call.body)
        if target.core_events:
            data = events.from_core(data)
        kind = target.resource.kind
        await registry.faults.before(self._clock, "patch", kind, target.name, target.subresource)
        written = registry.apply(
            BY_KIND[kind],
            target.namespace,
            target.name,
            data,
            force=call.query.flag("force"),
            subresource=target.subresource,
            options=options,
        )
        await registry.durable(written.revision)
        registry.faults.after("patch", kind, target.name, target.subresource)
        return _Answer(201 if written.created else 200, self._shown(target, written.body))

    async def _delete(self, target: Route, call: _Call) -> _Answer:
        registry = self._registry
        if target.subresource:
            raise errors.method_not_allowed(target.resource)
        options = delete_options(registry, call.query, call.body, call.content_type)
        kind = target.resource.kind
        resource = BY_KIND[kind]
        await registry.faults.before(self._clock, "delete", kind, target.name)
        if target.name:
            deleted = registry.delete(resource, target.namespace, target.name, options)
            await registry.durable(deleted.revision)
            registry.faults.after("delete", kind, target.name)
            return self._deleted(target, deleted)
        page = registry.list(
            resource,
            target.namespace,
            label_selector=call.query.text("labelSelector"),
            field_selector=call.query.text("fieldSelector"),
        )
        revision, bodies = page.revision, []
        for item in page.items:
            meta = _decode(item)["metadata"]
            deleted = registry.delete(resource, meta.get("namespace", ""), meta["name"], options)
            revision = max(revision, deleted.revision)
            bodies.append(self._shown(target, deleted.body))
        await registry.durable(revision)
        head = {
            "kind": f"{target.resource.kind}List",
            "apiVersion": target.resource.api_version,
            "metadata": {"resourceVersion": str(revision)},
        }
        return _Answer(200, _encode(head)[:-1] + b',"items":[' + b",".join(bodies) + b"]}")

    def _deleted(self, target: Route, deleted: Deleted) -> _Answer:
        if not deleted.removed or self._registry.strategy(target.resource).returns_deleted:
            return _Answer(200, self._shown(target, deleted.body))
        details = {"name": deleted.name, "kind": target.resource.plural, "uid": deleted.uid}
        if target.resource.group:
            details["group"] = target.resource.group
        return _Answer(200, _encode(_success(details)))


def _success(details: dict[str, str] | None) -> dict[str, Any]:
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    else:
        status["code"] = 201
    return status


def _name(data: Any) -> str:
    meta = data.get("metadata") if isinstance(data, dict) else None
    name = meta.get("name") if isinstance(meta, dict) else None
    return name if isinstance(name, str) else ""


def _warning(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", " ")
    return b'299 - "' + escaped.encode("ascii", "replace") + b'"'


async def _read(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > LARGEST_BODY_BYTES:
            raise _TooLarge
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks) if len(chunks) != 1 else chunks[0]
