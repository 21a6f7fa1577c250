"""A persistent map for values that fork: making a changed copy costs what has changed, whatever the map's size.

It knows nothing of devices. The ledger and the inventory are made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Stands for a key that a layer takes away.
_GONE: Any = object()

# The tip is copied at every change, so it must stay small; the middle is copied when the tip is full, the base when the
# middle has outgrown its square root. That makes a change cost a few entries on average, and a fork nothing.
_TIP = 16
_MIDDLE = 64


class OverlayMap(Generic[K, V]):
    """An immutable mapping in three layers: a large shared base, a middle and a small tip. Values are never None."""

    __slots__ = ("_base", "_changes", "_middle", "_size", "_tip")

    def __init__(self, base: Mapping[K, V] | None = None) -> None:
        self._base: dict[K, V] = dict(base) if base else {}
        self._middle: dict[K, V] = {}
        self._tip: dict[K, V] = {}
        self._size = len(self._base)
        # How often a changed copy was made of this very map.
        self._changes = 0

    def get(self, key: K) -> V | None:
        """Return the value, or None where there is none."""
        value = self._tip.get(key) if self._tip else None
        if value is None:
            value = self._middle.get(key) if self._middle else None
            if value is None:
                return self._base.get(key)
        return None if value is _GONE else value

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return self._size

    def with_item(self, key: K, value: V) -> OverlayMap[K, V]:
        """Return a map that also has key -> value."""
        return self._changed(key, value, 0 if key in self else 1)

    def with_new(self, key: K, value: V) -> OverlayMap[K, V]:
        """Return a map that also has key -> value; the key must not be in it yet."""
        return self._changed(key, value, 1)

    def with_other(self, key: K, value: V) -> OverlayMap[K, V]:
        """Return a map with another value for a key that it has."""
        return self._changed(key, value, 0)

    def without(self, key: K) -> OverlayMap[K, V]:
        """Return a map that lacks the key."""
        if key not in self:
            return self
        return self._changed(key, _GONE, -1)

    def without_all(self, keys: Iterable[K]) -> OverlayMap[K, V]:
        """Return a map that lacks all of these keys, which must be different ones that it has."""
        new = self
        for key in keys:
            if new is self:
                new = self._changed(key, _GONE, -1)
            else:
                # Nobody else has seen this copy yet.
                new._tip.pop(key, None)
                new._tip[key] = _GONE
                new._size -= 1
        return new

    def _changed(self, key: K, value: V, growth: int) -> OverlayMap[K, V]:
        self._changes += 1
        if self._changes == 2:
            # Others will follow: what they would all have to merge by themselves is better merged here, once.
            self._settle(4)
        elif len(self._tip) >= _TIP:
            self._settle(1)
        new: OverlayMap[K, V] = OverlayMap.__new__(OverlayMap)
        tip = self._tip.copy()
        if key in tip:
            # Taken out first, so that the order is that of the last change.
            del tip[key]
        tip[key] = value
        new._base, new._middle, new._tip, new._size = self._base, self._middle, tip, self._size + growth
        new._changes = 0
        return new

    def _settle(self, eagerness: int) -> None:
        """Move the tip to the middle, and the middle to the base if it is large. The content stays the same."""
        if self._tip:
            middle = self._middle.copy()
            for key, value in self._tip.items():
                middle.pop(key, None)
                middle[key] = value
            self._middle, self._tip = middle, {}
        size = len(self._middle) * eagerness
        if size > _MIDDLE and size * size > len(self._base):
            self._base, self._middle = dict(self.items()), {}

    def items(self) -> Iterator[tuple[K, V]]:
        """Iterate over the entries, in the order in which they came (a changed one counts as new)."""
        tip, middle = self._tip, self._middle
        for key, value in self._base.items():
            if key not in tip and key not in middle:
                yield key, value
        for key, value in middle.items():
            if key not in tip and value is not _GONE:
                yield key, value
        for key, value in tip.items():
            if value is not _GONE:
                yield key, value

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
            layers = (self._middle, self._tip, other._middle, other._tip)
            return all(self.get(key) == other.get(key) for layer in layers for key in layer)
        return all(other.get(key) == value for key, value in self.items())

    def __hash__(self) -> int:
        return hash((self._size, frozenset(self)))

    def __repr__(self) -> str:
        return f"OverlayMap({dict(self.items())!r})"
