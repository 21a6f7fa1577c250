"""Which earmark a command means: the settings of its table `[runtime]`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from earmark.cli.errors import BadInput
from earmark.runtime.process import SERVICES, RuntimeSettings
from earmark.runtime.settings import RUNTIME, SettingsError, check_sections, load, read_file


def runtime_settings(config: Path | None, state_dir: Path | None) -> RuntimeSettings:
    """Return the settings of `[runtime]`; `state_dir` wins over the file. Raises BadInput."""
    try:
        tables = read_file(config)
        check_sections(tables, SERVICES, config)
        settings = load(RuntimeSettings, RUNTIME, file=config, tables=tables, environ=os.environ)
    except SettingsError as error:
        raise BadInput(str(error)) from error
    return settings if state_dir is None else replace(settings, state_dir=str(state_dir))
