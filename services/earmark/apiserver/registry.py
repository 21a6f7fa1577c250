"""The API without a transport: its verbs on JSON data, against objects in memory and a store behind them.

Nothing here waits: a write returns a revision, and whoever answers a client first awaits `durable(revision)`. Time and
ids are passed in. Every refusal is a StatusError.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from earmark.apiserver import errors
from earmark.apiserver.errors import StatusError
from earmark.apiserver.faults import Faults
from earmark.apiserver.history import DEFAULT_LENGTH, Entry, History, RawEvent, Selection, Stored, Watch
from earmark.apiserver.metadata import stamp_new, validate_metadata
from earmark.apiserver.patches import json_patch, merge_patch, strategic_patch
from earmark.apiserver.schema import Schema, SchemaError, kubernetes
from earmark.apiserver.storage import Change, Store
from earmark.apiserver.strategies.base import Data, Strategy, validate_metadata_update
from earmark.apiserver.strategies.table import strategies
from earmark.kube.api import PatchType
from earmark.kube.clock import Clock
from earmark.kube.resources import BY_KIND, RESOURCES, Resource
from earmark.kube.selectors import (
    SelectorError,
    field_selector_matches,
    label_selector_matches,
    parse_field_selector,
    parse_label_selector,
)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write is done: `dry_run` changes nothing, `strict` refuses unknown fields instead of dropping them."""

    dry_run: bool = False
    strict: bool = False
    warnings: list[str] | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How a deletion is done; `grace_seconds` None takes the object's own."""

    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write: the object's text, and the revision that must be durable before it is told."""

    body: bytes
    revision: int
    created: bool = False


