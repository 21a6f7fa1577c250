"""Talking to the Kubernetes API of a running earmark from a command."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from earmark.cli.errors import BadInput, CommandError
from earmark.client import CallFailed
from earmark.kube.api import ApiError, ApiUnavailable
from earmark.runtime.process import RuntimeSettings

if TYPE_CHECKING:
    from earmark.kube.http import HttpApi

T = TypeVar("T")


@contextlib.asynccontextmanager
async def open_api(runtime: RuntimeSettings) -> AsyncIterator[HttpApi]:
    """Open the API that the kubeconfig names. Raises CommandError, BadInput where it cannot be used."""
    path = runtime.kubeconfig_path
    if not path.is_file():
        raise CommandError(f"{path}: no kubeconfig; is earmark running? (make run)")
    # Listings that ask only the services do not need it.
    from earmark.kube.http import HttpApi
    from earmark.kube.kubeconfig import KubeconfigError

    try:
        client = HttpApi.from_kubeconfig(path)
    except KubeconfigError as error:
        raise BadInput(str(error)) from error
    async with client as api:
        yield api


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work, and turn what the API and the services refuse into CommandErrors."""
    try:
        return asyncio.run(work)
    except ApiUnavailable as error:
        raise CommandError(f"the Kubernetes API does not answer: {error}; is earmark running? (make run)") from error
    except ApiError as error:
        raise CommandError(error.message) from error
    except CallFailed as error:
        raise CommandError(str(error)) from error
