"""The server's identity: a certificate authority made at the first start, and a certificate from it.

Everything is in one folder with owner-only permissions; nothing of it is ever logged.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFE = timedelta(days=3650)
CERTIFICATE_LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
# A client's clock may be a little behind.
_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Identity:
    """Files of the server's certificate, and the authority's certificate as PEM for clients."""

    certificate: Path
    key: Path
    ca_pem: bytes

    def context(self) -> ssl.SSLContext:
        """Return the TLS settings of the server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        return context


def ensure_identity(folder: Path, hosts: tuple[str, ...], now: datetime) -> Identity:
    """Return the identity kept in a folder; make what is missing, expired, or for other hosts."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ca_path, ca_key_path = folder / "ca.crt", folder / "ca.key"
    path, key_path = folder / "server.crt", folder / "server.key"
    if not (ca_path.is_file() and ca_key_path.is_file()) or _expired(_read(ca_path), now):
        ca_key, ca = _make_ca(now)
        _write(ca_key_path, _key_pem(ca_key))
        _write(ca_path, ca.public_bytes(serialization.Encoding.PEM))
        path.unlink(missing_ok=True)
    ca = _read(ca_path)
    if not (path.is_file() and key_path.is_file()) or not _good(_read(path), ca, hosts, now):
        loaded = serialization.load_pem_private_key(ca_key_path.read_bytes(), password=None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        key, certificate = _make_certificate(loaded, ca, hosts, now)
        _write(key_path, _key_pem(key))
        _write(path, certificate.public_bytes(serialization.Encoding.PEM))
    return Identity(path, key_path, ca_path.read_bytes())


def _read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def _expired(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_after_utc - RENEW_BEFORE <= now


def _good(certificate: x509.Certificate, ca: x509.Certificate, hosts: tuple[str, ...], now: datetime) -> bool:
    if _expired(certificate, now) or certificate.issuer != ca.subject:
        return False
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return list(names) == _names(hosts)


def _names(hosts: tuple[str, ...]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _make_ca(now: datetime) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    # The serial in the name keeps certificates of two authorities apart.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"earmark-ca-{serial:x}"[:60])])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key, certificate


def _make_certificate(
    ca_key: ec.EllipticCurvePrivateKey, ca: x509.Certificate, hosts: tuple[str, ...], now: datetime
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "earmark-apiserver")]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + CERTIFICATE_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_names(hosts)), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return key, certificate


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )  # fmt: skip


def _write(path: Path, content: bytes) -> None:
    write_private(path, content)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file as a whole; only its owner may read it."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
