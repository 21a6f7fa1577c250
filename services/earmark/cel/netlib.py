"""The Kubernetes libraries for addresses, networks and URLs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from earmark.cel.declarations import Library
from earmark.cel.text import go_quote
from earmark.cel.values import NO_OVERLOAD, Failure, MapValue, OpaqueValue

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class IPValue(OpaqueValue):
    """An address."""

    __slots__ = ()
    type_name = "net.IP"
    go_name = "cel.IP"

    @property
    def size(self) -> int:
        """Its bytes, which costs count."""
        return 4 if self.key.version == 4 else 16


class CIDRValue(OpaqueValue):
    """An address with the length of a prefix; the address need not be the network's."""

    __slots__ = ()
    type_name = "net.CIDR"
    go_name = "cel.CIDR"

    @property
    def size(self) -> int:
        """The bytes of the prefix, which costs count."""
        return int(-(-self.key[1] // 8))


class URLValue(OpaqueValue):
    """A URL, compared by its text; `parts` are scheme, host, escaped path and query."""

    __slots__ = ("parts",)
    type_name = "kubernetes.URL"
    go_name = "cel.URL"

    def __init__(self, key: str, parts: tuple[str, str, str, str]) -> None:
        super().__init__(key)
        self.parts = parts


# --- addresses -------------------------------------------------------------------------------------------------------


def address_of(text: str) -> _Address | str:
    """The address of a text, or what Go says of it."""
    bare = text.partition("%")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        problem = _address_problem(text)
        return f"IP Address {go_quote(text)} parse error during conversion from string: {problem}"
    if "%" in text:
        if address.version == 4:
            problem = f"ParseAddr({go_quote(text)}): unexpected character (at {go_quote(text[len(bare) :])})"
            return f"IP Address {go_quote(text)} parse error during conversion from string: {problem}"
        return f"IP address {go_quote(text)} with zone value is not allowed"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed"
    return address


def _address_problem(text: str) -> str:
    quoted = go_quote(text)
    for char in text:
        if char == ".":
            return _ipv4_problem(text)
        if char == ":":
            return f"ParseAddr({quoted}): {_ipv6_problem(text)}"
        if char == "%":
            return f"ParseAddr({quoted}): missing IPv6 address"
    return f"ParseAddr({quoted}): unable to parse IP"


def _ipv4_problem(text: str) -> str:
    start = f"ParseAddr({go_quote(text)}): "
    value, fields, digits = 0, 0, 0
    for at, char in enumerate(text):
        if char in "0123456789":
            if digits == 1 and value == 0:
                return start + "IPv4 field has octet with leading zero"
            value = value * 10 + int(char)
            digits += 1
            if value > 255:
                return start + "IPv4 field has value >255"
        elif char == ".":
            if at in (0, len(text) - 1) or text[at - 1] == ".":
                return start + f"IPv4 field must have at least one digit (at {go_quote(text[at:])})"
            if fields == 3:
                return start + "IPv4 address too long"
            fields, value, digits = fields + 1, 0, 0
        else:
            return start + f"unexpected character (at {go_quote(text[at:])})"
    return start + "IPv4 address too short"


def _ipv6_problem(text: str) -> str:
    if re.search(r"[0-9a-fA-F]{5,}", text):
        return "each group must have 4 or less digits"
    return "address string too short" if text.count(":") < 7 else "trailing garbage after address"


def _ip(text: str) -> Any:
    address = address_of(text)
    return Failure(address) if isinstance(address, str) else IPValue(address)


def _is_ip(text: str) -> Any:
    return not isinstance(address_of(text), str)


def _is_canonical(text: str) -> Any:
    address = address_of(text)
    return Failure(address) if isinstance(address, str) else str(address) == text


def _is_loopback(address: _Address) -> bool:
    return address.is_loopback


def _link_local_multicast(address: _Address) -> bool:
    if address.version == 4:
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02


def _link_local_unicast(address: _Address) -> bool:
    if address.version == 4:
        return int(address) >> 16 == 0xA9FE
    return int(address) >> 118 == 0xFE80 >> 6


def _global_unicast(address: _Address) -> bool:
    if address.version == 4 and int(address) in (0, 0xFFFFFFFF):
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or _link_local_unicast(address))


# --- networks --------------------------------------------------------------------------------------------------------

_BITS: Final = re.compile(r"[0-9]+", re.ASCII)


def _prefix_of(text: str) -> CIDRValue | str:
    start = "network address parse error during conversion from string: "
    quoted = go_quote(text)
    address_text, slash, bits_text = text.rpartition("/")
    if not slash:
        return f"{start}netip.ParsePrefix({quoted}): no '/'"
    bare = address_text.partition("%")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        problem = _address_problem(address_text)
        return f"{start}netip.ParsePrefix({quoted}): {problem}"
    if bare != address_text:
        return f"{start}netip.ParsePrefix({quoted}): IPv6 zones cannot be present in a prefix"
    if not _BITS.fullmatch(bits_text) or (len(bits_text) > 1 and bits_text[0] == "0"):
        return f"{start}netip.ParsePrefix({quoted}): bad bits after slash: {go_quote(bits_text)}"
    if len(bits_text) > 3 or int(bits_text) > (32 if address.version == 4 else 128):
        return f"{start}netip.ParsePrefix({quoted}): prefix length out of range"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return f"IPv4-mapped IPv6 address {quoted} is not allowed"
    return CIDRValue((address, int(bits_text)))


def _cidr(text: str) -> Any:
    prefix = _prefix_of(text)
    if isinstance(prefix, str):
        return Failure(f"network address parse error during conversion from string: {prefix}")
    return prefix


def _within(cidr: CIDRValue, address: _Address, bits: int) -> bool:
    """Whether a network contains all addresses of a prefix."""
    own, length = cidr.key
    if own.version != address.version or length > bits:
        return False
    shift = (32 if own.version == 4 else 128) - length
    return bool(int(own) >> shift == int(address) >> shift)


def _contains_ip(cidr: CIDRValue, other: Any) -> Any:
    address = _ip(other) if other.__class__ is str else other
    if address.__class__ is not IPValue:
        return NO_OVERLOAD
    return _within(cidr, address.key, 128)


def _contains_cidr(cidr: CIDRValue, other: Any) -> Any:
    network = _cidr(other) if other.__class__ is str else other
    if network.__class__ is Failure:
        return network
    return _within(cidr, *network.key)


def _masked(cidr: CIDRValue) -> Any:
    address, bits = cidr.key
    shift = (32 if address.version == 4 else 128) - bits
    return CIDRValue((address.__class__(int(address) >> shift << shift), bits))


# --- URLs ------------------------------------------------------------------------------------------------------------

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORT: Final = re.compile(r"(:[0-9]*)?", re.ASCII)
_HOST: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]*")
_PATH: Final = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]]")
_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")


