"""Reads settings: a TOML file and the environment become the frozen dataclass of one service.

One file serves all services: a table a service, `[runtime]` for what every process needs, and `[common]` for keys that
every service takes whose settings have a field of that name (`feature_gates`). An environment variable
EARMARK_<SERVICE>_<FIELD> wins over the file; its value is TOML (`true`, `5`, `{DRAPreemption = true}`) or a plain text.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

S = TypeVar("S")

RUNTIME = "runtime"
COMMON = "common"

_PATH_IN_MESSAGE = re.compile(r"^(?P<text>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)


class SettingsError(ValueError):
    """Settings that cannot be used. The text names file and field, and fits on one line."""


def read_file(path: Path | None) -> Mapping[str, Any]:
    """Return the tables of a TOML file; none for None. Raises SettingsError."""
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from error


def load(
    settings_type: type[S], section: str, *, file: Path | None, tables: Mapping[str, Any], environ: Mapping[str, str]
) -> S:
    """Return the settings of one section.

    `tables` is what read_file returned for `file` (named in errors). Raises SettingsError for a field that is unknown
    or has the wrong type, in the file or in the environment.
    """
    source = str(file) if file is not None else "settings"
    fields = {field.name for field in dataclasses.fields(typing.cast(Any, settings_type))}
    table = _table(tables, section, source)
    common = _table(tables, COMMON, source)
    values = {**{key: value for key, value in common.items() if key in fields}, **table}
    _refuse_unknown(settings_type, values, f"{source}: [{section}]", "")
    result = _convert(settings_type, values, f"{source}: [{section}]")
    prefix = f"EARMARK_{section.upper()}_"
    for variable in sorted(name for name in environ if name.startswith(prefix)):
        field = variable.removeprefix(prefix).lower()
        if field not in fields:
            raise SettingsError(f"{variable}: {section} has no setting {field!r}{_hint(field, fields)}")
        values = {**values, field: _from_text(environ[variable], settings_type, field)}
        _refuse_unknown(settings_type, values, variable, "")
        result = _convert(settings_type, values, variable)
    return result


def check_sections(tables: Mapping[str, Any], known: tuple[str, ...], file: Path | None) -> None:
    """Raise SettingsError for a table that no service reads."""
    names = {*known, RUNTIME, COMMON}
    for name in tables:
        if name not in names:
            raise SettingsError(f"{file}: [{name}]: no such service{_hint(name, names)}")


def _table(tables: Mapping[str, Any], section: str, source: str) -> Mapping[str, Any]:
    table = tables.get(section, {})
    if not isinstance(table, Mapping):
        raise SettingsError(f"{source}: {section}: want a table, [{section}]")
    return table


def _convert(settings_type: type[S], values: Mapping[str, Any], where: str) -> S:
    try:
        return msgspec.convert(dict(values), type=settings_type)
    except msgspec.ValidationError as error:
        match = _PATH_IN_MESSAGE.match(str(error))
        text, path = (match["text"], match["path"]) if match else (str(error), "")
        raise SettingsError(f"{where} {path or ''}: {text}".replace(" :", ":")) from error
    except ValueError as error:
        # From a __post_init__ that looks at several fields.
        raise SettingsError(f"{where}: {error}") from error


def _refuse_unknown(settings_type: type[Any], values: Mapping[str, Any], where: str, path: str) -> None:
    hints = typing.get_type_hints(settings_type)
    for key, value in values.items():
        if key not in hints:
            raise SettingsError(f"{where} {path}{key}: unknown setting{_hint(key, hints)}")
        for inner in _dataclasses_in(hints[key]):
            items = value if isinstance(value, list) else [value]
            for number, item in enumerate(items):
                if isinstance(item, Mapping):
                    step = f"{key}[{number}]." if isinstance(value, list) else f"{key}."
                    _refuse_unknown(inner, item, where, path + step)


def _dataclasses_in(hint: Any) -> list[type[Any]]:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return [hint]
    if typing.get_origin(hint) in (tuple, list, typing.Union, types.UnionType):
        return [found for argument in typing.get_args(hint) for found in _dataclasses_in(argument)]
    return []


def _from_text(text: str, settings_type: type[Any], field: str) -> Any:
    if typing.get_type_hints(settings_type)[field] is str:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _hint(name: str, names: Any) -> str:
    import difflib

    close = difflib.get_close_matches(name, sorted(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
