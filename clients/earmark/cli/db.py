"""`earmark db check`: whether the embedded API's store is sound. Nothing of it is changed."""

from __future__ import annotations

import os
from pathlib import Path

from earmark.apiserver.component import STORE_NAME
from earmark.apiserver.settings import ApiServerSettings
from earmark.apiserver.sqlite import check, summary
from earmark.apiserver.storage import StoreError
from earmark.cli.errors import FAILED, BadInput, CommandError
from earmark.runtime.process import RuntimeSettings
from earmark.runtime.settings import SettingsError, load, read_file


def check_store(runtime: RuntimeSettings, config: Path | None, store: Path | None) -> int:
    """Check a store, by default that of the settings; print what is wrong, one line each.

    Returns 0 if the store is sound, 1 if it is damaged. Raises BadInput where there is no store, CommandError where it
    is in use or belongs to something else.
    """
    path = store if store is not None else _store_of(runtime, config)
    if not path.is_file():
        raise BadInput(f"{path}: no such store")
    try:
        problems = check(path)
        found = summary(path) if not problems else ""
    except StoreError as error:
        raise CommandError(str(error)) from error
    for problem in problems:
        print(problem)
    print(f"{path}: {f'{len(problems)} problems' if problems else f'sound: {found}'}")
    return FAILED if problems else 0


def _store_of(runtime: RuntimeSettings, config: Path | None) -> Path:
    try:
        settings = load(ApiServerSettings, "apiserver", file=config, tables=read_file(config), environ=os.environ)
    except SettingsError as error:
        raise BadInput(str(error)) from error
    return runtime.state / settings.data_dir / STORE_NAME
