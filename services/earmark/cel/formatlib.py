"""The Kubernetes library of named formats: format.dns1123Label().validate(text)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final

from earmark.cel.declarations import Library
from earmark.cel.netlib import parse_request_uri
from earmark.cel.values import ABSENT, OpaqueValue, OptionalValue

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = _LABEL + "(\\." + _LABEL + ")*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I | re.ASCII)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII)
_DASHES: Final = "must consist of lower case alphanumeric characters"
_ENDS: Final = "and must start and end with an alphanumeric character"


class FormatValue(OpaqueValue):
    """A named format."""

    __slots__ = ("regex_size", "validate")
    type_name = "kubernetes.NamedFormat"
    go_name = "cel.Format"

    def __init__(self, name: str, regex_size: int, validate: Callable[[str], list[str]]) -> None:
        super().__init__(name)
        self.regex_size = regex_size
        self.validate = validate


def _regex_error(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{one}', " for one in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(text: str, length: int) -> list[str]:
    return [f"must be no more than {length} characters"] if len(text.encode()) > length else []


def _label(text: str) -> list[str]:
    faults = _too_long(text, 63)
    if not re.fullmatch(_LABEL, text):
        if re.fullmatch(_SUBDOMAIN, text):
            return [*faults, "must not contain dots"]
        message = f"a lowercase RFC 1123 label {_DASHES} or '-', {_ENDS}"
        faults.append(_regex_error(message, _LABEL, "my-name", "123-abc"))
    return faults


def _subdomain(text: str) -> list[str]:
    faults = _too_long(text, 253)
    if not re.fullmatch(_SUBDOMAIN, text):
        message = f"a lowercase RFC 1123 subdomain {_DASHES}, '-' or '.', {_ENDS}"
        faults.append(_regex_error(message, _SUBDOMAIN, "example.com"))
    return faults


def _label_1035(text: str) -> list[str]:
    faults = _too_long(text, 63)
    if not re.fullmatch(_LABEL_1035, text):
        message = (
            f"a DNS-1035 label {_DASHES} or '-', start with an alphabetic character, and end with an alphanumeric "
            "character"
        )
        faults.append(_regex_error(message, _LABEL_1035, "my-name", "abc-123"))
    return faults


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The check of a name that something is appended to: it may end in a dash."""

    def masked(text: str) -> list[str]:
        # Upstream cuts two characters and puts one in their place.
        return check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)

    return masked


def _qualified_name(text: str) -> list[str]:
    message = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
    wrong = _regex_error(message, _KEY, "MyName", "my.name", "123-abc")
    prefix, slash, name = text.partition("/")
    if "/" in name:
        return [f"a valid label key {wrong} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    faults: list[str] = []
    if not slash:
        name = prefix
    elif not prefix:
        faults.append("prefix part must be non-empty")
    else:
        faults += [f"prefix part {fault}" for fault in _subdomain(prefix)]
    if not name:
        faults.append("name part must be non-empty")
    else:
        faults += [f"name part {fault}" for fault in _too_long(name, 63)]
    if not re.fullmatch(_KEY, name):
        faults.append(f"name part {wrong}")
    return faults


def _label_value(text: str) -> list[str]:
    faults = _too_long(text, 63)
    if not re.fullmatch(_VALUE, text):
        message = (
            f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
        )
        faults.append(_regex_error(message, _VALUE, "MyValue", "my_value", "12345"))
    return faults


def _uri(text: str) -> list[str]:
    found = parse_request_uri(text)
    return [found.removeprefix("URL parse error during conversion from string: ")] if isinstance(found, str) else []


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = (int(part) for part in match.groups())
    try:
        # Year 0 is a leap year, which Python does not have.
        date(year or 2000, month, day)
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest.partition("t")[0])
    return match is not None and _is_date(day) and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _holds(test: Callable[[str], bool], message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if test(text) else [message]


_FORMATS: Final = {
    "dns1123Label": FormatValue("DNS1123Label", 30, _label),
    "dns1123Subdomain": FormatValue("DNS1123Subdomain", 60, _subdomain),
    "dns1035Label": FormatValue("DNS1035Label", 30, _label_1035),
    "qualifiedName": FormatValue("QualifiedName", 60, _qualified_name),
    "dns1123LabelPrefix": FormatValue("DNS1123LabelPrefix", 30, _prefix(_label)),
    "dns1123SubdomainPrefix": FormatValue("DNS1123SubdomainPrefix", 60, _prefix(_subdomain)),
    "dns1035LabelPrefix": FormatValue("DNS1035LabelPrefix", 30, _prefix(_label_1035)),
    "labelValue": FormatValue("LabelValue", 40, _label_value),
    "uri": FormatValue("URI", 1103, _uri),
    "uuid": FormatValue(
        "uuid", 70, _holds(lambda text: _UUID.fullmatch(text) is not None, "does not match the UUID format")
    ),
    "byte": FormatValue("byte", 84, _holds(lambda text: _BASE64.fullmatch(text) is not None, "invalid base64")),
    "date": FormatValue("date", 71, _holds(_is_date, "invalid date")),
    "datetime": FormatValue("datetime", 71, _holds(_is_datetime, "invalid datetime")),
}


def _named(name: str) -> Any:
    found = _FORMATS.get(name)
    return ABSENT if found is None else OptionalValue(found)


def _validate(named: FormatValue, text: str) -> Any:
    faults = named.validate(text)
    return OptionalValue(tuple(faults)) if faults else ABSENT


def _constant(value: FormatValue) -> Callable[[], FormatValue]:
    return lambda: value


def declare(library: Library) -> None:
    """Add the formats."""
    for name, value in _FORMATS.items():
        library.add(f"format.{name}", f"format.{name}", "-> format", _constant(value))
    library.add("format.named", "format-named", "string -> optional<format>", _named)
    library.add("validate", "format-validate", "format, string -> optional<list<string>>", _validate, member=True)
