"""Sources of randomness: the system's and a seeded one."""

from __future__ import annotations

import random
import uuid


class SystemIds:
    """Randomness of the operating system."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def uuid(self) -> str:
        """Return a random UUID (version 4)."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def random(self) -> float:
        """Return a float in [0, 1)."""
        return self._random.random()

    def below(self, bound: int) -> int:
        """Return an int in [0, bound)."""
        return self._random.randrange(bound)


class SeededIds:
    """A stream of pseudo-random values that depends on nothing but its seed."""

    def __init__(self, seed: int | str) -> None:
        # A text seed is hashed by SHA-512, not by hash(): the same in every process.
        self._seed = seed
        self._random = random.Random(str(seed))

    def uuid(self) -> str:
        """Return a UUID (version 4) from the stream."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def random(self) -> float:
        """Return a float in [0, 1)."""
        return self._random.random()

    def below(self, bound: int) -> int:
        """Return an int in [0, bound)."""
        return self._random.randrange(bound)

    def derive(self, name: str) -> SeededIds:
        """Return a stream of its own for `name`, so that one component's use does not shift another's."""
        return SeededIds(f"{self._seed}/{name}")
