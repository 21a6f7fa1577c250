"""What the page asks for: why a pod is where it is, and what a pod would cost. Both change nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from earmark.client import CallFailed, EarmarkClient
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, KubeApi
from earmark.web.board import Board
from earmark.web.whatif import BadManifest, answer_data, pod_manifest, priority_class

# A dry run looks at every node.
DRY_RUN_SECONDS = 30.0

Explain = Callable[[EarmarkClient, str, str], Awaitable[Sequence[str]]]


class Refused(Exception):
    """It could not be done. The text is one line for people; `status` is HTTP's."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Actions(Protocol):
    """What the application needs of earmark."""

    async def explain(self, namespace: str, name: str) -> Sequence[str]:
        """Return lines; those that belong to the one above are indented. Raises Refused."""

    async def whatif(self, text: str) -> dict[str, object]:
        """Return the answer to a manifest as JSON data. Raises Refused."""


class ClientActions:
    """Actions by a client of a running earmark."""

    def __init__(self, client: EarmarkClient, api: KubeApi, board: Board, explain: Explain) -> None:
        """`explain` puts into words why a pod is where it is."""
        self._client = client
        self._api = api
        self._board = board
        self._explain = explain

    async def explain(self, namespace: str, name: str) -> Sequence[str]:
        """See Actions."""
        try:
            return await self._explain(self._client, namespace, name)
        except CallFailed as error:
            raise Refused(str(error), 502) from error

    async def whatif(self, text: str) -> dict[str, object]:
        """See Actions."""
        try:
            manifest = pod_manifest(text)
            pod = self._client.made_up_pod(manifest, priority=await self._priority(priority_class(manifest)))
            answer = await self._client.preemption.dry_run(pod=pod, timeout=DRY_RUN_SECONDS)
        except BadManifest as error:
            raise Refused(str(error), 400) from error
        except CallFailed as error:
            raise Refused(error.details or str(error), 400 if error.field else 502) from error
        except ApiError as error:
            raise Refused(error.message, 400) from error
        except ApiUnavailable as error:
            raise Refused(f"the Kubernetes API does not answer: {error}", 502) from error
        return answer_data(answer, self._board.devices_of_pod)

    async def _priority(self, name: str) -> int:
        return (await self._api.get(objects.PriorityClass, name)).value if name else 0