def parse_request_uri(text: str) -> URLValue | str:
    """url.ParseRequestURI and Parse, or the text of their error."""
    problem = f"URL parse error during conversion from string: parse {go_quote(text)}: "
    if _CONTROL.search(text):
        return problem + "net/url: invalid control character in URL"
    if not text:
        return problem + "empty url"
    if text == "*":
        return URLValue("*", ("", "", "*", ""))
    scheme, rest = "", text
    match = _SCHEME.match(text)
    if match is not None:
        scheme, rest = match[1].lower(), text[match.end() :]
    elif text[0] == ":":
        return problem + "missing protocol scheme"
    whole, _, fragment = rest.partition("#")
    if rest != whole and not scheme and not whole.startswith("/"):
        return problem + "invalid URI for request"
    before, question, query = whole.partition("?")
    if not before.startswith("/"):
        if not scheme:
            return problem + "invalid URI for request"
        return URLValue(text, (scheme, "", "", query))
    host, path = "", before
    if before.startswith("//") and (scheme or not before.startswith("///")):
        authority, slash, tail = before[2:].partition("/")
        path = slash + tail
        host = authority.rpartition("@")[2]
        wrong = _host_problem(host)
        if wrong:
            return problem + wrong
    bad = _ESCAPE.search(path)
    if bad is not None:
        return problem + f"invalid URL escape {go_quote(path[bad.start() : bad.start() + 3])}"
    escaped = "".join(
        char if _PATH.match(char) or char == "%" else "".join(f"%{one:02X}" for one in char.encode()) for char in path
    )
    shown = (f"{scheme}:" if scheme else "") + (f"//{before[2:].partition('/')[0]}" if host else "") + escaped
    return URLValue(f"{shown}{question}{query}#{fragment}", (scheme, host, escaped, query))


