"""Which objects a list or watch is about, and the tokens by which a list goes on. Pure."""

from __future__ import annotations

import base64
import binascii

import msgspec

from earmark.apiserver import errors
from earmark.apiserver.history import Selection, Stored
from earmark.apiserver.strategies.base import Strategy
from earmark.kube.selectors import (
    SelectorError,
    field_selector_matches,
    label_selector_matches,
    parse_field_selector,
    parse_label_selector,
)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def selection(strategy: Strategy, namespace: str, label_selector: str, field_selector: str) -> Selection | None:
    """Return what decides whether an object is selected; None where all are.

    Raises StatusError 400 for a selector that cannot be read, or a field that cannot be selected by.
    """
    try:
        labels = parse_label_selector(label_selector) if label_selector else None
        fields = parse_field_selector(field_selector) if field_selector else ()
    except SelectorError as error:
        raise errors.bad_request(str(error)) from error
    names = tuple(item for item in fields if item[0] in ("metadata.name", "metadata.namespace"))
    others = tuple(item for item in fields if item not in names)
    for name, _, _ in others:
        if strategy.field({"metadata": {}}, name) is None:
            raise errors.bad_request(f"field label not supported: {name}")
    if not namespace and labels is None and not fields:
        return None

    def select(stored: Stored) -> bool:
        if namespace and stored.namespace != namespace:
            return False
        # Names need no decoding, and are what most watches of one object ask for.
        if names and not field_selector_matches(
            names, lambda name: stored.name if name == "metadata.name" else stored.namespace
        ):
            return False
        if labels is None and not others:
            return True
        data = _decode(stored.body)
        if labels is not None and not label_selector_matches(labels, data["metadata"].get("labels", {})):
            return False
        return field_selector_matches(others, lambda name: strategy.field(data, name) or "")

    return select


def parse_version(text: str) -> int:
    """Read a resourceVersion; raises StatusError 400 for what is none."""
    if not (text.isascii() and text.isdigit()) or len(text) > 20:
        raise errors.bad_request(f"Invalid value: {text!r}: resourceVersion is not a number")
    return int(text)


def write_token(revision: int, last: tuple[str, str]) -> str:
    """Return the token for the objects after `last` of a list at a revision."""
    return base64.urlsafe_b64encode(_encode([revision, last[0], last[1]])).decode("ascii").rstrip("=")


def read_token(token: str) -> tuple[int, tuple[str, str]]:
    """Return the revision and the last key of a token; raises StatusError 400 for what is none."""
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        revision, namespace, name = msgspec.json.decode(
            base64.urlsafe_b64decode(padded), type=tuple[int, str, str]
        )  # fmt: skip
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise errors.bad_request("continue key is not valid") from error
    return revision, (namespace, name)