@dataclass(frozen=True, slots=True)
class Deleted:
    """The outcome of a deletion: `removed` says whether the object is gone (else it is terminating)."""

    body: bytes
    revision: int
    removed: bool
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: `continue_token` is empty on the last page."""

    items: list[bytes]
    revision: int
    continue_token: str = ""
    remaining: int = 0


class _Table:
    """The objects of one resource."""

    def __init__(self, resource: Resource, compacted: int, history_length: int) -> None:
        self.resource = resource
        self.objects: dict[tuple[str, str], Stored] = {}
        self.history = History(compacted, history_length)
        self._keys: list[tuple[str, str]] | None = None

    def put(self, stored: Stored) -> None:
        key = (stored.namespace, stored.name)
        if key not in self.objects:
            self._keys = None
        self.objects[key] = stored

    def remove(self, key: tuple[str, str]) -> None:
        del self.objects[key]
        self._keys = None

    def sorted_keys(self) -> list[tuple[str, str]]:
        if self._keys is None:
            self._keys = sorted(self.objects)
        return self._keys


class Registry:
    """All served objects."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        new_uid: Callable[[], str],
        *,
        below: Callable[[int], int] | None = None,
        history_length: int = DEFAULT_LENGTH,
    ) -> None:
        """Load the store.

        `new_uid` gives the UIDs of new objects; `below(n)` a random int in [0, n) for generated names (by default they
        are made from a fresh UID). `history_length` is how many changes of each resource watches can still be given.
        """
        self.faults = Faults()
        self.schema: Schema = kubernetes()
        self._clock = clock
        self._new_uid = new_uid
        self._below = below
        self._strategies: dict[str, Strategy] = strategies()
        self._store = store
        self._revision, records = store.load()
        self._visible = self._revision
        self._pending: deque[tuple[_Table, Entry]] = deque()
        self._tables = {
            resource.kind: _Table(resource, self._revision, history_length) for resource in RESOURCES
        }  # fmt: skip
        for record in records:
            self._tables[record.kind].put(Stored(record.namespace, record.name, record.revision, record.body))
        store.on_durable(self._publish)
        self._bootstrap()

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The newest revision, durable or not."""
        return self._revision

    @property
    def visible_revision(self) -> int:
        """The newest durable revision."""
        return self._visible

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

    def _bootstrap(self) -> None:
        """Create what a cluster has from the start."""
        for namespace in ("default", "kube-system"):
            if (("", namespace)) not in self._tables["Namespace"].objects:
                self.create(BY_KIND["Namespace"], "", {"metadata": {"name": namespace}})
        for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)):
            if ("", name) not in self._tables["PriorityClass"].objects:
                self.create(BY_KIND["PriorityClass"], "", {"metadata": {"name": name}, "value": value})

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
        selection = self._selection(resource, namespace, label_selector, field_selector)
        keys = table.sorted_keys()
        revision, start = self._revision, 0
        if continue_token:
            revision, after = _read_token(continue_token)
            if revision > self._revision or revision < table.history.compacted:
                raise errors.expired(revision, table.history.compacted)
            start = bisect_right(keys, after)
        items: list[bytes] = []
        last = ("", "")
        for index in range(start, len(keys)):
            stored = table.objects[keys[index]]
            if selection is not None and not selection(stored):
                continue
            if limit and len(items) == limit:
                rest = sum(
                    1 for key in keys[index:] if selection is None or selection(table.objects[key])
                )  # fmt: skip
                return Page(items, revision, _write_token(revision, last), rest)
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
        selection = self._selection(resource, namespace, label_selector, field_selector)
        initial: list[RawEvent] = []
        if resource_version in ("", "0"):
            for stored in self._visible_objects(table):
                if selection is None or selection(stored):
                    initial.append(RawEvent("ADDED", stored.revision, stored.body))
            position = table.history.end
        else:
            revision = parse_version(resource_version)
            if revision > self._revision:
                raise errors.expired(revision, self._revision)
            position = table.history.position_after(revision)
        return Watch(table.history, position, selection, initial, lambda: self._visible)

    def _visible_objects(self, table: _Table) -> Sequence[Stored]:
        """Return the durable states: what is not durable yet is told by events."""
        states: dict[tuple[str, str], Stored | None] = dict(table.objects)
        for other, entry in reversed(self._pending):
            if other is table:
                states[(entry.newest.namespace, entry.newest.name)] = entry.before
        return [state for key in sorted(states) if (state := states[key]) is not None]

    def _selection(
        self, resource: Resource, namespace: str, label_selector: str, field_selector: str
    ) -> Selection | None:
        try:
            labels = parse_label_selector(label_selector) if label_selector else None
            fields = parse_field_selector(field_selector) if field_selector else ()
        except SelectorError as error:
            raise errors.bad_request(str(error)) from error
        strategy = self._strategies[resource.kind]
        names = tuple(item for item in fields if item[0] in ("metadata.name", "metadata.namespace"))
        others = tuple(item for item in fields if item not in names)
        for name, _, _ in others:
            if strategy.field({"metadata": {}}, name) is None:
                raise errors.bad_request(f"field label not supported: {name}")
        if not namespace and labels is None and not fields:
            return None

        def select(stored: Stored) -> bool:
            if namespace and stored.namespace != namespace:
                return False
            # Names need no decoding, and are what most watches of one object ask for.
            if names and not field_selector_matches(
                names, lambda name: stored.name if name == "metadata.name" else stored.namespace
            ):
                return False
            if labels is None and not others:
                return True
            data = _decode(stored.body)
            if labels is not None and not label_selector_matches(labels, data["metadata"].get("labels", {})):
                return False
            return field_selector_matches(others, lambda name: strategy.field(data, name) or "")

        return select

    # --- writing -----------------------------------------------------------------------------------------------------

    def create(
        self, resource: Resource, namespace: str, data: Any, options: WriteOptions = WriteOptions()
    ) -> Written:  # fmt: skip
        """Create an object."""
        strategy = self._strategies[resource.kind]
        data = self.read(resource, data, options)
        meta = data["metadata"]
        self._check_namespace(resource, namespace, meta)
        stamp_new(data, resource, namespace, self._new_uid(), self.now(), self._suffix)
        if meta.pop("resourceVersion", "") not in ("", "0"):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        strategy.prepare_create(data, self)
        if strategy.tracks_generation:
            meta["generation"] = 1
        else:
            meta.pop("generation", None)
        name = meta.get("name", "")
        causes = validate_metadata(data, resource, strategy)
        causes += strategy.validate(data, self)
        if causes:
            raise errors.invalid_object(resource, name, causes)
        if (namespace, name) in self._tables[resource.kind].objects:
            raise errors.already_exists(resource, name)
        return replace(self._commit(resource, data, None, options), created=True)

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        data: Any,
        *,
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Written:
        """Replace an object, or its status."""
        stored = self.get(resource, namespace, name)
        new = self.read(resource, data, options)
        strategy = self._strategies[resource.kind]
        if strategy.needs_version and not new["metadata"].get("resourceVersion"):
            cause = errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid_object(resource, name, [cause])
        return self._replace(resource, stored, new, subresource, options)

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: PatchType,
        *,
        subresource: str = "",
        options: WriteOptions = WriteOptions(),
    ) -> Written:
        """Change an object, or its status, by a patch."""
        stored = self.get(resource, namespace, name)
        old = _decode(stored.body)
        if patch_type is PatchType.JSON:
            new = json_patch(old, patch)
        elif patch_type is PatchType.MERGE:
            if not isinstance(patch, dict):
                raise errors.bad_request("error decoding patch: a merge patch is an object")
            new = merge_patch(old, patch)
        else:
            new = strategic_patch(self.schema, self.schema.roots[resource.kind], old, patch)
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            cause = errors.invalid("metadata", None, "an object needs its metadata")
            raise errors.invalid_object(resource, name, [cause])
        try:
            new = self.read(resource, new, options)
        except StatusError as error:
            if error.code == 400 and not error.message.startswith("strict"):
                cause = errors.Cause("FieldValueInvalid", error.message, "patch")
                raise errors.invalid_object(resource, name, [cause]) from error
            raise
        return self._replace(resource, stored, new, subresource, options)

    def bind(
        self, namespace: str, name: str, data: Any, options: WriteOptions = WriteOptions()
    ) -> Written:  # fmt: skip
        """Bind a pod to the node of a Binding."""
        resource = BY_KIND["Pod"]
        binding = self.read_as("Binding", data, options)
        target = binding.get("target", {})
        causes = []
        if target.get("kind", "") not in ("", "Node"):
            causes.append(errors.not_supported("target.kind", target["kind"], ("Node", "<empty>")))
        if not target.get("name"):
            causes.append(errors.required("target.name"))
        if causes:
            raise errors.invalid_object(replace(resource, kind="Binding"), name, causes)
        stored = self.get(resource, namespace, name)
        pod = _decode(stored.body)
        meta, given = pod["metadata"], binding.get("metadata", {})
        self._check_preconditions(resource, stored, meta, given.get("uid", ""), given.get("resourceVersion", ""))
        if "deletionTimestamp" in meta:
            raise errors.conflict(resource, name, f"pod {name} is being deleted, cannot be assigned to a host")
        if node := pod["spec"].get("nodeName"):
            raise errors.conflict(resource, name, f'pod {name} is already assigned to node "{node}"')
        if pod["spec"].get("schedulingGates"):
            raise errors.conflict(resource, name, f"pod {name} has non-empty .spec.schedulingGates")
        pod["spec"]["nodeName"] = target["name"]
        for key in ("annotations", "labels"):
            if given.get(key):
                meta[key] = {**meta.get(key, {}), **given[key]}
        status = pod.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        _set_condition(
            status, {"type": "PodScheduled", "status": "True", "lastTransitionTime": time_text(self.now())}
        )  # fmt: skip
        return self._commit(resource, pod, stored, options)

    def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions = DeleteOptions()
    ) -> Deleted:  # fmt: skip
        """Delete an object: remove it, or mark it where a grace period or finalizers keep it."""
        stored = self.get(resource, namespace, name)
        data = _decode(stored.body)
        meta = data["metadata"]
        strategy = self._strategies[resource.kind]
        self._check_preconditions(resource, stored, meta, options.uid, options.resource_version)
        if reason := strategy.may_delete(data):
            raise errors.refused(resource, name, reason)
        if options.grace_seconds is not None and options.grace_seconds < 0:
            # Kubernetes takes a negative period as one second.
            options = replace(options, grace_seconds=1)
        grace = strategy.grace_seconds(data, options.grace_seconds)
        write = WriteOptions(dry_run=options.dry_run)
        if resource.kind == "Namespace" and not options.dry_run:
            return self._delete_namespace(stored, data)
        if "deletionTimestamp" in meta:
            before = meta.get("deletionGracePeriodSeconds", 0)
            if grace >= before and not (grace == 0 and before == 0):
                return Deleted(stored.body, stored.revision, False, name, meta["uid"])
            begun = datetime.fromisoformat(meta["deletionTimestamp"]) - timedelta(seconds=before)
            meta["deletionTimestamp"] = time_text(begun + timedelta(seconds=grace))
        else:
            meta["deletionTimestamp"] = time_text(self.now() + timedelta(seconds=grace))
            if "generation" in meta:
                meta["generation"] += 1
        meta["deletionGracePeriodSeconds"] = grace
        if grace == 0 and not meta.get("finalizers"):
            # What is removed is told as it was, not as terminating.
            return self._remove(resource, stored, _decode(stored.body), options.dry_run)
        written = self._commit(resource, data, stored, write)
        return Deleted(written.body, written.revision, False, name, meta["uid"])

    # --- parts of writes ---------------------------------------------------------------------------------------------

    def read(self, resource: Resource, data: Any, options: WriteOptions) -> Data:
        """Check that data is an object of the resource, and return its normal form."""
        if not isinstance(data, dict):
            raise errors.bad_request(f"the body of the request is not a {resource.kind}")
        for key, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
            given = data.get(key, "")
            if given not in ("", None, wanted):
                raise errors.bad_request(
                    f"{resource.kind} in version {resource.api_version!r} cannot be handled: the object provided "
                    f"has the {key} {given!r}, expected {wanted!r}"
                )
        normal = self.read_as(resource.kind, data, options)
        normal.pop("apiVersion", None)
        normal.pop("kind", None)
        metadata = normal.pop("metadata", None) or {}
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **normal}

    def read_as(self, kind: str, data: Any, options: WriteOptions) -> Data:
        """Return the normal form of data as a kind of the schema."""
        try:
            normal, unknown = self.schema.read(kind, data)
        except SchemaError as error:
            where = f"{error.field}: " if error.field else ""
            raise StatusError(
                400,
                "BadRequest",
                f"{kind} cannot be handled: json: {where}{error.message}",
                causes=[errors.Cause("FieldValueTypeInvalid", error.message, error.field)],
            ) from error
        if unknown:
            texts = [f'unknown field "{path}"' for path in unknown]
            if options.strict:
                raise StatusError(
                    400,
                    "BadRequest",
                    f"strict decoding error: {', '.join(texts)}",
                    causes=[errors.Cause("FieldValueNotSupported", "unknown field", path) for path in unknown],
                )
            if options.warnings is not None:
                options.warnings.extend(texts)
        assert isinstance(normal, dict)
        return normal

    def _check_namespace(self, resource: Resource, namespace: str, meta: Data) -> None:
        given = meta.get("namespace", "")
        if not resource.namespaced:
            if given:
                cause = errors.forbidden("metadata.namespace", "not allowed on this type")
                raise errors.invalid_object(resource, meta.get("name", ""), [cause])
            return
        if given and given != namespace:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        home = self._tables["Namespace"].objects.get(("", namespace))
        if home is None:
            raise errors.not_found(BY_KIND["Namespace"], namespace)
        if b'"deletionTimestamp"' in home.body and "deletionTimestamp" in _decode(home.body)["metadata"]:
            name = meta.get("name", "")
            raise errors.refused(
                resource, name, f"unable to create new content in namespace {namespace} because it is being terminated"
            )

    def _suffix(self, alphabet: str, length: int) -> str:
        if self._below is not None:
            return "".join(alphabet[self._below(len(alphabet))] for _ in range(length))
        number, text = int(self._new_uid().replace("-", ""), 16), ""
        for _ in range(length):
            number, digit = divmod(number, len(alphabet))
            text += alphabet[digit]
        return text

    def _check_preconditions(self, resource: Resource, stored: Stored, meta: Data, uid: str, version: str) -> None:
        if uid and uid != meta["uid"]:
            detail = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
            raise errors.conflict(resource, stored.name, detail)
        if version and version != "0" and parse_version(version) != stored.revision:
            raise errors.conflict(resource, stored.name, errors.MODIFIED)

    def _replace(
        self, resource: Resource, stored: Stored, new: Data, subresource: str, options: WriteOptions
    ) -> Written:
        old = _decode(stored.body)
        meta, before = new["metadata"], old["metadata"]
        strategy = self._strategies[resource.kind]
        for key in ("name", "namespace"):
            if meta.setdefault(key, before.get(key, "")) != before.get(key, ""):
                raise errors.bad_request(
                    f"the {key} of the object ({meta[key]}) does not match the {key} on the URL ({before.get(key, '')})"
                )
        if not resource.namespaced:
            del meta["namespace"]
        self._check_preconditions(resource, stored, before, meta.get("uid", ""), meta.get("resourceVersion", ""))
        for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
                    "selfLink", "resourceVersion", "generateName"):  # fmt: skip
            if key in before:
                meta[key] = before[key]
            else:
                meta.pop(key, None)
        causes = []
        if subresource == "status":
            strategy.prepare_status(new, old, self)
            causes += validate_metadata_update(new, old)
            causes += strategy.validate_status(new, old, self)
        else:
            strategy.prepare_update(new, old, self)
            causes += validate_metadata(new, resource, strategy)
            causes += validate_metadata_update(new, old)
            causes += strategy.validate_update(new, old, self)
            if strategy.tracks_generation and _content(new) != _content(old):
                meta["generation"] = before.get("generation", 0) + 1
        if causes:
            raise errors.invalid_object(resource, stored.name, causes)
        if new == old:
            return Written(stored.body, stored.revision)
        kept = new["metadata"]
        if (
            "deletionTimestamp" in kept
            and not kept.get("finalizers")
            and not kept.get("deletionGracePeriodSeconds")
        ):  # fmt: skip
            deleted = self._remove(resource, stored, new, options.dry_run)
            return Written(deleted.body, deleted.revision)
        return self._commit(resource, new, stored, options)

    def _commit(self, resource: Resource, data: Data, before: Stored | None, options: WriteOptions) -> Written:
        revision = self._revision + 1
        meta = data["metadata"]
        # The version stands where Kubernetes has it, after the name.
        meta["resourceVersion"] = str(revision)
        body = _encode(data)
        if options.dry_run:
            if before is not None:
                meta["resourceVersion"] = str(before.revision)
            else:
                del meta["resourceVersion"]
            return Written(_encode(data), self._revision)
        self._revision = revision
        stored = Stored(meta.get("namespace", ""), meta["name"], revision, body)
        table = self._tables[resource.kind]
        table.put(stored)
        self._append(table, Entry(revision, before, stored), body)
        return Written(body, revision)

    def _remove(self, resource: Resource, stored: Stored, data: Data, dry_run: bool) -> Deleted:
        uid = data["metadata"]["uid"]
        if dry_run:
            return Deleted(stored.body, self._revision, True, stored.name, uid)
        self._revision += 1
        revision = self._revision
        data["metadata"]["resourceVersion"] = str(revision)
        gone = Stored(stored.namespace, stored.name, revision, _encode(data))
        table = self._tables[resource.kind]
        table.remove((stored.namespace, stored.name))
        self._append(table, Entry(revision, stored, None, gone), None)
        if stored.namespace:
            self._finish_namespace(stored.namespace)
        return Deleted(gone.body, self._revision, True, stored.name, uid)

    def _append(self, table: _Table, entry: Entry, body: bytes | None) -> None:
        self._pending.append((table, entry))
        state = entry.newest
        self._store.append(Change(table.resource.kind, state.namespace, state.name, entry.revision, body))

    def _publish(self, revision: int) -> None:
        """Show watchers what has become durable."""
        self._visible = max(self._visible, revision)
        pending = self._pending
        while pending and pending[0][1].revision <= revision:
            table, entry = pending.popleft()
            table.history.append(entry)

    # --- namespaces --------------------------------------------------------------------------------------------------

    def _delete_namespace(self, stored: Stored, data: Data) -> Deleted:
        """Mark a namespace, delete what it holds, and remove it once it is empty."""
        resource = BY_KIND["Namespace"]
        meta = data["metadata"]
        if "deletionTimestamp" not in meta:
            meta["deletionTimestamp"] = time_text(self.now())
            data["status"] = {**data.get("status", {}), "phase": "Terminating"}
            self._commit(resource, data, stored, WriteOptions())
        for kind, table in self._tables.items():
            if BY_KIND[kind].namespaced:
                for namespace, name in [key for key in table.sorted_keys() if key[0] == stored.name]:
                    self.delete(BY_KIND[kind], namespace, name)
        self._finish_namespace(stored.name)
        left = self._tables["Namespace"].objects.get(("", stored.name))
        body = stored.body if left is None else left.body
        return Deleted(body, self._revision, left is None, stored.name, meta["uid"])

    def _finish_namespace(self, name: str) -> None:
        home = self._tables["Namespace"].objects.get(("", name))
        if home is None or b'"deletionTimestamp"' not in home.body:
            return
        data = _decode(home.body)
        if "deletionTimestamp" not in data["metadata"] or data["metadata"].get("finalizers"):
            return
        if not any(key[0] == name for table in self._tables.values() for key in table.objects):
            self._remove(BY_KIND["Namespace"], home, data, False)


def _content(data: Data) -> Data:
    return {key: value for key, value in data.items() if key not in ("metadata", "status")}


def _set_condition(status: Data, condition: Data) -> None:
    conditions = [item for item in status.get("conditions", ()) if item.get("type") != condition["type"]]
    status["conditions"] = [*conditions, condition]


def time_text(moment: datetime) -> str:
    """Return a time as metadata has it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def parse_version(text: str) -> int:
    """Read a resourceVersion; raises StatusError 400 for what is none."""
    if not (text.isascii() and text.isdigit()) or len(text) > 20:
        raise errors.bad_request(f"Invalid value: {text!r}: resourceVersion is not a number")
    return int(text)


def _write_token(revision: int, last: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(_encode([revision, last[0], last[1]])).decode("ascii").rstrip("=")


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        revision, namespace, name = msgspec.json.decode(
            base64.urlsafe_b64decode(padded), type=tuple[int, str, str]
        )  # fmt: skip
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise errors.bad_request("continue key is not valid") from error
    return revision, (namespace, name)
