"""A persistent map for values that fork: making a changed copy costs what has changed, whatever the map's size.

It knows nothing of devices. The ledger and the inventory are made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class _Gone:
    __slots__ = ()


_GONE = _Gone()

# A delta is copied at every change, so it must stay small; folding it into a new base costs the base's size, so it must
# not happen often. 64 entries, or the base's square root if that is larger, balances the two.
_SMALL_DELTA = 64


class OverlayMap(Generic[K, V]):
    """An immutable mapping: a shared base and a small delta over it."""

    __slots__ = ("_base", "_delta", "_size")

    def __init__(self, base: Mapping[K, V] | None = None) -> None:
        self._base: dict[K, V] = dict(base) if base else {}
        self._delta: dict[K, V | _Gone] = {}
        self._size = len(self._base)

    def get(self, key: K) -> V | None:
        """Return the value, or None where there is none."""
        value = self._delta.get(key)
        if value is None:
            return self._base.get(key)
        return None if isinstance(value, _Gone) else value

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return self._size

    def with_item(self, key: K, value: V) -> OverlayMap[K, V]:
        """Return a map that also has key -> value."""
        return self._changed(key, value, 0 if key in self else 1)

    def without(self, key: K) -> OverlayMap[K, V]:
        """Return a map that lacks the key."""
        if key not in self:
            return self
        return self._changed(key, _GONE, -1)

    def _changed(self, key: K, value: V | _Gone, growth: int) -> OverlayMap[K, V]:
        new: OverlayMap[K, V] = OverlayMap.__new__(OverlayMap)
        delta = dict(self._delta)
        # Taking the entry out first keeps base entries that come back from being remembered as changes of order only.
        delta.pop(key, None)
        if isinstance(value, _Gone):
            if key in self._base:
                delta[key] = value
        elif self._base.get(key) is not value:
            delta[key] = value
        new._base, new._delta, new._size = self._base, delta, self._size + growth
        if len(delta) > _SMALL_DELTA and len(delta) * len(delta) > len(self._base):
            new._base, new._delta = dict(new.items()), {}
        return new

    def items(self) -> Iterator[tuple[K, V]]:
        """Iterate over the entries, in the order in which they came (a changed one counts as new)."""
        delta = self._delta
        for key, value in self._base.items():
            if key not in delta:
                yield key, value
        for key, changed in delta.items():
            if not isinstance(changed, _Gone):
                yield key, changed

    def __iter__(self) -> Iterator[K]:
        for key, _ in self.items():
            yield key

    def values(self) -> Iterator[V]:
        """Iterate over the values, in the order of items()."""
        for _, value in self.items():
            yield value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OverlayMap):
            return NotImplemented
        if self is other:
            return True
        if self._size != other._size:
            return False
        if self._base is other._base:
            keys = list(self._delta) + [key for key in other._delta if key not in self._delta]
            return all(self.get(key) == other.get(key) for key in keys)
        return all(other.get(key) == value for key, value in self.items())

    def __hash__(self) -> int:
        return hash((self._size, frozenset(self)))

    def __repr__(self) -> str:
        return f"OverlayMap({dict(self.items())!r})"
