"""Which texts are names: DNS labels and subdomains, label keys and values, qualified names."""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

# What generated names end with: no vowels, so that no words come about.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
LONGEST_GENERATED_BASE = 63 - SUFFIX_LENGTH


def is_label(text: str) -> bool:
    """Whether a text is an RFC 1123 label of at most 63 characters."""
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether a text is an RFC 1123 subdomain of at most 253 characters."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def is_qualified(text: str) -> bool:
    """Whether a text is a label key: a name of at most 63 characters, with or without a domain and a slash before."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= 63 and _QUALIFIED.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether a text may be a label's value."""
    return not text or (len(text) <= 63 and _QUALIFIED.fullmatch(text) is not None)


def is_c_identifier(text: str) -> bool:
    """Whether a text is an identifier of the C language (attribute and capacity names)."""
    return len(text) <= 32 and _C_IDENTIFIER.fullmatch(text) is not None
