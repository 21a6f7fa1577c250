"""How writes are asked for, and what comes of them and of lists."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write is done: `dry_run` changes nothing, `strict` refuses unknown fields instead of dropping them."""

    dry_run: bool = False
    strict: bool = False
    warnings: list[str] | None = None
    # The object comes from a server-side apply, with the managedFields that it shall have.
    applies: bool = False
    # Who writes, for managedFields.
    manager: str = "unknown"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How a deletion is done; `grace_seconds` None takes the object's own."""

    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write: the object's text, and the revision that must be durable before it is told."""

    body: bytes
    revision: int
    created: bool = False


@dataclass(frozen=True, slots=True)
class Deleted:
    """The outcome of a deletion: `removed` says whether the object is gone (else it is terminating)."""

    body: bytes
    revision: int
    removed: bool
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: `continue_token` is empty on the last page."""

    items: list[bytes]
    revision: int
    continue_token: str = ""
    remaining: int = 0


PLAIN_WRITE = WriteOptions()
PLAIN_DELETE = DeleteOptions()
