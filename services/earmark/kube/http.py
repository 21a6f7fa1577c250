"""The Kubernetes API over HTTPS, for the embedded and for a real API server alike.

A refusal (any HTTP status from 400 on) is an ApiError, trouble with the connection an ApiUnavailable: what became of a
write is then unknown. Nothing is retried here; whoever calls knows what may be repeated.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, EventType, ListResult, PatchType, WatchEvent
from earmark.kube.kubeconfig import Access, find, from_file
from earmark.kube.resources import BY_STRUCT, Resource, to_manifest
from earmark.kube.throttle import Throttle

T = TypeVar("T", bound=objects.Object)

CONNECT_SECONDS = 5.0
CALL_SECONDS = 30.0
WATCH_SECONDS = 300
# API servers send a bookmark about every minute; a watch that is silent for longer has lost its server.
SILENT_WATCH_SECONDS = 150.0
MOST_CONNECTIONS = 64

_JSON = "application/json"

_encode = msgspec.json.Encoder().encode


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _List(msgspec.Struct, Generic[T], frozen=True):
    metadata: _ListMeta = _ListMeta()
    # Go writes null for an empty list now and then.
    items: tuple[T, ...] | None = ()


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()


class _Cause(msgspec.Struct, frozen=True):
    field: str = ""
    message: str = ""


class _Details(msgspec.Struct, frozen=True):
    causes: tuple[_Cause, ...] | None = ()


class _Status(msgspec.Struct, frozen=True):
    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_bookmark_decoder = msgspec.json.Decoder(_Bookmark)
_event_decoder = msgspec.json.Decoder(_Event)
_status_decoder = msgspec.json.Decoder(_Status)


class HttpApi:
    """KubeApi and RawApi over HTTPS. Use it as an async context manager."""

    def __init__(self, access: Access, *, qps: float = 0.0, burst: int = 0) -> None:
        """Call the API at `access`, at most `qps` times a second after `burst` calls (0: no limit)."""
        self._access = access
        self._throttle = Throttle(qps, burst)
        self._session: aiohttp.ClientSession | None = None
        self._objects: dict[type[Any], msgspec.json.Decoder[Any]] = {}
        self._lists: dict[type[Any], msgspec.json.Decoder[Any]] = {}

    @classmethod
    def from_kubeconfig(cls, path: Path | None = None, *, qps: float = 0.0, burst: int = 0) -> HttpApi:
        """Return a client for a kubeconfig; without one for $KUBECONFIG, the cluster of this pod, or the home folder.

        Raises KubeconfigError.
        """
        return cls(from_file(path) if path is not None else find(), qps=qps, burst=burst)

    async def __aenter__(self) -> HttpApi:
        try:
            context = self._access.ssl_context()
        except (ssl.SSLError, OSError, ValueError) as error:
            raise ApiUnavailable(f"{self._access.server}: its certificates cannot be used: {error}") from error
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context or False, limit=MOST_CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS, connect=CONNECT_SECONDS),
            headers={"User-Agent": "earmark", "Accept": _JSON},
            # Cookies, proxies and .netrc of the user are not for this.
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=True,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # --- KubeApi -----------------------------------------------------------------------------------------------------

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """See KubeApi."""
        return self._decode(kind, await self._call("GET", _object_path(BY_STRUCT[kind], namespace, name)))

    async def list(
        self, kind: type[T], namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult[T]:
        """See KubeApi."""
        body = await self._call(
            "GET", collection_path(BY_STRUCT[kind], namespace), params=_selectors(label_selector, field_selector)
        )
        decoder = self._lists.get(kind)
        if decoder is None:
            decoder = self._lists[kind] = msgspec.json.Decoder(_List[kind])  # type: ignore[valid-type]
        try:
            result: _List[T] = decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise ApiUnavailable(f"{self._access.server} did not answer with a list: {error}") from error
        if not result.metadata.resource_version:
            raise ApiUnavailable(f"{self._access.server} did not answer with a list: it has no resourceVersion")
        return ListResult(result.items or (), result.metadata.resource_version)

    async def watch(
        self,
        kind: type[T],
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        """See KubeApi."""
        params = {
            "watch": "1",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
            **_selectors(label_selector, field_selector),
        }
        timeout = aiohttp.ClientTimeout(
            total=None, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=SILENT_WATCH_SECONDS
        )
        url = self._access.server + collection_path(BY_STRUCT[kind], namespace)
        await self._throttle.pass_()
        try:
            async with self._opened().request(
                "GET", url, params=params, timeout=timeout, headers=self._headers()
            ) as response:  # fmt: skip
                if response.status >= 400:
                    raise _refusal(response.status, await response.read())
                async for line in _lines(response.content):
                    yield self._event(kind, line)
        except _TROUBLE as error:
            raise ApiUnavailable(f"{self._access.server}: {_text(error)}") from error

    async def create(self, value: T) -> T:
        """See KubeApi."""
        body = await self.create_raw(BY_STRUCT[type(value)], value.metadata.namespace, to_manifest(value))
        return self._decode(type(value), body)

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
        """See KubeApi."""
        path = _object_path(BY_STRUCT[kind], namespace, name, subresource)
        return self._decode(kind, await self._call("PATCH", path, _encode(patch), content_type=patch_type.value))

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """See KubeApi."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        path = _object_path(BY_STRUCT[objects.Pod], namespace, name, "binding")
        await self._call("POST", path, _encode(binding))

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
        """See KubeApi."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        given = {"uid": uid, "resourceVersion": resource_version}
        if conditions := {key: value for key, value in given.items() if value}:
            options["preconditions"] = conditions
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        await self._call("DELETE", _object_path(BY_STRUCT[kind], namespace, name), _encode(options))

    # --- RawApi ------------------------------------------------------------------------------------------------------

    async def get_raw(self, resource: Resource, namespace: str, name: str) -> bytes:
        """See RawApi."""
        return await self._call("GET", _object_path(resource, namespace, name))

    async def create_raw(self, resource: Resource, namespace: str, data: dict[str, Any]) -> bytes:
        """See RawApi."""
        path = collection_path(resource, _home(resource, namespace))
        return await self._call("POST", path, _encode(data), params=_STRICT)

    async def update_raw(
        self, resource: Resource, namespace: str, name: str, data: dict[str, Any], subresource: str = ""
    ) -> bytes:
        """See RawApi."""
        path = _object_path(resource, namespace, name, subresource)
        return await self._call("PUT", path, _encode(data), params=_STRICT)

    # --- carrying ----------------------------------------------------------------------------------------------------

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise ApiUnavailable("the client is closed")
        return self._session

    def _headers(self) -> dict[str, str]:
        authorization = self._access.authorization()
        return {"Authorization": authorization} if authorization else {}

    async def _call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        content_type: str = _JSON,
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        await self._throttle.pass_()
        try:
            headers = self._headers()
            if body:
                headers["Content-Type"] = content_type
            async with self._opened().request(
                method, self._access.server + path, data=body or None, params=params, headers=headers
            ) as response:
                answer = await response.read()
                if response.status >= 400:
                    raise _refusal(response.status, answer)
                return answer
        except _TROUBLE as error:
            raise ApiUnavailable(f"{self._access.server}: {_text(error)}") from error

    def _decode(self, kind: type[T], body: bytes) -> T:
        decoder = self._objects.get(kind)
        if decoder is None:
            decoder = self._objects[kind] = msgspec.json.Decoder(kind)
        try:
            value: T = decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise ApiUnavailable(f"{self._access.server} did not answer with a {kind.__name__}: {error}") from error
        return value

    def _event(self, kind: type[T], line: bytes) -> WatchEvent[T]:
        try:
            event = _event_decoder.decode(line)
            if event.type == "ERROR":
                status = _status_decoder.decode(event.object)
                raise _api_error(status.code or 500, status)
            if event.type == "BOOKMARK":
                # Real servers send the rest of the object with nulls that no object has: "containers": null.
                meta = _bookmark_decoder.decode(event.object).metadata
                return WatchEvent(
                    EventType.BOOKMARK, kind(metadata=objects.ObjectMeta(resource_version=meta.resource_version))
                )
            return WatchEvent(EventType(event.type), self._decode(kind, bytes(event.object)))
        except (msgspec.MsgspecError, ValueError) as error:
            raise ApiUnavailable(f"{self._access.server} sent no watch event: {error}") from error


_STRICT = {"fieldValidation": "Strict"}
_TROUBLE = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _refusal(code: int, body: bytes) -> ApiError:
    try:
        status = _status_decoder.decode(body)
    except msgspec.MsgspecError:
        # Not from an API server, but from something before it.
        status = _Status()
    if status.kind != "Status":
        status = _Status(message=body[:200].decode("utf-8", "replace").strip() or f"HTTP status {code}")
    return _api_error(code, status)


def _api_error(code: int, status: _Status) -> ApiError:
    causes = (status.details.causes or ()) if status.details is not None else ()
    return ApiError(code, status.reason, status.message, tuple((cause.field, cause.message) for cause in causes))


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Iterate over lines of any length (aiohttp's own readline has a limit)."""
    rest = b""
    async for chunk in content.iter_any():
        rest += chunk
        if b"\n" not in chunk:
            continue
        *complete, rest = rest.split(b"\n")
        for line in complete:
            if line:
                yield line


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in given.items() if value}


def _home(resource: Resource, namespace: str) -> str:
    return (namespace or "default") if resource.namespaced else ""


def collection_path(resource: Resource, namespace: str) -> str:
    """Return the path of the objects of a resource: in one namespace, or in all if it is empty."""
    if resource.namespaced and namespace:
        return f"{resource.base_path}/namespaces/{quote(namespace, safe='')}/{resource.plural}"
    return f"{resource.base_path}/{resource.plural}"


def _object_path(resource: Resource, namespace: str, name: str, subresource: str = "") -> str:
    path = f"{collection_path(resource, _home(resource, namespace))}/{quote(name, safe='')}"
    return f"{path}/{subresource}" if subresource else path
