"""Finding a running earmark, and talking to its Kubernetes API from a command."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from earmark.cli.errors import BadInput, CommandError
from earmark.client import ServiceUnavailable
from earmark.kube.api import ApiError, ApiUnavailable
from earmark.kube.http import HttpApi
from earmark.runtime.process import SERVICES, RuntimeSettings
from earmark.runtime.settings import RUNTIME, SettingsError, check_sections, load, read_file

T = TypeVar("T")


def runtime_settings(config: Path | None, state_dir: Path | None) -> RuntimeSettings:
    """Return the settings of `[runtime]`; `state_dir` wins over the file. Raises BadInput."""
    try:
        tables = read_file(config)
        check_sections(tables, SERVICES, config)
        settings = load(RuntimeSettings, RUNTIME, file=config, tables=tables, environ=os.environ)
    except SettingsError as error:
        raise BadInput(str(error)) from error
    return settings if state_dir is None else replace(settings, state_dir=str(state_dir))


@contextlib.asynccontextmanager
async def open_api(runtime: RuntimeSettings) -> AsyncIterator[HttpApi]:
    """Open the API that the kubeconfig names. Raises CommandError where there is none."""
    path = runtime.kubeconfig_path
    if not path.is_file():
        raise CommandError(f"{path}: no kubeconfig; is earmark running? (make run)")
    async with HttpApi.from_kubeconfig(path) as api:
        yield api


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work, and turn what the API and the services refuse into CommandErrors."""
    try:
        return asyncio.run(work)
    except ApiUnavailable as error:
        raise CommandError(f"the Kubernetes API does not answer: {error}") from error
    except ApiError as error:
        raise CommandError(error.message) from error
    except ServiceUnavailable as error:
        raise CommandError(str(error)) from error