def _host_problem(host: str) -> str:
    if host.startswith("["):
        closing = host.rfind("]")
        if closing < 0:
            return "missing ']' in host"
        port = host[closing + 1 :]
    else:
        at = host.rfind(":")
        port = host[at:] if at >= 0 else ""
    if not _PORT.fullmatch(port):
        return f"invalid port {go_quote(port)} after host"
    match = _HOST.match(host)
    if match is not None and match.end() < len(host):
        return f"invalid character {go_quote(host[match.end()])} in host name"
    bad = _ESCAPE.search(host)
    return f"invalid URL escape {go_quote(host[bad.start() : bad.start() + 3])}" if bad is not None else ""


def _url(text: str) -> Any:
    url = parse_request_uri(text)
    return Failure(url) if isinstance(url, str) else url


def _is_url(text: str) -> Any:
    return not isinstance(parse_request_uri(text), str)


def _hostname(host: str) -> str:
    at = host.rfind(":")
    if (at >= 0 and host[at + 1 :].isdigit()) or host.endswith(":"):
        host = host[:at]
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _port(host: str) -> str:
    at = host.rfind(":")
    if at < 0 or (host.startswith("[") and at < host.rfind("]")):
        return ""
    return host[at + 1 :] if host[at + 1 :].isdigit() else ""


def _query(url: URLValue) -> Any:
    found: dict[Any, tuple[str, ...]] = {}
    for pair in url.parts[3].split("&"):
        if not pair or ";" in pair:
            continue
        name, _, value = pair.partition("=")
        if _ESCAPE.search(name) or _ESCAPE.search(value):
            continue
        key = unquote_to_bytes(name.replace("+", " ")).decode("utf-8", "replace")
        found[key] = (*found.get(key, ()), unquote_to_bytes(value.replace("+", " ")).decode("utf-8", "replace"))
    return MapValue(dict(found))


def declare(library: Library) -> None:
    """Add them."""

    def member(name: str, identifier: str, signature: str, implementation: Callable[..., Any]) -> None:
        library.add(name, identifier, signature, implementation, member=True)

    def of_address(name: str, identifier: str, test: Callable[[_Address], bool]) -> None:
        member(name, identifier, "ip -> bool", lambda value: test(value.key))

    library.add("ip", "string_to_ip", "string -> ip", _ip)
    library.add("isIP", "is_ip", "string -> bool", _is_ip)
    library.add("ip.isCanonical", "ip_is_canonical", "string -> bool", _is_canonical)
    library.add("string", "ip_to_string", "ip -> string", lambda value: str(value.key))
    member("family", "ip_family", "ip -> int", lambda value: value.key.version)
    of_address("isUnspecified", "ip_is_unspecified", lambda address: address.is_unspecified)
    of_address("isLoopback", "ip_is_loopback", _is_loopback)
    of_address("isLinkLocalMulticast", "ip_is_link_local_multicast", _link_local_multicast)
    of_address("isLinkLocalUnicast", "ip_is_link_local_unicast", _link_local_unicast)
    of_address("isGlobalUnicast", "ip_is_global_unicast", _global_unicast)

    library.add("cidr", "string_to_cidr", "string -> cidr", _cidr)
    library.add("isCIDR", "is_cidr", "string -> bool", lambda text: not isinstance(_prefix_of(text), str))
    library.add("string", "cidr_to_string", "cidr -> string", lambda value: f"{value.key[0]}/{value.key[1]}")
    member("containsIP", "cidr_contains_ip_string", "cidr, string -> bool", _contains_ip)
    member("containsIP", "cidr_contains_ip_ip", "cidr, ip -> bool", _contains_ip)
    member("containsCIDR", "cidr_contains_cidr_string", "cidr, string -> bool", _contains_cidr)
    member("containsCIDR", "cidr_contains_cidr", "cidr, cidr -> bool", _contains_cidr)
    member("ip", "cidr_ip", "cidr -> ip", lambda value: IPValue(value.key[0]))
    member("prefixLength", "cidr_prefix_length", "cidr -> int", lambda value: value.key[1])
    member("masked", "cidr_masked", "cidr -> cidr", _masked)

    library.add("url", "string_to_url", "string -> url", _url)
    library.add("isURL", "is_url_string", "string -> bool", _is_url)
    member("getScheme", "url_get_scheme", "url -> string", lambda url: url.parts[0])
    member("getHost", "url_get_host", "url -> string", lambda url: url.parts[1])
    member("getHostname", "url_get_hostname", "url -> string", lambda url: _hostname(url.parts[1]))
    member("getPort", "url_get_port", "url -> string", lambda url: _port(url.parts[1]))
    member("getEscapedPath", "url_get_escaped_path", "url -> string", lambda url: url.parts[2])
    member("getQuery", "url_get_query", "url -> map<string,list<string>>", _query)
