"""What can be asked of the stored objects: one of them, lists, watches. Nothing here changes anything."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime

import msgspec

from earmark.apiserver import errors
from earmark.apiserver.history import RawEvent, Stored, Watch
from earmark.apiserver.holdings import Holdings
from earmark.apiserver.results import Page
from earmark.apiserver.selecting import parse_version, read_token, selection, write_token
from earmark.apiserver.storage import Store
from earmark.apiserver.strategies.base import Data, Strategy
from earmark.apiserver.strategies.table import strategies
from earmark.kube.clock import Clock
from earmark.kube.resources import Resource

_decode = msgspec.json.Decoder().decode


class StoredObjects:
    """The objects of a store, to be read."""

    def __init__(self, store: Store, clock: Clock, history_length: int) -> None:
        self._clock = clock
        self._strategies: dict[str, Strategy] = strategies()
        self._store = store
        self._held = Holdings(store, history_length)
        self._tables = self._held.tables

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The newest revision, durable or not."""
        return self._held.revision

    @property
    def visible_revision(self) -> int:
        """The newest durable revision."""
        return self._held.visible

    def durable(self, revision: int) -> Awaitable[None]:
        """Return an awaitable that ends once a revision is durable."""
        return self._store.durable(revision)

    def strategy(self, resource: Resource) -> Strategy:
        """Return the rules of a resource."""
        return self._strategies[resource.kind]

    def count(self, resource: Resource) -> int:
        """Return how many objects of a resource there are."""
        return len(self._tables[resource.kind].objects)

    def lookup(self, kind: str, namespace: str, name: str) -> Data | None:
        """Return a copy of an object's data."""
        stored = self._tables[kind].objects.get((namespace, name))
        return None if stored is None else _decode(stored.body)

    def all(self, kind: str) -> Sequence[Data]:
        """Return copies of the data of all objects of a kind."""
        table = self._tables[kind]
        return [_decode(table.objects[key].body) for key in table.sorted_keys()]

    def now(self) -> datetime:
        """Return the time."""
        return self._clock.now().astimezone(UTC)

    def compact(self, keep: int = 0) -> None:
        """Forget all but the newest `keep` changes of each resource: older watches get 410."""
        for table in self._tables.values():
            table.history.compact(keep)

    # --- reading -----------------------------------------------------------------------------------------------------

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        """Return an object."""
        stored = self._tables[resource.kind].objects.get((namespace, name))
        if stored is None:
            raise errors.not_found(resource, name)
        return stored

    def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> Page:
        """Return objects sorted by namespace and name, `limit` at most (0: all).

        Later pages show the objects as they are then; their revision is that of the first page, so that a watch from it
        misses nothing.
        """
        table = self._tables[resource.kind]
        selects = selection(self._strategies[resource.kind], namespace, label_selector, field_selector)
        # A namespace's keys are cut out of all, so that a small one in a large cluster is listed quickly.
        keys = table.keys_in(namespace)
        revision, start = self._held.revision, 0
        if continue_token:
            revision, after = read_token(continue_token)
            if revision > self._held.revision or revision < table.history.compacted:
                raise errors.expired(revision, table.history.compacted)
            start = bisect_right(keys, after)
        items: list[bytes] = []
        last = ("", "")
        for index in range(start, len(keys)):
            stored = table.objects[keys[index]]
            if selects is not None and not selects(stored):
                continue
            if limit and len(items) == limit:
                # With selectors Kubernetes does not say how many are left, which would read everything for each page.
                rest = 0 if label_selector or field_selector else len(keys) - index
                return Page(items, revision, write_token(revision, last), rest)
            items.append(stored.body)
            last = keys[index]
        return Page(items, revision)

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> Watch:
        """Return a watch of the changes after a version.

        Without a version, or with "0", it begins with an ADDED event for each object that exists. A version that is
        forgotten, or that this store never had, is 410.
        """
        table = self._tables[resource.kind]
        selects = selection(self._strategies[resource.kind], namespace, label_selector, field_selector)
        initial: list[RawEvent] = []
        if resource_version in ("", "0"):
            for stored in self._held.visible_objects(table):
                if selects is None or selects(stored):
                    initial.append(RawEvent("ADDED", stored.revision, stored.body))
            position = table.history.end
        else:
            revision = parse_version(resource_version)
            if revision > self._held.revision:
                raise errors.expired(revision, self._held.revision)
            position = table.history.position_after(revision)
        return Watch(table.history, position, selects, initial, lambda: self._held.visible)
