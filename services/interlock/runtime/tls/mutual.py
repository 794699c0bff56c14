"""Mutual TLS between the processes of a mesh: this process's identity, its trusted authorities, and rotation (SVC-6).

The SPIFFE id in its certificate, ``spiffe://<trust domain>/<service>``, names a process. Servers read it from the verified
chain and check it against ``callers.py``. Clients check the DNS name ``<service>.<trust domain>`` of the server's certificate:
gRPC for Python compares DNS names only, and shows a client nothing else of its peer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import grpc
import structlog
from prometheus_client import Gauge

from interlock.domain.errors import Refused, invalid, unavailable
from interlock.runtime.settings.access import is_loopback
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import Reread, read_content

if TYPE_CHECKING:
    from cryptography import x509  # eight megabytes that a sidecar without certificates saves

log = structlog.get_logger()

EXPIRY = Gauge(
    "interlock_certificate_expiry_seconds",
    "Seconds since the epoch at which the certificate in force ends.",
    ["certificate"],
)

CONNECTION_AGE_MS = 300_000
"""Maximum age of a connection, five minutes: a peer whose certificate expired is disconnected by then."""

_SETTINGS = ("tls_cert_file", "tls_key_file", "tls_ca_file")
_HINT = "see docs/security-operations.md"


@dataclass(frozen=True)
class Identity:
    """A certificate with its private key, and the trusted authorities."""

    chain: bytes
    key: bytes = field(repr=False)
    authorities: bytes
    services: frozenset[str]
    """Services of the trust domain that the certificate names. A process that runs several services has several."""
    expires_at: datetime


class Tls:
    """The current certificates of this process."""

    def __init__(self, settings: Settings) -> None:
        self.trust_domain = settings.tls_trust_domain
        files = [path for name in _SETTINGS if (path := getattr(settings, name))]
        self._held = Reread(files, self._identity, setting="tls_cert_file", secret=[files[1]])
        self._served: Identity | None = None

    def now(self) -> Identity:
        """Return the identity in force."""
        return self._held.now()

    def require(self, services: Iterable[str]) -> None:
        """Refuse with TLS_IDENTITY_MISMATCH to serve a service that the certificate does not name: no client would accept it."""
        for service in services:
            if service not in self.now().services:
                raise _bad(
                    "TLS_IDENTITY_MISMATCH", f"the certificate does not name {spiffe_id(self.trust_domain, service)}"
                )

    def server_credentials(self) -> grpc.ServerCredentials:
        """Return credentials that require a certificate of every client and check the files at each handshake."""
        self._served = self.now()
        return grpc.dynamic_ssl_server_credentials(
            _configuration(self._served), self._changed, require_client_authentication=True
        )

    def _changed(self) -> Any:
        """Return the configuration if it changed since the last handshake, otherwise ``None``. gRPC's own threads call it."""
        found = self.now()
        if found is self._served:
            return None
        self._served = found
        return _configuration(found)

    def channel(self, service: str, address: str, options: Sequence[tuple[str, Any]]) -> grpc.aio.Channel:
        """Return a channel to *service* that presents the identity in force."""
        held = self.now()
        credentials = grpc.ssl_channel_credentials(held.authorities, held.key, held.chain)
        name = ("grpc.ssl_target_name_override", dns_name(self.trust_domain, service))
        return grpc.aio.secure_channel(address, credentials, options=[*options, name])

    def _identity(self, contents: Sequence[bytes]) -> Identity:
        try:
            found = read_identity(contents[0], contents[1], contents[2], self.trust_domain)
        except ValueError as error:
            raise _bad("TLS_FILES_INVALID", str(error)) from None
        EXPIRY.labels("mesh").set(found.expires_at.timestamp())
        return found


def open_tls(settings: Settings) -> Tls | None:
    """Return the certificates of the settings; ``None`` without any. Refused with TLS_SETTINGS_INCOMPLETE for an incomplete set."""
    given = [name for name in _SETTINGS if getattr(settings, name)]
    if not given:
        return None
    if missing := [name for name in _SETTINGS if name not in given]:
        raise invalid("TLS_SETTINGS_INCOMPLETE", f"{' and '.join(given)} without {' and '.join(missing)}", hint=_HINT)
    return Tls(settings)


def channel_to(
    service: str, settings: Settings, address: str, options: Sequence[tuple[str, Any]] = ()
) -> grpc.aio.Channel:
    """Return a channel for a few calls, with the TLS of the settings. The channel to the sidecar uses the agents' front."""
    if address.startswith("unix:"):
        return grpc.aio.insecure_channel(address, options=options)
    tls = open_tls(settings) if service != "sidecar" else None
    if service not in {"sidecar", "decision"} or tls:
        return tls.channel(service, address, options) if tls else grpc.aio.insecure_channel(address, options=options)
    if settings.front_cert_file is None:
        return grpc.aio.insecure_channel(address, options=options)
    roots = read_content(settings.tls_ca_file) if settings.tls_ca_file else None
    leaf = read_certificates(read_content(settings.front_cert_file), "front_cert_file")[0]
    name = [("grpc.ssl_target_name_override", one) for one in _dns_names(leaf)[:1]]
    return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(roots), options=[*options, *name])


