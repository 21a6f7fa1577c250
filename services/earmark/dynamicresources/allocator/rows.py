"""The numbering of devices on one node: pools, then slices by name, then the order in the slice (upstream A2.12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from earmark.dynamicresources.allocator.pools import GatheredPool
from earmark.dynamicresources.sliceview import SliceView


@dataclass(slots=True, eq=False)
class Row:
    """The devices of one slice: first to first+count-1. pool: its place among the usable pools."""

    view: SliceView
    pool: int
    first: int
    count: int

    def device_id(self, position: int) -> str:
        """The device as errors print it: driver/pool/device."""
        return f"{self.view.driver}/{self.view.pool[1]}/{self.view.devices[position].name}"


class Numbering:
    """The devices of the usable pools that a node sees."""

    def __init__(self, pools: Sequence[GatheredPool]) -> None:
        self.pools = [pool for pool in pools if not (pool.incomplete or pool.invalid)]
        self.rows: list[Row] = []
        self.firsts: list[int] = []
        total = 0
        for index, pool in enumerate(self.pools):
            self.firsts.append(total)
            for view in pool.targets:
                self.rows.append(Row(view, index, total, len(view.devices)))
                total += len(view.devices)
        self.total = total

    def locate(self, device: int) -> tuple[Row, int]:
        """Return the slice of a device and its position there."""
        for row in self.rows:
            if device < row.first + row.count:
                return row, device - row.first
        raise IndexError(device)

    def device_id(self, device: int) -> str:
        """The device as errors print it."""
        row, position = self.locate(device)
        return row.device_id(position)


def bits(mask: int) -> Iterator[int]:
    """Iterate over the numbers in a mask, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
