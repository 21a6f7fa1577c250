"""How a Kubernetes API is reached: read from a kubeconfig, or from the service account of a pod.

lightkube reads the file; here it becomes what an HTTPS client needs. Credentials are never part of an error or a log.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from lightkube.config.kubeconfig import SERVICE_ACCOUNT, KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError


class KubeconfigError(ValueError):
    """A kubeconfig cannot be used; the text names the file."""


@dataclass(frozen=True, slots=True)
class Access:
    """An API's address and what is shown to it."""

    server: str
    namespace: str = "default"
    ca_pem: str = ""
    insecure: bool = False
    token: str = field(default="", repr=False)
    # Read anew for every connection: tokens of service accounts are rotated.
    token_file: Path | None = None
    basic: tuple[str, str] | None = field(default=None, repr=False)
    # Certificate and key of the client, as PEM.
    client_pem: str = field(default="", repr=False)

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS settings; None for an address without TLS."""
        if not self.server.startswith("https://"):
            return None
        context = ssl.create_default_context(cadata=self.ca_pem or None)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_pem:
            # The ssl module reads certificates from files only; this one is readable by its owner alone.
            with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="ascii") as file:
                file.write(self.client_pem)
                file.flush()
                context.load_cert_chain(file.name)
        return context

    def authorization(self) -> str:
        """Return the value of the Authorization header, "" if there is none."""
        if self.token_file is not None:
            return f"Bearer {self.token_file.read_text(encoding='utf-8').strip()}"
        if self.token:
            return f"Bearer {self.token}"
        if self.basic is not None:
            pair = f"{self.basic[0]}:{self.basic[1]}".encode()
            return f"Basic {base64.b64encode(pair).decode('ascii')}"
        return ""


def from_file(path: Path, context: str = "") -> Access:
    """Read a kubeconfig; `context` chooses another than the current one.

    Raises KubeconfigError.
    """
    try:
        config = KubeConfig.from_file(str(path)).get(context or None)
        assert config is not None
        return _access(config)
    except (ConfigError, OSError, yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
        # The loader lets whatever a malformed file leads to through; its text may quote credentials.
        shown = str(error) if isinstance(error, ConfigError | OSError) else f"malformed ({type(error).__name__})"
        raise KubeconfigError(f"{path}: not a usable kubeconfig: {shown}") from error


def in_cluster() -> Access:
    """Return the access of the pod that this process runs in; raises KubeconfigError if it runs in none."""
    try:
        config = KubeConfig.from_service_account().get()
        assert config is not None
        access = _access(config)
    except (ConfigError, OSError, KeyError) as error:
        raise KubeconfigError(f"not in a cluster: {error}") from error
    return Access(
        access.server, access.namespace, access.ca_pem, access.insecure, token_file=Path(SERVICE_ACCOUNT) / "token"
    )


def find(path: Path | None = None) -> Access:
    """Return the access of a given kubeconfig, else of $KUBECONFIG, the cluster around this pod, or the home folder."""
    if path is not None:
        return from_file(path)
    if os.environ.get("KUBECONFIG"):
        return from_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0]))
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    return from_file(Path("~/.kube/config").expanduser())


def _access(config: SingleConfig) -> Access:
    cluster, user = config.cluster, config.user
    ca_pem = _pem(config, cluster.certificate_auth_data, cluster.certificate_auth)
    server = str(cluster.server).rstrip("/")
    if user is None:
        return Access(server, config.namespace, ca_pem, bool(cluster.insecure))
    if user.exec is not None:
        raise ConfigError("credentials from a command (exec) are not supported; use a token or a certificate")
    certificate = _pem(config, user.client_cert_data, user.client_cert)
    key = _pem(config, user.client_key_data, user.client_key)
    return Access(
        server,
        config.namespace,
        ca_pem,
        bool(cluster.insecure),
        token=user.token or "",
        token_file=Path(config.abs_file(user.token_file)) if user.token_file else None,
        basic=(user.username, user.password) if user.username and user.password else None,
        client_pem=f"{certificate}\n{key}" if certificate and key else "",
    )


def _pem(config: SingleConfig, data: str | None, file: str | None) -> str:
    """Return what is given in the kubeconfig itself or in a file beside it."""
    if data:
        return base64.b64decode(data).decode("ascii")
    return Path(config.abs_file(file)).read_text(encoding="ascii") if file else ""
