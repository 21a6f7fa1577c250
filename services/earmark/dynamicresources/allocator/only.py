"""Restricting a problem to stored results: are exactly these devices still right? (F22, F38, E55)"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from earmark.dynamicresources.allocator.integers import Choice, Task, Wish
from earmark.dynamicresources.allocator.rows import Numbering
from earmark.dynamicresources.allocator.skeleton import Skeleton, StaticChoice, StaticWish
from earmark.dynamicresources.ledger import Ledger
from earmark.kube.objects import AllocationResult, DeviceRequestAllocationResult
from earmark.kube.quantity import parse_quantity


def restrict(
    task: Task, skeleton: Skeleton, numbering: Numbering, only: Sequence[AllocationResult]
) -> tuple[Task, Skeleton] | None:
    """Leave only the stored devices to each request.

    None if the stored results cannot be a solution: a device is gone, a request has none or too few, or mode All now
    means other devices. Everything else (in use, selectors, taints, counters, capacity, constraints) is the search's
    to find.
    """
    numbers = {
        (row.view.driver, row.view.pool[1], device.name): row.first + position
        for row in numbering.rows
        for position, device in enumerate(row.view.devices)
    }
    if len(only) != len(task.slots):
        return None
    stored: list[dict[str, list[int]]] = []
    for allocation in only:
        by_request: dict[str, list[int]] = {}
        for result in allocation.devices.results:
            number = numbers.get((result.driver, result.pool, result.device))
            if number is None:
                return None
            by_request.setdefault(result.request, []).append(number)
        stored.append(by_request)
    wishes: list[Wish] = []
    statics: list[StaticWish] = []
    for wish, static in zip(task.wishes, skeleton.wishes, strict=True):
        found = _stored_choice(wish, static, stored[wish.claim])
        if found is None:
            return None
        wishes.append(Wish(wish.claim, (found[0],), wish.prioritized))
        statics.append(StaticWish(static.claim, (found[1],), static.prioritized))
    if any(stored):
        return None
    return replace(task, wishes=tuple(wishes)), replace(skeleton, wishes=statics)


def _stored_choice(wish: Wish, static: StaticWish, stored: dict[str, list[int]]) -> tuple[Choice, StaticChoice] | None:
    """Return the choice whose devices are stored, limited to them."""
    for choice, alternative in zip(wish.choices, static.choices, strict=True):
        name = alternative.alternative.result_name
        devices = stored.get(name, [])
        if len(devices) != choice.num or (wish.prioritized and not devices):
            continue
        if choice.listed is not None and (not devices or sorted(devices) != sorted(choice.listed)):
            continue
        stored.pop(name, None)
        if choice.listed is not None:
            return choice, alternative
        mask = 0
        for device in devices:
            mask |= 1 << device
        return replace(choice, mask=choice.mask & mask, mines=choice.mines & mask), alternative
    return None


def kept(
    only: Sequence[AllocationResult],
    now: Sequence[AllocationResult],
    ledgers: Sequence[Ledger],
    share_id: Callable[[], str],
) -> tuple[AllocationResult, ...] | None:
    """Return the stored results if they are what a search gives now, share IDs and order aside; else None (F36)."""
    results = []
    for stored, fresh in zip(only, now, strict=True):
        if sorted(map(_content, stored.devices.results)) != sorted(map(_content, fresh.devices.results)):
            return None
        renewed = tuple(_renewed(result, ledgers, share_id) for result in stored.devices.results)
        if renewed != stored.devices.results:
            devices = msgspec.structs.replace(stored.devices, results=renewed)
            stored = msgspec.structs.replace(stored, devices=devices)
        results.append(stored)
    return tuple(results)


def _content(result: DeviceRequestAllocationResult) -> tuple[str, str, str, str, bool, bool, list[tuple[str, int]]]:
    amounts = sorted((name, parse_quantity(text).nano) for name, text in (result.consumed_capacity or {}).items())
    return (
        result.request, result.driver, result.pool, result.device,
        bool(result.admin_access), result.share_id is not None, amounts,
    )  # fmt: skip


def _renewed(
    result: DeviceRequestAllocationResult, ledgers: Sequence[Ledger], share_id: Callable[[], str]
) -> DeviceRequestAllocationResult:
    taken = result.share_id is not None and any(
        result.share_id in ledger.device(result.driver, result.pool, result.device).shares for ledger in ledgers
    )
    return msgspec.structs.replace(result, share_id=share_id()) if taken else result
