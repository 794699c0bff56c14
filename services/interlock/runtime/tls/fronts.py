"""TLS of the fronts for agents and reviewers: a server certificate, reloaded when its files change.

Agents are not members of the mesh: they present an API key and no certificate.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc

from interlock.domain.errors import invalid, unavailable
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import Reread
from interlock.runtime.tls.mutual import EXPIRY, check_key, check_time, read_certificates


@dataclass(frozen=True)
class Pair:
    """A certificate with its chain and its private key."""

    chain: bytes
    key: bytes = field(repr=False)
    expires_at: datetime


class FrontTls:
    """The current certificate of this process's fronts."""

    def __init__(self, cert_file: Path, key_file: Path) -> None:
        self._held = Reread([cert_file, key_file], _pair, setting="front_cert_file", secret=[key_file])
        self._served: Pair | None = None
        self._context: ssl.SSLContext | None = None
        self._loaded: Pair | None = None

    def now(self) -> Pair:
        """Return the pair in force."""
        return self._held.now()

    def server_credentials(self) -> grpc.ServerCredentials:
        """Return gRPC credentials that check the files at each handshake."""
        self._served = self._held.now()
        return grpc.dynamic_ssl_server_credentials(_configuration(self._served), self._changed)

    def context(self) -> ssl.SSLContext:
        """Return the context of an HTTP server. ``follow`` loads a changed certificate into it."""
        if self._context is None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.minimum_version = ssl.TLSVersion.TLSv1_2
            self.follow()
        return self._context

    def follow(self) -> None:
        """Load the current certificate for new connections of ``context``."""
        held = self._held.now()
        if self._context is not None and held is not self._loaded:
            _load(self._context, held)
            self._loaded = held

    def _changed(self) -> Any:
        found = self._held.now()
        if found is self._served:
            return None
        self._served = found
        return _configuration(found)


def open_front_tls(settings: Settings) -> FrontTls | None:
    """Return the fronts' certificate; ``None`` without one. Refused with TLS_SETTINGS_INCOMPLETE for a file without the other."""
    cert, key = settings.front_cert_file, settings.front_key_file
    if cert and key:
        return FrontTls(cert, key)
    if cert or key:
        raise invalid("TLS_SETTINGS_INCOMPLETE", "front_cert_file and front_key_file must be set together")
    return None


def _pair(contents: Sequence[bytes]) -> Pair:
    chain, key = contents
    try:
        leaf = read_certificates(chain, "front_cert_file")[0]
        check_key(leaf, key, "front_key_file")
        check_time(leaf)
        found = Pair(chain, key, leaf.not_valid_after_utc)
        # Loaded once here, so that a pair that OpenSSL rejects never comes into force.
        _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), found)
    except (ValueError, ssl.SSLError) as error:
        raise unavailable("TLS_FILES_INVALID", str(error), retry_after_ms=0) from None
    EXPIRY.labels("front").set(leaf.not_valid_after_utc.timestamp())
    return found


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    """Load a pair into a context from the checked bytes: OpenSSL reads files, and the original ones may change meanwhile."""
    with tempfile.TemporaryDirectory() as folder:  # readable by the owner only
        cert, key = Path(folder) / "cert.pem", Path(folder) / "key.pem"
        cert.write_bytes(pair.chain)
        key.write_bytes(pair.key)
        context.load_cert_chain(cert, key)


def _configuration(pair: Pair) -> Any:
    return grpc.ssl_server_certificate_configuration([(pair.key, pair.chain)])
