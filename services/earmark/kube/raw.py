"""The API seam for whole objects: JSON data with all fields, for what creates and replaces manifests.

Our structs know a part of each object only, so manifests must not pass through them.
"""

from __future__ import annotations

from typing import Any, Protocol

from earmark.kube.resources import Resource


class RawApi(Protocol):
    """Whole objects as data and text. Every method may raise ApiError and ApiUnavailable.

    `namespace` is ignored for cluster-scoped resources; an empty one stands for "default".
    """

    async def get_raw(self, resource: Resource, namespace: str, name: str) -> bytes:
        """Return an object's JSON text."""

    async def create_raw(self, resource: Resource, namespace: str, data: dict[str, Any]) -> bytes:
        """Create an object; unknown fields are refused. Returns its JSON text."""

    async def update_raw(
        self, resource: Resource, namespace: str, name: str, data: dict[str, Any], subresource: str = ""
    ) -> bytes:
        """Replace an object, or its status; unknown fields are refused. Returns its JSON text."""
