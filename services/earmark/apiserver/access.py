"""Who may call: the token, and the kubeconfig that hands it to clients."""

from __future__ import annotations

import base64
import hmac
import secrets
from pathlib import Path

import yaml

from earmark.apiserver.storage import StoreError
from earmark.apiserver.tls import write_private

NAME = "earmark"


def ensure_token(path: Path) -> str:
    """Return the token kept in a file; make one at the first start."""
    if path.is_file():
        token = path.read_text(encoding="utf-8").strip()
        if not token or any(char.isspace() for char in token):
            raise StoreError(f"{path}: not a token: one line of text without spaces is wanted")
        return token
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = secrets.token_urlsafe(32)
    write_private(path, token.encode())
    return token


class Guard:
    """Compares tokens in constant time."""

    def __init__(self, token: str) -> None:
        self._expected = b"Bearer " + token.encode()

    def admits(self, authorization: bytes) -> bool:
        """Whether the value of an Authorization header carries the token."""
        return hmac.compare_digest(authorization, self._expected)


def kubeconfig(server: str, ca_pem: bytes, token: str) -> str:
    """Return the text of a kubeconfig with one context."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": NAME,
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": base64.b64encode(ca_pem).decode("ascii"),
                    },
                }
            ],
            "users": [{"name": NAME, "user": {"token": token}}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
            "current-context": NAME,
        },
        sort_keys=False,
    )