def require_private(settings: Settings, *, front: bool) -> None:
    """Refuse plain text that the wrong ones could reach, with PLAINTEXT_REFUSED, unless ``allow_plaintext`` is set.

    A *front* serves agents and reviewers, who present a key: plain text is for this machine. Any other port belongs to the
    mesh and takes its callers' word, so without certificates every process of this machine, an agent too, could speak for
    any caller: a port needs certificates on loopback too, or is a socket (``rpc/places.py``).
    """
    encrypted = settings.front_cert_file if front else settings.tls_cert_file
    if encrypted or settings.allow_plaintext:
        return
    if is_loopback(settings.host):
        if front:
            return
        raise invalid(
            "PLAINTEXT_REFUSED",
            f"a port of the mesh on {settings.host} without certificates is open to every process of this machine",
            hint="set no port, so that a socket that only its owner may open is used; or set tls_cert_file, tls_key_file "
            "and tls_ca_file; or allow_plaintext where nothing untrusted runs",
        )
    wanted = "front_cert_file and front_key_file" if front else "tls_cert_file, tls_key_file and tls_ca_file"
    raise invalid(
        "PLAINTEXT_REFUSED",
        f"plain text on {settings.host} could be read by other machines",
        hint=f"set {wanted}, bind 127.0.0.1, or set allow_plaintext where something else encrypts",
    )


def spiffe_id(trust_domain: str, service: str) -> str:
    """Return the id that names *service* to the services it calls."""
    return f"spiffe://{trust_domain}/{service}"


def dns_name(trust_domain: str, service: str) -> str:
    """Return the name of *service* for its callers."""
    return f"{service}.{trust_domain}"


def read_identity(chain: bytes, key: bytes, authorities: bytes, trust_domain: str) -> Identity:
    """Return the identity in three PEM texts. Raises ``ValueError``, which names the invalid one and never shows it."""
    certificates = read_certificates(chain, "tls_cert_file")
    roots = read_certificates(authorities, "tls_ca_file")
    leaf = certificates[0]
    check_key(leaf, key, "tls_key_file")
    _check_chain(certificates, roots)
    check_time(leaf)
    services = _named(leaf, trust_domain)
    if not services:
        raise ValueError(f"the certificate names no service of {trust_domain} by URI and DNS name")
    return Identity(chain, key, authorities, services, leaf.not_valid_after_utc)


def read_certificates(pem: bytes, setting: str) -> list[x509.Certificate]:
    """Return the certificates of a PEM text, at least one. Raises ``ValueError``, which names the *setting* of the file."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise ValueError(f"{setting} holds no certificates in PEM") from None


def check_key(leaf: x509.Certificate, key: bytes, setting: str) -> None:
    """Check that a private key belongs to a certificate. Raises ``ValueError`` if it does not."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    try:
        public = load_pem_private_key(key, None).public_key()
    except (ValueError, TypeError):
        raise ValueError(f"{setting} holds no private key in PEM without a password") from None
    own, certified = (
        one.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for one in (public, leaf.public_key())
    )
    if own != certified:
        raise ValueError("the private key does not belong to the certificate")


def check_time(leaf: x509.Certificate, *, now: datetime | None = None) -> None:
    """Raise ``ValueError`` for a certificate that is not yet valid or has expired."""
    if not leaf.not_valid_before_utc <= (now or datetime.now(UTC)) <= leaf.not_valid_after_utc:
        raise ValueError("the certificate is not valid now")


def _check_chain(certificates: Sequence[x509.Certificate], roots: Sequence[x509.Certificate]) -> None:
    """Verify each certificate with the next one, and the last one with the authorities."""
    for number, one in enumerate(certificates):
        issuers = certificates[number + 1 : number + 2] or roots
        if not any(_issued(one, issuer) for issuer in (*issuers, *roots)):
            raise ValueError("the certificate does not lead to an authority of tls_ca_file")


def _issued(one: x509.Certificate, issuer: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        one.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _named(leaf: x509.Certificate, trust_domain: str) -> frozenset[str]:
    """Return the services that a certificate names both by SPIFFE id and by DNS name."""
    from cryptography import x509

    prefix = spiffe_id(trust_domain, "")
    uris = _names(leaf, x509.UniformResourceIdentifier)
    ids = {uri.removeprefix(prefix) for uri in uris if uri.startswith(prefix)}
    dns = _dns_names(leaf)
    return frozenset(name for name in ids if dns_name(trust_domain, name) in dns)


def _dns_names(leaf: x509.Certificate) -> list[str]:
    from cryptography import x509

    return _names(leaf, x509.DNSName)


def _names(leaf: x509.Certificate, kind: type[x509.DNSName | x509.UniformResourceIdentifier]) -> list[str]:
    from cryptography import x509

    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(name) for name in names.get_values_for_type(kind)]


def _configuration(held: Identity) -> Any:
    return grpc.ssl_server_certificate_configuration([(held.key, held.chain)], held.authorities)


def _bad(reason: str, why: str) -> Refused:
    return unavailable(reason, why, retry_after_ms=0, hint=_HINT)
