"""The objects in memory: a table a resource, the revision, and what waits for the store before anybody may see it."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

from earmark.apiserver.history import Entry, History, Stored
from earmark.apiserver.storage import Change, Store
from earmark.kube.resources import RESOURCES, Resource

Key = tuple[str, str]


class Table:
    """The objects of one resource, by namespace and name."""

    def __init__(self, resource: Resource, compacted: int, history_length: int) -> None:
        self.resource = resource
        self.objects: dict[Key, Stored] = {}
        self.history = History(compacted, history_length)
        self._keys: list[Key] | None = None
        # How many objects each namespace has: asked at every removal from a namespace that ends.
        self._counts: dict[str, int] = {}

    def sorted_keys(self) -> list[Key]:
        """Return all keys in order."""
        if self._keys is None:
            self._keys = sorted(self.objects)
        return self._keys

    def keys_in(self, namespace: str) -> list[Key]:
        """Return the keys of one namespace in order; of all if it is empty."""
        keys = self.sorted_keys()
        if not namespace:
            return keys
        start = bisect_left(keys, (namespace, ""))
        return keys[start : start + self._counts.get(namespace, 0)]

    def has_any(self, namespace: str) -> bool:
        """Whether there is an object in a namespace."""
        return namespace in self._counts

    def put(self, stored: Stored) -> None:
        """Take the new state of an object."""
        key = (stored.namespace, stored.name)
        if key not in self.objects:
            self._keys = None
            self._counts[stored.namespace] = self._counts.get(stored.namespace, 0) + 1
        self.objects[key] = stored

    def remove(self, key: Key) -> None:
        """Forget an object."""
        del self.objects[key]
        self._keys = None
        left = self._counts.pop(key[0]) - 1
        if left:
            self._counts[key[0]] = left


class Holdings:
    """All tables. Changes apply at once; histories (and so watches) get them when they are durable."""

    def __init__(self, store: Store, history_length: int) -> None:
        """Load the store."""
        self.revision, records = store.load()
        self.visible = self.revision
        self._store = store
        self._pending: deque[tuple[Table, Entry]] = deque()
        self.tables = {resource.kind: Table(resource, self.revision, history_length) for resource in RESOURCES}
        for record in records:
            self.tables[record.kind].put(Stored(record.namespace, record.name, record.revision, record.body))
        store.on_durable(self._publish)

    def put(self, kind: str, stored: Stored, before: Stored | None) -> None:
        """Take the new state of an object; its revision becomes the newest."""
        table = self.tables[kind]
        self.revision = stored.revision
        table.put(stored)
        self._append(table, Entry(stored.revision, before, stored), stored.body)

    def remove(self, kind: str, before: Stored, gone: Stored) -> None:
        """Remove an object; `gone` is its last state, at the revision of the removal."""
        table = self.tables[kind]
        self.revision = gone.revision
        table.remove((before.namespace, before.name))
        self._append(table, Entry(gone.revision, before, None, gone), None)

    def _append(self, table: Table, entry: Entry, body: bytes | None) -> None:
        self._pending.append((table, entry))
        state = entry.newest
        self._store.append(Change(table.resource.kind, state.namespace, state.name, entry.revision, body))

    def _publish(self, revision: int) -> None:
        """Show watches what has become durable."""
        self.visible = max(self.visible, revision)
        pending = self._pending
        while pending and pending[0][1].revision <= revision:
            table, entry = pending.popleft()
            table.history.append(entry)

    def visible_objects(self, table: Table) -> Sequence[Stored]:
        """Return the durable states, sorted by key: what is not durable yet is told by events later."""
        states: dict[Key, Stored | None] = dict(table.objects)
        for other, entry in reversed(self._pending):
            if other is table:
                states[(entry.newest.namespace, entry.newest.name)] = entry.before
        return [state for key in sorted(states) if (state := states[key]) is not None]
