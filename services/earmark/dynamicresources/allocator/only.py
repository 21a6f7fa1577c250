"""Restricting a problem to stored results: are exactly these devices still right? (F22, F38, E55)"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from earmark.dynamicresources.allocator.compile import Compiled
from earmark.dynamicresources.allocator.integers import Choice, Wish
from earmark.dynamicresources.ledger import Ledger
from earmark.kube.objects import AllocationResult, DeviceRequestAllocationResult
from earmark.kube.quantity import parse_quantity


def restrict(compiled: Compiled, only: Sequence[AllocationResult]) -> bool:
    """Leave only the stored devices to each request.

    Returns False if the stored results cannot be a solution: a device is gone, a request has none or too few, or mode
    All now means other devices. Everything else (in use, selectors, taints, counters, capacity, constraints) is the
    search's to find.
    """
    numbers = {
        (row.view.driver, row.view.pool[1], device.name): row.first + position
        for row in compiled.rows
        for position, device in enumerate(row.view.devices)
    }
    task = compiled.task
    claims = len(task.slots)
    if len(only) != claims:
        return False
    stored: list[dict[str, list[int]]] = []
    for allocation in only:
        by_request: dict[str, list[int]] = {}
        for result in allocation.devices.results:
            number = numbers.get((result.driver, result.pool, result.device))
            if number is None:
                return False
            by_request.setdefault(result.request, []).append(number)
        stored.append(by_request)
    wishes: list[Wish] = []
    for wish in task.wishes:
        choices = []
        for choice in wish.choices:
            name = compiled.alternatives[choice.number].result_name
            devices = stored[wish.claim].get(name, [])
            if len(devices) != choice.num or (wish.prioritized and not devices):
                continue
            if choice.listed is not None:
                if sorted(devices) != sorted(choice.listed):
                    continue
                choices.append(choice)
            else:
                mask = sum(1 << device for device in set(devices))
                choices.append(_limited(choice, mask))
            stored[wish.claim].pop(name, None)
        if not choices:
            return False
        wishes.append(Wish(wish.claim, tuple(choices), wish.prioritized))
    if any(stored):
        return False
    task.wishes = tuple(wishes)
    return True


def _limited(choice: Choice, mask: int) -> Choice:
    return Choice(
        choice.number, choice.num, choice.admin, choice.mask & mask, choice.mines & mask, None, 0,
        choice.constraints, choice.shares, choice.late,
    )  # fmt: skip


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
