"""What PreBind and Unreserve write into a claim: patches as plain data, decided on the newest object that is known.

Pure (upstream B8.4, B9.2, B11.3; F10, F40). Sending, conflicts and retries are binding.py's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from earmark.dynamicresources.claims import reserved_for
from earmark.dynamicresources.facts import PodRef
from earmark.kube.objects import AllocationResult, ResourceClaim
from earmark.kube.wellknown import DELETE_PROTECTION


@dataclass(frozen=True, slots=True)
class Write:
    """One merge patch of a claim; `subresource` is "" or "status"."""

    patch: dict[str, Any]
    subresource: str
    # What failed, in the words of the condition.
    what: str


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing (more) is to be written."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """The claim is not what the pod needs any more."""

    text: str


def next_bind_write(
    claim: ResourceClaim, pod: PodRef, allocation: AllocationResult | None, now: datetime, *, timestamps: bool
) -> Write | Done | Impossible:
    """Return the next step of binding one claim to a pod.

    allocation: what Reserve took for the claim; None if it was allocated before. timestamps: the gates of binding
    conditions, with which the time of the allocation is noted when it is written, never earlier (F40).
    """
    name = "/".join(claim.key)
    if reserved_for(claim, pod.uid) and claim.status.allocation is not None:
        return Done()
    if claim.metadata.deletion_timestamp is not None:
        return Impossible(f"claim {name} got deleted in the meantime")
    if allocation is not None and claim.status.allocation is not None:
        return Impossible(f"claim {name} got allocated elsewhere in the meantime")
    if allocation is None and claim.status.allocation is None:
        return Impossible(f"claim {name} got deallocated elsewhere in the meantime")
    if allocation is not None and DELETE_PROTECTION not in claim.metadata.finalizers:
        finalizers = [*claim.metadata.finalizers, DELETE_PROTECTION]
        return Write(
            _conditional(claim, {"metadata": {"finalizers": finalizers}}), "", f"add finalizer to claim {name}"
        )
    consumers = [*_consumers(claim), {"resource": "pods", "name": pod.name, "uid": pod.uid}]
    status: dict[str, Any] = {"reservedFor": consumers}
    what = f"add reservation to claim {name}"
    to_write = allocation if allocation is not None else claim.status.allocation
    assert to_write is not None
    if timestamps and to_write.allocation_timestamp is None:
        to_write = msgspec.structs.replace(to_write, allocation_timestamp=now.replace(microsecond=0))
        status["allocation"] = msgspec.to_builtins(to_write)
    if allocation is not None:
        status["allocation"] = msgspec.to_builtins(to_write)
        what = f"add allocation and reservation to claim {name}"
    return Write(_conditional(claim, {"status": status}), "status", what)


def next_unreserve_write(claim: ResourceClaim, pod: PodRef, *, deallocate: bool) -> Write | Done:
    """Return the write that takes a pod out of a claim.

    deallocate: the pod was preempted and its own cycle wrote the allocation. If nobody else uses the claim, the
    allocation goes in the same write, because nobody else would ever clear it (F10, upstream C8.8).
    """
    if not reserved_for(claim, pod.uid):
        return Done()
    name = "/".join(claim.key)
    others = _consumers(claim, without=pod.uid)
    status: dict[str, Any] = {"reservedFor": others or None}
    what = f"remove reservation from claim {name}"
    if deallocate and not others:
        status |= {"allocation": None, "devices": None}
        what = f"deallocate claim {name}"
    return Write(_conditional(claim, {"status": status}), "status", what)


def deallocation_write(claim: ResourceClaim) -> Write:
    """Return the write by which PostFilter clears a claim that cannot be used (upstream B10.2)."""
    status = {"allocation": None, "reservedFor": None, "devices": None}
    return Write(_conditional(claim, {"status": status}), "status", f"deallocate claim {'/'.join(claim.key)}")


def _consumers(claim: ResourceClaim, without: str = "") -> list[dict[str, Any]]:
    return [
        msgspec.to_builtins(entry)
        for entry in claim.status.reserved_for
        if not (without and entry.is_pod and entry.uid == without)
    ]


def _conditional(claim: ResourceClaim, patch: dict[str, Any]) -> dict[str, Any]:
    identity = {"resourceVersion": claim.metadata.resource_version, "uid": claim.metadata.uid}
    return {**patch, "metadata": {**patch.get("metadata", {}), **identity}}
