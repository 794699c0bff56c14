"""Certificates of a mesh for development and tests: an authority, and one SPIFFE certificate for each member.

A deployment takes its certificates from its own authority (SPIRE, cert-manager, Vault); the names are the same.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from interlock.domain.errors import invalid, unavailable
from interlock.runtime.tls.mutual import dns_name, spiffe_id

SERVICES = ("session", "policy", "dpe", "audit", "oversight")
MEMBERS = (*SERVICES, "sidecar", "decision", "envoy", "operator")
AUTHORITY_DAYS = 3650
# A peer's clock that is a little behind must not refuse a new certificate.
BACKDATED = timedelta(minutes=5)


@dataclass(frozen=True)
class Authority:
    """The certificate authority of one development mesh."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make(out: Path, *, trust_domain: str, days: int, hosts: Sequence[str] = ("localhost", "127.0.0.1")) -> list[Path]:
    """Write ca.pem, ca.key, and NAME.pem with NAME.key for every member, ``mesh`` and ``front``; return the certificates.

    ``mesh`` is for ``interlock serve`` without a name, which runs all services and calls none over the network;
    ``front`` is for the agents' front on *hosts*. An authority that exists is used again, so that a second run renews the certificates.
    Refused with CERTIFICATES_UNWRITABLE or CERTIFICATES_INVALID.
    """
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = _authority(out, trust_domain)
        made = [_issued(out, name, authority, _member_names([name], trust_domain), days=days) for name in MEMBERS]
        made.append(_issued(out, "mesh", authority, _member_names([*SERVICES, "sidecar"], trust_domain), days=days))
        made.append(_issued(out, "front", authority, [_host(host) for host in hosts], days=days))
    except OSError as error:
        raise unavailable("CERTIFICATES_UNWRITABLE", f"{out}: {type(error).__name__}", retry_after_ms=0) from None
    return made


def _authority(out: Path, trust_domain: str) -> Authority:
    if (out / "ca.key").exists():
        return _existing(out)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{trust_domain} authority {secrets.token_hex(4)}")])
    builder = _begun(name, name, key, AUTHORITY_DAYS)
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    certificate = builder.add_extension(usage, critical=True).sign(key, SHA256())
    _write(out / "ca.key", _pem(key), mode=0o600)
    _write(out / "ca.pem", certificate.public_bytes(Encoding.PEM), mode=0o644)
    return Authority(certificate, key)


def _existing(out: Path) -> Authority:
    try:
        key = load_pem_private_key((out / "ca.key").read_bytes(), None)
        certificate = x509.load_pem_x509_certificate((out / "ca.pem").read_bytes())
    except (ValueError, TypeError):
        raise invalid("CERTIFICATES_INVALID", f"{out}: ca.pem and ca.key are not an authority in PEM") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise invalid("CERTIFICATES_INVALID", f"{out}: ca.key is not the key of ca.pem")
    return Authority(certificate, key)


def _issued(out: Path, name: str, authority: Authority, names: Sequence[x509.GeneralName], *, days: int) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        _begun(subject, authority.certificate.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .sign(authority.key, SHA256())
    )
    # The key first: a process that reads between the two writes finds a pair that does not match, and keeps its old one.
    _write(out / f"{name}.key", _pem(key), mode=0o600)
    _write(out / f"{name}.pem", certificate.public_bytes(Encoding.PEM), mode=0o644)
    return out / f"{name}.pem"


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - BACKDATED,
        not_valid_after=now + timedelta(days=days),
    )


def _member_names(services: Sequence[str], trust_domain: str) -> list[x509.GeneralName]:
    uris = [x509.UniformResourceIdentifier(spiffe_id(trust_domain, service)) for service in services]
    return [*uris, *(x509.DNSName(dns_name(trust_domain, service)) for service in services)]


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """Replace the file with *content* atomically."""
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    scratch.replace(path)
