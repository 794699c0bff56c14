"""Certificates of an installation: how long they are good, and whether the API server trusts the webhook's."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from interlock.cli.cluster.installation import Installation
from interlock.domain.errors import Refused
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus

LEFT = 0.2
"""Share of its life below which a certificate is told to be renewed."""


def certificates(release: Installation, now: datetime | None = None) -> Iterator[ProbeFinding]:
    """Check every certificate in a Secret of the release and of its sidecars."""
    line = partial(ProbeFinding, "certificates")
    for (place, name), held in release.secrets.items():
        if isinstance(held, Refused) or held is None or not held.get("tls.crt"):
            continue
        shown = f"{place}/{name}"
        try:
            leaf = x509.load_pem_x509_certificates(held["tls.crt"])[0]
        except ValueError:
            yield line(shown, ProbeStatus.FAIL, "tls.crt is no certificate", "write it again")
            continue
        yield _life(line, shown, leaf, now or datetime.now(UTC))


def distrusted(client: Mapping[str, Any], held: Mapping[str, bytes]) -> str:
    """Return why the API server does not trust what a webhook presents; empty where it does."""
    service = client.get("service") or {}
    host = f"{service.get('name')}.{service.get('namespace')}.svc"
    try:
        trusted = x509.load_pem_x509_certificates(base64.b64decode(str(client.get("caBundle") or ""), validate=True))
    except (ValueError, binascii.Error):
        return "its caBundle holds no certificate: the API server calls nobody"
    try:
        leaf, *chain = x509.load_pem_x509_certificates(held.get("tls.crt") or b"")
    except ValueError:
        return "the injector's Secret holds no certificate"
    try:
        verifier = (
            PolicyBuilder().store(Store(trusted)).time(datetime.now(UTC)).build_server_verifier(x509.DNSName(host))
        )
        verifier.verify(leaf, chain)
    except VerificationError as error:
        return f"its caBundle does not vouch for the injector's certificate for {host}: {_short(error)}"
    return ""


def _life(line: Callable[..., ProbeFinding], name: str, leaf: x509.Certificate, now: datetime) -> ProbeFinding:
    begins, ends = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    told = f"valid until {ends:%Y-%m-%d %H:%M} UTC"
    hint = "renew it: helm upgrade for those that the chart makes, else your authority"
    if not begins <= now <= ends:
        return line(name, ProbeStatus.FAIL, f"it is not valid now: {begins:%Y-%m-%d} to {ends:%Y-%m-%d}", hint)
    if (ends - now) < (ends - begins) * LEFT:
        return line(name, ProbeStatus.WARN, f"{told}: less than a fifth is left", hint)
    return line(name, ProbeStatus.OK, told)


def _short(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:160]
