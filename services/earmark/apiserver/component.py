"""Composes the embedded API: store, registry, identity, HTTPS server."""

from __future__ import annotations

import asyncio
import functools
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from prometheus_client import Gauge

from earmark.apiserver.access import Guard, ensure_token, kubeconfig
from earmark.apiserver.app import ApiApplication
from earmark.apiserver.errors import StatusError
from earmark.apiserver.registry import Registry
from earmark.apiserver.serving import HttpsServer, listen
from earmark.apiserver.settings import ApiServerSettings
from earmark.apiserver.sqlite import SqliteStore
from earmark.apiserver.storage import StoreError
from earmark.apiserver.tls import ensure_identity, write_private
from earmark.cel.devices import selector_problem
from earmark.kube.resources import BY_KIND, RESOURCES, Resource
from earmark.runtime.component import Environment, Server
from earmark.runtime.settings import SettingsError

STORE_NAME = "store.db"
EXPIRY_SECONDS = 60.0

_log = logging.getLogger(__name__)


class ApiServerComponent:
    """The embedded Kubernetes API as a component. It has no RPCs of its own; health is the runtime's."""

    name = "apiserver"

    def __init__(self, settings: ApiServerSettings, env: Environment, state: Path, kubeconfig_path: Path) -> None:
        self._settings = settings
        self._env = env
        self._data = state / settings.data_dir
        self._token_file = state / settings.token_file if settings.token_file else self._data / "token"
        self._kubeconfig = state / settings.kubeconfig if settings.kubeconfig else kubeconfig_path
        self._store: SqliteStore | None = None
        self._server: HttpsServer | None = None
        self._serving: asyncio.Task[None] | None = None
        self._failed: asyncio.Future[None] | None = None

    def register(self, server: Server) -> None:
        """Nothing: clients speak HTTPS."""

    async def start(self) -> None:
        """Open the store, listen, and write the kubeconfig.

        Raises SettingsError where folder, store, token or address cannot be used.
        """
        settings, env = self._settings, self._env
        try:
            self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
            token = ensure_token(self._token_file)
            identity = ensure_identity(
                self._data / "pki", ("localhost", "127.0.0.1", "::1", *_extra(settings.host)), env.clock.now()
            )
            self._store = SqliteStore(self._data / STORE_NAME, synchronous=settings.synchronous)
            bound = listen(settings.host, settings.port, self._data / "port")
        except (StoreError, OSError, ValueError) as error:
            await self._close_store()
            text = error if isinstance(error, StoreError) else f"{self._data}: {error}"
            raise SettingsError(str(text)) from error
        self._failed = asyncio.get_running_loop().create_future()
        self._store.on_failure(self._store_failed)
        registry = Registry(
            self._store,
            env.clock,
            env.ids.uuid,
            below=env.ids.below,
            history_length=settings.watch_history,
            selector_problem=selector_problem,
        )
        await registry.durable(registry.revision)
        count = Gauge("earmark_apiserver_objects", "Stored objects.", ("kind",), registry=env.metrics)
        for resource in RESOURCES:
            count.labels(resource.kind).set_function(functools.partial(_count, registry, resource))
        self._server = HttpsServer(ApiApplication(registry, env.clock, Guard(token)), bound, identity)
        self._serving = env.tasks.spawn(self._server.run(), "apiserver https")
        env.tasks.spawn(self._end_with_store(), "apiserver store")
        env.tasks.spawn(self._expire_events(registry), "apiserver event expiry")
        host, port = bound.getsockname()[:2]
        address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._kubeconfig.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._kubeconfig, kubeconfig(address, identity.ca_pem, token).encode())
        _log.info("the API listens on %s; kubeconfig: %s", address, self._kubeconfig)

    def ready(self) -> bool:
        """Whether requests are answered."""
        return self._server is not None and self._server.started

    async def stop(self) -> None:
        """Let calls in flight finish, and close the store."""
        if self._server is not None and self._serving is not None:
            self._server.stop()
            await asyncio.wait((self._serving,))
        await self._close_store()

    async def _close_store(self) -> None:
        if self._store is not None:
            store, self._store = self._store, None
            await store.close()

    def _store_failed(self, error: StoreError) -> None:
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def _end_with_store(self) -> None:
        """Make the process end when the store fails: memory then holds what was never kept."""
        assert self._failed is not None
        await self._failed

    async def _expire_events(self, registry: Registry) -> None:
        resource = BY_KIND["Event"]
        while True:
            await self._env.clock.sleep(EXPIRY_SECONDS)
            limit = registry.now() - timedelta(seconds=self._settings.event_seconds)
            for body in registry.list(resource).items:
                meta = msgspec.json.decode(body)["metadata"]
                if _older(meta["creationTimestamp"], limit):
                    try:
                        registry.delete(resource, meta["namespace"], meta["name"])
                    except StatusError as error:
                        _log.warning("an event could not be expired: %s", error)


def _count(registry: Registry, resource: Resource) -> float:
    return float(registry.count(resource))


def _older(text: str, limit: datetime) -> bool:
    return datetime.fromisoformat(text).astimezone(UTC) < limit


def _extra(host: str) -> tuple[str, ...]:
    return () if host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::") else (host,)


def build(settings: ApiServerSettings, env: Environment, state: Path, kubeconfig_path: Path) -> ApiServerComponent:
    """Compose the API; nothing runs before start()."""
    return ApiServerComponent(settings, env, state, kubeconfig_path)
