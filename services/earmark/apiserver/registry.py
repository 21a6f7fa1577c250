"""The API without a transport: its verbs on JSON data, against objects in memory and a store behind them.

Nothing here waits: a write returns a revision, and whoever answers a client first awaits `durable(revision)`. Time and
ids are passed in. Every refusal is a StatusError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from earmark.apiserver import errors, ownership
from earmark.apiserver.errors import StatusError
from earmark.apiserver.faults import Faults
from earmark.apiserver.history import DEFAULT_LENGTH, Stored
from earmark.apiserver.metadata import stamp_new, validate_metadata
from earmark.apiserver.patches import json_patch, merge_patch, strategic_patch
from earmark.apiserver.reading import StoredObjects
from earmark.apiserver.results import PLAIN_DELETE, PLAIN_WRITE, Deleted, DeleteOptions, Page, WriteOptions, Written
from earmark.apiserver.schema import Schema, SchemaError, kubernetes
from earmark.apiserver.selecting import parse_version
from earmark.apiserver.storage import Store
from earmark.apiserver.strategies.base import Data, validate_metadata_update
from earmark.kube.api import PatchType
from earmark.kube.clock import Clock
from earmark.kube.resources import BY_KIND, Resource

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

__all__ = ["DeleteOptions", "Deleted", "Page", "Registry", "WriteOptions", "Written", "time_text"]


class Registry(StoredObjects):
    """All served objects, to be read and written."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        new_uid: Callable[[], str],
        *,
        below: Callable[[int], int] | None = None,
        history_length: int = DEFAULT_LENGTH,
        selector_problem: Callable[[str], str] = lambda expression: "",
    ) -> None:
        """Load the store.

        `new_uid` gives the UIDs of new objects; `below(n)` a random int in [0, n) for generated names (by default they
        are made from a fresh UID). `history_length` is how many changes of each resource watches can still be given.
        `selector_problem` says why a device selector is refused ("": it is not); by default none is.
        """
        super().__init__(store, clock, history_length)
        self.faults = Faults()
        self.schema: Schema = kubernetes()
        self._new_uid = new_uid
        self._below = below
        self._selector_problem = selector_problem
        self._bootstrap()

    def selector_problem(self, expression: str) -> str:
        """Return why a device selector does not compile; "" if it does."""
        return self._selector_problem(expression)

    def _bootstrap(self) -> None:
        """Create what a cluster has from the start."""
        for namespace in ("default", "kube-system"):
            if ("", namespace) not in self._tables["Namespace"].objects:
                self.create(BY_KIND["Namespace"], "", {"metadata": {"name": namespace}})
        for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)):
            if ("", name) not in self._tables["PriorityClass"].objects:
                self.create(BY_KIND["PriorityClass"], "", {"metadata": {"name": name}, "value": value})

    # --- writing -----------------------------------------------------------------------------------------------------

    def create(self, resource: Resource, namespace: str, data: Any, options: WriteOptions = PLAIN_WRITE) -> Written:
        """Create an object."""
        return self._create(resource, namespace, self.read(resource, data, options), options)

    def _create(self, resource: Resource, namespace: str, data: Data, options: WriteOptions) -> Written:
        strategy = self._strategies[resource.kind]
        meta = data["metadata"]
        owners = meta.pop("managedFields", None) if options.applies else None
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
        if owners is not None:
            meta["managedFields"] = owners
        return replace(self._commit(resource, data, None, options), created=True)

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        data: Any,
        *,
        subresource: str = "",
        options: WriteOptions = PLAIN_WRITE,
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
        options: WriteOptions = PLAIN_WRITE,
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

    def apply(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        data: Any,
        *,
        force: bool = False,
        subresource: str = "",
        options: WriteOptions = PLAIN_WRITE,
    ) -> Written:
        """Apply an object server-side: create it, or merge what is given into it, and own what was given."""
        applied = self.read(resource, data, options)
        meta = applied["metadata"]
        if meta.get("managedFields"):
            raise errors.bad_request("metadata.managedFields must be nil")
        if meta.setdefault("name", name) != name:
            raise errors.bad_request(f"the name of the object ({meta['name']}) is not the name on the URL ({name})")
        for key in [key for key in applied if key not in ("apiVersion", "kind", "metadata")]:
            if self._strategies[resource.kind].has_status and (key == "status") is not (subresource == "status"):
                # Not this path's to write, so not its to own either.
                del applied[key]
        options = replace(options, applies=True)
        how = ownership.Apply(options.manager, subresource, force, resource.api_version, time_text(self.now()))
        type_name = self.schema.roots[resource.kind]
        stored = self._tables[resource.kind].objects.get((namespace, name))
        if stored is None:
            if subresource:
                raise errors.not_found(resource, name)
            if uid := meta.get("uid"):
                raise errors.conflict(
                    resource, name, f"Precondition failed: UID in precondition: {uid}, no such object"
                )
            made = ownership.apply(self.schema, type_name, None, applied, how)
            return self._create(resource, namespace, made, options)
        new = ownership.apply(self.schema, type_name, _decode(stored.body), applied, how)
        # Read once more, because what was given up may leave empty lists and maps behind.
        return self._replace(resource, stored, self.read(resource, new, PLAIN_WRITE), subresource, options)

    def bind(self, namespace: str, name: str, data: Any, options: WriteOptions = PLAIN_WRITE) -> Written:
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

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions = PLAIN_DELETE) -> Deleted:
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
        if data == _decode(stored.body):
            # Deleted again while finalizers keep it: nothing has changed, so nobody is told of a change.
            return Deleted(stored.body, stored.revision, False, name, meta["uid"])
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
        owners = meta.pop("managedFields", None)
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
        kept = new["metadata"]
        kept.pop("managedFields", None)
        if options.applies and owners is not None:
            kept["managedFields"] = owners
        elif "managedFields" in before and owners != [{}]:
            how = ownership.Apply(options.manager, subresource, False, resource.api_version, time_text(self.now()))
            ownership.after_update(self.schema, self.schema.roots[resource.kind], old, new, how)
        if new == old:
            return Written(stored.body, stored.revision)
        if (
            "deletionTimestamp" in kept
            and not kept.get("finalizers")
            and not kept.get("deletionGracePeriodSeconds")
        ):  # fmt: skip
            deleted = self._remove(resource, stored, new, options.dry_run)
            return Written(deleted.body, deleted.revision)
        return self._commit(resource, new, stored, options)

    def _commit(self, resource: Resource, data: Data, before: Stored | None, options: WriteOptions) -> Written:
        revision = self._held.revision + 1
        meta = data["metadata"]
        # The version stands where Kubernetes has it, after the name.
        meta["resourceVersion"] = str(revision)
        body = _encode(data)
        if options.dry_run:
            if before is not None:
                meta["resourceVersion"] = str(before.revision)
            else:
                del meta["resourceVersion"]
            return Written(_encode(data), self._held.revision)
        self._held.put(resource.kind, Stored(meta.get("namespace", ""), meta["name"], revision, body), before)
        return Written(body, revision)

    def _remove(self, resource: Resource, stored: Stored, data: Data, dry_run: bool) -> Deleted:
        uid = data["metadata"]["uid"]
        if dry_run:
            return Deleted(stored.body, self._held.revision, True, stored.name, uid)
        revision = self._held.revision + 1
        data["metadata"]["resourceVersion"] = str(revision)
        gone = Stored(stored.namespace, stored.name, revision, _encode(data))
        self._held.remove(resource.kind, stored, gone)
        if stored.namespace:
            self._finish_namespace(stored.namespace)
        return Deleted(gone.body, self._held.revision, True, stored.name, uid)

    # --- namespaces --------------------------------------------------------------------------------------------------

    def _delete_namespace(self, stored: Stored, data: Data) -> Deleted:
        """Mark a namespace, delete what it holds, and remove it once it is empty."""
        resource = BY_KIND["Namespace"]
        meta = data["metadata"]
        if "deletionTimestamp" not in meta:
            meta["deletionTimestamp"] = time_text(self.now())
            data["status"] = {**data.get("status", {}), "phase": "Terminating"}
            self._commit(resource, data, stored, PLAIN_WRITE)
        for kind, table in self._tables.items():
            if BY_KIND[kind].namespaced:
                for namespace, name in table.keys_in(stored.name):
                    self.delete(BY_KIND[kind], namespace, name)
        self._finish_namespace(stored.name)
        left = self._tables["Namespace"].objects.get(("", stored.name))
        body = stored.body if left is None else left.body
        return Deleted(body, self._held.revision, left is None, stored.name, meta["uid"])

    def _finish_namespace(self, name: str) -> None:
        home = self._tables["Namespace"].objects.get(("", name))
        if home is None or b'"deletionTimestamp"' not in home.body:
            return
        data = _decode(home.body)
        if "deletionTimestamp" not in data["metadata"] or data["metadata"].get("finalizers"):
            return
        if not any(table.has_any(name) for table in self._tables.values()):
            self._remove(BY_KIND["Namespace"], home, data, False)


def _content(data: Data) -> Data:
    return {key: value for key, value in data.items() if key not in ("metadata", "status")}


def _set_condition(status: Data, condition: Data) -> None:
    conditions = [item for item in status.get("conditions", ()) if item.get("type") != condition["type"]]
    status["conditions"] = [*conditions, condition]


def time_text(moment: datetime) -> str:
    """Return a time as metadata has it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)
