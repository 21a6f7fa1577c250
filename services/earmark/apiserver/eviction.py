"""Eviction: a deletion that asks the disruption budgets first.

upstream: pkg/registry/core/pod/storage/eviction.go. A budget keeps the status that it was given (no disruption
controller is emulated); each eviction takes one of the disruptions it allows.
"""

from __future__ import annotations

from typing import Any

import msgspec

from earmark.apiserver import errors
from earmark.apiserver.errors import StatusError
from earmark.apiserver.registry import Registry, time_text
from earmark.apiserver.results import DeleteOptions, WriteOptions, Written
from earmark.apiserver.strategies.base import Data
from earmark.kube import objects
from earmark.kube.api import PatchType
from earmark.kube.resources import BY_KIND
from earmark.kube.selectors import label_selector_matches

_decode = msgspec.json.Decoder().decode


def evict(registry: Registry, namespace: str, name: str, data: Any, options: WriteOptions) -> Written:
    """Evict a pod.

    Raises StatusError: 429 where the pod's budget allows no disruption, 500 (as upstream) where it has two budgets.
    """
    resource = BY_KIND["Pod"]
    eviction = registry.read_as("Eviction", data, options)
    given = eviction.get("metadata", {}).get("name", name)
    if given != name:
        raise errors.bad_request(f"name in URL does not match name in Eviction object: {name} and {given}")
    stored = registry.get(resource, namespace, name)
    pod = _decode(stored.body)
    how = eviction.get("deleteOptions", {})
    conditions = how.get("preconditions", {})
    dry_run = options.dry_run or bool(how.get("dryRun"))
    deletion = DeleteOptions(
        uid=conditions.get("uid", ""),
        resource_version=conditions.get("resourceVersion", ""),
        grace_seconds=how.get("gracePeriodSeconds"),
        dry_run=dry_run,
    )
    if not _needs_no_budget(pod):
        budgets = _budgets(registry, namespace, pod)
        if len(budgets) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise StatusError(500, "InternalError", text)
        if budgets:
            _take_one(registry, namespace, budgets[0], name, dry_run)
    if not dry_run:
        # The deletion's preconditions are about the pod as the client saw it, not about this condition.
        _check(registry, namespace, name, deletion)
        _mark(registry, namespace, name)
        deletion = DeleteOptions(uid=deletion.uid, grace_seconds=deletion.grace_seconds)
    deleted = registry.delete(resource, namespace, name, deletion)
    return Written(deleted.body, deleted.revision)


def _needs_no_budget(pod: Data) -> bool:
    phase = pod.get("status", {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _budgets(registry: Registry, namespace: str, pod: Data) -> list[Data]:
    labels = pod["metadata"].get("labels", {})
    found = []
    for body in registry.list(BY_KIND["PodDisruptionBudget"], namespace).items:
        budget = msgspec.json.decode(body, type=objects.PodDisruptionBudget)
        if label_selector_matches(budget.spec.selector, labels):
            found.append(_decode(body))
    return found


def _take_one(registry: Registry, namespace: str, budget: Data, pod: str, dry_run: bool) -> None:
    status = budget.get("status", {})
    name = budget["metadata"]["name"]
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        text = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        raise StatusError(
            429,
            "TooManyRequests",
            "Cannot evict pod as it would violate the pod's disruption budget.",
            causes=[errors.Cause("DisruptionBudget", text, "")],
        )
    changed = {
        "status": {"disruptionsAllowed": allowed - 1, "disruptedPods": {pod: time_text(registry.now())}},
    }
    registry.patch(
        BY_KIND["PodDisruptionBudget"],
        namespace,
        name,
        changed,
        PatchType.MERGE,
        subresource="status",
        options=WriteOptions(dry_run=dry_run),
    )


def _check(registry: Registry, namespace: str, name: str, deletion: DeleteOptions) -> None:
    registry.delete(
        BY_KIND["Pod"],
        namespace,
        name,
        DeleteOptions(uid=deletion.uid, resource_version=deletion.resource_version, dry_run=True),
    )


def _mark(registry: Registry, namespace: str, name: str) -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": time_text(registry.now()),
    }
    registry.patch(
        BY_KIND["Pod"],
        namespace,
        name,
        {"status": {"conditions": [condition]}},
        PatchType.STRATEGIC,
        subresource="status",
    )
