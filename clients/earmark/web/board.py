"""The device map: it is told of slices, claims, pods and settling windows, and says which cells have changed. Pure.

A change costs what it touches, whatever the size of the cluster. The layout (which nodes, which devices) changes seldom
and is then made anew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from earmark.kube import objects
from earmark.web.cells import FREE, Cell, Consumer, State, Use, cell
from earmark.web.windows import Key, Window, Windows

# Devices that no single node has.
ANY_NODE = "(several nodes)"
# Pods that are gone are remembered as long as a claim may be reserved for them; so many at most.
GONE_KEPT = 4096

_NUMBERS = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class Row:
    """One node and the names ("DRIVER/POOL/DEVICE") of its devices."""

    node: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is new since the last time. `layout` is set when all cells have to be drawn anew."""

    layout: tuple[Row, ...] | None
    # By the device's number in the layout.
    cells: tuple[tuple[int, Cell], ...]


class Board:
    """See the module."""

    def __init__(self) -> None:
        self.windows = Windows()
        self._slices: dict[str, objects.ResourceSlice] = {}
        self._claims: dict[tuple[str, str], objects.ResourceClaim] = {}
        self._claims_by_uid: dict[str, tuple[str, str]] = {}
        self._users: dict[str, dict[tuple[str, str], None]] = {}
        self._claims_of_pod: dict[str, dict[tuple[str, str], None]] = {}
        self._pods: dict[str, objects.Pod] = {}
        self._gone: dict[str, None] = {}
        self._holds: dict[str, dict[Key, Window]] = {}
        self._awaited: dict[str, dict[Key, Window]] = {}
        self._rows: tuple[Row, ...] = ()
        self._numbers: dict[str, int] = {}
        self._cells: list[Cell] = []
        self._counts: Counter[State] = Counter()
        self._layout_changed = False
        self._dirty: dict[str, None] = {}

    # --- being told --------------------------------------------------------------------------------------------------

    def slice_changed(self, old: objects.ResourceSlice | None, new: objects.ResourceSlice | None) -> None:
        """Take in a slice; `new` is None when it has disappeared."""
        if old is not None:
            self._slices.pop(old.metadata.name, None)
        if new is not None:
            self._slices[new.metadata.name] = new
        if old is None or new is None or old.spec != new.spec:
            self._layout_changed = True

    def claim_changed(self, old: objects.ResourceClaim | None, new: objects.ResourceClaim | None) -> None:
        """Take in a claim."""
        if old is not None:
            self._claims.pop(old.key, None)
            self._claims_by_uid.pop(old.metadata.uid, None)
            for device in devices_of(old):
                _discard(self._users, device, old.key)
                self._dirty[device] = None
            for uid in _pods_of(old):
                _discard(self._claims_of_pod, uid, old.key)
        if new is not None:
            self._claims[new.key] = new
            self._claims_by_uid[new.metadata.uid] = new.key
            for device in devices_of(new):
                self._users.setdefault(device, {})[new.key] = None
                self._dirty[device] = None
            for uid in _pods_of(new):
                self._claims_of_pod.setdefault(uid, {})[new.key] = None

    def pod_changed(self, old: objects.Pod | None, new: objects.Pod | None) -> None:
        """Take in a pod."""
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            uid = old.metadata.uid
            self._pods.pop(uid, None)
            self._gone[uid] = None
            if len(self._gone) > GONE_KEPT:
                del self._gone[next(iter(self._gone))]
            self._pod_matters(uid)
        if new is not None:
            self._pods[new.metadata.uid] = new
            if old is None or _leaving(old) != _leaving(new):
                self._pod_matters(new.metadata.uid)

    def _pod_matters(self, uid: str) -> None:
        for key in self._claims_of_pod.get(uid, {}):
            self._dirty.update(dict.fromkeys(devices_of(self._claims[key])))

    def window_changed(self, new: Window) -> None:
        """Take in a settling window's new state."""
        self._unlink(self.windows.put(new))
        if not new.open:
            return
        for device in new.devices:
            self._holds.setdefault(device, {})[new.key] = new
            self._dirty[device] = None
        for uid, _ in new.awaited:
            self._awaited.setdefault(uid, {})[new.key] = new
            self._claim_matters(uid)

    def windows_replaced(self, known: Iterable[Window]) -> None:
        """Take in everything that is known of windows, after a connection was lost: others are forgotten."""
        windows = list(known)
        keys = {item.key for item in windows}
        for key in self.windows.known():
            if key not in keys:
                self._unlink(self.windows.drop(key))
        for item in windows:
            self.window_changed(item)

    def _unlink(self, old: Window | None) -> None:
        if old is None:
            return
        for device in old.devices:
            _discard(self._holds, device, old.key)
            self._dirty[device] = None
        for uid, _ in old.awaited:
            _discard(self._awaited, uid, old.key)
            self._claim_matters(uid)

    def _claim_matters(self, uid: str) -> None:
        key = self._claims_by_uid.get(uid)
        if key is not None:
            self._dirty.update(dict.fromkeys(devices_of(self._claims[key])))

    # --- telling -----------------------------------------------------------------------------------------------------

    def take(self) -> Changes:
        """Return what has changed since the last call."""
        if self._layout_changed:
            self._layout_changed = False
            self._dirty.clear()
            self._arrange()
            return Changes(self._rows, tuple(enumerate(self._cells)))
        changed = []
        for device in self._dirty:
            number = self._numbers.get(device)
            if number is None:
                continue
            new = self._cell(device)
            if new != self._cells[number]:
                self._counts[self._cells[number].state] -= 1
                self._counts[new.state] += 1
                self._cells[number] = new
                changed.append((number, new))
        self._dirty.clear()
        return Changes(None, tuple(sorted(changed, key=lambda item: item[0])))

    def rows(self) -> tuple[Row, ...]:
        """Return the layout as of the last `take`."""
        return self._rows

    def cells(self) -> tuple[Cell, ...]:
        """Return all cells as of the last `take`, in the layout's order."""
        return tuple(self._cells)

    def counts(self) -> dict[str, int]:
        """Return how many devices are in each state, as of the last `take`."""
        return {state.value: self._counts[state] for state in State}

    def devices_of_pod(self, uid: str) -> tuple[str, ...]:
        """Return what the claims of a pod have: "DRIVER/POOL/DEVICE"."""
        return tuple(device for key in self._claims_of_pod.get(uid, {}) for device in devices_of(self._claims[key]))

    def _arrange(self) -> None:
        by_node: dict[str, dict[str, None]] = {}
        for node, device in self._placed():
            by_node.setdefault(node, {})[device] = None
        self._rows = tuple(
            Row(node, tuple(sorted(by_node[node], key=natural))) for node in sorted(by_node, key=natural)
        )
        names = [device for row in self._rows for device in row.devices]
        # A device that is offered on two nodes by name has two cells, and the last one changes: pools forbid it.
        self._numbers = {device: number for number, device in enumerate(names)}
        self._cells = [self._cell(device) for device in names]
        self._counts = Counter(item.state for item in self._cells)

    def _placed(self) -> Iterator[tuple[str, str]]:
        newest: dict[tuple[str, str], int] = {}
        for item in self._slices.values():
            pool = (item.spec.driver, item.spec.pool.name)
            newest[pool] = max(newest.get(pool, 0), item.spec.pool.generation)
        for item in self._slices.values():
            spec = item.spec
            if spec.pool.generation < newest[(spec.driver, spec.pool.name)]:
                # Being replaced: nothing of it can be allocated any more.
                continue
            for device in spec.devices:
                node = spec.node_name or device.node_name or ANY_NODE
                yield node, f"{spec.driver}/{spec.pool.name}/{device.name}"

    def _cell(self, device: str) -> Cell:
        users = self._users.get(device)
        holds = self._holds.get(device)
        if not users and not holds:
            return FREE
        uses = tuple(self._use(self._claims[key]) for key in sorted(users or {}))
        return cell(uses, next(iter(holds.values())) if holds else None)

    def _use(self, claim: objects.ResourceClaim) -> Use:
        awaited = self._awaited.get(claim.metadata.uid)
        return Use(
            claim="/".join(claim.key),
            consumers=tuple(
                self._consumer(claim.metadata.namespace, item) for item in claim.status.reserved_for if item.is_pod
            ),
            awaited=next(iter(awaited.values())) if awaited else None,
        )

    def _consumer(self, namespace: str, item: objects.ResourceClaimConsumerReference) -> Consumer:
        pod = self._pods.get(item.uid)
        name = f"{namespace}/{item.name}"
        if pod is None:
            return Consumer(name, gone=item.uid in self._gone)
        return Consumer(name, until=pod.metadata.deletion_timestamp, gone=pod.terminal)


def devices_of(claim: objects.ResourceClaim) -> tuple[str, ...]:
    """Return the devices that a claim takes: "DRIVER/POOL/DEVICE". Admin access takes none."""
    if claim.status.allocation is None:
        return ()
    return tuple(
        f"{result.driver}/{result.pool}/{result.device}"
        for result in claim.status.allocation.devices.results
        if not result.admin_access
    )


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts gpu-10 after gpu-9."""
    parts = _NUMBERS.split(name)
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)


def _pods_of(claim: objects.ResourceClaim) -> tuple[str, ...]:
    return tuple(item.uid for item in claim.status.reserved_for if item.is_pod)


def _leaving(pod: objects.Pod) -> tuple[object, bool]:
    return (pod.metadata.deletion_timestamp, pod.terminal)


def _discard(
    table: dict[str, dict[tuple[str, str], None]] | dict[str, dict[Key, Window]], name: str, key: object
) -> None:
    found = table.get(name)
    if found is None:
        return
    found.pop(key, None)  # type: ignore[call-overload]
    if not found:
        del table[name]
