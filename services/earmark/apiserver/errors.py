"""What the API answers when it refuses: Kubernetes Status objects, and the causes that name fields."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from earmark.kube.resources import Resource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong: its kind (FieldValueInvalid ...), the text, and the path of the field."""

    type: str
    message: str
    field: str


def required(field: str, detail: str = "") -> Cause:
    """A field that has to be there is not."""
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", field)


def invalid(field: str, value: Any, detail: str) -> Cause:
    """A value does not keep a rule."""
    return Cause("FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}", field)


def forbidden(field: str, detail: str) -> Cause:
    """A value may not be given here or now."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def not_supported(field: str, value: Any, supported: Sequence[str]) -> Cause:
    """A value is none of the few that exist."""
    known = ", ".join(f'"{name}"' for name in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {known}", field)


def duplicate(field: str, value: Any) -> Cause:
    """A value that must be unique in its list is there twice."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", field)


def too_many(field: str, count: int, limit: int) -> Cause:
    """A list is too long."""
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} items", field)


def too_long(field: str, limit: int) -> Cause:
    """A text is too long."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))


class StatusError(Exception):
    """A refusal. `code` is the HTTP status; `body` gives the Status object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        causes: Sequence[Cause] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
        self._details = details or {}

    def body(self) -> dict[str, Any]:
        """Return the Status object as JSON data."""
        details = dict(self._details)
        if self.causes:
            details["causes"] = [
                {"reason": cause.type, "message": cause.message, "field": cause.field} for cause in self.causes
            ]
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if details:
            status["details"] = details
        status["code"] = self.code
        return status


def _qualified(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: Resource, name: str, kind: str | None = None) -> dict[str, Any]:
    details = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural if kind is None else kind
    return details


def not_found(resource: Resource, name: str) -> StatusError:
    """404 for an object."""
    return StatusError(
        404, "NotFound", f'{_qualified(resource)} "{name}" not found', details=_details(resource, name)
    )  # fmt: skip


def no_such_path() -> StatusError:
    """404 for something that is not served."""
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> StatusError:
    """409 for a create."""
    message = f'{_qualified(resource)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_details(resource, name))


def conflict(resource: Resource, name: str, detail: str) -> StatusError:
    """409 for a precondition or a stale resourceVersion."""
    message = f'Operation cannot be fulfilled on {_qualified(resource)} "{name}": {detail}'
    return StatusError(409, "Conflict", message, details=_details(resource, name))


def invalid_object(resource: Resource, name: str, causes: Sequence[Cause]) -> StatusError:
    """422 with the causes."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    full = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'{full} "{name}" is invalid: {text}'
    return StatusError(
        422, "Invalid", message, details=_details(resource, name, resource.kind), causes=causes
    )  # fmt: skip


def bad_request(message: str) -> StatusError:
    """400."""
    return StatusError(400, "BadRequest", message)


def refused(resource: Resource, name: str, message: str) -> StatusError:
    """403 with a reason, for what nobody may do."""
    text = f'{_qualified(resource)} "{name}" is forbidden: {message}'
    return StatusError(403, "Forbidden", text, details=_details(resource, name))


def method_not_allowed(resource: Resource | None = None) -> StatusError:
    """405."""
    return StatusError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
    )  # fmt: skip


def expired(wanted: int, oldest: int) -> StatusError:
    """410: the version is older than what is remembered."""
    return StatusError(410, "Expired", f"too old resource version: {wanted} ({oldest})")


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """415, naming what is accepted."""
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", text)
